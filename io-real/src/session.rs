//! The two ends of an exec session: whoever opened it, and the driver that runs its program.
//!
//! What goes between the two never passes through the core, which decides whether there is a session, and
//! is notified of its end. Each direction holds a few chunks and then waits: a program whose output nobody
//! takes is held up, and so is whoever writes to a program that does not read. When one end is dropped, the
//! other one learns it: a program to which nobody is connected any more is hung up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use drover_core::ids::SessionId;
use drover_core::model::alloc::ExitResult;
use tokio::sync::mpsc;

/// How many chunks may be under way in one direction.
const AHEAD: usize = 4;

/// The most bytes of a chunk of output.
pub const CHUNK: usize = 64 * 1024;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSize {
    /// Lines.
    pub height: u16,
    /// Columns.
    pub width: u16,
}

/// What goes to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionInput {
    /// What it reads.
    Stdin(Bytes),
    /// There is no more to read.
    CloseStdin,
    /// Its terminal is as large as this from now on.
    Resize(WindowSize),
}

/// One of a program's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output, and everything of a program with a terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What comes from a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionOutput {
    /// Some output.
    Data(Output, Bytes),
    /// There is no more of it.
    Closed(Output),
    /// The program ended. Nothing follows.
    Exited(ExitResult),
    /// How it ended is not known. Nothing follows.
    Failed(String),
}

/// The end of whoever opened a session. The session ends when this is dropped.
#[derive(Debug)]
pub struct SessionClient {
    /// To the program.
    pub input: mpsc::Sender<SessionInput>,
    /// From the program.
    pub output: mpsc::Receiver<SessionOutput>,
}

/// The driver's end of a session.
#[derive(Debug)]
pub struct SessionServer {
    /// To the program. It ends when nobody is connected any more.
    pub input: mpsc::Receiver<SessionInput>,
    /// From the program.
    pub output: mpsc::Sender<SessionOutput>,
}

/// Both ends of a session.
pub fn ends() -> (SessionClient, SessionServer) {
    let (to_program, from_client) = mpsc::channel(AHEAD);
    let (to_client, from_program) = mpsc::channel(AHEAD);
    let client = SessionClient {
        input: to_program,
        output: from_program,
    };
    let server = SessionServer {
        input: from_client,
        output: to_client,
    };
    (client, server)
}

/// Sessions that were asked for and that no driver has yet. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Sessions(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    servers: BTreeMap<SessionId, SessionServer>,
}

/// A session that is being asked for. What no driver took is forgotten when this is dropped.
#[derive(Debug)]
pub struct Asking {
    /// Its number.
    pub id: SessionId,
    all: Sessions,
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that holds the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the ends of a new session.
    pub fn begin(&self) -> (Asking, SessionClient) {
        let (client, server) = ends();
        let mut all = self.all();
        all.last += 1;
        let id = SessionId(all.last);
        all.servers.insert(id, server);
        let all = self.clone();
        (Asking { id, all }, client)
    }

    /// The driver's end, for the driver that is asked to open the session.
    pub fn take(&self, id: SessionId) -> Option<SessionServer> {
        self.all().servers.remove(&id)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.all.all().servers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_is_taken_once_and_not_after_its_client_is_gone() {
        let sessions = Sessions::default();
        let (asking, _client) = sessions.begin();
        assert!(sessions.take(asking.id).is_some());
        assert!(sessions.take(asking.id).is_none());
        let (asking, _client) = sessions.begin();
        let id = asking.id;
        drop(asking);
        assert!(sessions.take(id).is_none());
    }
}
