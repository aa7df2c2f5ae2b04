//! `wait_for`: a task starts when the services that it names are healthy, whoever runs them on this node. A service
//! that becomes unhealthy later stops nobody: its clients are asked to wait again when they are started again.
//!
//! Which services are healthy is known to the agent ([`crate::agent`]), which wakes whoever waits; here is only who
//! waits, and for what.

use super::TaskHook;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::interpolate::{Names, interpolate};
use crate::model::event::{EventType, TaskEvent};
use crate::task::runner::{Scope, TaskRunner};
use crate::text::quote;

/// The hook.
pub struct WaitFor;

impl WaitFor {
    /// The name that people see.
    pub const NAME: &'static str = "wait_for";
}

impl TaskHook for WaitFor {
    fn name(&self) -> &'static str {
        WaitFor::NAME
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart {
        if task.spec().task().wait_for.is_empty() {
            return HookStart::Done;
        }
        let key = task.spec().key.clone();
        if cx.shared.service_waits.take_granted(&key) {
            return HookStart::Done;
        }
        let names = services(task, cx, scope);
        if cx.shared.service_waits.wait(key, names.clone()) {
            announce(task, cx, &names);
        }
        HookStart::Waiting
    }
}

fn services(task: &TaskRunner, cx: &Cx<'_>, scope: Scope<'_>) -> Vec<String> {
    let waits = &task.spec().task().wait_for;
    let refers = waits.iter().any(|wait| wait.service.contains("${"));
    let env = refers.then(|| task.environment(cx, scope, &[]));
    let names = Names {
        env: &env.unwrap_or_default(),
        node: &cx.config.node,
    };
    waits
        .iter()
        .map(|wait| interpolate(&wait.service, &names))
        .collect()
}

/// Says what it waits for, unless that was the last thing said: by an agent before this one.
fn announce(task: &mut TaskRunner, cx: &mut Cx<'_>, names: &[String]) {
    let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
    let words = format!("Waiting for healthy services: {}", quoted.join(", "));
    let last = task.state().events.last();
    if last.and_then(|event| event.details.get("message")) == Some(&words) {
        return;
    }
    let event = TaskEvent::new(EventType::HookMessage, cx.now.wall, &words);
    task.push(cx, event.detail("message", &words));
}
