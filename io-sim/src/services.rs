//! Services that are checked: they answer while a process of their allocation lives, unless something is wrong with
//! them. Nobody here hears that an answer is not wanted any more: it may be under way already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::request::Health;
use drover_core::effect::{CheckEffect, Probe, ProbeKind};
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::input::{CheckInput, DriverInput, ProbeAnswer};
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

use crate::faults::Fault;
use crate::point::Point;
use crate::process::Processes;
use crate::scene::Scene;

/// Which services do not work, and what is known of health checks of tasks' own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services {
    /// Until when those of which allocations do not work, since the beginning.
    broken: BTreeMap<AllocId, Span>,
    /// The same of all.
    pub(crate) all_broken_until: Span,
    /// The launches whose own health checks somebody looked at.
    looked_at: BTreeSet<LaunchId>,
}

impl Services {
    /// A check asks a service.
    pub(crate) fn ask(&mut self, scene: &mut Scene, processes: &Processes, effect: &CheckEffect) {
        let CheckEffect::Run {
            op, alloc, probe, ..
        } = effect
        else {
            return;
        };
        let (op, alloc) = (*op, *alloc);
        let name = scene.names.alloc(alloc);
        if scene.fires(Fault::HangCheck, &name) {
            return;
        }
        let result = match self.is_served(scene, processes, alloc, &name) {
            true => Ok(good(op, probe)),
            false => bad(probe),
        };
        let input = Input::Check(CheckInput { op, alloc, result });
        scene.answer(scene.life, op, &name, probe.timeout, input);
    }

    /// The program of a check, which ends with its task.
    pub(crate) fn run_program(
        &mut self,
        scene: &mut Scene,
        processes: &Processes,
        key: &TaskKey,
        op: Op,
        launch: LaunchId,
        timeout: Span,
    ) {
        let timeout = Span(timeout.0 + scene.timeouts.signal.0 + 2 * scene.timeouts.destroy.0);
        let Some(process) = processes.own(scene, key, launch, "exec") else {
            return;
        };
        let (alive, name) = (process.alive, Arc::clone(&process.name));
        if scene.fires(Fault::HangScript, &name) {
            return;
        }
        let alloc = scene.names.alloc(key.alloc);
        let result = match self.is_served(scene, processes, key.alloc, &alloc) {
            _ if !alive => Err(Failure::fatal("it does not run")),
            true => Ok(0),
            false => Ok(if scene.choices.either(Point::FailingScript, &name) {
                1
            } else {
                2
            }),
        };
        executed(scene, key, (op, launch), &name, timeout, result);
    }

    /// What the health check of a task's own found: nothing yet when somebody looks for the first time.
    pub(crate) fn look_at_health(
        &mut self,
        scene: &mut Scene,
        processes: &Processes,
        key: &TaskKey,
        op: Op,
        launch: LaunchId,
    ) {
        let Some(process) = processes.own(scene, key, launch, "health") else {
            return;
        };
        let (alive, name) = (process.alive, Arc::clone(&process.name));
        let alloc = scene.names.alloc(key.alloc);
        if scene.fires(Fault::HangCheck, &alloc) {
            return;
        }
        let result = match self.is_served(scene, processes, key.alloc, &alloc) {
            _ if !alive => Err(Failure::fatal("it does not run")),
            _ if self.looked_at.insert(launch) => Ok(Health::STARTING),
            true => Ok(Health::HEALTHY),
            false => Ok(Health::UNHEALTHY),
        };
        let timeout = scene.timeouts.signal;
        executed(scene, key, (op, launch), &name, timeout, result);
    }

    /// Whether the services of an allocation answer well now.
    fn is_served(
        &mut self,
        scene: &mut Scene,
        processes: &Processes,
        alloc: AllocId,
        name: &Arc<str>,
    ) -> bool {
        if scene.fires(Fault::BreakService, name) {
            let grid = [Span::secs(1), Span::secs(90), Span::secs(900)];
            let span = scene.choices.one_of(&grid, Point::BrokenFor, name);
            let until = Span(scene.elapsed.0 + span.unwrap_or(Span::ZERO).0);
            self.broken.insert(alloc, until);
        }
        let until = self.broken.get(&alloc).copied();
        let until = until.unwrap_or_default().max(self.all_broken_until);
        let broken = !scene.converging && scene.elapsed < until;
        let alive = processes
            .alive()
            .any(|(_, process)| process.key.alloc == alloc);
        alive && !broken && !scene.fires(Fault::FailCheck, name)
    }
}

/// What a program that ran in a task found is on its way.
fn executed(
    scene: &mut Scene,
    key: &TaskKey,
    (op, launch): (Op, LaunchId),
    name: &Arc<str>,
    timeout: Span,
    result: Result<i32, Failure>,
) {
    let input = DriverInput::Executed {
        op,
        launch,
        result,
        output: String::new(),
    };
    let input = Input::Driver(key.clone(), input);
    scene.answer(scene.life, op, name, timeout, input);
}

/// A service that works answers in some way that says so.
fn good(op: Op, probe: &Probe) -> ProbeAnswer {
    match probe.how {
        ProbeKind::Http(_) => ProbeAnswer::Http {
            code: [200, 204, 302, 399][usize::try_from(op.0 % 4).unwrap_or(0)],
            body: String::new(),
        },
        ProbeKind::Tcp => ProbeAnswer::Connected,
        ProbeKind::Grpc(_) => ProbeAnswer::Grpc {
            serves: true,
            status: "SERVING".to_owned(),
        },
    }
}

fn bad(probe: &Probe) -> Result<ProbeAnswer, Failure> {
    match probe.how {
        ProbeKind::Http(_) => Ok(ProbeAnswer::Http {
            code: 503,
            body: "not now".to_owned(),
        }),
        ProbeKind::Tcp => Err(Failure::recoverable("connection refused")),
        ProbeKind::Grpc(_) => Ok(ProbeAnswer::Grpc {
            serves: false,
            status: "NOT_SERVING".to_owned(),
        }),
    }
}
