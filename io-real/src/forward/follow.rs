//! The loop of one destination: find what there is to read, read a batch of it, send that until it is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drover_core::ids::{AllocId, TaskName};
use drover_core::time::Timestamp;
use tokio::sync::watch as signal;
use tokio::time::{Instant, sleep, sleep_until};

use super::Counts;
use super::cursors::Cursors;
use super::sink::{Common, Entry, Refused, Sink};
use super::source::{Found, Source, all};
use super::stream::{Stream, name};
use super::watch::{Changed, Watch};
use crate::agent_handle::AgentHandle;
use crate::clock;
use crate::logfile::{LogFiles, LogPosition, Origin};
use crate::safe_open::Trouble;

/// How much is sent at once, in bytes of lines.
const BATCH: usize = 512 * 1024;
/// And in lines.
const BATCH_LINES: usize = 4096;
/// How long more lines are awaited where requests are worth saving.
const LINGER: Duration = Duration::from_millis(100);
/// How long after it was asked for new tasks the core is asked again at the earliest.
const BETWEEN: Duration = Duration::from_millis(250);
/// How often it is written down how far logs were sent.
const SAVE: Duration = Duration::from_secs(5);
/// How often logs are looked at of which the kernel tells nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The first pause after a failure; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A stream's name: which allocation's, which task's, and whether it is standard error.
type Key = (AllocId, TaskName, bool);

/// What a follower is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) agent: AgentHandle,
    pub(super) jobs: Arc<[String]>,
    pub(super) sink: Sink,
    pub(super) common: Common,
    pub(super) counts: Arc<Counts>,
    pub(super) name: String,
    pub(super) cursors: Cursors,
    /// Whether nothing was ever sent: what is written already is not.
    pub(super) is_new: bool,
}

#[derive(Debug)]
pub(super) struct Follower {
    parts: Parts,
    streams: BTreeMap<Key, Stream>,
    /// What is over and sent.
    done: BTreeSet<Key>,
    watch: Watch,
    /// Whose logs the kernel tells nothing of: they are looked at now and then.
    unwatched: BTreeSet<AllocId>,
    /// The time of the last line: no two have the same.
    last: Timestamp,
    /// Whose turn it was last in a batch that is full; none if it was not.
    turn: Option<Key>,
    /// When it was last written down how far logs were sent.
    saved: Instant,
}

/// Lines to be sent, and whose they are.
#[derive(Debug, Default)]
struct Batch {
    entries: Vec<Entry>,
    /// For each of them its stream, and the place after it.
    places: Vec<(Key, LogPosition)>,
    bytes: usize,
}

/// What woke the loop up.
enum Woken {
    Tasks,
    Files(io::Result<Changed>),
    /// There is more to send.
    Dirty,
    Time,
    End,
}

impl Follower {
    pub(super) fn new(parts: Parts) -> Follower {
        Follower {
            parts,
            streams: BTreeMap::new(),
            done: BTreeSet::new(),
            watch: Watch::new(),
            unwatched: BTreeSet::new(),
            last: Timestamp::default(),
            turn: None,
            saved: Instant::now(),
        }
    }

    /// Sends logs until the agent ends.
    pub(super) async fn run(mut self, mut end: signal::Receiver<bool>) {
        let mut index = self.parts.agent.index();
        let (mut listed, mut stale) = (Instant::now(), false);
        index.borrow_and_update();
        let mut ends = !self.list_tasks().await;
        while !ends {
            if self.is_dirty() && !self.send_batch(&mut end).await {
                break;
            }
            let is_dirty = self.is_dirty();
            let list_at = stale.then_some(listed + BETWEEN);
            let wake_at = list_at.into_iter().chain(self.deadline()).min();
            let at = wake_at.unwrap_or_else(Instant::now);
            // What is written without pause does not keep others from being seen.
            let woken = tokio::select! {
                biased;
                _ = end.wait_for(|end| *end) => Woken::End,
                changed = index.changed(), if !stale => match changed {
                    Ok(()) => Woken::Tasks,
                    Err(_) => Woken::End,
                },
                changed = self.watch.changed() => Woken::Files(changed),
                () = std::future::ready(()), if is_dirty => Woken::Dirty,
                () = sleep_until(at), if wake_at.is_some() => Woken::Time,
            };
            match woken {
                Woken::End => ends = true,
                Woken::Tasks => stale = true,
                Woken::Files(Ok(changed)) => self.mark(&changed),
                // It may be so for ever.
                Woken::Files(Err(_)) => {
                    sleep(POLL_INTERVAL).await;
                    self.mark(&Changed::Anywhere);
                }
                Woken::Dirty => {}
                Woken::Time => self.mark_late(),
            }
            if stale && listed + BETWEEN <= Instant::now() {
                (listed, stale) = (Instant::now(), false);
                index.borrow_and_update();
                ends |= !self.list_tasks().await;
            }
        }
        self.parts.cursors.save();
    }

