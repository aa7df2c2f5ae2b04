//! What servers ask of the node, over the connection that it opened: mostly for their users, who ask them for
//! statistics, logs, files, sessions and so on of an allocation.
//!
//! The answers are those of the node's own API, put into the protocol's form; what they are made of is below
//! `crate::http`. Servers check who may ask what, but for one thing, which only the node knows: whether a program
//! beside a task would see the file system of the host ([`exec`]). They are asked for allocations that they placed; an
//! answer about another one of this node's is no secret from those who decide what runs on it.
//!
//! | | |
//! |---|---|
//! | [`answers`] | calls with one answer |
//! | [`stats`] | statistics in the protocol's form |
//! | [`streams`] | logs, files, and the agent's own log |
//! | [`exec`] | exec sessions |

mod answers;
mod exec;
mod stats;
mod streams;
#[cfg(test)]
mod tests;

use axum::http::StatusCode;
use drover_core::ids::AllocId;
use drover_io_real::driver::Inbox;
use drover_rpc::connection::{Answer, Handler, InboundCall, Input, Output};
use drover_rpc::types::InboundRequest;
use drover_rpc::types::host::AgentHost;
use drover_rpc::types::inbound::{
    AllocationsChecks, AllocationsGarbageCollect, AllocationsGarbageCollectAll, AllocationsRestart,
    AllocationsSignal, FileSystemList, FileSystemStat, NodeIdentityGet, NodeIdentityRenew,
    NodeMetaApply, NodeMetaRead,
};
use drover_rpc::types::stats::{AllocationsStats, ClientStatsStats};
use serde::de::DeserializeOwned;

use crate::agent_handle::AgentHandle;
use crate::agent_log::AgentLog;
use crate::http::errors::ApiError;
use crate::http::{ForServers, Measures};

/// The streaming calls.
const LOGS: &str = "FileSystem.Logs";
const FILE: &str = "FileSystem.Stream";
const EXEC: &str = "Allocations.Exec";
const MONITOR: &str = "Agent.Monitor";
const MONITOR_EXPORT: &str = "Agent.MonitorExport";

/// What servers ask of Nomad's nodes and this one does not do: the beginnings of their methods, and what it says.
const NOT_OFFERED: [(&str, StatusCode, &str); 5] = [
    (
        "Allocations.SetPauseState",
        StatusCode::NOT_IMPLEMENTED,
        "Enterprise only",
    ),
    (
        "Allocations.GetPauseState",
        StatusCode::NOT_IMPLEMENTED,
        "Enterprise only",
    ),
    (
        "Agent.Profile",
        StatusCode::NOT_IMPLEMENTED,
        "the agent of this node is no program in Go and has no profiles of one",
    ),
    (
        "HostVolume.",
        StatusCode::NOT_IMPLEMENTED,
        "this node has no dynamic host volumes of the cluster: name them in its configuration",
    ),
    (
        "CSI.",
        StatusCode::NOT_IMPLEMENTED,
        "this node has no CSI plugins",
    ),
];

/// Texts by which servers know that what was asked for is not there.
const NOT_THERE: [&str; 3] = [
    "Unknown allocation",
    "Unknown node",
    "no such file or directory",
];

/// Answers servers, from what the node's own API is made of, too.
#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    pub(crate) agent_handle: AgentHandle,
    /// Whose the tokens are that servers pass on.
    pub(crate) access: ForServers,
    pub(crate) measures: Measures,
    pub(crate) log: AgentLog,
    /// Where the agent keeps its data.
    pub(crate) data_dir: String,
    /// The way to the core of what needs no answer of it.
    pub(crate) inbox: Inbox,
}

