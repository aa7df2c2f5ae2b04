//! Who follows the agent's log: lines as they are written, from the level that a follower asked for.
//!
//! Nothing is made into text while nobody follows. A follower may ask for more than the agent writes to its
//! standard error. One that reads too slowly misses lines and is notified how many; the agent waits for nobody.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

/// How many lines wait for a follower.
const WAITING: usize = 1024;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// An object for each line.
    Json,
}

/// The agent's log, for those who follow it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AgentLog {
    text: Lines,
    json: Lines,
}

/// The lines of one format.
#[derive(Clone, Debug)]
struct Lines(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    lines: broadcast::Sender<Arc<Line>>,
    /// What each follower asked for.
    levels: Mutex<Vec<LevelFilter>>,
}

#[derive(Debug)]
struct Line {
    level: Level,
    text: Vec<u8>,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines(Arc::new(Shared {
            lines: broadcast::Sender::new(WAITING),
            levels: Mutex::default(),
        }))
    }
}

impl AgentLog {
    /// What passes lines on, for the subscriber of the process.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let text = tracing_subscriber::fmt::layer()
            .with_writer(self.text.clone())
            .with_target(false)
            .with_ansi(false)
            .log_internal_errors(false)
            .with_filter(self.text.clone());
        let json = tracing_subscriber::fmt::layer()
            .with_writer(self.json.clone())
            .with_target(false)
            .with_ansi(false)
            .log_internal_errors(false)
            .json()
            .flatten_event(true)
            .with_filter(self.json.clone());
        // Not `and_then`: what that makes asks one of the two alone how much it wants.
        vec![text.boxed(), json.boxed()]
    }

    /// Follows from now on what is logged at `level` and above.
    pub fn follow(&self, level: LevelFilter, format: Format) -> Follower {
        let lines = match format {
            Format::Text => &self.text,
            Format::Json => &self.json,
        };
        let follower = Follower {
            level,
            waiting: lines.0.lines.subscribe(),
            lines: lines.clone(),
        };
        lines.change_levels(|levels| levels.push(level));
        follower
    }
}

impl Lines {
    /// The most that any follower asked for.
    fn level(&self) -> LevelFilter {
        let levels = self.0.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.iter().copied().max().unwrap_or(LevelFilter::OFF)
    }

    /// Whether anybody follows such lines. What libraries say of what passes through them is for nobody's eyes.
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("drover") && *metadata.level() <= self.level()
    }

    fn change_levels(&self, change: impl FnOnce(&mut Vec<LevelFilter>)) {
        let before = self.level();
        change(&mut self.0.levels.lock().unwrap_or_else(PoisonError::into_inner));
        if self.level() != before {
            tracing::callsite::rebuild_interest_cache();
        }
    }
}

impl<S> Filter<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.wants(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.wants(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        self.writer(Level::ERROR)
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter {
        self.writer(*metadata.level())
    }
}

impl Lines {
    fn writer(&self, level: Level) -> LineWriter {
        LineWriter {
            to: self.clone(),
            level,
            text: Vec::new(),
        }
    }
}

/// One line while it is put together.
struct LineWriter {
    to: Lines,
    level: Level,
    text: Vec<u8>,
}

impl Write for LineWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        let line = Line {
            level: self.level,
            text: std::mem::take(&mut self.text),
        };
        // Whoever followed may have left meanwhile.
        let _ = self.to.0.lines.send(Arc::new(line));
    }
}

/// Who follows the log.
#[derive(Debug)]
pub struct Follower {
    level: LevelFilter,
    waiting: broadcast::Receiver<Arc<Line>>,
    lines: Lines,
}

/// What a follower reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// A line, with its end.
    Line(Vec<u8>),
    /// It read too slowly: so many lines are missing here.
    Missed(u64),
}

impl Follower {
    /// The next line; none if there will be no more.
    pub async fn next(&mut self) -> Option<Followed> {
        loop {
            match self.waiting.recv().await {
                Ok(line) if line.level <= self.level => {
                    return Some(Followed::Line(line.text.clone()));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(count)) => return Some(Followed::Missed(count)),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let level = self.level;
        self.lines.change_levels(|levels| {
            if let Some(at) = levels.iter().position(|known| *known == level) {
                levels.swap_remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    async fn text(follower: &mut Follower) -> String {
        match follower.next().await {
            Some(Followed::Line(line)) => String::from_utf8(line).unwrap(),
            other => panic!("{other:?} is no line"),
        }
    }

    #[tokio::test]
    async fn follower_gets_lines_of_its_level_in_its_format() {
        let log = AgentLog::default();
        let subscriber = tracing_subscriber::registry().with(log.layer());
        let _guard = tracing::subscriber::set_default(subscriber);
        tracing::error!("before anybody followed");
        let mut info = log.follow(LevelFilter::INFO, Format::Text);
        let mut debug = log.follow(LevelFilter::DEBUG, Format::Text);
        let mut json = log.follow(LevelFilter::WARN, Format::Json);
        tracing::debug!("a detail");
        tracing::info!(job = "web", "a job");
        tracing::warn!(task = "t", "a task");
        assert!(text(&mut info).await.ends_with("INFO a job job=\"web\"\n"));
        assert!(text(&mut debug).await.ends_with("DEBUG a detail\n"));
        let line: serde_json::Value = serde_json::from_str(&text(&mut json).await).unwrap();
        assert_eq!(
            (&line["message"], &line["task"]),
            (&"a task".into(), &"t".into())
        );
    }

    /// Counts how often it is made into text.
    struct Counted<'a>(&'a std::cell::Cell<u32>);

    impl std::fmt::Debug for Counted<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.set(self.0.get() + 1);
            f.write_str("counted")
        }
    }

    #[tokio::test]
    async fn log_line_without_follower_is_not_formatted() {
        let log = AgentLog::default();
        let subscriber = tracing_subscriber::registry().with(log.layer());
        let _guard = tracing::subscriber::set_default(subscriber);
        let count = std::cell::Cell::new(0);
        drop(log.follow(LevelFilter::TRACE, Format::Text));
        tracing::error!(value = ?Counted(&count), "nobody follows");
        let _follower = log.follow(LevelFilter::WARN, Format::Text);
        tracing::info!(value = ?Counted(&count), "a level that nobody follows");
        assert_eq!(count.get(), 0);
        tracing::warn!(value = ?Counted(&count), "followed");
        assert_eq!(count.get(), 1);
    }

    #[tokio::test]
    async fn slow_follower_is_notified_of_missed_lines() {
        let log = AgentLog::default();
        let subscriber = tracing_subscriber::registry().with(log.layer());
        let _guard = tracing::subscriber::set_default(subscriber);
        let mut follower = log.follow(LevelFilter::INFO, Format::Text);
        for number in 0..WAITING + 7 {
            tracing::info!("line {number}");
        }
        assert_eq!(follower.next().await, Some(Followed::Missed(7)));
        assert!(text(&mut follower).await.ends_with("line 7\n"));
    }
}