    fn is_dirty(&self) -> bool {
        self.streams.values().any(|stream| stream.is_dirty)
    }

    /// When something is to be done though nothing happened: the end of a line is not awaited for ever, nor is
    /// what was sent to be written down.
    fn deadline(&self) -> Option<Instant> {
        let lines = self.streams.values().filter_map(Stream::deadline);
        let save = self.parts.cursors.is_changed().then_some(self.saved + SAVE);
        let poll_at = (!self.unwatched.is_empty()).then(|| Instant::now() + POLL_INTERVAL);
        lines.chain(save).chain(poll_at).min()
    }

    fn mark(&mut self, changed: &Changed) {
        for ((alloc, _, _), stream) in &mut self.streams {
            stream.is_dirty |= match changed {
                Changed::In(allocs) => allocs.contains(alloc),
                Changed::Anywhere => true,
            };
        }
    }

    fn mark_late(&mut self) {
        let now = Instant::now();
        for ((alloc, _, _), stream) in &mut self.streams {
            let is_late = stream.deadline().is_some_and(|at| at <= now);
            stream.is_dirty |= is_late || self.unwatched.contains(alloc);
        }
        self.save_if_due();
    }

    fn save_if_due(&mut self) {
        if self.saved + SAVE <= Instant::now() {
            self.saved = Instant::now();
            self.parts.cursors.save();
        }
    }

    /// Follows the tasks that there are now. `false` if the agent ends.
    async fn list_tasks(&mut self) -> bool {
        let Ok(found) = all(&self.parts.agent, self.parts.jobs.clone()).await else {
            return false;
        };
        let there: BTreeSet<AllocId> = found.iter().map(|it| it.source.alloc).collect();
        self.parts.cursors.keep(|alloc| there.contains(alloc));
        self.done.retain(|(alloc, _, _)| there.contains(alloc));
        let is_new = std::mem::take(&mut self.parts.is_new);
        for task in found {
            for is_error in [false, true] {
                self.follow(&task, is_error, is_new);
            }
        }
        if is_new {
            // Without it the next agent would take what is written from now on for what was written before.
            self.parts.cursors.save();
        }
        let gone = self.streams.keys().map(|(alloc, _, _)| *alloc);
        let gone: BTreeSet<AllocId> = gone.filter(|alloc| !there.contains(alloc)).collect();
        for alloc in gone {
            self.streams.retain(|(of, _, _), _| *of != alloc);
            self.watch.remove(alloc);
            self.unwatched.remove(&alloc);
        }
        true
    }

