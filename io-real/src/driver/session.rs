//! What drivers share that open sessions: the duty to say that one ended, and its outcome for the client.

use drover_core::effect::request::OpenSession;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::op::{Failure, Op};

use super::Inbox;
use super::answer::Answer;
use crate::session::SessionServer;

/// A session that a driver is asked to open, and of which it has to say that it opened and that it ended.
pub(super) struct Opening {
    inbox: Inbox,
    task: TaskKey,
    op: Op,
    launch: LaunchId,
    owed: Answer,
}

/// An open session. Its end is reported when this is dropped.
#[derive(Debug)]
pub(super) struct Open {
    inbox: Inbox,
    task: TaskKey,
    op: Op,
    launch: LaunchId,
}

impl Opening {
    /// The session and the driver's end of it. None if whoever asked is gone already, which is answered.
    pub(super) fn take(
        inbox: &Inbox,
        task: &TaskKey,
        owed: Answer,
        asked: &OpenSession,
    ) -> Option<(Opening, SessionServer)> {
        let (op, launch) = (asked.op, asked.launch);
        let opening = Opening {
            inbox: inbox.clone(),
            task: task.clone(),
            op,
            launch,
            owed,
        };
        match inbox.sessions().take(asked.session) {
            Some(server) => Some((opening, server)),
            None => {
                opening.failed(Failure::fatal("nobody is connected to the session"));
                None
            }
        }
    }

    /// The program runs.
    pub(super) fn opened(self) -> Open {
        let (op, launch) = (self.op, self.launch);
        let result = Ok(());
        self.owed
            .give(DriverInput::SessionOpened { op, launch, result });
        Open {
            inbox: self.inbox,
            task: self.task,
            op,
            launch,
        }
    }

    /// The program does not run.
    pub(super) fn failed(self, failure: Failure) {
        let (op, launch) = (self.op, self.launch);
        let result = Err(failure);
        self.owed
            .give(DriverInput::SessionOpened { op, launch, result });
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let (op, launch) = (self.op, self.launch);
        let ended = DriverInput::SessionEnded { op, launch };
        self.inbox.send(&self.task, ended);
    }
}
