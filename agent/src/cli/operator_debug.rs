//! `drover operator debug`: what an agent knows and does over some minutes, as one archive for whoever
//! helps. It has no variables, no tokens, and no values that tasks are given ([`super::redact`]).

mod bundle;

use drover_core::text::parse_duration;
use drover_core::time::Span;
use hyper::Method;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep_until};

use self::bundle::Bundle;
use super::args::DebugArgs;
use super::context::{Context, Outcome, pretty};
use super::exit_code::Failure;
use super::frames::{Frames, Piece};
use super::lookup::job_path;
use super::redact::redact;
use crate::http::dto::JobStub;

/// What is asked once: its file, and where.
const ONCE: [(&str, &str); 9] = [
    ("agent/self.json", "/v1/agent/self"),
    ("agent/health.json", "/v1/agent/health"),
    ("agent/host.json", "/v1/agent/host"),
    ("agent/plugins.json", "/v1/agent/plugins"),
    ("agent/audit.json", "/v1/agent/audit"),
    ("operator/keyring.json", "/v1/operator/keyring/keys"),
    (
        "operator/scheduler.json",
        "/v1/operator/scheduler/configuration",
    ),
    ("namespaces.json", "/v1/namespaces"),
    ("node/metadata.json", "/v1/client/metadata"),
];

/// What is asked again and again.
const AGAIN: [(&str, &str); 8] = [
    ("jobs.json", "/v1/jobs"),
    ("allocations.json", "/v1/allocations"),
    ("evaluations.json", "/v1/evaluations"),
    ("deployments.json", "/v1/deployments"),
    ("nodes.json", "/v1/nodes"),
    ("services.json", "/v1/services"),
    ("metrics.json", "/v1/metrics"),
    ("host-stats.json", "/v1/client/stats"),
];

/// How often it may be asked.
const MOST_CAPTURES: i64 = 1000;
/// Jobs that are shown whole, at most.
const MOST_JOBS: usize = 500;
/// Bytes of the log at most.
const MOST_LOG: usize = 64 << 20;

/// Runs the command.
///
/// # Errors
/// The agent does not answer at all, or the archive cannot be written.
pub(super) async fn run(cx: &mut Context, args: DebugArgs) -> Outcome {
    let duration = span("duration", &args.duration)?;
    let interval = span("interval", &args.interval)?;
    if interval.0 <= 0 || duration.0 / interval.0 >= MOST_CAPTURES {
        let words = format!("-interval is too short: at most {MOST_CAPTURES} captures are made");
        return Err(Failure::new(words));
    }
    let name = format!(
        "drover-debug-{}",
        cx.stamp().replace([':', '-'], "").replace('T', "-")
    );
    // An agent that is not there is said before a file is made.
    let _: Value = cx.client.get("/v1/agent/self", &[]).await?;
    let mut capture = Capture {
        bundle: Bundle::create(args.output.as_deref(), &name)?,
        failures: Vec::new(),
    };
    let made = capture.bundle.path();
    cx.screen.print_line(&format!(
        "Capturing for {} every {}, to {}",
        args.duration,
        args.interval,
        made.display()
    ))?;
    let done = capture.all(cx, &args.log_level, duration, interval).await;
    let finished = done.and(capture.bundle.finish());
    finished.inspect_err(|_| bundle::remove(&made))?;
    cx.screen
        .print_line(&format!("Created {}", made.display()))?;
    Ok(0)
}

fn span(option: &str, text: &str) -> Result<Span, Failure> {
    let parsed = parse_duration(text).ok().filter(|span| span.0 >= 0);
    parsed.ok_or_else(|| {
        Failure::new(format!(
            "-{option}={text} is no duration, such as 30s or 5m"
        ))
    })
}

/// What is written, and what could not be asked.
struct Capture {
    bundle: Bundle,
    failures: Vec<Value>,
}

