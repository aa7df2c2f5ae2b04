//! What the agent writes about itself: lines on its standard error.
//!
//! Whoever should read them may be slow or gone. So a thread of its own writes, of too many lines that
//! wait the newest are dropped, and what cannot be written is nobody's trouble: nothing here blocks or
//! ends the agent.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::agent_log::AgentLog;

/// How many lines may wait to be written.
const WAITING: usize = 4096;
/// How long the end waits for the lines that are left.
const LAST: Duration = Duration::from_secs(1);

/// What is left for the thread that writes.
enum Message {
    Line(Vec<u8>),
    /// Say when everything before this is written.
    Flush(SyncSender<()>),
}

static LINES: OnceLock<SyncSender<Message>> = OnceLock::new();
static FOLLOWED: OnceLock<AgentLog> = OnceLock::new();

/// The log, for those who follow it.
pub(super) fn followed() -> AgentLog {
    FOLLOWED.get_or_init(AgentLog::default).clone()
}

/// Lines of `level` and above. A level that nobody knows is `info`.
pub(super) fn init(level: &str, json: bool) {
    let filter = EnvFilter::try_new(level.to_lowercase());
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("info"));
    let colour = io::IsTerminal::is_terminal(&io::stderr());
    let lines = LINES.get_or_init(|| {
        let (lines, waiting) = sync_channel(WAITING);
        std::thread::spawn(move || write(&waiting));
        lines
    });
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(Lines(lines.clone()))
        .with_target(false)
        .with_ansi(colour && !json)
        .log_internal_errors(false);
    let layer = match json {
        true => layer.json().flatten_event(true).boxed(),
        false => layer.boxed(),
    };
    let registry = tracing_subscriber::registry().with(layer.with_filter(filter));
    // Somebody may have set one up already, such as a test: that one stays.
    let _ = registry.with(followed().layer()).try_init();
}

/// Waits a moment until what was logged is written.
pub(super) fn flush() {
    let Some(lines) = LINES.get() else { return };
    let (done, written) = sync_channel(1);
    if lines.try_send(Message::Flush(done)).is_ok() {
        // Whoever does not read does not get the last lines.
        let _ = written.recv_timeout(LAST);
    }
}

fn write(waiting: &Receiver<Message>) {
    let mut to = io::stderr();
    for message in waiting {
        match message {
            // There is nobody left to tell.
            Message::Line(line) => drop(to.write_all(&line)),
            Message::Flush(done) => drop(done.send(())),
        }
    }
}

/// Makes the writers of single lines.
struct Lines(SyncSender<Message>);

/// One line while it is put together.
struct Line {
    to: SyncSender<Message>,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            to: self.0.clone(),
            text: Vec::new(),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Of too many the newest are lost.
        let _ = self
            .to
            .try_send(Message::Line(std::mem::take(&mut self.text)));
    }
}
