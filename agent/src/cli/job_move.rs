//! `drover job move`: another node takes over a job, with what is on its disks.
//!
//! The other node is asked first whether it can run the job: whether it has its drivers, fulfils its
//! conditions, knows the variables that it reads, and reaches this node. If not, nothing has changed
//! anywhere, and it was shown no token of a disk. Then it takes the job over, and the job is stopped here, which is what the other node waits for. Whoever is
//! interrupted in between can ask the same again, and with `-rollback` a job that fails there comes back.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use super::args::MoveArgs;
use super::client::Client;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use super::table::short;
use crate::http::dto::{
    AllocStub, Handover, JobStub, Registered, Stopped, TakeoverAlloc, Validated,
};

/// How often the other node is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long an answer of either node may take.
const ANSWER: Duration = Duration::from_secs(60);

/// Runs the command.
///
/// # Errors
/// The job cannot be found, one of the two nodes does not answer, or the other one refuses.
pub(super) async fn run(cx: &mut Context, args: MoveArgs) -> Outcome {
    cx.client = cx.client.clone().within(ANSWER);
    let to = cx.client.at(&args.to)?;
    let to = to.with_token("-to-token", args.to_token.as_ref(), "DROVER_TO_TOKEN")?;
    if to.socket().is_some() {
        let words = "-to: the other node is reached over the network, at http://HOST:PORT or \
                     https://HOST:PORT";
        return Err(Failure::new(words));
    }
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let whole: Value = cx.client.get(&job_path(&job, ""), &namespace).await?;
    let here = cx.client.clone();
    let seen_at = match &args.from_address {
        Some(address) => here.at(address)?.url(),
        None if here.socket().is_some() => {
            return Err(Failure::new(format!(
                "the other node cannot use {}: name this one's address with -from-address",
                here.url()
            )));
        }
        None => here.url(),
    };
    let handover = self::handover(&here, &seen_at, &job).await?;
    let count = handover.allocs.len();
    let what = "cannot run the job, which keeps running here";
    check(&to, &whole, &handover, Asked::ToRunNow, what).await?;
    transfer(&here, &to, &job, &whole, handover).await?;
    cx.screen.print_line(&format!(
        "{} takes over job \"{}\"; {count} allocation(s) stop here",
        to.url(),
        job.id
    ))?;
    if args.detach {
        return Ok(0);
    }
    let code = follow(cx, &to, &job, args.verbose).await;
    // Nothing is taken back for want of an answer.
    let code = code.map_err(|failure| {
        failure.within(&format!(
            "{} has the job, but its status cannot be queried",
            to.url()
        ))
    })?;
    if code == 0 {
        return Ok(code);
    }
    if !args.rollback {
        cx.screen.complain(&format!(
            "Job \"{0}\" failed at {1}. To move it back: drover job move -address {1} -to {2} {0}",
            job.id,
            to.url(),
            here.url()
        ));
        return Ok(code);
    }
    bring_back(cx, &to, &here, &job).await?;
    follow(cx, &here, &job, args.verbose).await?;
    Ok(code)
}

/// Moves a job back that failed at the other node.
async fn bring_back(
    cx: &mut Context,
    from: &Client,
    here: &Client,
    job: &JobStub,
) -> Result<(), Failure> {
    let namespace = [("namespace", job.namespace.as_str())];
    let whole: Value = from.get(&job_path(job, ""), &namespace).await?;
    let handover = self::handover(from, &from.url(), job).await?;
    let at = from.url();
    let what = format!("cannot take the job back, which failed at {at} and stays there");
    check(here, &whole, &handover, Asked::ToTakeBack, &what).await?;
    transfer(from, here, job, &whole, handover).await?;
    let line = format!("Job \"{}\" failed at {at}: it is moved back", job.id);
    cx.screen.print_line(&line)
}

/// What a node is asked to do with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// To run it, for which all must be there now.
    ToRunNow,
    /// To take it back, and to run it as soon as it can.
    ToTakeBack,
}

