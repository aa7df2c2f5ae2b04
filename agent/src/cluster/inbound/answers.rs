//! Calls with one answer.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use drover_core::agent::Input;
use drover_core::agent::requests::CollectAlloc;
use drover_core::ids::TaskName;
use drover_core::input::ServerInput;
use drover_rpc::msgpack::{Time, Value};
use drover_rpc::types::host::{AgentHost, AgentHostReply, DiskSpace, HostData};
use drover_rpc::types::inbound::{
    AllocationsChecks, AllocationsGarbageCollect, AllocationsGarbageCollectAll, AllocationsRestart,
    AllocationsSignal, CheckQueryResult, Checks, FileInfo, FileList, FileStat, FileSystemList,
    FileSystemStat, NodeIdentityClaims, NodeIdentityGet, NodeIdentityRenew, NodeMeta,
    NodeMetaApply, NodeMetaRead,
};
use drover_rpc::types::query::Empty;
use drover_rpc::types::registration::WriteReply;
use drover_rpc::types::stats::{AllocStats, AllocationsStats, ClientStats, ClientStatsStats};
use serde_json::Value as Json;

use super::{Inbound, alloc_id, stats};
use crate::http::dto::CheckDto;
use crate::http::errors::ApiError;
use crate::http::metadata::Metadata;
use crate::http::{checks, client, files, host, metadata, stats as measuring};
use crate::times;

type Answered<T> = Result<T, ApiError>;

impl Inbound {
    pub(super) async fn host_stats(&self, asked: ClientStatsStats) -> Answered<ClientStats> {
        let node = Some(asked.node_id.as_str()).filter(|id| !id.is_empty());
        let measured = measuring::measure_host(&self.agent_handle, &self.measures, node).await?;
        Ok(ClientStats {
            host_stats: Some(stats::host(measured)),
            known_leader: true,
            ..ClientStats::default()
        })
    }

    pub(super) async fn alloc_stats(&self, asked: AllocationsStats) -> Answered<AllocStats> {
        let id = alloc_id(&asked.alloc_id)?;
        let task = Some(asked.task).filter(|task| !task.is_empty());
        let task = task.map(TaskName::from);
        let measuring = measuring::measure_alloc(&self.agent_handle, &self.measures, id, task);
        Ok(AllocStats {
            stats: Some(stats::alloc(measuring.await?)),
            known_leader: true,
            ..AllocStats::default()
        })
    }

    pub(super) async fn checks(&self, asked: AllocationsChecks) -> Answered<Checks> {
        let id = alloc_id(&asked.alloc_id)?;
        let latest = checks::latest(&self.agent_handle, id).await?;
        let results = latest.into_iter().map(|(id, one)| (id, check(one)));
        Ok(Checks {
            results: results.collect(),
            known_leader: true,
            ..Checks::default()
        })
    }

    pub(super) async fn restart(&self, asked: AllocationsRestart) -> Answered<WriteReply> {
        let id = alloc_id(&asked.alloc_id)?;
        let request = client::restart(id, &asked.task_name, asked.all_tasks)?;
        client::carry_out(&self.agent_handle, request).await?;
        Ok(WriteReply::default())
    }

    pub(super) async fn signal(&self, asked: AllocationsSignal) -> Answered<WriteReply> {
        let id = alloc_id(&asked.alloc_id)?;
        let request = client::signal(id, &asked.task, asked.signal);
        client::carry_out(&self.agent_handle, request).await?;
        Ok(WriteReply::default())
    }

    pub(super) async fn collect(&self, asked: AllocationsGarbageCollect) -> Answered<WriteReply> {
        let alloc = alloc_id(&asked.alloc_id)?;
        client::carry_out(&self.agent_handle, CollectAlloc { alloc }).await?;
        Ok(WriteReply::default())
    }

    pub(super) async fn collect_all(
        &self,
        _: AllocationsGarbageCollectAll,
    ) -> Answered<WriteReply> {
        client::collect_ended(&self.agent_handle).await?;
        Ok(WriteReply::default())
    }

