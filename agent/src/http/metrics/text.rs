//! Metrics as Prometheus reads them.

use std::fmt::Write;
use std::time::Duration;

use drover_io_real::timing::BOUNDS;

use super::{Kind, Metrics, Timed};

/// The whole text.
pub(super) fn text(metrics: &Metrics) -> String {
    let mut text = String::with_capacity(length(metrics));
    for (name, (kind, series)) in &metrics.samples {
        let name = plain(name);
        let word = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        head(&mut text, &name, word);
        for (labels, value) in series {
            line(&mut text, &name, labels.text(*kind), *value);
        }
    }
    for (name, timed) in &metrics.timed {
        histogram(&mut text, &plain(name), timed);
    }
    text
}

/// About how long the text becomes: with many tasks it is long, and to grow is to copy.
fn length(metrics: &Metrics) -> usize {
    /// What stands between a name, its labels and the next line, and a value.
    const REST: usize = 24;
    let samples = metrics.samples.iter().map(|(name, (kind, series))| {
        let labels = series.iter().map(|(labels, _)| labels.text(*kind).len());
        labels
            .map(|labels| name.len() + labels + REST)
            .sum::<usize>()
            + 2 * (name.len() + REST)
    });
    let timed = metrics.timed.iter().map(|(name, timed)| {
        let labels = timed.labels.text(Kind::Counter).len();
        (name.len() + labels + 2 * REST) * (BOUNDS.len() + 5)
    });
    samples.chain(timed).sum()
}

/// A name without what Prometheus does not take.
fn plain(name: &str) -> String {
    name.replace(['.', '-', ' ', '=', '/'], "_")
}

fn head(text: &mut String, name: &str, kind: &str) {
    // Writing to a string fails never.
    let _ = write!(text, "# HELP {name} {name}\n# TYPE {name} {kind}\n");
}

fn line(text: &mut String, name: &str, labels: &str, value: f64) {
    text.push_str(name);
    if !labels.is_empty() {
        text.push('{');
        text.push_str(labels);
        text.push('}');
    }
    // Most are whole, and those are written in a tenth of the time.
    let _ = match whole(value) {
        Some(number) => writeln!(text, " {number}"),
        None => writeln!(text, " {value}"),
    };
}

fn histogram(text: &mut String, name: &str, timed: &Timed) {
    head(text, name, "histogram");
    let labels = timed.labels.text(Kind::Counter);
    let timing = &timed.timing;
    let mut bucket = |bound: &str, count: u64| {
        let labels = match labels {
            "" => format!("le=\"{bound}\""),
            labels => format!("{labels},le=\"{bound}\""),
        };
        line(text, &format!("{name}_bucket"), &labels, count as f64);
    };
    let mut up_to = 0;
    for (bound, count) in BOUNDS.iter().zip(timing.buckets) {
        up_to += count;
        bucket(&seconds(*bound).to_string(), up_to);
    }
    // A bucket never has more than all.
    let count = timing.count.max(up_to);
    bucket("+Inf", count);
    line(text, &format!("{name}_sum"), labels, seconds(timing.sum));
    line(text, &format!("{name}_count"), labels, count as f64);
}

/// The value, if that is a whole number of which a float knows every digit. Zero may have a sign.
fn whole(value: f64) -> Option<u64> {
    const EXACT: f64 = (1_u64 << 53) as f64;
    let fits = (1.0..EXACT).contains(&value) && value.fract() == 0.0;
    fits.then_some(value as u64)
}

/// Seconds; whole nanoseconds are exact enough to be written shortly.
fn seconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}
