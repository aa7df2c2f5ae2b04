//! Telemetry: what is counted, for programs that draw curves.
//!
//! [`gather`] knows the metrics by their names in the field, [`text`] writes them as Prometheus
//! reads them, [`json`] as the field's own form. They are gathered when somebody asks, at most once
//! in a second; what is not measured has no metric.

mod gather;
mod json;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::kept::About;
use super::params::Params;
use super::stats;
use crate::times;

/// What Prometheus calls its text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Names and values that tell series of one metric apart, by name.
type Labels = Arc<BTreeMap<&'static str, String>>;

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
struct Metrics(BTreeMap<&'static str, (Kind, Series)>);

/// The values of one metric, each with its labels.
type Series = Vec<(Labels, f64)>;

impl Metrics {
    fn add(&mut self, kind: Kind, name: &'static str, labels: &Labels, value: f64) {
        let (_, series) = self.0.entry(name).or_insert((kind, Vec::new()));
        series.push((labels.clone(), value));
    }

    fn gauge(&mut self, name: &'static str, labels: &Labels, value: f64) {
        self.add(Kind::Gauge, name, labels, value);
    }

    fn counter(&mut self, name: &'static str, labels: &Labels, value: u64) {
        self.add(Kind::Counter, name, labels, value as f64);
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
    let about = About::Metrics(text);
    if let Some(kept) = api.measures.kept().get(about, 0) {
        return Ok(response(text, kept));
    }
    let gathered = gather::gather(&api).await?;
    let encoded = match text {
        true => Bytes::from(text::text(&gathered)),
        false => stats::encode(&json::shape(&gathered, times::now()))?,
    };
    api.measures.kept().put(about, 0, encoded.clone());
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
