//! OTLP over HTTP as JSON: `v1/logs`.

use serde_json::{Value, json};

use super::{Common, Entry, labels, runs};

/// The severities of standard output and standard error: their numbers and names.
const SEVERITIES: ((u8, &str), (u8, &str)) = ((9, "INFO"), (17, "ERROR"));

/// Lines as a request; those of one stream that follow each other share what is said of them.
pub(super) fn body(common: &Common, lines: &[Entry]) -> Vec<u8> {
    let streams: Vec<Value> = runs(lines).map(|lines| of_stream(common, lines)).collect();
    json!({ "resourceLogs": streams }).to_string().into_bytes()
}

fn of_stream(common: &Common, lines: &[Entry]) -> Value {
    let first = lines.first();
    let labels = first.map(|line| labels(common, &line.source, line.is_error));
    let name = first.map(|line| line.source.job.id.to_string());
    let service = ("service.name".to_owned(), name.unwrap_or_default());
    let labels = labels.into_iter().flatten();
    let labels = labels.map(|(name, value)| (format!("drover.{name}"), value));
    let attributes: Vec<Value> = std::iter::once(service)
        .chain(labels)
        .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }))
        .collect();
    let records: Vec<Value> = lines.iter().map(record).collect();
    json!({
        "resource": { "attributes": attributes },
        "scopeLogs": [{ "scope": { "name": "drover" }, "logRecords": records }],
    })
}

fn record(line: &Entry) -> Value {
    let (number, text) = match line.is_error {
        true => SEVERITIES.1,
        false => SEVERITIES.0,
    };
    // Numbers of 64 bits are texts in this JSON.
    let time = line.time.0.to_string();
    json!({
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "severityNumber": number,
        "severityText": text,
        "body": { "stringValue": line.text },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::examples::{common, entry};
    use super::*;

    #[test]
    fn lines_of_a_stream_share_its_resource() {
        let mut lines = [
            entry("one", false, 1),
            entry("two", false, 2),
            entry("bad", true, 3),
        ];
        lines[1].source = lines[0].source.clone();
        let body: Value = serde_json::from_slice(&body(&common(), &lines)).unwrap();
        let streams = body["resourceLogs"].as_array().unwrap();
        assert_eq!(streams.len(), 2);
        let records = &streams[0]["scopeLogs"][0]["logRecords"];
        assert_eq!(records[1]["body"]["stringValue"], "two");
        assert_eq!(records[1]["timeUnixNano"], "1795236197000000002");
        assert_eq!(
            streams[1]["scopeLogs"][0]["logRecords"][0]["severityNumber"],
            17
        );
        let attributes = streams[0]["resource"]["attributes"].as_array().unwrap();
        let has = |key: &str, value: &str| {
            attributes.contains(&json!({ "key": key, "value": { "stringValue": value } }))
        };
        assert!(
            has("service.name", "web") && has("drover.task", "main") && has("drover.env", "prod")
        );
    }
}
