//! `alloc exec`: a program runs beside a task, and whoever asked is connected to it.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, cx, unknown};
use crate::effect::{Refusal, Reply};
use crate::ids::{AllocId, SessionId, TaskName};
use crate::operations::{Owner, Purpose};
use crate::task::runner::Scope;
use crate::task::sessions::NewSession;

/// The most sessions of one allocation at a time.
pub const MAX_SESSIONS_OF_ALLOC: usize = 32;
/// The most sessions of all allocations at a time.
pub const MAX_SESSIONS: usize = 256;

/// Open a session. The answer says whether its program runs; nothing of it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenSession {
    /// The number under which who asks is connected.
    pub session: SessionId,
    /// In which allocation.
    pub alloc: AllocId,
    /// Beside which task.
    pub task: TaskName,
    /// What to run.
    pub run: SessionCommand,
    /// Whether it has a terminal.
    pub tty: bool,
}

/// What a session runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SessionCommand {
    /// A program and its arguments.
    Command(Vec<String>),
    /// An action of the task, by its name.
    Action(String),
}

impl OperatorRequest for OpenSession {
    fn name(&self) -> &'static str {
        "open a session"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Alloc(self.alloc)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        if asked.agent.shutdown.is_some() {
            return Some(conflict("the agent is shutting down"));
        }
        if let Some(refusal) = too_many(asked, self.alloc) {
            return Some(refusal);
        }
        let cx = &mut cx(&asked.agent.config, &mut asked.agent.shared, asked.now);
        let Some(alloc) = asked.agent.allocs.get_mut(&self.alloc) else {
            return Some(unknown(self.alloc));
        };
        let record = alloc.record().clone();
        let Some(task) = alloc.task_mut(&self.task) else {
            return Some(conflict("task not found"));
        };
        let command = match &self.run {
            SessionCommand::Command(command) => command.clone(),
            SessionCommand::Action(name) => match task.spec().action(name) {
                Some(action) => action.words(),
                None => return Some(conflict(&format!("action {name:?} not found"))),
            },
        };
        let mut command = command.into_iter();
        let Some(program) = command.next().filter(|program| !program.is_empty()) else {
            let why = "command is not present".to_owned();
            return Some(Reply::Refused(Refusal::Invalid(why)));
        };
        let scope = Scope {
            alloc: &record,
            gate_open: false,
        };
        let session = NewSession {
            request: asked.request,
            session: self.session,
            command: program,
            args: command.collect(),
            tty: self.tty,
        };
        task.open_session(cx, scope, session);
        None
    }
}

/// Why there can be no further session, if there cannot.
fn too_many(asked: &Asked<'_>, id: AllocId) -> Option<Reply> {
    let operations = asked.agent.shared.operations.iter();
    let sessions = operations.filter(|(_, one)| one.purpose == Purpose::Session);
    let (mut all, mut own) = (0, 0);
    for (_, one) in sessions {
        all += 1;
        own += usize::from(matches!(&one.owner, Owner::Task(key) if key.alloc == id));
    }
    let (most, whose) = if own >= MAX_SESSIONS_OF_ALLOC {
        (MAX_SESSIONS_OF_ALLOC, "this allocation")
    } else if all >= MAX_SESSIONS {
        (MAX_SESSIONS, "this agent")
    } else {
        return None;
    };
    Some(conflict(&format!(
        "{whose} has {most} sessions already: end some of them first"
    )))
}
