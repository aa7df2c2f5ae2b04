//! What a plugin prints: read for as long as it lives, so that it never waits for us, and logged as
//! lines of our own.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// What of a longer line is cut off.
const MAX_LINE: usize = 16 << 10;

/// More lines than that in a second are counted only.
const LINES_PER_SECOND: u32 = 200;

/// So many of the last lines are remembered, for when the plugin dies.
const REMEMBERED: usize = 5;

/// How long what a dead plugin said may be on its way.
const SOON: Duration = Duration::from_millis(200);

/// The last lines that a plugin printed; after a panic its first, which say why.
#[derive(Clone, Debug, Default)]
pub(super) struct LastLines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    remembered: Mutex<Remembered>,
    complete: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Remembered {
    lines: VecDeque<String>,
    panicked: bool,
}

impl LastLines {
    fn push(&self, line: &str) {
        let mut last = self.remembered();
        if !last.panicked && is_panic(line) {
            last.panicked = true;
            last.lines.clear();
        }
        if last.lines.len() == REMEMBERED {
            if last.panicked {
                return;
            }
            last.lines.pop_front();
        }
        last.lines.push_back(line.chars().take(500).collect());
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        let remembered = self.0.remembered.lock();
        remembered.unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, as one text, of a plugin that has ended: what it said last may still be on
    /// its way.
    pub(super) async fn complete(&self) -> String {
        let mut complete = self.0.complete.subscribe();
        // What it started may hold the pipe open.
        let _ = timeout(SOON, complete.wait_for(|complete| *complete)).await;
        self.text()
    }

    fn text(&self) -> String {
        let last = self.remembered();
        Vec::from_iter(last.lines.iter().map(String::as_str)).join("\n")
    }
}

/// Whether a program of Nomad dies of what this line says.
fn is_panic(line: &str) -> bool {
    line.starts_with("panic: ") || line.starts_with("fatal error: ")
}

/// Reads a pipe line by line, with a bound.
#[derive(Debug)]
pub(super) struct Lines {
    pipe: Receiver,
    line: Vec<u8>,
    chunk: VecDeque<u8>,
}

impl Lines {
    /// Lines of a pipe that does not block.
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Lines> {
        Ok(Lines {
            pipe: Receiver::from_owned_fd(pipe)?,
            line: Vec::new(),
            chunk: VecDeque::new(),
        })
    }

    /// The next line without its end; what is longer than `limit` is cut. `None` at the end. Can
    /// be given up and asked again.
    pub(super) async fn next(&mut self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        loop {
            while let Some(byte) = self.chunk.pop_front() {
                match byte {
                    b'\n' => return Ok(Some(std::mem::take(&mut self.line))),
                    byte if self.line.len() < limit => self.line.push(byte),
                    _ => {}
                }
            }
            let mut buffer = [0; 4096];
            let read = self.pipe.read(&mut buffer).await?;
            if read == 0 {
                let rest = std::mem::take(&mut self.line);
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
            self.chunk.extend(buffer.get(..read).unwrap_or_default());
        }
    }

    /// What is there of a line by now, without waiting for more of it.
    pub(super) async fn rest(&mut self, limit: usize) -> Option<Vec<u8>> {
        timeout(SOON, self.next(limit)).await.ok()?.ok()?
    }

    /// Reads on until the end and throws it away.
    pub(super) async fn drain(mut self) {
        let mut buffer = [0; 4096];
        while matches!(self.pipe.read(&mut buffer).await, Ok(read) if read > 0) {}
    }
}

/// Tells lines again for as long as there are any.
pub(super) async fn forward(plugin: String, pipe: OwnedFd, last: LastLines) {
    let mut lines = match Lines::new(pipe) {
        Ok(lines) => lines,
        Err(error) => return tracing::warn!(plugin, %error, "cannot read what a plugin prints"),
    };
    let mut teller = LogForwarder::new(plugin);
    while let Ok(Some(line)) = lines.next(MAX_LINE).await {
        let line = String::from_utf8_lossy(&line);
        last.push(&line);
        teller.log(&line);
    }
    last.0.complete.send_replace(true);
}

/// Whoever tells the lines of one plugin.
#[derive(Debug)]
pub(super) struct LogForwarder {
    plugin: String,
    since: Instant,
    reported: u32,
    panicked: bool,
}

impl LogForwarder {
    pub(super) fn new(plugin: String) -> LogForwarder {
        LogForwarder {
            plugin,
            since: Instant::now(),
            reported: 0,
            panicked: false,
        }
    }

