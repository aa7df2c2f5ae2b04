//! The output of containers, without a process for each: the engine keeps it in files of its own, which it rotates,
//! and the agent reads it from there into the task's log files, with a cursor that outlives the agent.
//!
//! While the agent is away the engine's files are the buffer. What they lost meanwhile is a gap, which is reported: the
//! first entry that is there is later than the one that was read last, which is gone. Where none was read before, the
//! engine's files say it: all that it keeps are there.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::task::LogConfig;
use http_body_util::BodyExt;
use tokio::sync::watch;
use tokio::time::sleep;

use super::World;
use super::cursor::Cursor;
use super::engine::Engine;
use super::entries::{Decoder, Entry};
use super::sink::Sink;
use super::trouble::Trouble;
use super::wire;

/// The pause before output is asked for again that ended while its container runs.
const PAUSE: Duration = Duration::from_millis(200);

/// The output of one container.
pub(super) struct Output {
    task: TaskKey,
    launch: LaunchId,
    container: String,
    has_terminal: bool,
    /// Whether somebody began to read it before.
    is_old: bool,
    /// None while it is written.
    files: Option<Files>,
    cursor: Cursor,
}

/// What is written.
struct Files {
    sink: Sink,
    file: File,
}

impl Files {
    /// Writes entries, and then how far that is.
    fn write(&mut self, mut cursor: Cursor, entries: Vec<Entry>) -> io::Result<Cursor> {
        for entry in entries {
            self.sink.write(entry.which, &entry.text)?;
            if entry.is_end {
                cursor.pass(&entry.time);
                cursor.places = self.sink.places();
            }
        }
        cursor.write(&self.file)?;
        Ok(cursor)
    }
}

/// What is passed over when output is read a second time.
struct Again {
    time: String,
    left: u64,
    begun: bool,
}

impl World {
    /// The files of a launch that begins, or of one that an earlier agent began. Blocks.
    pub(super) fn output(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        logs: LogConfig,
        container: &str,
        has_terminal: bool,
    ) -> io::Result<Output> {
        let file = self.records.cursor(launch)?;
        let known = Cursor::read(&file).unwrap_or_else(|error| {
            tracing::warn!(%launch, %error, "cannot read how far a task's output was read");
            None
        });
        let is_old = known.is_some();
        let places = known.as_ref().map(|known| known.places);
        let sink = Sink::open(&self.dirs, task, logs, places)?;
        let cursor = known.unwrap_or_else(|| Cursor {
            places: sink.places(),
            ..Cursor::default()
        });
        cursor.write(&file)?;
        Ok(Output {
            task: task.clone(),
            launch,
            container: container.to_owned(),
            has_terminal,
            is_old,
            files: Some(Files { sink, file }),
            cursor,
        })
    }

    /// Reads a container's output to its end, over the deaths of its engine. `done` is told when all is written.
    pub(super) async fn follow(self: Arc<Self>, mut output: Output, done: watch::Sender<bool>) {
        let mut engines = self.link.subscribe();
        loop {
            let Some(engine) = super::link::next(&mut engines).await else {
                return;
            };
            if std::mem::replace(&mut output.is_old, true) && output.cursor.time.is_empty() {
                self.find_unread(&engine, &output).await;
            }
            match self.read(&engine, &mut output).await {
                Ok(()) => {}
                // The next engine knows more.
                Err(Trouble::Silent(_)) => {}
                Err(Trouble::Unknown(_)) => break,
                Err(trouble) => {
                    let words = format!("Output is not collected: {trouble}");
                    self.emit_event(&output.task, output.launch, words);
                    break;
                }
            }
            let state = engine.inspect(&output.container).await;
            match state.map(|it| it.state.and_then(|it| it.running).unwrap_or_default()) {
                Ok(false) | Err(Trouble::Unknown(_)) => break,
                Ok(true) | Err(_) => sleep(PAUSE).await,
            }
        }
        done.send_replace(true);
    }

