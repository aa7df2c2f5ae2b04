//! `drover job dispatch`: runs a parameterized job and follows its child.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use drover_core::model::dispatch::MAX_PAYLOAD;
use hyper::Method;
use serde_json::{Map, Value, json};

use super::args::DispatchArgs;
use super::client::Answer;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_part, job_path};
use super::monitor;
use super::table::{block, short};
use crate::http::dto::{AllocStub, Dispatched};

/// Runs the command.
///
/// # Errors
/// The payload cannot be read, the job cannot be found or wants something else, or the agent does
/// not answer.
pub(super) async fn run(cx: &mut Context, args: DispatchArgs) -> Outcome {
    let meta = meta(&args.meta)?;
    let payload = args.payload.as_deref().map(payload).transpose()?;
    let job = lookup::job(cx, &args.job).await?;
    let token = args.idempotency_token.as_deref().unwrap_or_default();
    let query = [
        ("namespace", job.namespace.as_str()),
        ("idempotency_token", token),
    ];
    let body = json!({
        "JobID": job.id,
        "Payload": BASE64_STANDARD.encode(payload.unwrap_or_default()),
        "Meta": meta,
        "IdPrefixTemplate": args.id_prefix_template.unwrap_or_default(),
        "Priority": args.priority.unwrap_or(0),
    });
    let path = job_path(&job, "/dispatch");
    let sent = cx
        .client
        .change::<Dispatched>(Method::PUT, &path, &query, Some(&body));
    let made = sent
        .await
        .map_err(|failure| failure.answered_within("Failed to dispatch job"))?;
    let mut lines = vec![("Dispatched Job ID", made.dispatched_job_id.clone())];
    // There is none if the job was there already.
    if !made.eval_id.is_empty() {
        lines.push(("Evaluation ID", short(&made.eval_id, args.verbose)));
    }
    cx.screen.print_line(&block(lines))?;
    if args.detach || made.eval_id.is_empty() {
        return Ok(0);
    }
    cx.screen.print_line("")?;
    let code = monitor::eval(cx, &made.eval_id, args.verbose).await?;
    if args.wait && code == 0 {
        return finish(cx, &made.dispatched_job_id, &job.namespace).await;
    }
    Ok(code)
}

/// Waits until the job that was made is over. The exit code is 1 if something of it failed for good.
async fn finish(cx: &mut Context, id: &str, namespace: &str) -> Outcome {
    let path = job_part(id, "");
    let mut index = 0;
    loop {
        let after = index.to_string();
        let query = [("namespace", namespace), ("index", after.as_str())];
        let answer: Answer<Value> = monitor::follow(cx, &path, &query).await?;
        index = answer.index;
        if answer.value["Status"] == "dead" {
            break;
        }
    }
    let path = job_part(id, "/allocations");
    let namespace = [("namespace", namespace)];
    let allocs: Vec<AllocStub> = cx.client.get(&path, &namespace).await?;
    let failed = allocs.iter().filter(|alloc| {
        let is_last = alloc.next_allocation.is_empty();
        is_last && matches!(alloc.client_status.as_str(), "failed" | "lost")
    });
    let words = match failed.count() {
        0 => {
            cx.screen.print_line(&format!("Job \"{id}\" is complete"))?;
            return Ok(0);
        }
        count => format!("Job \"{id}\" is over, and allocations of it failed: {count}"),
    };
    cx.screen.print_line(&words)?;
    Ok(1)
}

fn meta(given: &[String]) -> Result<Map<String, Value>, Failure> {
    let pair = |given: &String| match given.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), Value::from(value))),
        None => Err(Failure::new(format!("-meta {given}: expected KEY=VALUE"))),
    };
    given.iter().map(pair).collect()
}

/// The payload: a file, or the standard input.
fn payload(file: &Path) -> Result<Vec<u8>, Failure> {
    if file == Path::new("-") {
        return bytes_of(std::io::stdin(), "stdin");
    }
    let name = file.display().to_string();
    let open = File::open(file);
    let open = open.map_err(|error| Failure::new(format!("cannot open {name}: {error}")))?;
    bytes_of(open, &name)
}

fn bytes_of(from: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = MAX_PAYLOAD as u64;
    let read = from.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    if bytes.len() > MAX_PAYLOAD {
        return Err(Failure::new(format!(
            "{name} is larger than {MAX_PAYLOAD} bytes; no payload is"
        )));
    }
    Ok(bytes)
}
