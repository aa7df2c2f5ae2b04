//! Finding things by the beginning of their id.

use drover_io_real::http_client::encoded;
use serde::de::DeserializeOwned;

use super::client::Client;
use super::context::Context;
use super::exit_code::Failure;
use super::table::table;
use crate::http::dto::{Alloc, AllocStub, DeploymentDto, EvaluationDto, JobStub, NodeDto};

/// The job that is meant: the one of this id, or the only one that begins so.
///
/// # Errors
/// There is none, or there are several, which are shown then.
pub(super) async fn job(cx: &mut Context, id: &str) -> Result<JobStub, Failure> {
    let query = [("prefix", id), ("per_page", "20")];
    let mut found: Vec<JobStub> = cx.client.get("/v1/jobs", &query).await?;
    if let Some(at) = found.iter().position(|job| job.id == id) {
        return Ok(found.swap_remove(at));
    }
    if found.len() > 1 {
        let row = |job: &JobStub| [job.id.clone(), job.job_type.clone(), job.status.clone()];
        let list = table(["ID", "Type", "Status"], found.iter().map(row));
        let message = format!("Prefix \"{id}\" matched multiple jobs\n\n{list}");
        return Err(Failure::new(message));
    }
    let none = || Failure::new(format!("No job(s) with prefix or ID \"{id}\" found"));
    found.pop().ok_or_else(none)
}

/// The path of a job.
pub(super) fn job_path(job: &JobStub, part: &str) -> String {
    job_part(&job.id, part)
}

/// The path of a job of this id.
pub(super) fn job_part(id: &str, part: &str) -> String {
    format!("/v1/job/{}{part}", encoded(id))
}

/// The one thing whose id, a UUID, begins so.
async fn by_prefix<T: DeserializeOwned>(
    client: &Client,
    list: &str,
    prefix: &str,
    what: &str,
    id_of: fn(&T) -> &str,
) -> Result<T, Failure> {
    let words = what.replace("{}", prefix);
    let digits: String = prefix.chars().filter(|c| *c != '-').collect();
    if digits.len() < 2 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(Failure::new(words));
    }
    // Agents want whole bytes; the odd digit is compared here.
    let even = digits.len() - digits.len() % 2;
    let asked: String = digits.chars().take(even).collect();
    let found: Vec<T> = client.get(list, &[("prefix", &asked)]).await?;
    let begins = |item: &T| {
        let id: String = id_of(item).chars().filter(|c| *c != '-').collect();
        id.starts_with(&digits.to_ascii_lowercase())
    };
    let mut found: Vec<T> = found.into_iter().filter(begins).collect();
    if found.len() > 1 {
        let ids: Vec<&str> = found.iter().map(id_of).collect();
        return Err(Failure::new(format!(
            "Prefix \"{prefix}\" matched more than one\n\n{}",
            ids.join("\n")
        )));
    }
    found.pop().ok_or_else(|| Failure::new(words))
}

/// The allocation whose id begins so.
///
/// # Errors
/// There is none, or there are several.
pub(super) async fn alloc(client: &Client, prefix: &str) -> Result<AllocStub, Failure> {
    let what = "No allocation(s) with prefix or id \"{}\" found";
    by_prefix(
        client,
        "/v1/allocations",
        prefix,
        what,
        |alloc: &AllocStub| &alloc.id,
    )
    .await
}

/// The evaluation whose id begins so.
///
/// # Errors
/// There is none, or there are several.
pub(super) async fn eval(client: &Client, prefix: &str) -> Result<EvaluationDto, Failure> {
    let what = "No evaluation(s) with prefix or id \"{}\" found";
    by_prefix(
        client,
        "/v1/evaluations",
        prefix,
        what,
        |eval: &EvaluationDto| &eval.id,
    )
    .await
}

/// The roll-out whose id begins so.
///
/// # Errors
/// There is none, or there are several.
pub(super) async fn deployment(client: &Client, prefix: &str) -> Result<DeploymentDto, Failure> {
    let what = "No deployment(s) with prefix or id \"{}\" found";
    by_prefix(
        client,
        "/v1/deployments",
        prefix,
        what,
        |d: &DeploymentDto| &d.id,
    )
    .await
}

/// The node whose id begins so.
///
/// # Errors
/// There is none, or there are several.
pub(super) async fn node(client: &Client, prefix: &str) -> Result<NodeDto, Failure> {
    let what = "No node(s) with prefix \"{}\" found";
    by_prefix(client, "/v1/nodes", prefix, what, |node: &NodeDto| &node.id).await
}

/// The allocation whose id begins so; or, where the id is a job's, the newest one of it that runs, of this group
/// if one is named.
///
/// # Errors
/// There is none, or there are several.
pub(super) async fn alloc_or_job(
    cx: &mut Context,
    id: &str,
    is_job: bool,
    group: Option<&str>,
) -> Result<AllocStub, Failure> {
    if !is_job {
        return alloc(&cx.client, id).await;
    }
    let job = job(cx, id).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/allocations");
    let mut allocs: Vec<AllocStub> = cx.client.get(&path, &namespace).await?;
    if let Some(group) = group {
        allocs.retain(|alloc| alloc.task_group == group);
    }
    // The newest that runs, or else the newest.
    allocs.sort_by_key(|alloc| (alloc.client_status == "running", alloc.create_index));
    let of_group = group.map_or_else(String::new, |name| format!(" of group \"{name}\""));
    let none = || Failure::new(format!("Job \"{}\" has no allocations{of_group}", job.id));
    allocs.pop().ok_or_else(none)
}

/// The task that is meant where none is named: the only one, or the only main one.
///
/// # Errors
/// There are several.
pub(super) async fn only_task(cx: &mut Context, alloc: &AllocStub) -> Result<String, Failure> {
    let all: Vec<&String> = alloc.task_states.keys().collect();
    if let [only] = all.as_slice() {
        return Ok((*only).clone());
    }
    let whole: Alloc = cx
        .client
        .get(&format!("/v1/allocation/{}", alloc.id), &[])
        .await?;
    let lifecycles = whole.allocated_resources.task_lifecycles;
    let is_main = |name: &&&String| lifecycles.get(name.as_str()).is_none_or(Option::is_none);
    let main: Vec<&&String> = all.iter().filter(is_main).collect();
    if let [only] = main.as_slice() {
        return Ok((**only).clone());
    }
    let list: Vec<String> = all.iter().map(|name| format!("  * {name}")).collect();
    Err(Failure::new(format!(
        "Allocation \"{}\" has several tasks; name one:\n{}",
        alloc.id,
        list.join("\n")
    )))
}
