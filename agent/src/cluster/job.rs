//! The job of an allocation: from the servers' form to the core's, by way of the JSON that the two forms share.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use drover_core::model::job::Job;
use drover_core::time::Timestamp;
use drover_rpc::types::job;
use serde_json::Value as Json;

use crate::admission::{admit, read_api_json};

/// The job with this group alone, with its defaults filled in and checked as one that is submitted here. What other
/// groups ask for, and how many copies of this one there are in the whole cluster, is the business of other nodes.
///
/// # Errors
/// It cannot be read, or this node cannot run it.
pub(super) fn of(job: &job::Job, group: &str) -> Result<Arc<Job>, String> {
    let unreadable = |why: &dyn std::fmt::Display| format!("the job cannot be read: {why}");
    let mut json = serde_json::to_value(job).map_err(|error| unreadable(&error))?;
    let Some(count) = keep_group(&mut json, group) else {
        return Err(format!("the job has no group {group:?}"));
    };
    tidy(&mut json);
    leave_claims_to_servers(&mut json);
    if let Some(fields) = json.as_object_mut() {
        // Bytes have a form of their own in JSON.
        let payload = BASE64_STANDARD.encode(&job.payload.0);
        fields.insert("Payload".to_owned(), payload.into());
        // Each group has its own; this one is of nobody, and has zeros.
        fields.remove("Update");
    }
    let bytes = serde_json::to_vec(&json).map_err(|error| unreadable(&error))?;
    let read = read_api_json(&bytes).map_err(|refused| unreadable(&refused.0.join("; ")))?;
    let mut admitted = admit(read).map_err(|refused| refused.0.join("; "))?;
    for group in &mut admitted.job.task_groups {
        group.count = Some(count);
    }
    Ok(Arc::new(Job {
        // What only servers say of it.
        version: job.version,
        stop: job.stop,
        submit_time: Timestamp(job.submit_time),
        create_index: job.create_index,
        modify_index: job.modify_index,
        job_modify_index: job.job_modify_index,
        ..admitted.job
    }))
}

/// Leaves only this group, as if it had one copy, and nothing of what servers alone act on and of which a single node
/// cannot do everything. How many copies it has; none if there is no such group.
fn keep_group(json: &mut Json, name: &str) -> Option<i64> {
    json.as_object_mut()?.remove("Multiregion");
    let groups = json.get_mut("TaskGroups")?.as_array_mut()?;
    groups.retain(|group| group.get("Name").and_then(Json::as_str) == Some(name));
    let group = groups.first_mut()?.as_object_mut()?;
    group.remove("Scaling");
    if let Some(update) = group.get_mut("Update").and_then(Json::as_object_mut) {
        update.remove("Canary");
        update.remove("AutoPromote");
    }
    group.insert("Count".to_owned(), 1.into())?.as_i64()
}

/// What else tokens say is the business of those who sign them.
fn leave_claims_to_servers(json: &mut Json) {
    for task in each(json, "TaskGroups").flat_map(|group| each(group, "Tasks")) {
        if let Some(fields) = task.get_mut("Identity").and_then(Json::as_object_mut) {
            fields.remove("ExtraClaims");
        }
        for fields in each(task, "Identities").filter_map(Json::as_object_mut) {
            fields.remove("ExtraClaims");
        }
    }
}

/// The items of a list; none if it is none.
fn each<'a>(json: &'a mut Json, list: &str) -> impl Iterator<Item = &'a mut Json> + use<'a> {
    let items = json.get_mut(list).and_then(Json::as_array_mut);
    items.into_iter().flatten()
}

/// Removes lists without items: they stand for what was not given.
fn tidy(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            fields.retain(|_, value| value.as_array().is_none_or(|items| !items.is_empty()));
            fields.values_mut().for_each(tidy);
        }
        Json::Array(items) => items.iter_mut().for_each(tidy),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}
