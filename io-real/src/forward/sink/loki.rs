//! Loki's API: `loki/api/v1/push`, as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Common, Entry, labels, runs};

/// Lines as a request, by stream. Loki drops a line that is equal to another one of the same nanosecond; no two of
/// ours are.
pub(super) fn body(common: &Common, lines: &[Entry]) -> Vec<u8> {
    let mut streams: BTreeMap<BTreeMap<&str, String>, Vec<Value>> = BTreeMap::new();
    for lines in runs(lines) {
        let Some(first) = lines.first() else { continue };
        let labels = labels(common, &first.source, first.is_error);
        let values = lines
            .iter()
            .map(|line| json!([line.time.0.to_string(), line.text]));
        streams.entry(labels).or_default().extend(values);
    }
    let streams: Vec<Value> = streams
        .into_iter()
        .map(|(labels, values)| json!({ "stream": labels, "values": values }))
        .collect();
    json!({ "streams": streams }).to_string().into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::examples::{common, entry};
    use super::*;

    #[test]
    fn lines_are_grouped_by_stream_in_their_order() {
        let lines = [
            entry("one", false, 1),
            entry("bad", true, 2),
            entry("two", false, 3),
        ];
        let body: Value = serde_json::from_slice(&body(&common(), &lines)).unwrap();
        let streams = body["streams"].as_array().unwrap();
        let of = |stream: &str| {
            let found = streams.iter().find(|it| it["stream"]["stream"] == stream);
            found.unwrap()["values"].clone()
        };
        let expected = json!([
            ["1795236197000000001", "one"],
            ["1795236197000000003", "two"]
        ]);
        assert_eq!(of("stdout"), expected);
        assert_eq!(of("stderr"), json!([["1795236197000000002", "bad"]]));
        assert_eq!(streams[0]["stream"]["env"], "prod");
    }
}
