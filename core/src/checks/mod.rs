//! Checks of services: when each runs, what its answer means, and what follows.
//!
//! A check runs while a task that it is about runs and nobody ends that: the first time after half its interval,
//! then each interval after the last run began, and never twice at once. Checks of one interval that are due at about
//! the same time run together. Each new start of such a task begins it anew: as pending, with no failures counted, and
//! with the grace of its restarts ahead. So no answer counts for another launch, and an agent that begins restarts
//! nobody for what an earlier agent saw.
//!
//! Nothing of it is remembered and no result raises the index: what follows from results (an allocation's health,
//! a restart) is remembered where it belongs.
//!
//! [`runner`] is one check; [`endpoint`] is where a service is reached; [`judge`] says what an answer means. Who
//! asks the world, and what of an allocation its checks depend on, is in `alloc/runner/checks.rs`.

pub mod endpoint;
pub mod judge;
pub mod runner;

pub use runner::CheckRunner;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::TaskName;
use crate::model::check::Check;
use crate::model::group::TaskGroup;
use crate::model::service::Service;
use crate::model::task::Stage;
use crate::model::task::Task;
use crate::model::value::Value;

/// What is known of a check before any of its tasks runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckSpec {
    /// The service's name, with references.
    pub service: String,
    /// The port of the service: a label or a number.
    pub service_port: String,
    /// The task whose service it is; none for one of the group.
    pub owner: Option<TaskName>,
    /// Whose runs are checked.
    pub about: About,
    /// What the job file says of it.
    pub check: Check,
}

/// Which tasks a check is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum About {
    /// This one.
    Task(TaskName),
    /// The main tasks of the group.
    Group,
}

impl About {
    /// Whether a task of this name and stage is one of them.
    pub fn includes(&self, task: &TaskName, stage: Stage) -> bool {
        match self {
            About::Task(name) => name == task,
            About::Group => stage == Stage::Main,
        }
    }
}

/// The checks of a group and its tasks that this node runs, in the order of the job file: those of the
/// group's services first. What a job of an earlier version says that cannot be run is left out. `consul` is
/// whether the node runs the services of that provider too.
pub fn of_group(group: &TaskGroup, consul: bool) -> Vec<Arc<CheckSpec>> {
    let of_group = group.services.iter().map(|service| (None, service));
    let of_tasks = group.tasks.iter().flat_map(|task| {
        let name: TaskName = task.name.as_str().into();
        task.services
            .iter()
            .map(move |service| (Some(name.clone()), service))
    });
    of_group
        .chain(of_tasks)
        .flat_map(|(owner, block)| of_service(owner, block, consul))
        .collect()
}

fn of_service(owner: Option<TaskName>, block: &Value, consul: bool) -> Vec<Arc<CheckSpec>> {
    let Some(service) = Service::run_here(block, consul) else {
        return Vec::new();
    };
    let spec = |check: Check| {
        let about = match (&owner, check.task.as_str()) {
            (Some(task), _) => About::Task(task.clone()),
            (None, "") => About::Group,
            (None, name) => About::Task(name.into()),
        };
        Arc::new(CheckSpec {
            service: service.name.to_owned(),
            service_port: service.port.to_owned(),
            owner: owner.clone(),
            about,
            check,
        })
    };
    Check::of_service(block)
        .filter_map(Result::ok)
        .map(spec)
        .collect()
}

/// Whether anything of a group is checked.
pub fn has_checks(group: &TaskGroup) -> bool {
    let of_tasks = |task: &Task| task.services.iter().any(Service::has_checks);
    group.services.iter().any(Service::has_checks) || group.tasks.iter().any(of_tasks)
}
