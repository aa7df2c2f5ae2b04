//! Metrics in Nomad's own form. Its counters are those of the last ten seconds; ours count
//! since the agent began, because nothing here runs while nobody asks.

use drover_core::time::Timestamp;
use serde::Serialize;
use std::time::Duration;

use super::labels::Map;
use super::{Kind, Metrics, Timed};
use crate::times;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Shape<'a> {
    timestamp: String,
    gauges: Vec<Gauge<'a>>,
    points: [(); 0],
    counters: Vec<Counter<'a>>,
    samples: Vec<Sample<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Gauge<'a> {
    name: &'a str,
    value: f64,
    labels: &'a Map,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Counter<'a> {
    name: &'a str,
    /// A whole number: Go reads no other.
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    mean: f64,
    stddev: f64,
    labels: &'a Map,
}

/// How long things took, in milliseconds.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Sample<'a> {
    name: &'a str,
    count: u64,
    sum: f64,
    max: f64,
    mean: f64,
    labels: &'a Map,
}

impl<'a> Counter<'a> {
    /// What was counted one by one, since the agent began.
    fn of(name: &'a str, value: f64, labels: &'a Map) -> Counter<'a> {
        let one = if value > 0.0 { 1.0 } else { 0.0 };
        Counter {
            name,
            count: whole(value),
            sum: value,
            min: one,
            max: one,
            mean: one,
            stddev: 0.0,
            labels,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it was made of a u64, and casts of floats saturate"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

impl<'a> Sample<'a> {
    fn of(name: &'a str, timed: &'a Timed) -> Sample<'a> {
        let timing = &timed.timing;
        let sum = millis(timing.sum);
        Sample {
            name,
            count: timing.count,
            sum,
            max: millis(timing.longest),
            mean: sum / timing.count.max(1) as f64,
            labels: timed.labels.map(Kind::Counter),
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// All metrics, at this time.
pub(super) fn shape(metrics: &Metrics, now: Timestamp) -> Shape<'_> {
    let (mut gauges, mut counters) = (Vec::new(), Vec::new());
    for (name, (kind, series)) in &metrics.samples {
        for (labels, value) in series {
            let (value, labels) = (*value, labels.map(*kind));
            match kind {
                Kind::Gauge => gauges.push(Gauge {
                    name,
                    value,
                    labels,
                }),
                Kind::Counter => counters.push(Counter::of(name, value, labels)),
            }
        }
    }
    let time = times::to_seconds(now);
    Shape {
        timestamp: format!("{} +0000 UTC", time.trim_end_matches('Z').replace('T', " ")),
        gauges,
        points: [],
        counters,
        samples: (metrics.timed.iter())
            .map(|(name, timed)| Sample::of(name, timed))
            .collect(),
    }
}
