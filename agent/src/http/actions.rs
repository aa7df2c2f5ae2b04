//! Actions of a job's tasks: what there are, and running one of them over a websocket, as an exec session whose
//! command the job names.

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::request::Parts;
use drover_core::agent::View;
use drover_core::agent::requests::SessionCommand;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, JobKey, TaskName};
use drover_core::model::job::Job;
use serde::{Deserialize, Serialize};

use super::Api;
use super::answer::Answer;
use super::exec::{self, Wanted};
use super::params::Params;
use super::websocket::Closing;

/// An action of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobAction {
    /// Its name.
    pub name: String,
    /// What it runs.
    pub command: String,
    /// With these arguments.
    pub args: Vec<String>,
    /// In this task.
    pub task_name: String,
    /// Of this group.
    pub task_group_name: String,
}

/// Every action of a job.
pub(super) fn all(job: &Job) -> Vec<JobAction> {
    let tasks = job
        .task_groups
        .iter()
        .flat_map(|group| group.tasks.iter().map(move |task| (group, task)));
    let actions = tasks.flat_map(|(group, task)| {
        let of = move |action: &drover_core::model::task::TaskAction| JobAction {
            name: action.name.clone(),
            command: action.command.clone(),
            args: action.args.clone(),
            task_name: task.name.clone(),
            task_group_name: group.name.clone(),
        };
        task.actions.iter().map(of)
    });
    actions.collect()
}

/// What a client asks for.
#[derive(Clone, Debug)]
struct Asked {
    job: JobKey,
    action: String,
    group: Option<String>,
    task: Option<String>,
    alloc: Option<String>,
}

/// Runs an action over a websocket.
pub(super) async fn run(api: &Api, params: &Params, job: JobKey, mut parts: Parts) -> Answer {
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, api).await;
    let own = |name: &str| params.non_empty(name).map(str::to_owned);
    let asked = Asked {
        job,
        action: own("action").unwrap_or_default(),
        group: own("group"),
        task: own("task"),
        alloc: own("allocID"),
    };
    let action = asked.action.clone();
    let namespace = Some(asked.job.namespace.to_string());
    let place = api.agent_handle.ask(move |view| find(view, &asked)).await?;
    let (alloc, task) = match place {
        Ok((alloc, task)) => (Ok(alloc), task),
        Err(closing) => (Err(closing), TaskName::from("")),
    };
    let wanted = Wanted {
        namespace,
        alloc,
        task,
        run: Ok(SessionCommand::Action(action)),
        tty: params.flag("tty"),
        greets: params.flag("ws_handshake"),
    };
    exec::open(api.clone(), params, upgrade, wanted)
}

/// In which allocation and task an action runs: the newest one that runs, unless one is named.
fn find(view: View<'_>, asked: &Asked) -> Result<(AllocId, TaskName), Closing> {
    let wanted = asked.alloc.as_deref().map(exec::alloc_id).transpose()?;
    let fits = |alloc: &&AllocRunner| {
        let record = alloc.record();
        let group = asked.group.as_ref();
        let runs = wanted.is_some() || alloc.is_running();
        wanted.is_none_or(|id| id == record.id)
            && group.is_none_or(|group| group == record.group.as_str())
            && runs
            && alloc.tasks().iter().any(|task| has(task, asked))
    };
    let all = view.allocs_of(&asked.job);
    let alloc = all
        .filter(fits)
        .max_by_key(|alloc| alloc.record().create_index);
    let none = || {
        let (job, action) = (&asked.job.id, &asked.action);
        let words = "has no running allocation with a task with action";
        Closing::failed(format!("job \"{job}\" {words} \"{action}\""))
    };
    let alloc = alloc.ok_or_else(none)?;
    let tasks = alloc.tasks().iter().filter(|task| has(task, asked));
    let names: Vec<&TaskName> = tasks.map(|task| &task.spec().key.task).collect();
    match names.as_slice() {
        [task] => Ok((alloc.record().id, (*task).clone())),
        _ => Err(Closing::refused(format!(
            "several tasks have the action \"{}\": name one",
            asked.action
        ))),
    }
}

fn has(task: &drover_core::task::runner::TaskRunner, asked: &Asked) -> bool {
    let spec = task.spec();
    let wanted = asked.task.as_deref();
    spec.action(&asked.action).is_some()
        && wanted.is_none_or(|wanted| wanted == spec.key.task.as_str())
}