    /// Tells a line, unless there were too many already.
    pub(super) fn log(&mut self, line: &str) {
        if self.since.elapsed() >= Duration::from_secs(1) {
            let left = self.reported.saturating_sub(LINES_PER_SECOND);
            if left > 0 {
                let plugin = self.plugin.as_str();
                tracing::warn!(
                    plugin,
                    left,
                    "a plugin prints too much; lines were left out"
                );
            }
            (self.since, self.reported) = (Instant::now(), 0);
        }
        self.reported = self.reported.saturating_add(1);
        if self.reported <= LINES_PER_SECOND {
            let line = Line::read(line, &mut self.panicked);
            line.log(&self.plugin);
        }
    }
}

/// A line, understood.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    level: tracing::Level,
    module: String,
    message: String,
    /// What else was said, as JSON; empty for nothing.
    fields: String,
}

impl Line {
    /// A line as Nomad's logging library writes it, or any other.
    fn read(line: &str, panicked: &mut bool) -> Line {
        let parsed = match serde_json::from_str(line) {
            Ok(Value::Object(fields)) => Some(fields),
            Ok(_) | Err(_) => None,
        };
        let Some(mut fields) = parsed.filter(|fields| fields.contains_key("@message")) else {
            // What follows the first line of a panic belongs to it.
            *panicked |= is_panic(line);
            return Line {
                level: if *panicked {
                    tracing::Level::ERROR
                } else {
                    tracing::Level::DEBUG
                },
                module: String::new(),
                message: line.to_owned(),
                fields: String::new(),
            };
        };
        let mut text = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let (level, module, message) = (text("@level"), text("@module"), text("@message"));
        // Lines of ours have a time already.
        text("@timestamp");
        Line {
            level: match level.as_str() {
                "error" => tracing::Level::ERROR,
                "warn" => tracing::Level::WARN,
                "info" => tracing::Level::INFO,
                "trace" => tracing::Level::TRACE,
                _ => tracing::Level::DEBUG,
            },
            module,
            message,
            fields: if fields.is_empty() {
                String::new()
            } else {
                Value::Object(fields).to_string()
            },
        }
    }

    fn log(&self, plugin: &str) {
        let Line {
            module,
            message,
            fields,
            ..
        } = self;
        match self.level {
            tracing::Level::ERROR => tracing::error!(plugin, module, fields, "{message}"),
            tracing::Level::WARN => tracing::warn!(plugin, module, fields, "{message}"),
            tracing::Level::INFO => tracing::info!(plugin, module, fields, "{message}"),
            tracing::Level::DEBUG => tracing::debug!(plugin, module, fields, "{message}"),
            tracing::Level::TRACE => tracing::trace!(plugin, module, fields, "{message}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn hclog_lines_have_levels() {
        let mut panicked = false;
        let mut read = |line| Line::read(line, &mut panicked);
        let json =
            r#"{"@level":"warn","@message":"hot","@module":"gpu","@timestamp":"now","c":90}"#;
        let line = read(json);
        assert_eq!(line.level, tracing::Level::WARN);
        assert_eq!((&*line.module, &*line.message), ("gpu", "hot"));
        assert_eq!(line.fields, r#"{"c":90}"#);
        assert_eq!(read("{not json").level, tracing::Level::DEBUG);
        assert_eq!(read("panic: no").level, tracing::Level::ERROR);
        assert_eq!(read("goroutine 1").level, tracing::Level::ERROR);
    }

    #[test]
    fn first_panic_lines_are_kept() {
        let last = LastLines::default();
        for line in ["a", "b", "c", "d", "e", "f"] {
            last.push(line);
        }
        assert_eq!(last.text(), "b\nc\nd\ne\nf");
        for line in ["panic: why", "1", "2", "3", "4", "5", "panic: again"] {
            last.push(line);
        }
        assert_eq!(last.text(), "panic: why\n1\n2\n3\n4");
    }

    #[tokio::test]
    async fn log_lines_are_bounded() {
        let (ours, its) = super::super::process::output_pipe().unwrap();
        let mut lines = Lines::new(ours).unwrap();
        let mut its = std::fs::File::from(its);
        its.write_all(b"a\n0123456789\nlast").unwrap();
        drop(its);
        assert_eq!(lines.next(4).await.unwrap().unwrap(), b"a");
        assert_eq!(lines.next(4).await.unwrap().unwrap(), b"0123");
        assert_eq!(lines.next(4).await.unwrap().unwrap(), b"last");
        assert_eq!(lines.next(4).await.unwrap(), None);
    }
}
