//! `drover plugin status`.

use serde_json::Value;

use super::args::PluginStatusArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{block, columns};
use crate::http::dto::PluginDto;
use crate::times;

/// The drivers and plugins of an agent.
const PATH: &str = "/v1/agent/plugins";

/// Runs the command.
///
/// # Errors
/// There is no such plugin, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: PluginStatusArgs) -> Outcome {
    let kind = args.kind.as_deref();
    if !matches!(kind, None | Some("driver" | "device")) {
        return Err(Failure::new(
            "there are no plugins of that type here: -type is \"driver\" or \"device\"",
        ));
    }
    if args.shape.is_asked() {
        let mut all: Value = cx.client.get(PATH, &[]).await?;
        if let (Some(kind), Value::Array(items)) = (kind, &mut all) {
            items.retain(|item| item["Kind"] == kind);
        }
        return cx.show(&args.shape, &named(all, args.plugin.as_deref())?);
    }
    let mut all: Vec<PluginDto> = cx.client.get(PATH, &[]).await?;
    all.retain(|plugin| kind.is_none_or(|kind| plugin.kind == kind));
    let Some(name) = &args.plugin else {
        let time = |nanos| cx.time(nanos, args.verbose);
        let shown = list(&all, args.verbose, time);
        cx.screen.print_line(&shown)?;
        return Ok(0);
    };
    let mut of_name = all.iter().filter(|it| is_called(it, name)).peekable();
    if of_name.peek().is_none() {
        return Err(none(name));
    }
    for (at, plugin) in of_name.enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        cx.screen.print_line(&format!("{gap}{}", whole(plugin)))?;
    }
    Ok(0)
}

fn is_called(plugin: &PluginDto, name: &str) -> bool {
    plugin.name == name || plugin.program == name
}

fn none(name: &str) -> Failure {
    Failure::new(format!("No plugin(s) with name \"{name}\" found"))
}

/// Those of this name, or all.
fn named(all: Value, name: Option<&str>) -> Result<Value, Failure> {
    let (Some(name), Value::Array(mut items)) = (name, all.clone()) else {
        return Ok(all);
    };
    items.retain(|item| item["Name"] == name || item["Program"] == name);
    match items.is_empty() {
        true => Err(none(name)),
        false => Ok(Value::Array(items)),
    }
}

fn list(all: &[PluginDto], verbose: bool, time: impl Fn(i64) -> String) -> String {
    let mut header = vec![
        "Name", "Kind", "Version", "State", "Healthy", "PID", "Since",
    ];
    header.extend(["Restarts", "Tasks", "Devices"]);
    if verbose {
        header.extend(["Program", "Next Try", "Message"]);
    }
    let header = header.into_iter().map(str::to_owned).collect();
    let rows = all.iter().map(|plugin| {
        let mut row = vec![
            plugin.name.clone(),
            or_dash(&plugin.kind),
            or_dash(&plugin.version),
            plugin.state.clone(),
            plugin.healthy.to_string(),
            plugin
                .pid
                .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            times::parse(&plugin.since).map_or_else(|| "-".to_owned(), |since| time(since.0)),
            plugin.restarts.to_string(),
            plugin.tasks.to_string(),
            plugin.devices.to_string(),
        ];
        if verbose {
            row.push(or_dash(&plugin.program));
            row.push(or_dash(&plugin.next_try));
            row.push(or_dash(&plugin.message));
        }
        row
    });
    columns(std::iter::once(header).chain(rows))
}

fn or_dash(text: &str) -> String {
    let text = if text.is_empty() { "-" } else { text };
    text.to_owned()
}

fn whole(plugin: &PluginDto) -> String {
    let pid = plugin.pid.map_or_else(String::new, |pid| pid.to_string());
    let program = match plugin.program.as_str() {
        "" => "part of the agent",
        program => program,
    };
    block([
        ("Name", plugin.name.clone()),
        ("Kind", plugin.kind.clone()),
        ("Version", plugin.version.clone()),
        ("Program", program.to_owned()),
        ("State", plugin.state.clone()),
        ("Healthy", plugin.healthy.to_string()),
        ("Message", plugin.message.clone()),
        ("Next Try", plugin.next_try.clone()),
        ("PID", pid),
        ("Since", plugin.since.clone()),
        ("Restarts", plugin.restarts.to_string()),
        ("Tasks", plugin.tasks.to_string()),
        ("Devices", plugin.devices.to_string()),
    ])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    fn plugins() -> Vec<PluginDto> {
        let own = PluginDto {
            name: "raw_exec".to_owned(),
            kind: "driver".to_owned(),
            version: "1.0".to_owned(),
            state: "running".to_owned(),
            healthy: true,
            message: "Healthy".to_owned(),
            tasks: 2,
            ..PluginDto::default()
        };
        let crashing = PluginDto {
            name: "files".to_owned(),
            program: "files".to_owned(),
            state: "backing off".to_owned(),
            message: "it ended (exit code 2)".to_owned(),
            next_try: "2026-11-21T04:43:19Z".to_owned(),
            restarts: 3,
            ..PluginDto::default()
        };
        let running = PluginDto {
            pid: Some(42),
            since: "2026-11-21T04:43:14Z".to_owned(),
            program: "podman".to_owned(),
            ..own.clone()
        };
        vec![own, crashing, running]
    }

    #[test]
    fn plugin_list_shows_state_start_time_and_error() {
        let short = list(&plugins(), false, |nanos| {
            format!("{}s", nanos / 1_000_000_000)
        });
        let lines: Vec<&str> = short.lines().collect();
        assert_eq!(
            lines[0],
            "Name      Kind    Version  State        Healthy  PID  Since        Restarts  Tasks  Devices"
        );
        assert_eq!(
            lines[2],
            "files     -       -        backing off  false    -    -            3         0      0"
        );
        assert!(lines[3].contains("42   1795236194s"), "{short}");
        let whole = list(&plugins(), true, |_| String::new());
        assert!(
            whole.contains("files    2026-11-21T04:43:19Z  it ended (exit code 2)"),
            "{whole}"
        );
    }

    #[test]
    fn plugin_is_found_by_name_or_program() {
        let all = json!([{ "Name": "a", "Program": "x" }, { "Name": "b", "Program": "" }]);
        let found = |name: &str| named(all.clone(), Some(name)).ok();
        assert_eq!(found("x"), Some(json!([{ "Name": "a", "Program": "x" }])));
        assert_eq!(found("b"), Some(json!([{ "Name": "b", "Program": "" }])));
        assert_eq!(found("c"), None);
        assert_eq!(named(all.clone(), None).ok(), Some(all));
    }
}
