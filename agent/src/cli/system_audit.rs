//! `drover system audit`.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::Value;

use super::args::AuditArgs;
use super::client::{decoded, strange, whole};
use super::context::{Context, Outcome};
use super::table::{short, table};
use crate::http::dto::AuditDto;

/// What bears our mark on the agent's host.
const PATH: &str = "/v1/agent/audit";

/// What fails with the code of 1 only is trouble; this says that something is leaked.
const LEAKED: u8 = 2;

/// Runs the command.
///
/// # Errors
/// The agent does not answer: only it knows what belongs to somebody.
pub(super) async fn run(cx: &mut Context, args: AuditArgs) -> Outcome {
    let method = if args.fix { Method::PUT } else { Method::GET };
    let asked = cx.client.send(method, PATH, &[], None).await;
    let words = "cannot tell owners apart without the agent";
    let bytes = whole(asked.map_err(|failure| failure.within(words))?).await?;
    let value: Value = serde_json::from_slice(&bytes).map_err(strange)?;
    let all: Vec<AuditDto> = decoded(&value)?;
    let code = match all.iter().any(AuditDto::is_leaked) {
        true => LEAKED,
        false => 0,
    };
    if args.shape.is_asked() {
        cx.show(&args.shape, &value)?;
        return Ok(code);
    }
    cx.screen.print_line(&list(&all, args.verbose))?;
    cx.screen.print_line(&format!("\n{}", sum(&all)))?;
    Ok(code)
}

fn list(all: &[AuditDto], verbose: bool) -> String {
    let rows = all.iter().map(|thing| {
        let name = match thing.program.is_empty() {
            true => thing.name.clone(),
            false => format!("{} ({})", thing.name, thing.program),
        };
        [
            thing.kind.clone(),
            name,
            owner(thing, verbose),
            remark(thing),
        ]
    });
    table(["Kind", "Name", "Owner", "Remark"], rows)
}

fn owner(thing: &AuditDto, verbose: bool) -> String {
    let alloc = short(&thing.alloc_id, verbose);
    match (thing.alloc_id.as_str(), thing.task.as_str()) {
        ("", _) if thing.plugin.is_empty() => thing.owner.clone(),
        ("", _) => format!("plugin {}", thing.plugin),
        (_, "") => format!("alloc {alloc}"),
        (_, task) => format!("task {alloc}/{task}"),
    }
}

fn remark(thing: &AuditDto) -> String {
    let of = match thing.data_dir.as_str() {
        "" => String::new(),
        path => format!("of {path}"),
    };
    // What could not be removed says all that there is to say.
    let remark = match thing.error.is_empty() {
        true => thing.remark.clone(),
        false => String::new(),
    };
    let parts = [thing.done.clone(), thing.error.clone(), of, remark];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// How many there are of each owner, in words.
fn sum(all: &[AuditDto]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for thing in all {
        let what = match (thing.is_leaked(), thing.done.is_empty()) {
            (true, _) => "leaked",
            (false, false) => "removed",
            (false, true) if thing.owner == "unknown" => "unknown",
            (false, true) if thing.owner == "another agent" => "of other agents",
            (false, true) => "in use",
        };
        *counts.entry(what).or_default() += 1;
    }
    let order = ["in use", "of other agents", "unknown", "removed", "leaked"];
    let count = |what: &&str| {
        let count = counts.get(what).copied().unwrap_or(0);
        (count > 0 || *what == "leaked").then(|| format!("{count} {what}"))
    };
    order
        .iter()
        .filter_map(count)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing(kind: &str, name: &str, owner: &str) -> AuditDto {
        AuditDto {
            kind: kind.to_owned(),
            name: name.to_owned(),
            owner: owner.to_owned(),
            ..AuditDto::default()
        }
    }

    #[test]
    fn owner_is_shown_in_words() {
        let all = [
            AuditDto {
                program: "web".to_owned(),
                alloc_id: "12345678-1234".to_owned(),
                task: "main".to_owned(),
                ..thing("process", "7", "task")
            },
            AuditDto {
                done: "removed".to_owned(),
                data_dir: "/gone".to_owned(),
                ..thing("cgroup", "g", "leaked")
            },
            AuditDto {
                error: "busy".to_owned(),
                ..thing("mount", "/m", "leaked")
            },
        ];
        let lines = [
            "Kind     Name     Owner               Remark",
            "process  7 (web)  task 12345678/main",
            "cgroup   g        leaked              removed; of /gone",
            "mount    /m       leaked              busy",
        ];
        assert_eq!(list(&all, false), lines.join("\n"));
        assert_eq!(sum(&all), "1 in use, 1 removed, 1 leaked");
    }
}
