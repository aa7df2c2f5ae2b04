//! `drover job history`: the versions of a job that are kept, and what each of them changed.

use drover_core::time::Timestamp;
use serde_json::Value;

use super::args::HistoryArgs;
use super::client::decoded;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use super::table::block;
use super::{diff, screen};
use crate::http::dto::{JobDiff, Versions};
use crate::times;

/// Runs the command.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: HistoryArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let compared = args.diff_version.map(|version| version.to_string());
    let mut query = vec![("namespace", job.namespace.as_str())];
    let diffs = args.diffs || compared.is_some() || args.diff_tag.is_some();
    query.push(("diffs", if diffs { "true" } else { "false" }));
    query.extend(compared.as_deref().map(|version| ("diff_version", version)));
    query.extend(args.diff_tag.as_deref().map(|tag| ("diff_tag", tag)));
    let path = job_path(&job, "/versions");
    let answer: Value = cx.client.get(&path, &query).await?;
    if args.shape.is_asked() {
        return cx.show(&args.shape, &answer);
    }
    let versions: Versions = decoded(&answer)?;
    let base = base(&args, &versions.versions);
    let mut diffs = versions.diffs.unwrap_or_default().into_iter();
    let mut shown = Vec::new();
    for version in &versions.versions {
        let is_base = base.is_some_and(|base| base == number(version));
        let diff = if is_base { None } else { diffs.next() };
        if args.version.is_none_or(|wanted| wanted == number(version)) {
            shown.push(describe(version, diff.as_ref(), args.full));
        }
    }
    if shown.is_empty() {
        let wanted = args.version.unwrap_or_default();
        return Err(Failure::new(format!(
            "No version {wanted} of job \"{}\" is kept",
            job.id
        )));
    }
    cx.screen.print_line(&shown.join("\n\n"))?;
    Ok(0)
}

/// The version with which all others are compared, if there is one.
fn base(args: &HistoryArgs, versions: &[Value]) -> Option<u64> {
    let tag = args.diff_tag.as_deref();
    let tagged = versions.iter().find(|version| {
        tag.is_some_and(|tag| version.pointer("/VersionTag/Name") == Some(&tag.into()))
    });
    args.diff_version.or(tagged.map(number))
}

pub(super) fn number(version: &Value) -> u64 {
    version.get("Version").and_then(Value::as_u64).unwrap_or(0)
}

fn describe(version: &Value, diff: Option<&JobDiff>, full: bool) -> String {
    let stable = version.get("Stable").and_then(Value::as_bool);
    let time = version.get("SubmitTime").and_then(Value::as_i64);
    let submitted = times::to_seconds(Timestamp(time.unwrap_or(0)));
    let mut lines = vec![
        ("Version", number(version).to_string()),
        ("Stable", stable.unwrap_or(false).to_string()),
        ("Submit Date", submitted),
    ];
    let text = |at: &str| version.pointer(at).and_then(Value::as_str);
    if let Some(name) = text("/VersionTag/Name") {
        lines.push(("Tag Name", name.to_owned()));
        let description = text("/VersionTag/Description").unwrap_or_default();
        lines.push(("Tag Description", description.to_owned()));
    }
    let mut shown = block(lines);
    if let Some(changes) = diff {
        let changes = screen::clean(&diff::job(changes, full));
        shown.push_str(&format!("\nDiff        = \n{changes}"));
    }
    shown
}