/// Asks a node whether it can run the job, and reaches the node that has it. If not, that is said after `what`.
async fn check(
    to: &Client,
    job: &Value,
    from: &Handover,
    asked: Asked,
    what: &str,
) -> Result<(), Failure> {
    let without_token = |alloc: &TakeoverAlloc| TakeoverAlloc {
        token: String::new(),
        ..alloc.clone()
    };
    let from: Vec<_> = from.allocs.iter().map(without_token).collect();
    let now = asked == Asked::ToRunNow;
    let body = json!({ "Job": job, "CheckNode": now, "TakeOver": from });
    let path = "/v1/validate/job";
    let validated: Validated = to.change(Method::PUT, path, &[], Some(&body)).await?;
    let mut reasons = validated.validation_errors.unwrap_or_default();
    if reasons.is_empty() && !validated.error.is_empty() {
        reasons.push(validated.error);
    }
    match reasons.is_empty() {
        true => Ok(()),
        false => {
            let reasons = reasons.join("\n  ");
            Err(Failure::new(format!("{} {what}:\n  {reasons}", to.url())))
        }
    }
}

/// What the other node has to know of the allocations of a node, which it finds at `seen_at`.
async fn handover(from: &Client, seen_at: &str, job: &JobStub) -> Result<Handover, Failure> {
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(job, "/handover");
    let mut handover: Handover = from.change(Method::PUT, &path, &namespace, None).await?;
    for alloc in &mut handover.allocs {
        seen_at.clone_into(&mut alloc.address);
    }
    Ok(handover)
}

/// Hands the job from one node to the other, and stops it on the one.
async fn transfer(
    from: &Client,
    to: &Client,
    job: &JobStub,
    whole: &Value,
    handover: Handover,
) -> Result<(), Failure> {
    let body = json!({ "Job": whole, "TakeOver": handover.allocs });
    let sent = to
        .change::<Registered>(Method::PUT, "/v1/jobs", &[], Some(&body))
        .await;
    let (from_url, to_url) = (from.url(), to.url());
    sent.map_err(|failure| {
        let words = match failure.status {
            Some(_) => {
                format!("{to_url} does not accept the job, which keeps running at {from_url}")
            }
            None => format!(
                "it is not known whether {to_url} waits for the job, which goes on at {from_url}: \
                 run the command again"
            ),
        };
        failure.within(&words)
    })?;
    let query = [("purge", "false"), ("namespace", job.namespace.as_str())];
    let path = job_path(job, "");
    let stopped = from
        .change::<Stopped>(Method::DELETE, &path, &query, None)
        .await;
    stopped.map_err(|failure| {
        failure.within(&format!(
            "{to_url} waits for the end of the job at {from_url}, which may not have been stopped: \
             run the command again"
        ))
    })?;
    Ok(())
}

/// Tells what becomes of the job on the other node, until all of it runs or is over.
async fn follow(cx: &mut Context, to: &Client, job: &JobStub, verbose: bool) -> Outcome {
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(job, "/allocations");
    let mut printed: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let allocs: Vec<AllocStub> = to.get(&path, &namespace).await?;
        // What was started a moment ago may fail at once: it counts when it is still so at the next query.
        let mut changed = false;
        for alloc in &allocs {
            let now = format!("{}: {}", alloc.client_status, alloc.client_description);
            if printed.get(&alloc.id) != Some(&now) {
                let id = short(&alloc.id, verbose);
                let line = format!("{}: {} {id} {now}", cx.stamp(), alloc.name);
                cx.screen.print_line(&line)?;
                printed.insert(alloc.id.clone(), now);
                changed = true;
            }
        }
        let over = |alloc: &AllocStub| alloc.client_status != "pending";
        if !changed && !allocs.is_empty() && allocs.iter().all(over) {
            let failed = allocs.iter().any(|alloc| alloc.client_status == "failed");
            return Ok(u8::from(failed));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
