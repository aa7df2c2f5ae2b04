//! Messages on the wire, and the same in the core's form.
//!
//! What nodes say is not read back from its bytes: it is known what each node meant to say, and how production code
//! puts that into the protocol's form, so that bytes mean what has these. Replies are written here, and are read by
//! production code.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::cluster::{
    AllocReport, Answer, Call, CallError, CallErrorKind, ClientNode, Credentials, NodeReply,
    PlacedAlloc, ServiceInstance,
};
use drover_core::model::job::Job;
use drover_core::store::record::AssignedPort;
use drover_core::time::Span;
use drover_rpc::msgpack::{Secret, Value, decode, encode};
use drover_rpc::types::Request;
use drover_rpc::types::allocation::{
    AllocatedResources, AllocatedShared, Allocation, DeploymentStatus, DesiredTransition,
};
use drover_rpc::types::job;
use drover_rpc::types::network::AllocatedPortMapping;
use drover_rpc::types::node::DriverInfo;
use drover_rpc::types::query::{
    AllocGetAllocs, Allocations, NodeClientAllocs, NodeGetClientAllocs,
};
use drover_rpc::types::registration::{
    NodeEmitEvents, NodeRegister, NodeUpdateReply, NodeUpdateStatus, ServerInfo, WriteReply,
};
use drover_rpc::types::service::{ServiceRegistrationDeleteById, ServiceRegistrationUpsert};
use drover_rpc::types::update::NodeUpdateAlloc;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::super::{node, report, service};
use super::wire::server::Does;
use crate::http::dto::full_job;

/// By which servers know a node before they signed an identity for it.
pub(super) fn secret_of(index: usize) -> String {
    format!("5ec4e700-0000-4000-8000-{index:012}")
}

fn id_of(index: usize) -> String {
    drover_core::ids::NodeId(index as u128 + 1).to_string()
}

fn bytes(of: &impl Serialize) -> Vec<u8> {
    encode(of).unwrap()
}

/// What a node ever meant to send, by its bytes on the wire.
#[derive(Default)]
pub(super) struct Intended {
    nodes: BTreeMap<Vec<u8>, Arc<ClientNode>>,
    reports: BTreeMap<Vec<u8>, Arc<AllocReport>>,
    services: BTreeMap<Vec<u8>, Arc<ServiceInstance>>,
}

/// A call that arrived.
pub(super) struct Arrived {
    pub(super) credentials: Credentials,
    pub(super) call: Call,
    /// Whether a server may answer that is behind.
    pub(super) stale: bool,
}

impl Intended {
    /// A node is about to make a call.
    pub(super) fn note(&mut self, index: usize, call: &Call) {
        let id = id_of(index);
        match call {
            Call::Register(it) => {
                let sent = node::of(it, secret_of(index).into(), false);
                self.nodes.insert(bytes(&sent), it.clone());
            }
            Call::ReportAllocs(all) => {
                let all = all
                    .iter()
                    .map(|it| (bytes(&report::of(it, &id)), it.clone()));
                self.reports.extend(all);
            }
            Call::RegisterServices(all) => {
                let all = all
                    .iter()
                    .map(|it| (bytes(&service::of(it, &id)), it.clone()));
                self.services.extend(all);
            }
            _ => {}
        }
    }

    /// What a node sent. It is what it meant.
    pub(super) fn receive(&self, index: usize, method: &str, body: &Value) -> Option<Arrived> {
        let (token, call, stale) = match method {
            NodeRegister::METHOD => {
                let asked: NodeRegister = typed(body);
                let mut node = asked.node.unwrap();
                for driver in node.drivers.values_mut() {
                    // Since when a driver is so is added on the way.
                    driver.update_time = DriverInfo::default().update_time;
                }
                let node = self.nodes[&bytes(&node)].clone();
                (asked.auth_token, Call::Register(node), false)
            }
            NodeUpdateStatus::METHOD => {
                let asked: NodeUpdateStatus = typed(body);
                assert_eq!(asked.node_id, id_of(index));
                let renew_identity = asked.force_identity_renewal;
                (asked.auth_token, Call::Heartbeat { renew_identity }, false)
            }
            NodeEmitEvents::METHOD => {
                let asked: NodeEmitEvents = typed(body);
                (asked.auth_token, Call::EmitEvents(Vec::new()), false)
            }
            NodeGetClientAllocs::METHOD => {
                let asked: NodeGetClientAllocs = typed(body);
                let (index, max_wait) = (asked.min_query_index, Span(asked.max_query_time));
                let call = Call::WatchAllocs { index, max_wait };
                (asked.auth_token, call, asked.allow_stale)
            }
            AllocGetAllocs::METHOD => {
                let asked: AllocGetAllocs = typed(body);
                let ids = asked.alloc_ids.iter().map(|id| id.parse().unwrap());
                let call = Call::PullAllocs {
                    ids: ids.collect(),
                    newer_than: asked.min_query_index,
                    max_wait: Span(asked.max_query_time),
                };
                (asked.auth_token, call, asked.allow_stale)
            }
            NodeUpdateAlloc::METHOD => {
                let asked: NodeUpdateAlloc = typed(body);
                let reports = asked
                    .alloc
                    .iter()
                    .map(|it| self.reports[&bytes(it)].clone());
                (
                    asked.auth_token,
                    Call::ReportAllocs(reports.collect()),
                    false,
                )
            }
            ServiceRegistrationUpsert::METHOD => {
                let asked: ServiceRegistrationUpsert = typed(body);
                let all = asked.services.iter();
                let all = all.map(|it| self.services[&bytes(it)].clone());
                (
                    asked.auth_token,
                    Call::RegisterServices(all.collect()),
                    false,
                )
            }
            ServiceRegistrationDeleteById::METHOD => {
                let asked: ServiceRegistrationDeleteById = typed(body);
                let mut all = self.services.values();
                let one = all.find(|it| *it.id == *asked.id).unwrap();
                (
                    asked.auth_token,
                    Call::RemoveServices(vec![one.clone()]),
                    false,
                )
            }
            _ => return None,
        };
        Some(Arrived {
            credentials: credentials(index, &token),
            call,
            stale,
        })
    }
}

