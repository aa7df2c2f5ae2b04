//! Exec sessions: programs beside a task, which end with their launch and with the agent.

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
use crate::trace::Column;
use crate::world::World;

/// A session whose program runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Session {
    /// Whose.
    pub(crate) key: TaskKey,
    /// Beside what.
    pub(crate) launch: LaunchId,
    op: Op,
}

impl World {
    pub(crate) fn open_session(&mut self, key: &TaskKey, asked: &OpenSession) {
        let OpenSession {
            op,
            launch,
            session,
            ..
        } = *asked;
        let Some(process) = (self.processes.get(&launch)).filter(|process| process.key == *key)
        else {
            return self.violated("foreign_process_is_not_touched", format!("exec {launch}"));
        };
        let name = Arc::clone(&process.name);
        if !self.fires(Fault::HangSession, &name) {
            let delay = self.latency(&name, self.timeouts.session);
            let later = Later::OpenSession {
                op,
                launch,
                session,
            };
            self.after(delay, &name, later);
        }
    }

    pub(crate) fn session_opens(&mut self, life: u64, op: Op, launch: LaunchId, id: SessionId) {
        // One that belongs to a dead agent ends before it begins.
        let Some(process) = self.processes.get(&launch).filter(|_| life == self.life) else {
            return;
        };
        let (key, name) = (process.key.clone(), Arc::clone(&process.name));
        let result = if !process.alive {
            Err(Failure::fatal("the task does not run"))
        } else if self.fires(Fault::FailSession, &name) {
            Err(Failure::fatal("there is no such program"))
        } else {
            Ok(())
        };
        if result.is_ok() {
            self.note(|| (Column::named(&name), "has a session".to_owned()));
            let session = Session {
                key: key.clone(),
                launch,
                op,
            };
            self.sessions.insert(id, session);
            let grid = [0, 0, 1, 60, 4000].map(Span::secs);
            let span = self.choices.one_of(&grid, Point::SessionLasts, &name);
            let later = Later::EndSession { session: id };
            self.after(span.unwrap_or(Span::ZERO), &name, later);
        }
        let input = DriverInput::SessionOpened { op, launch, result };
        let timeout = self.timeouts.session;
        self.answer(life, op, &name, timeout, Input::Driver(key, input));
    }

    /// The program of a session ends, or nobody is connected to it any more.
    pub(crate) fn session_ends(&mut self, id: SessionId) {
        let Some(Session { key, launch, op }) = self.sessions.remove(&id) else {
            return;
        };
        let name = self.names.known_launch(launch);
        let at = self.at + self.latency(&name, Span::secs(5));
        let input = Input::Driver(key, DriverInput::SessionEnded { op, launch });
        self.deliver(Source::Session(op), at, &name, input);
    }

    /// The sessions of a launch end with what is left of it.
    pub(crate) fn sessions_end_with(&mut self, launch: LaunchId) {
        let all = self.sessions.iter();
        let own = all.filter(|(_, session)| session.launch == launch);
        for id in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.session_ends(id);
        }
    }
}
