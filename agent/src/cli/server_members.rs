//! `drover server members`: the servers, or the agent as one that is alone; and `drover agent-info`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use drover_core::text::quote;
use futures::future::join_all;
use serde::Deserialize;
use serde_json::Value;

use super::args::{AgentInfoArgs, ServerMembersArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::screen::clean;
use super::table::table;

/// The state of a server that went for good.
const LEFT: &str = "left";

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
    addr: Option<String>,
    port: u16,
    status: String,
    tags: BTreeMap<String, String>,
}

impl Member {
    fn tag(&self, name: &str) -> &str {
        self.tags.get(name).map_or("", String::as_str)
    }

    /// Where nodes and other servers call it, as one that leads is named.
    fn rpc_address(&self) -> String {
        let host = match self.tag("rpc_addr") {
            "" => self.addr.as_deref().unwrap_or_default(),
            answered => answered,
        };
        match host.parse::<Ipv6Addr>() {
            Ok(_) => format!("[{host}]:{}", self.tag("port")),
            Err(_) => format!("{host}:{}", self.tag("port")),
        }
    }
}

/// Who leads in each region that these are of, and of which regions nobody says it, with why: those who are there are
/// worth knowing most where nobody leads.
async fn leaders(cx: &Context, members: &[Member]) -> (BTreeSet<String>, Vec<String>) {
    let there = members.iter().filter(|one| one.status != LEFT);
    let regions: BTreeSet<&str> = there.map(|one| one.tag("region")).collect();
    // At once: one of which nobody answers keeps no other waiting.
    let answers = regions.into_iter().map(async |region| {
        let of_region = [("region", region)];
        let answer: Result<String, Failure> = cx.client.get("/v1/status/leader", &of_region).await;
        (region, answer)
    });
    let (mut leaders, mut unknown) = (BTreeSet::new(), Vec::new());
    for (region, answer) in join_all(answers).await {
        match answer {
            Ok(leader) => drop(leaders.insert(leader)),
            Err(why) => unknown.push(format!("region {}: {}", quote(region), why.message)),
        }
    }
    (leaders, unknown)
}

/// Runs `server members`.
///
/// # Errors
/// The agent does not answer, or does not say which servers there are.
pub(super) async fn members(cx: &mut Context, args: ServerMembersArgs) -> Outcome {
    let path = "/v1/agent/members";
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let answer: Members = cx.client.get(path, &[]).await?;
    let (leaders, unknown) = leaders(cx, &answer.members).await;
    let row = |member: &Member| {
        let tag = |name: &str| member.tag(name).to_owned();
        [
            member.name.clone(),
            member.addr.clone().unwrap_or_default(),
            member.port.to_string(),
            member.status.clone(),
            leaders.contains(&member.rpc_address()).to_string(),
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
    for why in &unknown {
        cx.screen
            .complain(&format!("Error: nobody says who leads: {why}"));
    }
    Ok(u8::from(!unknown.is_empty()))
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
