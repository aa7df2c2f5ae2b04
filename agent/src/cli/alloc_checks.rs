//! `drover alloc checks`: what the checks of an allocation's services found.

use std::collections::BTreeMap;

use drover_core::time::Timestamp;
use serde_json::Value;

use super::args::AllocChecksArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup;
use super::table::{block, short, table};
use crate::http::dto::CheckDto;
use crate::times;

/// Runs the command.
///
/// # Errors
/// The allocation cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: AllocChecksArgs) -> Outcome {
    let alloc = lookup::alloc(&cx.client, &args.alloc).await?;
    if args.shape.is_asked() {
        let path = path(&alloc.id);
        let all: Value = cx.client.get(&path, &[]).await?;
        return cx.show(&args.shape, &all);
    }
    let all = of_alloc(cx, &alloc.id).await?;
    let title = format!("Status of {} Nomad Service Checks", all.len());
    cx.screen.title(&title)?;
    for check in &all {
        let text = format!("\n{}", one(check, args.verbose));
        cx.screen.print_line(&text)?;
    }
    Ok(0)
}

fn path(alloc: &str) -> String {
    format!("/v1/client/allocation/{alloc}/checks")
}

/// The checks of an allocation, in the order of services, tasks and names.
pub(super) async fn of_alloc(cx: &Context, alloc: &str) -> Result<Vec<CheckDto>, Failure> {
    let all: BTreeMap<String, CheckDto> = cx.client.get(&path(alloc), &[]).await?;
    let mut all: Vec<CheckDto> = all.into_values().collect();
    all.sort_by(|a, b| (&a.service, &a.task, &a.check).cmp(&(&b.service, &b.task, &b.check)));
    Ok(all)
}

fn one(check: &CheckDto, verbose: bool) -> String {
    let mut lines = vec![
        ("ID", short(&check.id, verbose)),
        ("Name", check.check.clone()),
        ("Group", check.group.clone()),
        ("Task", owner(check)),
        ("Service", check.service.clone()),
        ("Status", check.status.clone()),
    ];
    if let Some(code) = check.status_code {
        lines.push(("StatusCode", code.to_string()));
    }
    let at = Timestamp(check.timestamp.saturating_mul(1_000_000_000));
    let at = match check.timestamp {
        0 => String::new(),
        _ => times::to_seconds(at),
    };
    lines.extend([
        ("Mode", check.mode.clone()),
        ("Timestamp", at),
        ("Output", check.output.clone()),
    ]);
    block(lines)
}

fn owner(check: &CheckDto) -> String {
    match check.task.as_str() {
        "" => "(group)".to_owned(),
        task => task.to_owned(),
    }
}

/// The checks in the status of an allocation; nothing if there are none.
pub(super) fn section(all: &[CheckDto]) -> Option<String> {
    let row = |check: &CheckDto| {
        [
            check.service.clone(),
            owner(check),
            check.check.clone(),
            check.mode.clone(),
            check.status.clone(),
        ]
    };
    let header = ["Service", "Task", "Name", "Mode", "Status"];
    (!all.is_empty()).then(|| table(header, all.iter().map(row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_is_shown_with_its_result() {
        let check = CheckDto {
            id: "aab65f5b68e1af3a".to_owned(),
            check: "alive".to_owned(),
            group: "web.app[0]".to_owned(),
            service: "web-http".to_owned(),
            mode: "healthiness".to_owned(),
            status: "success".to_owned(),
            status_code: Some(200),
            output: "nomad: http ok".to_owned(),
            timestamp: 1_795_236_203,
            ..CheckDto::default()
        };
        let shown = one(&check, false);
        let lines: Vec<&str> = shown.lines().collect();
        let wanted = [
            "ID         = aab65f5b",
            "Name       = alive",
            "Group      = web.app[0]",
            "Task       = (group)",
            "Service    = web-http",
            "Status     = success",
            "StatusCode = 200",
            "Mode       = healthiness",
            "Timestamp  = 2026-11-21T04:43:23Z",
            "Output     = nomad: http ok",
        ];
        assert_eq!(lines, wanted);
        let section = section(&[check]).unwrap();
        let wanted = "Service   Task     Name   Mode         Status\n\
                      web-http  (group)  alive  healthiness  success";
        assert_eq!(section, wanted);
    }
}
