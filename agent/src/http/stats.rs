//! What the machine and its allocations use.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use drover_core::agent::{AllocView, View};
use drover_core::ids::{AllocId, TaskName};
use drover_core::model::node::Node;
use drover_core::stats::board::AllocUsage;
use drover_core::stats::running::Running;
use drover_core::store::record::AllocRecord;
use drover_io_real::sampler::{Depth, Sampler};
use drover_io_real::stats::HostSampler;

use super::answer::{self, Answer};
use super::dto::{AllocStats, HostStats};
use super::errors::ApiError;
use super::params::{Params, uuid};
use super::response_cache::{About, ResponseCache};
use super::{Api, missing};
use crate::agent_handle::AgentHandle;

/// Who measures.
#[derive(Clone)]
pub struct Measures {
    /// Tasks.
    pub tasks: Sampler,
    /// The machine.
    pub host: HostSampler,
    response_cache: Arc<ResponseCache>,
}

impl std::fmt::Debug for Measures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Measures")
    }
}

impl Measures {
    /// These measure.
    pub fn new(tasks: Sampler, host: HostSampler) -> Measures {
        Measures {
            tasks,
            host,
            response_cache: Arc::default(),
        }
    }

    pub(super) fn response_cache(&self) -> &ResponseCache {
        &self.response_cache
    }
}

/// An allocation, as far as measuring it needs it.
#[derive(Clone, Debug)]
struct AllocSnapshot {
    record: Arc<AllocRecord>,
    /// Its tasks that run.
    running: Vec<Running>,
}

impl AllocSnapshot {
    fn of(alloc: AllocView<'_>) -> AllocSnapshot {
        AllocSnapshot {
            record: alloc.record().clone(),
            running: Running::of(alloc),
        }
    }

    fn runs(&self, task: &TaskName) -> bool {
        self.running.iter().any(|it| it.task.task == *task)
    }

    /// What it uses, as far as that is known by now.
    fn usage(&self, sampler: &Sampler) -> AllocUsage {
        let held = &self.record.devices;
        sampler.board().of(self.record.id, held, &self.running)
    }

    /// What one task of it uses, as if there were no other.
    fn usage_of(&self, sampler: &Sampler, name: &TaskName) -> AllocUsage {
        let mut usage = self.usage(sampler);
        let task = usage.tasks.remove(name);
        let mut only = AllocUsage::default();
        if let Some(task) = task {
            if self.runs(name) {
                only.usage = task.usage.usage;
                only.devices = task.devices.clone();
                only.at = task.usage.at;
            }
            only.tasks.insert(name.clone(), task);
        }
        only
    }
}

/// All tasks that run.
fn all_running(view: View<'_>) -> Vec<Running> {
    view.allocs().flat_map(Running::of).collect()
}

/// MHz of a core of this node, if that is known.
pub(super) fn mhz_of_a_core(node: &Node) -> Option<f64> {
    let number = |name: &str| node.attributes.get(name)?.parse::<f64>().ok();
    let cores = number("cpu.numcores").filter(|cores| *cores > 0.0)?;
    Some(number("cpu.totalcompute")? / cores)
}

pub(super) async fn host(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.non_empty("node_id").map(str::to_owned);
    // The machine has nothing to do with the state; whose it is does not change.
    if let (None, false, Some(text)) = (
        &asked,
        params.pretty,
        api.measures.response_cache().get(About::Host, 0),
    ) {
        return Ok(json(text));
    }
    let stats = measure_host(&api.agent_handle, &api.measures, asked.as_deref()).await?;
    if params.pretty {
        return answer::json(&params, &stats);
    }
    let text = encode(&stats)?;
    api.measures
        .response_cache()
        .put(About::Host, 0, text.clone());
    Ok(json(text))
}

/// What the machine uses. It is this node that is asked where none is named.
///
/// # Errors
/// Another node is asked.
pub(crate) async fn measure_host(
    agent_handle: &AgentHandle,
    measures: &Measures,
    node: Option<&str>,
) -> Result<HostStats, ApiError> {
    let known = agent_handle.ask(|view| {
        let node = view.node();
        (node.id.to_string(), mhz_of_a_core(node))
    });
    let (id, mhz) = known.await?;
    if let Some(asked) = node.filter(|asked| *asked != id) {
        return Err(ApiError::not_found(format!("Unknown node {asked}")));
    }
    let Measures { tasks, host, .. } = measures;
    let (host, ()) = tokio::join!(host.sample(mhz), tasks.refresh_all_devices());
    Ok(HostStats::of(&host, &tasks.board().devices.all()))
}

/// An action of an allocation that nobody has, or that only others have.
pub(super) fn unknown_action(id: &str, action: &str) -> ApiError {
    if matches!(action, "restart" | "signal" | "stats" | "exec") {
        return ApiError::method();
    }
    let path = format!("/v1/client/allocation/{id}/{action}");
    match missing::offered_by_nomad(&path) {
        Some(what) => missing::not_offered(what, &path),
        None => ApiError::not_found("resource not found"),
    }
}

pub(super) async fn alloc(
    State(api): State<Api>,
    Path((id, action)): Path<(String, String)>,
    params: Params,
) -> Answer {
    if action != "stats" {
        return Err(unknown_action(&id, &action));
    }
    let id: AllocId = uuid("alloc", &id)?;
    let task = params.non_empty("task").map(TaskName::from);
    let plain = task.is_none() && !params.pretty;
    let index = *api.agent_handle.index().borrow();
    if plain && let Some(text) = api.measures.response_cache().get(About::Alloc(id), index) {
        return Ok(json(text));
    }
    let stats = measure_alloc(&api.agent_handle, &api.measures, id, task).await?;
    if !plain {
        return answer::json(&params, &stats);
    }
    let text = encode(&stats)?;
    api.measures
        .response_cache()
        .put(About::Alloc(id), index, text.clone());
    Ok(json(text))
}

/// What an allocation uses, or one task of it as if there were no other.
///
/// # Errors
/// There is no such allocation.
pub(crate) async fn measure_alloc(
    agent_handle: &AgentHandle,
    measures: &Measures,
    id: AllocId,
    task: Option<TaskName>,
) -> Result<AllocStats, ApiError> {
    let known = agent_handle.ask(move |view: View<'_>| {
        let alloc = view.alloc(id).map(AllocSnapshot::of);
        let alloc = alloc.ok_or_else(|| ApiError::no_alloc(view, id))?;
        Ok::<_, ApiError>((alloc, mhz_of_a_core(view.node())))
    });
    let (alloc, mhz) = known.await??;
    let sampler = &measures.tasks;
    let (running, others) = (alloc.running.clone(), agent_handle.ask(all_running));
    let (measured, ()) = tokio::join!(
        sampler.sample_among(running, Depth::Processes, mhz, others),
        sampler.refresh_devices(&alloc.record.devices)
    );
    measured?;
    let usage = match &task {
        None => alloc.usage(sampler),
        Some(name) => alloc.usage_of(sampler, name),
    };
    Ok(AllocStats::of(&usage))
}

pub(super) fn encode(value: &impl serde::Serialize) -> Result<Bytes, ApiError> {
    let encoded = serde_json::to_vec(value);
    let encoded =
        encoded.map_err(|error| ApiError::failed(format!("cannot encode the answer: {error}")))?;
    Ok(Bytes::from(encoded))
}

pub(super) fn json(text: Bytes) -> Response {
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
