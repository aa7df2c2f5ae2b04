//! Jobs in the JSON of the job API.

use drover_core::model::job::Job;
use serde_json::Value as Json;

use super::bounds::MAX_SOURCE;
use super::error::{Errors, Issue};
use super::source::Source;

/// Reads a job from JSON as the job API has it: `{"Job": {…}}`, or the job alone.
///
/// The body may have 10 MiB and a depth of 128. Keys whose value is null are as good as missing.
/// The result is as it was sent: neither defaults are filled in nor is anything validated.
pub fn from_api_json(body: &[u8]) -> Result<Job, Errors> {
    if body.len() > MAX_SOURCE {
        return Err(plain(format!("the body has more than {} MiB", MAX_SOURCE >> 20)).into());
    }
    let json: Json = serde_json::from_slice(body).map_err(|error| {
        let mut issue = plain(error.to_string());
        (issue.line, issue.column) = (error.line(), error.column());
        issue
    })?;
    Ok(job_of(json)?)
}

/// The job of parsed JSON.
pub(super) fn job_of(json: Json) -> Result<Job, Box<Issue>> {
    let job = match json {
        Json::Object(mut fields) => match fields.remove("Job") {
            Some(Json::Object(job)) => job,
            Some(_) => return Err(plain("\"Job\" must be an object")),
            None => fields,
        },
        _ => return Err(plain("a job must be an object")),
    };
    let mut job = Json::Object(job);
    drop_nulls(&mut job);
    drop_empty_choices(&mut job);
    merge_updates(&mut job);
    drop_share_beside_cores(&mut job);
    let read: Result<Job, _> = serde_path_to_error::deserialize(job);
    read.map_err(|error| plain(format!("{}: {}", error.path(), error.inner())))
}

fn plain(message: impl Into<String>) -> Box<Issue> {
    Source::new("job", "").issue(&None, message)
}

fn drop_nulls(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Json::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// An empty text where one of a few is expected stands for the default.
fn drop_empty_choices(job: &mut Json) {
    drop_empty(job, "Type");
    for group in items(job, "TaskGroups") {
        if let Some(policy) = group.get_mut("RestartPolicy") {
            drop_empty(policy, "Mode");
        }
        for task in items(group, "Tasks") {
            if let Some(policy) = task.get_mut("RestartPolicy") {
                drop_empty(policy, "Mode");
            }
            for artifact in items(task, "Artifacts") {
                drop_empty(artifact, "GetterMode");
            }
        }
    }
}

fn drop_empty(json: &mut Json, key: &str) {
    if let Json::Object(fields) = json
        && fields.get(key).and_then(Json::as_str) == Some("")
    {
        fields.remove(key);
    }
}

/// What a group's update block leaves out comes from the job's. This must happen before missing
/// fields get their defaults.
fn merge_updates(job: &mut Json) {
    let Some(Json::Object(outer)) = job.get("Update").cloned() else {
        return;
    };
    for group in items(job, "TaskGroups") {
        if let Some(Json::Object(own)) = group.get_mut("Update") {
            for (key, value) in &outer {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

/// A task that asks for whole cores and says nothing of a share of the processor has none.
fn drop_share_beside_cores(job: &mut Json) {
    for group in items(job, "TaskGroups") {
        for task in items(group, "Tasks") {
            if let Some(Json::Object(wants)) = task.get_mut("Resources")
                && wants.get("Cores").and_then(Json::as_i64).unwrap_or(0) > 0
            {
                wants.entry("CPU").or_insert_with(|| 0.into());
            }
        }
    }
}

fn items<'a>(json: &'a mut Json, key: &str) -> &'a mut [Json] {
    match json.get_mut(key) {
        Some(Json::Array(items)) => items,
        _ => &mut [],
    }
}
