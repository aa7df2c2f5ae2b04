//! The disk: holds what was committed, and may or may not hold what was not acknowledged.
//!
//! It loses whole commits or none, and never tears one, because that is what the real store
//! promises of a batch (`io-real/tests/store_crash.rs` holds it to that). Its faults are lost and
//! late commits, refusals, and a full disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::ids::TaskKey;
use drover_core::input::StoreInput;
use drover_core::store::record::JobRecord;
use drover_core::store::{Batch, CommitId, Key, Record, Saved};
use drover_core::time::Span;
use serde::Serialize;

use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::Later;
use crate::point::Point;
use crate::scene::Scene;

/// The disk.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Disk {
    records: BTreeMap<Key, Record>,
    /// Under which names something stands that cannot be read.
    unreadable: BTreeSet<Key>,
    last: Option<CommitId>,
    /// Whether nothing can be written at present.
    pub full: bool,
    /// Until when, since the beginning, nothing can be written.
    pub(crate) full_until: Option<Span>,
    /// Every job that was written where none was, in order.
    #[serde(skip)]
    pub(crate) made: Vec<Arc<JobRecord>>,
    /// Tasks of which an agent could not read what was saved.
    #[serde(skip)]
    pub(crate) unread: BTreeSet<TaskKey>,
    /// How many commits were written.
    #[serde(skip)]
    pub commits: u64,
    /// How many of them forgot something old and wrote nothing but the index.
    #[serde(skip)]
    pub(crate) forgetting: u64,
}

impl Disk {
    /// Everything that would survive a crash now.
    pub fn records(&self) -> &BTreeMap<Key, Record> {
        &self.records
    }

    /// The same, as a restored agent wants it.
    pub fn saved(&self) -> Saved {
        let records = self.records.iter();
        let records = records.map(|(key, record)| (key.clone(), record.clone()));
        Saved {
            unreadable: self.unreadable.clone(),
            ..Saved::from_records(records)
        }
    }

    /// What stands under `key` cannot be read any more.
    pub(crate) fn spoil(&mut self, key: Key) {
        self.records.remove(&key);
        self.unreadable.insert(key);
    }

    pub(crate) fn is_full(&self, elapsed: Span) -> bool {
        self.full || self.full_until.is_some_and(|until| elapsed < until)
    }

    /// Writes a commit. Returns a key whose record was written though it did not change.
    pub(crate) fn write(&mut self, id: CommitId, batch: Batch) -> Option<Key> {
        let again = self.last == Some(id);
        let mut unchanged = None;
        let writes = |(key, record): (&Key, &Option<Record>)| record.is_some() && *key != Key::Meta;
        let forgets = batch.values().any(Option::is_none) && !batch.iter().any(writes);
        self.forgetting += u64::from(forgets);
        for (key, record) in batch {
            if self.records.get(&key) == record.as_ref() && !again {
                unchanged = Some(key.clone());
            }
            self.unreadable.remove(&key);
            if let Some(Record::Job(job)) = &record
                && !self.records.contains_key(&key)
            {
                self.made.push(job.clone());
            }
            match record {
                Some(record) => self.records.insert(key, record),
                None => self.records.remove(&key),
            };
        }
        self.last = Some(id);
        self.commits += 1;
        unchanged
    }

    /// What it holds is brought to another data directory by a snapshot.
    pub(crate) fn brought_along(&mut self) {
        for record in self.records.values_mut() {
            if let Record::Volume(volume) = record {
                Arc::make_mut(volume).brought_along();
            }
        }
    }

    /// A new agent counts its commits anew.
    pub(crate) fn agent_died(&mut self) {
        self.last = None;
    }
}

impl Disk {
    /// The agent asks for a commit.
    pub(crate) fn begin_commit(&mut self, scene: &mut Scene, id: CommitId, batch: Arc<Batch>) {
        let store: Arc<str> = Arc::from("store");
        let second = Span::secs(1);
        if scene.fires(Fault::FullDisk, &store) {
            let spans = [second, Span::secs(60), Span::secs(3600)];
            let span = scene.choices.one_of(&spans, Point::FullFor, &store);
            self.full_until = Some(Span(scene.elapsed.0 + span.unwrap_or(second).0));
        }
        if self.is_full(scene.elapsed) || scene.fires(Fault::FailCommit, &store) {
            let at = scene.at + scene.latency(&store, second);
            let input = StoreInput::Failed(id, "no space left on device".to_owned());
            return scene.deliver(Source::Store, at, &store, Input::Store(input));
        }
        let delay = scene.latency(&store, second);
        scene.after(delay, &store, Later::Commit { id, batch });
    }

    /// What was asked for in this life of the agent is on the disk.
    pub(crate) fn end_commit(
        &mut self,
        scene: &mut Scene,
        life: u64,
        id: CommitId,
        batch: Arc<Batch>,
    ) {
        if let Some(key) = self.write(id, Arc::unwrap_or_clone(batch)) {
            scene.violated("unchanged_record_is_not_written", format!("{key:?}"));
        }
        if life == scene.life {
            let store: Arc<str> = Arc::from("store");
            let at = scene.at + scene.latency(&store, Span::secs(1));
            let input = Input::Store(StoreInput::Saved(id));
            scene.deliver(Source::Store, at, &store, input);
        }
    }

    /// A new agent reads what the disk holds, as far as that can be read.
    pub(crate) fn read(&mut self, scene: &mut Scene) -> Saved {
        let task = |key: &Key| {
            let Key::Task(alloc, task) = key else {
                return None;
            };
            let (alloc, task) = (*alloc, task.clone());
            Some(TaskKey { alloc, task })
        };
        let tasks: Vec<TaskKey> = self.records().keys().filter_map(task).collect();
        for key in tasks {
            let name = scene.names.task(&key);
            if scene.fires(Fault::UnreadableRecord, &name) {
                self.spoil(Key::Task(key.alloc, key.task.clone()));
                self.unread.insert(key);
            }
        }
        self.saved()
    }
}