fn typed<T: DeserializeOwned>(body: &Value) -> T {
    decode(&bytes(body)).unwrap()
}

fn credentials(index: usize, token: &Secret) -> Credentials {
    match token.expose() {
        "" => Credentials::None,
        token if token == secret_of(index) => Credentials::NodeSecret,
        token => Credentials::Identity(token.into()),
    }
}

/// What the servers say, as a server sends it to a node.
pub(super) fn reply(index: usize, result: &Result<Answer, CallError>) -> Does {
    match result {
        Ok(Answer::Registered(it) | Answer::Heartbeat(it)) => Does::reply(&of_node(it)),
        Ok(Answer::Indexes(it)) => {
            let allocs = it.allocs.iter().map(|(id, at)| (id.to_string(), *at));
            let tokens = it.migrate_tokens.iter();
            let tokens = tokens.map(|(id, token)| (id.to_string(), token.expose().into()));
            Does::reply(&NodeClientAllocs {
                allocs: allocs.collect(),
                index: it.index,
                migrate_tokens: tokens.collect(),
                ..NodeClientAllocs::default()
            })
        }
        Ok(Answer::Pulled(it)) => Does::reply(&Allocations {
            allocs: it.allocs.iter().map(|it| placed(index, it)).collect(),
            index: it.index,
            ..Allocations::default()
        }),
        Ok(_) => Does::reply(&WriteReply::default()),
        Err(error) => Does::Error(match error.kind {
            CallErrorKind::UnknownNode => "rpc error: node not found",
            CallErrorKind::PermissionDenied => "rpc error: Permission denied",
            CallErrorKind::NoLeader | CallErrorKind::NoServers => "rpc error: No cluster leader",
            CallErrorKind::Other => "node is not allowed to update allocs while in status down",
        }),
    }
}

fn of_node(reply: &NodeReply) -> NodeUpdateReply {
    let server = |address: &Arc<str>| ServerInfo {
        rpc_advertise_addr: address.to_string(),
        ..ServerInfo::default()
    };
    let eligibility = reply.eligibility.map(|it| it.as_str().to_owned());
    NodeUpdateReply {
        heartbeat_ttl: reply.heartbeat_ttl.0,
        index: reply.index,
        scheduling_eligibility: eligibility.unwrap_or_default(),
        servers: reply.servers.iter().map(server).collect(),
        signed_identity: reply.identity.as_ref().map(|it| it.expose().into()),
        ..NodeUpdateReply::default()
    }
}

fn placed(index: usize, alloc: &PlacedAlloc) -> Allocation {
    let text = |id: Option<String>| id.unwrap_or_default();
    let job = alloc.job.as_ref().unwrap();
    let shared = AllocatedShared {
        ports: alloc.ports.iter().map(port).collect(),
        ..AllocatedShared::default()
    };
    Allocation {
        alloc_modify_index: alloc.modify_index,
        allocated_resources: Some(AllocatedResources {
            shared,
            ..AllocatedResources::default()
        }),
        client_status: alloc.client_status.as_str().to_owned(),
        create_time: alloc.create_time.0,
        deployment_id: text(alloc.deployment.map(|it| it.to_string())),
        deployment_status: alloc.canary.then(|| DeploymentStatus {
            canary: true,
            ..DeploymentStatus::default()
        }),
        desired_description: alloc.desired_description.to_string(),
        desired_status: alloc.desired.as_str().to_owned(),
        desired_transition: DesiredTransition {
            no_shutdown_delay: Some(alloc.no_shutdown_delay),
            ..DesiredTransition::default()
        },
        eval_id: alloc.eval.to_string(),
        id: alloc.id.to_string(),
        job: Some(Box::new(sent(job))),
        job_id: job.id.clone(),
        name: alloc.name.to_string(),
        namespace: job.namespace.to_string(),
        node_id: id_of(index),
        previous_allocation: text(alloc.previous.map(|it| it.to_string())),
        task_group: alloc.group.to_string(),
        ..Allocation::default()
    }
}

fn port(port: &AssignedPort) -> AllocatedPortMapping {
    AllocatedPortMapping {
        host_ip: port.host_ip.clone(),
        label: port.label.clone(),
        to: i64::from(port.to),
        value: i64::from(port.value),
        ..AllocatedPortMapping::default()
    }
}

/// A job as servers send it: by the JSON of the API, with which it has its names in common.
fn sent(job: &Job) -> job::Job {
    let mut json = full_job(job, "running", None);
    without_nulls(&mut json);
    serde_json::from_value(json).unwrap()
}

fn without_nulls(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Json::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