impl Capture {
    async fn all(
        &mut self,
        cx: &mut Context,
        level: &str,
        duration: Span,
        interval: Span,
    ) -> Result<(), Failure> {
        let began = cx.stamp();
        for (file, path) in ONCE {
            self.ask(cx, file, path).await?;
        }
        self.node(cx).await?;
        self.jobs(cx).await?;
        let captures = self.over_time(cx, level, duration, interval).await?;
        let index = json!({
            "Began": began,
            "Ended": cx.stamp(),
            "Captures": captures,
            "Failures": self.failures,
            "Version": crate::http::agent::VERSION,
        });
        self.bundle.add("index.json", pretty(&index)?.as_bytes())
    }

    /// Asks one thing and keeps the answer. That the agent refuses is kept as well.
    async fn ask(&mut self, cx: &Context, file: &str, path: &str) -> Result<(), Failure> {
        match cx.client.get::<Value>(path, &[("namespace", "*")]).await {
            Ok(mut value) => {
                redact(&mut value);
                self.bundle.add(file, pretty(&value)?.as_bytes())
            }
            Err(failure) => {
                let at = cx.stamp();
                let failure = json!({ "Path": path, "Error": failure.message, "Time": at });
                self.failures.push(failure);
                Ok(())
            }
        }
    }

    async fn node(&mut self, cx: &Context) -> Result<(), Failure> {
        let nodes: Value = cx.client.get("/v1/nodes", &[]).await?;
        let ids = nodes.as_array().into_iter().flatten();
        for id in ids.filter_map(|node| node.get("ID")?.as_str()) {
            self.ask(cx, &format!("node/{id}.json"), &format!("/v1/node/{id}"))
                .await?;
        }
        Ok(())
    }

    async fn jobs(&mut self, cx: &Context) -> Result<(), Failure> {
        let jobs: Vec<JobStub> = cx.client.get("/v1/jobs", &[("namespace", "*")]).await?;
        for (nth, job) in jobs.iter().take(MOST_JOBS).enumerate() {
            // Ids have slashes, and may be longer than names of files.
            let file = format!("jobs/{nth:04}.json");
            let query = [("namespace", job.namespace.as_str())];
            match cx.client.get::<Value>(&job_path(job, ""), &query).await {
                Ok(mut value) => {
                    redact(&mut value);
                    self.bundle.add(&file, pretty(&value)?.as_bytes())?;
                }
                // It may be gone already.
                Err(_) => continue,
            }
        }
        Ok(())
    }

    /// Says how often it was asked. Ctrl-C ends it early.
    async fn over_time(
        &mut self,
        cx: &Context,
        level: &str,
        duration: Span,
        interval: Span,
    ) -> Result<usize, Failure> {
        let query = [("log_level", level)];
        let sent = cx
            .client
            .send(Method::GET, "/v1/agent/monitor", &query, None);
        let mut frames = Some(Frames::new(sent.await?.into_body()));
        let mut log = Vec::new();
        let nanos = |span: Span| Duration::from_nanos(u64::try_from(span.0).unwrap_or(0));
        let end = Instant::now() + nanos(duration);
        let mut next = Instant::now();
        let mut captures = 0;
        let mut interrupted = Box::pin(tokio::signal::ctrl_c());
        loop {
            let ended = tokio::select! {
                piece = piece(&mut frames) => {
                    match piece {
                        Some(bytes) if log.len() < MOST_LOG => log.extend(bytes),
                        Some(_) => {}
                        None => frames = None,
                    }
                    continue;
                }
                () = sleep_until(next) => false,
                () = sleep_until(end) => true,
                _ = &mut interrupted => true,
            };
            if ended && captures > 0 {
                break;
            }
            for (file, path) in AGAIN {
                self.ask(cx, &format!("{captures:04}/{file}"), path).await?;
            }
            captures += 1;
            if ended {
                break;
            }
            next += nanos(interval);
        }
        self.bundle.add("agent/monitor.log", &log)?;
        Ok(captures)
    }
}

/// The next lines of the log; never, if there are no more.
async fn piece(frames: &mut Option<Frames>) -> Option<Vec<u8>> {
    let Some(open) = frames else {
        return std::future::pending().await;
    };
    match open.next().await {
        Ok(Some(Piece::Bytes(bytes))) => Some(bytes),
        Ok(Some(Piece::Gap)) => Some(b"[lines are missing]\n".to_vec()),
        Ok(None) | Err(_) => None,
    }
}
