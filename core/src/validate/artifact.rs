//! What is checked of a task's artifacts. What stands in references is not known before the task
//! runs, and is checked again then.

use std::collections::BTreeMap;

use super::Report;
use crate::interpolate::has_reference;
use crate::model::artifact::{Artifact, Checksum};
use crate::model::task::Task;
use crate::paths::destination::task_path;
use crate::text::quote;

/// The most artifacts of a task.
const MAX_ARTIFACTS: usize = 100;
/// The most options, and the most headers, of an artifact.
const MAX_PAIRS: usize = 64;
/// The most bytes of a source, of an option and of a header.
const MAX_BYTES: usize = 16 << 10;

/// The bytes of all its texts.
pub(super) fn size(artifact: &Artifact) -> usize {
    let pairs = artifact
        .getter_options
        .iter()
        .chain(&artifact.getter_headers);
    let pairs: usize = pairs.map(|(key, value)| key.len() + value.len()).sum();
    artifact.getter_source.len() + artifact.relative_dest.len() + pairs
}

pub(super) fn check(report: &mut Report, task: &Task, path: &str) {
    let many = task.artifacts.len();
    if many > MAX_ARTIFACTS {
        let message = format!("there are {many}; at most {MAX_ARTIFACTS} are allowed");
        return report.problem(format!("{path}.artifact"), message);
    }
    for (at, artifact) in task.artifacts.iter().enumerate() {
        check_one(report, task, artifact, &format!("{path}.artifact[{at}]"));
    }
}

fn check_one(report: &mut Report, task: &Task, artifact: &Artifact, path: &str) {
    let source = &artifact.getter_source;
    if source.trim().is_empty() {
        report.problem(format!("{path}.source"), "must be given");
    }
    if let Some(why) = unfit(source) {
        report.problem(format!("{path}.source"), why);
    }
    let destination = &artifact.relative_dest;
    if !has_reference(destination)
        && let Err(why) = task_path(destination, &task.name, "")
    {
        report.problem(format!("{path}.destination"), why);
    }
    check_pairs(report, &artifact.getter_options, path, "options");
    check_pairs(report, &artifact.getter_headers, path, "headers");
    if artifact.getter_options.contains_key("sshkey") {
        let message = "is not supported: git is supported over https";
        report.problem(format!("{path}.options[\"sshkey\"]"), message);
    }
    if let Some(sum) = artifact.getter_options.get("checksum")
        && !has_reference(sum)
        && let Err(why) = Checksum::parse(sum)
    {
        report.problem(format!("{path}.options[\"checksum\"]"), why);
    }
    if artifact.getter_insecure {
        let message = "the server's certificate is not verified";
        report.warning(format!("{path}.insecure"), message);
    }
}

fn check_pairs(report: &mut Report, pairs: &BTreeMap<String, String>, path: &str, name: &str) {
    if pairs.len() > MAX_PAIRS {
        let message = format!("there are {}; at most {MAX_PAIRS} are allowed", pairs.len());
        return report.problem(format!("{path}.{name}"), message);
    }
    for (key, value) in pairs {
        let wrong = unfit(key).or_else(|| unfit(value));
        let wrong = wrong.or_else(|| key.is_empty().then(|| "needs a name".to_owned()));
        if let Some(why) = wrong {
            report.problem(format!("{path}.{name}[{}]", quote(key)), why);
        }
    }
}

fn unfit(text: &str) -> Option<String> {
    if text.len() > MAX_BYTES {
        return Some(format!("has more than {MAX_BYTES} bytes"));
    }
    let control = text.contains(char::is_control);
    control.then(|| "must not contain control characters".to_owned())
}
