//! Metrics, for programs that draw curves.
//!
//! [`gather`], [`jobs`], [`sums`] and [`used`] know the metrics by their names in Nomad, [`text`] writes them
//! as Prometheus reads them, [`json`] as Nomad's own form. They are gathered on request, at most
//! once in a second; what is not measured has no metric.
//!
//! Metrics have Nomad's names and labels where we know them truthfully, and `drover_core_*` and
//! `drover_queue_*` for the core: steps, stale answers, overdue operations, broken invariants
//! (`core/src/agent/audit.rs`, by the functions that the simulator asks after every step), what
//! waits, and how long steps and questions take (`io-real/src/timing.rs`). Counters count since the
//! agent (or a task's record) began. Ticks are added up only of control groups, since sums over
//! processes go back when one ends. Nomad's timers of hooks and requests, and its count of tasks
//! that were killed for want of memory, are not there: nobody measures them.

mod gather;
mod jobs;
mod json;
mod labels;
mod sums;
#[cfg(test)]
mod tests;
mod text;
mod used;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use drover_io_real::timing::Timing;

use super::Api;
use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;
use super::response_cache::About;
use super::stats;
use crate::config::telemetry::Filter;
use crate::times;
use labels::Labels;

/// What Prometheus calls its text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only goes up, while the agent lives.
    Counter,
}

/// Metrics by name, each with its series.
#[derive(Debug, Default)]
struct Metrics {
    samples: BTreeMap<&'static str, (Kind, Series)>,
    /// How long things took, by name.
    timed: BTreeMap<&'static str, Timed>,
}

/// How long things of one kind took.
#[derive(Debug)]
struct Timed {
    labels: Labels,
    timing: Timing,
}

/// The values of one metric, each with its labels.
type Series = Vec<(Labels, f64)>;

impl Metrics {
    fn add(&mut self, kind: Kind, name: &'static str, labels: &Labels, value: f64) {
        let (_, series) = self.samples.entry(name).or_insert((kind, Vec::new()));
        series.push((labels.clone(), value));
    }

    fn gauge(&mut self, name: &'static str, labels: &Labels, value: f64) {
        self.add(Kind::Gauge, name, labels, value);
    }

    fn counter(&mut self, name: &'static str, labels: &Labels, value: u64) {
        self.add(Kind::Counter, name, labels, value as f64);
    }

    fn timing(&mut self, name: &'static str, labels: &Labels, timing: Timing) {
        let labels = labels.clone();
        self.timed.insert(name, Timed { labels, timing });
    }

    /// Leaves out what people do not want.
    fn retain(&mut self, filter: &Filter) {
        self.samples.retain(|name, _| filter.allows(name));
        self.timed.retain(|name, _| filter.allows(name));
    }
}

pub(super) async fn metrics(State(api): State<Api>, params: Params) -> Answer {
    let text = match params.non_empty("format") {
        None => false,
        Some("prometheus") => true,
        Some(other) => {
            let words = format!("unknown format {other:?}");
            return Err(ApiError::new(StatusCode::BAD_REQUEST, words));
        }
    };
    let telemetry = &api.settings.telemetry;
    if text && !telemetry.prometheus {
        let (status, words) = (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Prometheus is not enabled",
        );
        return Err(ApiError::new(status, words));
    }
    let pretty = params.pretty && !text;
    let about = About::Metrics(text);
    if let (false, Some(response_cache)) = (pretty, api.measures.response_cache().get(about, 0)) {
        return Ok(response(text, response_cache));
    }
    let mut gathered = gather::gather(&api).await?;
    gathered.retain(&telemetry.filter);
    if pretty {
        return answer::json(&params, &json::shape(&gathered, times::now()));
    }
    let encoded = match text {
        true => Bytes::from(text::text(&gathered)),
        false => stats::encode(&json::shape(&gathered, times::now()))?,
    };
    let response_cache = api.measures.response_cache();
    response_cache.put_for(about, 0, encoded.clone(), telemetry.interval);
    Ok(response(text, encoded))
}

fn response(text: bool, encoded: Bytes) -> Response {
    let mut response = stats::json(encoded);
    if text {
        let kind = HeaderValue::from_static(TEXT);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}
