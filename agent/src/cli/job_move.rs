//! `drover job move`: another node takes over a job, with what is on its disks.
//!
//! The other node is asked first: if it cannot run the job, nothing has changed here. Then the job
//! is stopped here, which is what the other node waits for. Whoever is interrupted in between can
//! ask the same again.

use core::time::Duration;
use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use super::args::MoveArgs;
use super::client::Client;
use super::context::{Context, Outcome};
use super::failure::Failure;
use super::lookup::{self, job_path};
use super::table::short;
use crate::http::shapes::{AllocStub, Handover, JobStub, Registered, Stopped};

/// How often the other node is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Runs the command.
///
/// # Errors
/// The job cannot be found, one of the two nodes does not answer, or the other one refuses.
pub(super) async fn run(cx: &mut Context, args: MoveArgs) -> Outcome {
    let to = cx.client.at(&args.to)?;
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let whole: Value = cx.client.get(&job_path(&job, ""), &namespace).await?;
    let handed = handed(cx, &args, &job).await?;
    let count = handed.allocs.len();
    let body = json!({ "Job": whole, "TakeOver": handed.allocs });
    let sent = to
        .change::<Registered>(Method::PUT, "/v1/jobs", &[], Some(&body))
        .await;
    sent.map_err(|failure| failure.within(&format!("{} does not take over the job", to.url())))?;
    cx.screen.say(&format!(
        "{} takes over job \"{}\", for which {count} allocation(s) end here",
        to.url(),
        job.id
    ))?;
    let query = [("purge", "false"), ("namespace", job.namespace.as_str())];
    let path = job_path(&job, "");
    let stop = cx
        .client
        .change::<Stopped>(Method::DELETE, &path, &query, None);
    stop.await?;
    if args.detach {
        return Ok(0);
    }
    follow(cx, &to, &job, args.verbose).await
}

/// What the other node has to know of the allocations here.
async fn handed(cx: &Context, args: &MoveArgs, job: &JobStub) -> Result<Handover, Failure> {
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(job, "/handover");
    let mut handed: Handover = cx
        .client
        .change(Method::PUT, &path, &namespace, None)
        .await?;
    let from = match &args.from_address {
        Some(address) => cx.client.at(address)?.url(),
        None => cx.client.url(),
    };
    for alloc in &mut handed.allocs {
        alloc.address.clone_from(&from);
    }
    Ok(handed)
}

/// Tells what becomes of the job on the other node, until all of it runs or is over.
async fn follow(cx: &mut Context, to: &Client, job: &JobStub, verbose: bool) -> Outcome {
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(job, "/allocations");
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let allocs: Vec<AllocStub> = to.get(&path, &namespace).await?;
        for alloc in &allocs {
            let now = format!("{}: {}", alloc.client_status, alloc.client_description);
            if told.get(&alloc.id) != Some(&now) {
                let id = short(&alloc.id, verbose);
                let line = format!("{}: {} {id} {now}", cx.stamp(), alloc.name);
                cx.screen.say(&line)?;
                told.insert(alloc.id.clone(), now);
            }
        }
        let over = |alloc: &AllocStub| alloc.client_status != "pending";
        if !allocs.is_empty() && allocs.iter().all(over) {
            let failed = allocs.iter().any(|alloc| alloc.client_status == "failed");
            return Ok(u8::from(failed));
        }
        tokio::time::sleep(LOOK).await;
    }
}