    pub(super) async fn list(&self, asked: FileSystemList) -> Answered<FileList> {
        let list = files::list(&self.agent_handle, &asked.alloc_id, &asked.path).await?;
        Ok(FileList {
            files: list.into_iter().map(file).collect(),
            known_leader: true,
            ..FileList::default()
        })
    }

    pub(super) async fn stat(&self, asked: FileSystemStat) -> Answered<FileStat> {
        let info = files::info(&self.agent_handle, &asked.alloc_id, &asked.path).await?;
        Ok(FileStat {
            info: Some(file(info)),
            known_leader: true,
            ..FileStat::default()
        })
    }

    pub(super) async fn meta(&self, asked: NodeMetaRead) -> Answered<NodeMeta> {
        let known = metadata::of_node(&self.agent_handle, &asked.node_id).await?;
        Ok(meta(known))
    }

    pub(super) async fn apply_meta(&self, asked: NodeMetaApply) -> Answered<NodeMeta> {
        let changed = metadata::change(&self.agent_handle, &asked.node_id, asked.meta).await?;
        Ok(meta(changed))
    }

    pub(super) async fn identity(&self, _: NodeIdentityGet) -> Answered<NodeIdentityClaims> {
        let known = self.agent_handle.ask(|view| {
            let server = view.server()?;
            let identity = server.record().identity.as_ref()?;
            Some(claims(identity.expose()))
        });
        let claims = known.await?.flatten();
        let claims = claims.ok_or_else(|| ApiError::not_found("the node has no identity"))?;
        Ok(NodeIdentityClaims { claims })
    }

    pub(super) async fn renew_identity(&self, _: NodeIdentityRenew) -> Answered<Empty> {
        let wanted = ServerInput::RenewIdentity;
        self.inbox.deliver(Input::Server(wanted));
        Ok(Empty {})
    }

    pub(super) async fn host(&self, _: AgentHost) -> Answered<AgentHostReply> {
        let id = self.agent_handle.ask(|view| view.node().id).await?;
        let facts = host::of_this_machine(&self.data_dir).await?;
        let mib = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
        let disks = facts.disks.into_iter().map(|(dir, disk)| {
            let space = DiskSpace {
                disk_mb: mib(disk.size),
                used_mb: mib(disk.used),
            };
            (dir, space)
        });
        Ok(AgentHostReply {
            agent_id: id.to_string(),
            host_data: Some(HostData {
                disk: disks.collect(),
                environment: BTreeMap::new(),
                hosts: facts.hosts,
                network: facts.networks,
                os: facts.os,
                resolv_conf: facts.resolv_conf,
            }),
        })
    }
}

fn check(check: CheckDto) -> CheckQueryResult {
    CheckQueryResult {
        check: check.check,
        group: check.group,
        id: check.id,
        mode: check.mode,
        output: check.output,
        service: check.service,
        status: check.status,
        status_code: check.status_code.map_or(0, i64::from),
        task: check.task,
        timestamp: check.timestamp,
    }
}

fn file(info: files::FileInfo) -> FileInfo {
    FileInfo {
        content_type: info.content_type,
        file_mode: info.file_mode,
        is_dir: info.is_dir,
        mod_time: time(&info.mod_time),
        name: info.name,
        size: info.size,
    }
}

/// A time that the API writes in words.
pub(super) fn time(text: &str) -> Time {
    times::parse(text).map_or(Time::ZERO, |at| Time::from_unix_nanos(at.0))
}

fn meta(known: Metadata) -> NodeMeta {
    NodeMeta {
        dynamic: known.dynamic,
        meta: known.meta,
        r#static: known.configured,
    }
}

/// The claims of a token, which is not checked: servers signed it for this node.
fn claims(token: &str) -> Option<BTreeMap<String, Value>> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: serde_json::Map<String, Json> = serde_json::from_slice(&claims).ok()?;
    Some(
        claims
            .into_iter()
            .map(|(name, it)| (name, value(it)))
            .collect(),
    )
}

/// A value of a claim; numbers are floats there.
fn value(json: Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
        Json::String(text) => Value::Text(text),
        Json::Array(list) => Value::List(list.into_iter().map(value).collect()),
        Json::Object(map) => Value::Map(
            map.into_iter()
                .map(|(name, it)| (name, value(it)))
                .collect(),
        ),
    }
}
