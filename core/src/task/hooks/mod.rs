//! Hooks of tasks: what is done before each start, and when a task takes a new version of its job in place. One file
//! each: its name, whether it runs once or each time, how long its work may take, what it asks of the world
//! (`begin`, with a payload of [`crate::work`]), and what it makes of the answer (`done`).
//!
//! The tables say which hooks run when, and in which order; [`crate::hooks`] walks through a table.

pub mod artifacts;
pub mod devices;
pub mod dispatch_payload;
pub mod identity;
pub mod task_dir;
pub mod template;
pub mod validate;
pub mod volumes;
pub mod wait_for;

use super::reservation;
use super::runner::{Scope, TaskRunner};
use crate::config::{Config, Timeouts};
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::model::event::EventType;
use crate::model::task::Task;
use crate::op::Op;
use crate::operations::Purpose;
use crate::time::Span;

/// What happens before each start of a task, in order.
pub const PRESTART: &[&dyn TaskHook] = &[
    &validate::Validate,
    &wait_for::WaitFor,
    &task_dir::TaskDir,
    &identity::Identity,
    &dispatch_payload::DispatchPayload,
    &volumes::Volumes,
    &artifacts::Artifacts,
    &devices::Devices,
    &template::Template,
];

/// What happens when a task takes a new version of its job in place, in order. Stopping is an update of
/// what is wanted of an allocation, and runs none of these.
pub const UPDATE: &[&dyn TaskHook] = &[&identity::Identity, &template::Template];

/// How often a hook of a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Before every start.
    EachTime,
    /// Before every start, and the record says that it ran.
    EachTimeKnown,
    /// Once in a task's life.
    Once,
}

/// A hook of a task.
pub trait TaskHook: Sync {
    /// The name that events, records and metrics carry.
    fn name(&self) -> &'static str;

    /// How often it runs.
    fn runs(&self, _config: &Config) -> Runs {
        Runs::EachTime
    }

    /// What its work is for.
    fn purpose(&self) -> Purpose {
        Purpose::Hook
    }

    /// How long its work may take.
    fn timeout(&self, timeouts: &Timeouts) -> Span {
        timeouts.hook
    }

    /// Begins it: asks the world for its work, or says that there is none.
    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart;

    /// Whether what it did once in the task's life is lost, so that it runs again.
    fn is_lost(&self, _task: &TaskRunner, _cx: &Cx<'_>, _scope: Scope<'_>) -> bool {
        false
    }

    /// Validates the answer.
    ///
    /// # Errors
    /// The first thing that cannot be so.
    fn check(&self, answer: &HookOutput) -> Result<(), String> {
        reservation::check(answer)
    }

    /// Its work succeeded. Variables, mounts and device nodes are kept for every start without this.
    fn done(&self, _task: &mut TaskRunner, _cx: &mut Cx<'_>, _op: Op, _answer: &HookOutput) {}

    /// Whether a new version of the task concerns what it did for the old one.
    fn is_outdated(&self, _before: &Task, _now: &Task) -> bool {
        false
    }

    /// The task took a new version in place that concerns it.
    fn update(&self, _task: &mut TaskRunner, _cx: &mut Cx<'_>, _before: &Task) {}

    /// The event of its failure and the detail that holds the reason, if they are not the usual ones.
    fn failure_event(&self) -> Option<(EventType, &'static str)> {
        None
    }
}
