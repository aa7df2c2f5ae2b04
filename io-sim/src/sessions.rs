//! Exec sessions: programs beside a task, which end with their launch and with the agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::request::OpenSession;
use drover_core::ids::{LaunchId, SessionId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use serde::Serialize;

use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::Later;
use crate::point::Point;
use crate::process::Processes;
use crate::scene::Scene;
use crate::trace::Column;

/// A session whose program runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Session {
    /// Whose.
    pub(crate) key: TaskKey,
    /// Beside what.
    pub(crate) launch: LaunchId,
    op: Op,
}

/// The programs beside tasks that somebody is connected to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) open: BTreeMap<SessionId, Session>,
}

impl Sessions {
    pub(crate) fn begin(
        scene: &mut Scene,
        processes: &Processes,
        key: &TaskKey,
        asked: &OpenSession,
    ) {
        let OpenSession {
            op,
            launch,
            session,
            ..
        } = *asked;
        let Some(process) = processes.own(scene, key, launch, "exec") else {
            return;
        };
        let name = Arc::clone(&process.name);
        if !scene.fires(Fault::HangSession, &name) {
            let delay = scene.latency(&name, scene.timeouts.session);
            let later = Later::OpenSession {
                op,
                launch,
                session,
            };
            scene.after(delay, &name, later);
        }
    }

    pub(crate) fn opens(
        &mut self,
        scene: &mut Scene,
        processes: &Processes,
        life: u64,
        (op, launch, id): (Op, LaunchId, SessionId),
    ) {
        // One that belongs to a dead agent ends before it begins.
        let Some(process) = processes.get(launch).filter(|_| life == scene.life) else {
            return;
        };
        let (key, name) = (process.key.clone(), Arc::clone(&process.name));
        let result = if !process.alive {
            Err(Failure::fatal("the task does not run"))
        } else if scene.fires(Fault::FailSession, &name) {
            Err(Failure::fatal("there is no such program"))
        } else {
            Ok(())
        };
        if result.is_ok() {
            scene.note(|| (Column::named(&name), "has a session".to_owned()));
            let session = Session {
                key: key.clone(),
                launch,
                op,
            };
            self.open.insert(id, session);
            let grid = [0, 0, 1, 60, 4000].map(Span::secs);
            let span = scene.choices.one_of(&grid, Point::SessionLasts, &name);
            let later = Later::EndSession { session: id };
            scene.after(span.unwrap_or(Span::ZERO), &name, later);
        }
        let input = DriverInput::SessionOpened { op, launch, result };
        let timeout = scene.timeouts.session;
        scene.answer(life, op, &name, timeout, Input::Driver(key, input));
    }

    /// The program of a session ends, or nobody is connected to it any more.
    pub(crate) fn ends(&mut self, scene: &mut Scene, id: SessionId) {
        let Some(Session { key, launch, op }) = self.open.remove(&id) else {
            return;
        };
        let name = scene.names.known_launch(launch);
        let at = scene.at + scene.latency(&name, Span::secs(5));
        let input = Input::Driver(key, DriverInput::SessionEnded { op, launch });
        scene.deliver(Source::Session(op), at, &name, input);
    }

    /// The sessions of a launch end with what is left of it.
    pub(crate) fn end_with(&mut self, scene: &mut Scene, launch: LaunchId) {
        let all = self.open.iter();
        let own = all.filter(|(_, session)| session.launch == launch);
        for id in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.ends(scene, id);
        }
    }
}
