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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World, last_words};
    use crate::model::task;

    fn world(services: &[&str]) -> World {
        let named = |service: &&str| task::WaitFor {
            service: (*service).to_owned(),
        };
        World::with(|task| task.wait_for = services.iter().map(named).collect())
    }

    #[test]
    fn wait_for_without_services_goes_on() {
        let mut world = world(&[]);
        let mut task = world.task();
        assert_eq!(world.begin(&mut task, &WaitFor), Began::Done);
        assert!(world.shared.service_waits.is_empty());
    }

    #[test]
    fn wait_for_names_its_services_once() {
        let mut world = world(&["db", "${NOMAD_GROUP_NAME}-cache"]);
        let mut task = world.task();
        assert_eq!(world.begin(&mut task, &WaitFor), Began::Waits);
        let words = "Waiting for healthy services: \"db\", \"web-cache\"";
        assert_eq!(last_words(&task), words);
        let key = task.spec().key.clone();
        assert_eq!(world.shared.service_waits.of(&key), ["db", "web-cache"]);
        let told = task.state().events.len();
        assert_eq!(world.begin(&mut task, &WaitFor), Began::Waits);
        assert_eq!(
            task.state().events.len(),
            told,
            "asked again, it says it again"
        );
    }

    #[test]
    fn wait_for_goes_on_when_granted_and_waits_anew_at_next_start() {
        let mut world = world(&["db"]);
        let mut task = world.task();
        world.begin(&mut task, &WaitFor);
        let key = task.spec().key.clone();
        world.shared.service_waits.grant(&key);
        assert_eq!(world.begin(&mut task, &WaitFor), Began::Done);
        assert_eq!(world.begin(&mut task, &WaitFor), Began::Waits);
    }

    #[test]
    fn wait_for_waits_again_after_agent_restart_and_does_not_repeat_itself() {
        let mut world = world(&["db"]);
        let mut task = world.task();
        assert!(
            world.start_well(&mut task).is_empty(),
            "nothing is prepared before"
        );
        let told = task.state().events.len();
        let mut task = world.restarted(&task);
        assert!(
            world.start_well(&mut task).is_empty(),
            "it does not wait any more"
        );
        assert_eq!(task.state().events.len(), told);
    }
}
