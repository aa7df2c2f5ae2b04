//! `drover server members` and `drover agent-info`: the agent as one that is alone.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::args::{AgentInfoArgs, ServerMembersArgs};
use super::context::{Context, Outcome};
use super::screen::clean;
use super::table::table;

/// The answer of `/v1/agent/members`, as far as it is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Members {
    members: Vec<Member>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Member {
    name: String,
    addr: String,
    port: u16,
    status: String,
    tags: BTreeMap<String, String>,
}

/// Runs `server members`.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn members(cx: &mut Context, args: ServerMembersArgs) -> Outcome {
    let path = "/v1/agent/members";
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let answer: Members = cx.client.get(path, &[]).await?;
    let row = |member: &Member| {
        let tag = |name: &str| member.tags.get(name).cloned().unwrap_or_default();
        [
            member.name.clone(),
            member.addr.clone(),
            member.port.to_string(),
            member.status.clone(),
            "true".to_owned(),
            tag("raft_vsn"),
            tag("build"),
            tag("dc"),
            tag("region"),
        ]
    };
    let header = [
        "Name",
        "Address",
        "Port",
        "Status",
        "Leader",
        "Raft Version",
        "Build",
        "Datacenter",
        "Region",
    ];
    let shown = table(header, answer.members.iter().map(row));
    cx.screen.print_line(&shown)?;
    Ok(0)
}

/// What of `/v1/agent/self` is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Agent {
    stats: BTreeMap<String, BTreeMap<String, String>>,
}

/// Runs `agent-info`.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn info(cx: &mut Context, args: AgentInfoArgs) -> Outcome {
    let path = "/v1/agent/self";
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let agent: Agent = cx.client.get(path, &[]).await?;
    let mut lines = Vec::new();
    for (section, values) in &agent.stats {
        lines.push(clean(section));
        let values = values.iter();
        lines.extend(values.map(|(key, value)| format!("  {} = {}", clean(key), clean(value))));
    }
    cx.screen.print_line(&lines.join("\n"))?;
    Ok(0)
}
