//! Metrics in the field's own form. Its counters are those of the last ten seconds; ours count
//! since the agent began, because nothing here runs while nobody asks.

use drover_core::time::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

use super::{Kind, Metrics};
use crate::times;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Shape<'a> {
    timestamp: String,
    gauges: Vec<Gauge<'a>>,
    points: [(); 0],
    counters: Vec<Counter<'a>>,
    samples: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Gauge<'a> {
    name: &'a str,
    value: f64,
    labels: &'a BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Counter<'a> {
    name: &'a str,
    count: f64,
    sum: f64,
    labels: &'a BTreeMap<&'static str, String>,
}

/// All metrics, at this time.
pub(super) fn shape(metrics: &Metrics, now: Timestamp) -> Shape<'_> {
    let (mut gauges, mut counters) = (Vec::new(), Vec::new());
    for (name, (kind, series)) in &metrics.0 {
        for (labels, value) in series {
            let value = *value;
            match kind {
                Kind::Gauge => gauges.push(Gauge {
                    name,
                    value,
                    labels,
                }),
                Kind::Counter => counters.push(Counter {
                    name,
                    count: value,
                    sum: value,
                    labels,
                }),
            }
        }
    }
    let time = times::to_seconds(now);
    Shape {
        timestamp: format!("{} +0000 UTC", time.trim_end_matches('Z').replace('T', " ")),
        gauges,
        points: [],
        counters,
        samples: [],
    }
}