    /// Tells what may be missing of output of which nothing was read: there is no entry that would be gone.
    async fn find_unread(&self, engine: &Engine, output: &Output) {
        let Ok(found) = engine.inspect(&output.container).await else {
            return;
        };
        let Some(oldest) = oldest(&found) else { return };
        let is_there = self.blocking(move || Ok(oldest.exists())).await;
        let begun = found.state.and_then(|it| it.started_at);
        if let (Ok(true), Some(begun)) = (is_there, begun) {
            self.report_gap(output, &begun);
        }
    }

    fn report_gap(&self, output: &Output, since: &str) {
        let words = format!(
            "Output may be missing since {since}: the engine's log files were rotated before they were read"
        );
        self.emit_event(&output.task, output.launch, words);
    }

    /// Reads until the engine ends it.
    async fn read(&self, engine: &Engine, output: &mut Output) -> Result<(), Trouble> {
        let (container, since) = (&output.container, output.cursor.since());
        let path =
            format!("/containers/{container}/logs?follow=1&stdout=1&stderr=1&timestamps=1{since}");
        let mut body = wire::stream(engine.socket(), &engine.path(&path)).await?;
        let mut decoder = Decoder::new(output.has_terminal);
        let mut again = Again {
            time: output.cursor.time.clone(),
            left: output.cursor.same,
            begun: false,
        };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(bollard::errors::Error::from)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let mut entries = Vec::new();
            let mut gap = None;
            let mut take = |entry: Entry| {
                gap = gap.take().or(again.gap(&entry));
                if !again.passes(&entry) {
                    entries.push(entry);
                }
            };
            decoder.feed(&data, &mut take).map_err(Trouble::Failed)?;
            if let Some(since) = gap {
                self.report_gap(output, &since);
            }
            if !entries.is_empty() {
                self.write(output, entries).await?;
            }
        }
        Ok(())
    }

    async fn write(&self, output: &mut Output, entries: Vec<Entry>) -> Result<(), Trouble> {
        let lost = || Trouble::Failed("writing was given up".to_owned());
        let mut files = output.files.take().ok_or_else(lost)?;
        let cursor = output.cursor.clone();
        let work = move || {
            let written = files.write(cursor, entries);
            Ok((files, written))
        };
        let (files, written) = self.blocking(work).await.map_err(|_| lost())?;
        output.files = Some(files);
        let failed = |error| Trouble::Failed(format!("it cannot be written: {error}"));
        output.cursor = written.map_err(failed)?;
        Ok(())
    }
}

/// The oldest of the log files that an engine keeps of a container: the next one takes its place. None if the engine
/// keeps all, or does not say where they are.
fn oldest(found: &ContainerInspectResponse) -> Option<PathBuf> {
    let path = found.log_path.as_deref().filter(|path| !path.is_empty())?;
    let host = found.host_config.as_ref()?;
    let options = host.log_config.as_ref()?.config.as_ref()?;
    options.get("max-size")?;
    let kept: u64 = match options.get("max-file") {
        Some(kept) => kept.parse().ok()?,
        None => 1,
    };
    let packed = options.get("compress").is_some_and(|it| it == "true");
    let end = if packed { ".gz" } else { "" };
    // Also an engine that keeps one leaves the one before there.
    Some(format!("{path}.{}{end}", kept.saturating_sub(1).max(1)).into())
}

impl Again {
    /// Since when something is missing, if the entry that was read last is gone.
    fn gap(&mut self, entry: &Entry) -> Option<String> {
        let first = !std::mem::replace(&mut self.begun, true);
        let lost = first && self.left > 0 && entry.time > self.time;
        lost.then(|| self.time.clone())
    }

    /// Whether an entry was read before.
    fn passes(&mut self, entry: &Entry) -> bool {
        if entry.time < self.time {
            return true;
        }
        if entry.time == self.time && self.left > 0 {
            self.left -= u64::from(entry.is_end);
            return true;
        }
        false
    }
}
