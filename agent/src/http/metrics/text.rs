//! Metrics as Prometheus reads them.

use std::fmt::Write;

use super::{Kind, Labels, Metrics};

/// The whole text.
pub(super) fn text(metrics: &Metrics) -> String {
    let mut text = String::new();
    for (name, (kind, series)) in &metrics.0 {
        let name = name.replace(['.', '-', ' ', '=', '/'], "_");
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        // Writing to a string fails never.
        let _ = write!(text, "# HELP {name} {name}\n# TYPE {name} {kind}\n");
        for (labels, value) in series {
            text.push_str(&name);
            write_labels(&mut text, labels);
            let _ = writeln!(text, " {value}");
        }
    }
    text
}

fn write_labels(text: &mut String, labels: &Labels) {
    for (at, (name, value)) in labels.iter().enumerate() {
        text.push(if at == 0 { '{' } else { ',' });
        text.push_str(name);
        text.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                letter => text.push(letter),
            }
        }
        text.push('"');
    }
    if !labels.is_empty() {
        text.push('}');
    }
}
