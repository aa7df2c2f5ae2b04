//! Exec sessions: programs beside a task with somebody connected to each.
//!
//! A session begins only while its task runs and was not asked to end yet, and is part of the launch that runs then:
//! when that ends, it is destroyed with everything that is left of the launch. Nothing of a session is remembered, because none
//! outlives the agent. There is no limit to its time; it ends with its program, or with whoever is
//! connected to it, and the driver says so.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::runner::{Phase, Scope, TaskRunner};
use crate::cx::Cx;
use crate::effect::request::{self, SessionProgram};
use crate::effect::{Effect, Refusal, Reply};
use crate::ids::{LaunchId, RequestId, SessionId};
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};

/// A session that somebody asks for.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Who waits for it to open.
    pub request: RequestId,
    /// The number under which who asks is connected.
    pub session: SessionId,
    /// What to run.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Whether it has a terminal.
    pub tty: bool,
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Session {
    op: Op,
    /// Who waits for it to open; nobody once it is.
    request: Option<RequestId>,
}

impl TaskRunner {
    /// Opens a session. Answers its request now if it cannot, else when the driver did.
    pub fn open_session(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>, asked: NewSession) {
        let NewSession {
            request,
            session,
            command,
            args,
            tty,
        } = asked;
        let launch = match (&self.phase, &self.record.launch) {
            (Phase::Running | Phase::Delaying(_) | Phase::Deregistering(_), Some(launch)) => {
                launch.id
            }
            (Phase::Recovering(_), _) => return refuse(cx, request, "Task not recovered yet"),
            _ => return refuse(cx, request, "Task not running"),
        };
        let task = match self.task_config(cx, scope, self.record.runs) {
            Ok(task) => task,
            Err(why) => return refuse(cx, request, &why),
        };
        let op = self.operation(cx, Purpose::Session, cx.config.timeouts.session);
        let request = Some(request);
        self.sessions.push(Session { op, request });
        let program = Arc::new(SessionProgram {
            command,
            args,
            tty,
            task,
        });
        let effect = request::OpenSession {
            op,
            launch,
            session,
            program,
        };
        cx.drive(&self.spec.driver, &self.spec.key, effect);
    }

    /// How many sessions it has, open or not yet.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn on_session_opened(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: Result<(), Failure>,
    ) {
        let Some(at) = self.sessions.iter().position(|session| session.op == op) else {
            return cx.count_stale();
        };
        let Some(request) = self.sessions.get_mut(at).and_then(|one| one.request.take()) else {
            return;
        };
        match result {
            Ok(()) => reply_open(cx, request),
            Err(failure) => {
                self.sessions.remove(at);
                refuse(cx, request, &failure.message);
            }
        }
    }

    /// Nothing of a session is left. That it was open may be reported after its end.
    pub(super) fn on_session_ended(&mut self, cx: &mut Cx<'_>, op: Op, launch: LaunchId) {
        let owner = Owner::Task(self.spec.key.clone());
        let own = self.record.launch.as_ref().map(|launch| launch.id) == Some(launch);
        let at = self.sessions.iter().position(|session| session.op == op);
        let Some(at) = at.filter(|_| own && cx.shared.operations.is_awaited(&owner, op)) else {
            return cx.count_stale();
        };
        cx.shared.operations.end(op);
        if let Some(request) = self.sessions.remove(at).request {
            reply_open(cx, request);
        }
    }

    /// The launch is over, and its sessions with it.
    pub(super) fn end_sessions(&mut self, cx: &mut Cx<'_>) {
        for session in self.sessions.drain(..) {
            cx.shared.operations.end(session.op);
            if let Some(request) = session.request {
                refuse(cx, request, "the task ended before the session was open");
            }
        }
    }
}

fn reply_open(cx: &mut Cx<'_>, request: RequestId) {
    let index = cx.shared.index;
    cx.send(Effect::Reply(request, Reply::Done { index }));
}

fn refuse(cx: &mut Cx<'_>, request: RequestId, why: &str) {
    let refusal = Refusal::Conflict(why.to_owned());
    cx.send(Effect::Reply(request, Reply::Refused(refusal)));
}
