//! What is checked of identities.

use std::collections::BTreeSet;

use super::Report;
use crate::model::identity::{Identity, RenewMode};
use crate::model::names;
use crate::model::task::Task;
use crate::paths::task_path::TaskPath;
use crate::time::Span;

/// The most identities of a task.
const MAX_IDENTITIES: usize = 32;
/// The most audiences of one of them.
const MAX_AUDIENCES: usize = 32;
/// The least time that a token may be good: it is renewed in half of it.
const LEAST_TTL: Span = Span::secs(2);

pub(super) fn check(report: &mut Report, task: &Task, path: &str) {
    let identities = task.identity.iter().chain(&task.identities);
    if identities.clone().count() > MAX_IDENTITIES {
        let message = format!("must not be more than {MAX_IDENTITIES}");
        return report.problem(format!("{path}.identity"), message);
    }
    let (mut seen, mut files) = (BTreeSet::new(), BTreeSet::new());
    for identity in identities {
        let path = format!("{path}.identity[{}]", identity.name());
        one(report, task, identity, &path);
        if !seen.insert(identity.name()) {
            report.problem(path.as_str(), "another identity has the same name");
        }
        if identity.file
            && let Ok(file) = TaskPath::of_identity(identity, &task.name)
            && !files.insert(file.path)
        {
            report.problem(format!("{path}.filepath"), "another identity has this file");
        }
    }
}

fn one(report: &mut Report, task: &Task, identity: &Identity, path: &str) {
    // It becomes a part of a file's and a variable's name.
    if let Err(why) = names::label(&identity.name().replace('-', "_")) {
        report.problem(path, why);
    }
    let odd = |text: &String| names::identifier(text).is_err();
    if identity.audience.len() > MAX_AUDIENCES || identity.audience.iter().any(odd) {
        let message = format!("must be at most {MAX_AUDIENCES} names");
        report.problem(format!("{path}.aud"), message);
    }
    if identity.ttl.0 != 0 && identity.ttl < LEAST_TTL {
        let message = format!("must be 0 or at least {LEAST_TTL}, is {}", identity.ttl);
        report.problem(format!("{path}.ttl"), message);
    }
    let signals = identity.change_mode == RenewMode::Signal;
    if signals && identity.change_signal.is_empty() {
        let message = "must be given for change_mode signal";
        report.problem(format!("{path}.change_signal"), message);
    }
    if signals && identity.env {
        let message = "a signal brings no new variables to a task";
        report.warning(format!("{path}.change_mode"), message);
    }
    if !identity.filepath.is_empty() && !identity.file {
        report.problem(format!("{path}.filepath"), "requires file");
    }
    if identity.file
        && let Err(why) = TaskPath::of_identity(identity, &task.name)
    {
        report.problem(format!("{path}.filepath"), why);
    }
    report.unsupported(identity.extra_claims.is_some(), path, "extra_claims");
}
