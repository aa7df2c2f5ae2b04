//! Services that are checked: they answer while a process of their allocation lives, unless something is wrong with
//! them. Nobody here hears that an answer is not wanted any more: it may be under way already.

use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::request::Health;
use drover_core::effect::{CheckEffect, Probe, ProbeKind};
use drover_core::ids::{AllocId, TaskKey};
use drover_core::input::{CheckInput, DriverInput, ProbeAnswer};
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

use crate::faults::Fault;
use crate::point::Point;
use crate::world::World;

impl World {
    /// No service works for so long from now.
    pub fn break_services(&mut self, span: Span) {
        self.services_broken_until = Span(self.elapsed.0 + span.0);
    }

    pub(crate) fn ask_service(&mut self, effect: &CheckEffect) {
        let CheckEffect::Run {
            op, alloc, probe, ..
        } = effect
        else {
            return;
        };
        let (op, alloc) = (*op, *alloc);
        let name = self.names.alloc(alloc);
        if self.fires(Fault::HangCheck, &name) {
            return;
        }
        let result = match self.is_served(alloc, &name) {
            true => Ok(good(op, probe)),
            false => bad(probe),
        };
        let input = Input::Check(CheckInput { op, alloc, result });
        self.answer(self.life, op, &name, probe.timeout, input);
    }

    /// The program of a check, which ends with its task.
    pub(crate) fn run_check_program(
        &mut self,
        key: &TaskKey,
        op: Op,
        launch: drover_core::ids::LaunchId,
        timeout: Span,
    ) {
        let timeout = Span(timeout.0 + self.timeouts.signal.0 + 2 * self.timeouts.destroy.0);
        let Some(process) = (self.processes.get(&launch)).filter(|process| process.key == *key)
        else {
            return self.violated("foreign_process_is_not_touched", format!("exec {launch}"));
        };
        let (alive, name) = (process.alive, Arc::clone(&process.name));
        if self.fires(Fault::HangScript, &name) {
            return;
        }
        let alloc = self.names.alloc(key.alloc);
        let result = match self.is_served(key.alloc, &alloc) {
            _ if !alive => Err(Failure::fatal("it does not run")),
            true => Ok(0),
            false => Ok(if self.choices.either(Point::FailingScript, &name) {
                1
            } else {
                2
            }),
        };
        let output = String::new();
        let input = DriverInput::Executed {
            op,
            launch,
            result,
            output,
        };
        self.answer(
            self.life,
            op,
            &name,
            timeout,
            Input::Driver(key.clone(), input),
        );
    }

    /// What the health check of a task's own found: nothing yet when somebody looks for the first time.
    pub(crate) fn look_at_health(
        &mut self,
        key: &TaskKey,
        op: Op,
        launch: drover_core::ids::LaunchId,
    ) {
        let Some(process) = (self.processes.get(&launch)).filter(|process| process.key == *key)
        else {
            return self.violated("foreign_process_is_not_touched", format!("health {launch}"));
        };
        let (alive, name) = (process.alive, Arc::clone(&process.name));
        let alloc = self.names.alloc(key.alloc);
        if self.fires(Fault::HangCheck, &alloc) {
            return;
        }
        let result = match self.is_served(key.alloc, &alloc) {
            _ if !alive => Err(Failure::fatal("it does not run")),
            _ if self.looked_at.insert(launch) => Ok(Health::STARTING),
            true => Ok(Health::HEALTHY),
            false => Ok(Health::UNHEALTHY),
        };
        let input = DriverInput::Executed {
            op,
            launch,
            result,
            output: String::new(),
        };
        let timeout = self.timeouts.signal;
        self.answer(
            self.life,
            op,
            &name,
            timeout,
            Input::Driver(key.clone(), input),
        );
    }

    /// Whether the services of an allocation answer well now.
    fn is_served(&mut self, alloc: AllocId, name: &Arc<str>) -> bool {
        if self.fires(Fault::BreakService, name) {
            let grid = [Span::secs(1), Span::secs(90), Span::secs(900)];
            let span = self.choices.one_of(&grid, Point::BrokenFor, name);
            let until = Span(self.elapsed.0 + span.unwrap_or(Span::ZERO).0);
            self.broken_services.insert(alloc, until);
        }
        let until = self.broken_services.get(&alloc).copied();
        let until = until.unwrap_or_default().max(self.services_broken_until);
        let broken = !self.converging && self.elapsed < until;
        let alive = self.alive().any(|(_, process)| process.key.alloc == alloc);
        alive && !broken && !self.fires(Fault::FailCheck, name)
    }
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