    fn follow(&mut self, task: &Found, is_error: bool, is_new: bool) {
        let source = &task.source;
        let key = (source.alloc, source.task.clone(), is_error);
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.is_dirty |= task.is_over && !stream.is_over;
            stream.is_over = task.is_over;
            return;
        }
        if task.is_over && self.done.contains(&key) {
            return;
        }
        let known = self.parts.cursors.get(source, is_error);
        // Where there are no logs (yet), it is tried again when something changes.
        let Ok((files, at)) = open(&self.parts.agent, source, is_error, known, is_new) else {
            return;
        };
        self.done.remove(&key);
        let mut stream = Stream::new(Arc::new(source.clone()), is_error, files, at);
        stream.is_over = task.is_over;
        if let Err(error) = self.watch.add(source.alloc, stream.files().dir()) {
            let name = &self.parts.name;
            tracing::warn!(%error, log_forward = name, alloc = %source.alloc, "cannot watch logs");
            self.unwatched.insert(source.alloc);
        }
        self.parts.cursors.set(source, is_error, at);
        self.streams.insert(key, stream);
    }

    /// Sends what there is, up to a batch. `false` if the agent ends.
    async fn send_batch(&mut self, end: &mut signal::Receiver<bool>) -> bool {
        if self.parts.sink.likes_many() && self.turn.is_none() {
            sleep(LINGER).await;
        }
        let batch = self.read();
        for key in Batch::finished(&self.streams) {
            self.finish(&key);
        }
        if !batch.entries.is_empty() && !self.send(batch, end).await {
            return false;
        }
        self.save_if_due();
        !*end.borrow()
    }

    /// Reads up to a batch, of each stream in turn.
    fn read(&mut self) -> Batch {
        let mut batch = Batch::default();
        loop {
            let dirty = self.streams.iter().filter(|(_, stream)| stream.is_dirty);
            let mut dirty: Vec<Key> = dirty.map(|(key, _)| key.clone()).collect();
            if dirty.is_empty() {
                self.turn = None;
                return batch;
            }
            let first = dirty.partition_point(|key| Some(key) <= self.turn.as_ref());
            let first = first % dirty.len();
            dirty.rotate_left(first);
            for key in dirty {
                if let Some(stream) = self.streams.get_mut(&key) {
                    batch.take(&key, stream, &mut self.last, &self.parts.counts);
                }
                if batch.is_full() {
                    self.turn = Some(key);
                    return batch;
                }
            }
        }
    }

    /// Nothing more comes of a stream.
    fn finish(&mut self, key: &Key) {
        self.streams.remove(key);
        self.done.insert(key.clone());
        if !self.streams.keys().any(|(alloc, _, _)| *alloc == key.0) {
            self.watch.remove(key.0);
            self.unwatched.remove(&key.0);
        }
    }

    /// Sends a batch until all of it is taken. `false` if the agent ends.
    async fn send(&mut self, batch: Batch, end: &mut signal::Receiver<bool>) -> bool {
        let (mut first, mut pause) = (0, FIRST_PAUSE);
        while let Some(left) = batch.entries.get(first..).filter(|left| !left.is_empty()) {
            let sent = tokio::select! {
                biased;
                _ = end.wait_for(|end| *end) => return false,
                sent = self.parts.sink.send(&self.parts.common, left) => sent,
            };
            let taken = match &sent {
                Ok(()) => left.len(),
                Err(Refused {
                    taken, is_final, ..
                }) if *is_final => {
                    let refused = left.len() - taken;
                    self.parts
                        .counts
                        .refused
                        .fetch_add(refused as u64, Ordering::Relaxed);
                    left.len()
                }
                Err(refused) => refused.taken,
            };
            self.note(&batch, first, taken);
            first += taken;
            let Err(refused) = sent else {
                pause = FIRST_PAUSE;
                continue;
            };
            self.report(&refused, pause == FIRST_PAUSE);
            if !refused.is_final {
                let wait = refused.pause.unwrap_or(pause).clamp(pause, LONGEST_PAUSE);
                tokio::select! {
                    biased;
                    _ = end.wait_for(|end| *end) => return false,
                    () = sleep(wait) => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        true
    }

    /// Notes that so many lines from `first` on were sent.
    fn note(&mut self, batch: &Batch, first: usize, count: usize) {
        let places = batch.places.get(first..first + count).unwrap_or_default();
        let mut sent = batch.entries.iter().skip(first);
        let mut bytes = 0;
        for of_stream in places.chunk_by(|(one, _), (other, _)| one == other) {
            let mut last = None;
            for entry in sent.by_ref().take(of_stream.len()) {
                bytes += entry.text.len() as u64;
                last = Some(&entry.source);
            }
            if let (Some(source), Some((key, at))) = (last, of_stream.last()) {
                self.parts.cursors.set(source, key.2, *at);
            }
        }
        self.parts
            .counts
            .lines
            .fetch_add(count as u64, Ordering::Relaxed);
        self.parts.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn report(&self, refused: &Refused, is_first: bool) {
        self.parts.counts.failures.fetch_add(1, Ordering::Relaxed);
        let (name, why) = (&self.parts.name, &refused.why);
        match (refused.is_final, is_first) {
            (true, _) => {
                tracing::warn!(log_forward = name, "lines are refused, and left out: {why}")
            }
            (false, true) => {
                tracing::warn!(
                    log_forward = name,
                    "cannot send logs, and tries again: {why}"
                );
            }
            (false, false) => tracing::debug!(log_forward = name, "cannot send logs: {why}"),
        }
    }
}

/// The files of a stream, and where to go on in them.
fn open(
    agent: &AgentHandle,
    source: &Source,
    is_error: bool,
    known: Option<LogPosition>,
    is_new: bool,
) -> Result<(LogFiles, LogPosition), Trouble> {
    let (root, task) = (agent.alloc_root(), source.task.as_str());
    let files = LogFiles::open(root, source.alloc, task, name(is_error))?;
    let at = match (known, is_new) {
        (Some(at), _) => at,
        (None, true) => files.position(Origin::Now, 0)?,
        (None, false) => LogPosition::default(),
    };
    Ok((files, at))
}

impl Batch {
    fn is_full(&self) -> bool {
        self.bytes >= BATCH || self.entries.len() >= BATCH_LINES
    }

    fn take(&mut self, key: &Key, stream: &mut Stream, last: &mut Timestamp, counts: &Counts) {
        let piece = match stream.read() {
            Ok(piece) => piece,
            Err(trouble) => {
                tracing::debug!(alloc = %key.0, task = %key.1, "cannot read logs: {trouble:?}");
                stream.is_dirty = false;
                return;
            }
        };
        counts.lost.fetch_add(piece.lost, Ordering::Relaxed);
        let now = clock::now().wall;
        for line in piece.lines {
            *last = Timestamp(now.0.max(last.0.saturating_add(1)));
            self.bytes += line.text.len();
            self.places.push((key.clone(), line.end));
            self.entries.push(Entry {
                source: stream.source.clone(),
                is_error: stream.is_error,
                time: *last,
                text: line.text,
            });
        }
    }

    /// The streams of which everything is read, and nothing more comes.
    fn finished(streams: &BTreeMap<Key, Stream>) -> Vec<Key> {
        let over = streams.iter();
        let over = over.filter(|(_, stream)| stream.is_over && !stream.is_dirty);
        over.map(|(key, _)| key.clone()).collect()
    }
}
