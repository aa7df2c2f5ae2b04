//! The job of an allocation: from the servers' form to the core's, by way of the JSON that the two forms share.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use drover_core::model::job::Job;
use drover_core::time::Timestamp;
use drover_rpc::types::job;
use serde_json::Value as Json;

use crate::admission::{admit, read_api_json};

/// The job, with its defaults filled in and checked as one that is submitted here.
///
/// # Errors
/// It cannot be read, or this node cannot run it.
pub(super) fn of(job: &job::Job) -> Result<Arc<Job>, String> {
    let unreadable = |why: &dyn std::fmt::Display| format!("the job cannot be read: {why}");
    let mut json = serde_json::to_value(job).map_err(|error| unreadable(&error))?;
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
    let admitted = admit(read).map_err(|refused| refused.0.join("; "))?;
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