impl Handler for Inbound {
    async fn call(&self, call: InboundCall) -> Answer {
        let call = &call;
        match call.method.as_str() {
            AllocationsStats::METHOD => answer(call, |asked| self.alloc_stats(asked)).await,
            AllocationsChecks::METHOD => answer(call, |asked| self.checks(asked)).await,
            AllocationsRestart::METHOD => answer(call, |asked| self.restart(asked)).await,
            AllocationsSignal::METHOD => answer(call, |asked| self.signal(asked)).await,
            AllocationsGarbageCollect::METHOD => answer(call, |asked| self.collect(asked)).await,
            AllocationsGarbageCollectAll::METHOD => {
                answer(call, |asked| self.collect_all(asked)).await
            }
            ClientStatsStats::METHOD => answer(call, |asked| self.host_stats(asked)).await,
            FileSystemList::METHOD => answer(call, |asked| self.list(asked)).await,
            FileSystemStat::METHOD => answer(call, |asked| self.stat(asked)).await,
            NodeMetaRead::METHOD => answer(call, |asked| self.meta(asked)).await,
            NodeMetaApply::METHOD => answer(call, |asked| self.apply_meta(asked)).await,
            NodeIdentityGet::METHOD => answer(call, |asked| self.identity(asked)).await,
            NodeIdentityRenew::METHOD => answer(call, |asked| self.renew_identity(asked)).await,
            AgentHost::METHOD => answer(call, |asked| self.host(asked)).await,
            other => not_offered(other),
        }
    }

    fn has_stream(&self, method: &str) -> bool {
        [LOGS, FILE, EXEC, MONITOR, MONITOR_EXPORT].contains(&method)
    }

    async fn stream(&self, call: InboundCall, input: &mut Input, output: &mut Output) {
        let served = match call.method.as_str() {
            LOGS => match asked(&call) {
                Ok(asked) => self.logs(asked, input, output).await,
                Err(error) => Err(error),
            },
            FILE => match asked(&call) {
                Ok(asked) => self.file(asked, input, output).await,
                Err(error) => Err(error),
            },
            EXEC => match asked(&call) {
                Ok(asked) => self.exec(asked, input, output).await,
                Err(error) => Err(error),
            },
            MONITOR => match asked(&call) {
                Ok(asked) => self.monitor(asked, input, output).await,
                Err(error) => Err(error),
            },
            _ => Err(ApiError::new(
                StatusCode::NOT_IMPLEMENTED,
                "the agent of this node keeps no log to export: follow it with \"nomad monitor\"",
            )),
        };
        if let Err(error) = served {
            let code = i64::from(error.status.as_u16());
            // Who is gone need not hear it.
            drop(output.fail(code, error.message).await);
        }
    }
}

/// The answer to one call.
async fn answer<R, F>(call: &InboundCall, work: impl FnOnce(R) -> F) -> Answer
where
    R: InboundRequest,
    F: Future<Output = Result<R::Reply, ApiError>>,
{
    match call.request::<R>() {
        Err(answer) => answer,
        Ok(request) => match work(request).await {
            Ok(reply) => Answer::reply(&reply),
            Err(error) => Answer::Error(text(error)),
        },
    }
}

/// The request of a streaming call.
fn asked<R: DeserializeOwned>(call: &InboundCall) -> Result<R, ApiError> {
    call.decode()
        .map_err(|error| ApiError::bad(format!("msgpack decode error: {error}")))
}

/// An error as servers read it: they show its words, and answer with the status that they know for them or that is
/// written in front of them, or with 500.
fn text(error: ApiError) -> String {
    let ApiError {
        status, message, ..
    } = error;
    let is_known = || NOT_THERE.iter().any(|words| message.contains(words));
    match status {
        StatusCode::INTERNAL_SERVER_ERROR => message,
        StatusCode::NOT_FOUND if is_known() => message,
        _ => format!("RPC Error:: {},{message}", status.as_u16()),
    }
}

fn not_offered(method: &str) -> Answer {
    let mut known = NOT_OFFERED.iter();
    match known.find(|(beginning, ..)| method.starts_with(beginning)) {
        Some((_, status, words)) => Answer::Error(text(ApiError::new(*status, *words))),
        None => Answer::UnknownMethod,
    }
}

fn alloc_id(id: &str) -> Result<AllocId, ApiError> {
    id.parse()
        .map_err(|_| ApiError::not_found(format!("Unknown allocation \"{id}\"")))
}
