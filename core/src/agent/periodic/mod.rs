//! Periodic jobs: a job is made of one (`ID/periodic-SECONDS`) whenever the time of one of its cron expressions
//! comes.
//!
//! - **No time is launched twice, and none is forgotten.** What became of a time is in the job's record
//!   ([`PeriodicRecord`]), which is saved in the same commit as the child; nothing of the child leaves before that.
//! - **On time.** The agent sleeps until the next time of all jobs. Times are of the wall clock, timers of the boot
//!   clock: how far they are apart is noted at each call, so whoever drives the core calls back when the wall clock
//!   is set ([`Agent::handle_timeout`]).
//! - **Missed.** A time that the agent reaches more than [`ON_TIME`] late was missed: it was stopped, the machine
//!   slept, or the clock was set forwards. Of those that were missed the latest is launched, unless the job says
//!   `missed = "skip"` or a time that is not missed is launched anyway.
//! - **A clock that is set back** launches again no time that is over (`over`), and all that are not.
//! - **Overlap.** With `prohibit_overlap`, a time that comes while a child is not dead is skipped. An agent that just
//!   started knows that when its jobs were planned first; a time that comes before waits for it.
//! - **Zones** are looked up by the machine ([`crate::managers::zones`]); a job whose zone is not known waits.

mod due;
mod result;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Agent, cx};
use crate::cron::schedule::{Next, Schedule};
use crate::cron::zone::ZoneOffsets;
use crate::ids::JobKey;
use crate::model::job::Job;
use crate::model::policy::PeriodicConfig;
use crate::store::periodic::{Considered, PeriodicRecord, moment_of, second_of};
use crate::store::{Key, Record, Saved};
use crate::time::{Instant, Now, Span, Timestamp};

pub use due::ON_TIME;
pub(super) use due::child_of;
pub use result::LaunchResult;

/// The wall clock moves when it and the boot clock are this much further apart or closer than before.
pub(super) const CLOCK_MOVES: Span = Span::millis(1);

/// The launches of all periodic jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Launches {
    #[serde(with = "crate::pairs")]
    records: BTreeMap<JobKey, Arc<PeriodicRecord>>,
    /// When each job is considered next, in seconds since 1970.
    #[serde(with = "crate::pairs")]
    next: BTreeMap<JobKey, i64>,
    /// The same, by time.
    queue: BTreeSet<(i64, JobKey)>,
    /// Jobs whose zones are not known.
    awaits_zone: BTreeSet<JobKey>,
    /// How far the wall clock is ahead of the boot clock, in nanoseconds.
    ahead: i64,
}

impl Launches {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn set_next(&mut self, key: &JobKey, at: Option<i64>) {
        let before = match at {
            Some(at) => self.next.insert(key.clone(), at),
            None => self.next.remove(key),
        };
        if let Some(before) = before {
            self.queue.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.queue.insert((at, key.clone()));
        }
    }

    /// The job that is considered next, and when, by the boot clock; not one that is `held`.
    pub(super) fn deadline(&self, held: impl Fn(&JobKey) -> bool) -> Option<(Instant, &JobKey)> {
        let (at, key) = self.queue.iter().find(|(_, key)| !held(key))?;
        let at = moment_of(*at).0.saturating_sub(self.ahead);
        Some((Instant(u64::try_from(at).unwrap_or(0)), key))
    }

    /// How far the wall clock is ahead of the boot clock, in nanoseconds.
    pub(super) fn wall_ahead(&self) -> i64 {
        self.ahead
    }

    /// Whether the zone of a job is not known.
    pub(super) fn awaits_zone_of(&self, key: &JobKey) -> bool {
        self.awaits_zone.contains(key)
    }

    /// The jobs whose zones are not known.
    pub(super) fn awaiting_zone(&self) -> impl Iterator<Item = &JobKey> {
        self.awaits_zone.iter()
    }
}

/// When a periodic job is launched, to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodicView<'a> {
    /// When it is launched next, if that is known.
    pub next: Option<Timestamp>,
    /// Why its zone is not known, if it is not.
    pub awaits_zone: Option<&'a str>,
    /// What became of the latest time.
    pub last: Option<Considered>,
}

impl Agent {
    /// Notes what the clocks show. Returns whether the wall clock was set.
    pub(super) fn note_clocks(&mut self, now: Now) -> bool {
        let ahead = now.wall_ahead();
        let moved = ahead.saturating_sub(self.launches.ahead);
        let acl_follows = self.acl.note_clocks(now);
        if !self.awaits_wall_times() || moved.abs() < CLOCK_MOVES.0 {
            return acl_follows;
        }
        self.launches.ahead = ahead;
        if moved < 0 && self.shutdown.is_none() {
            self.clock_was_set_back(now);
        }
        true
    }

    /// Times that the clock shows once more are launched if they were not.
    fn clock_was_set_back(&mut self, now: Now) {
        let second = second_of(now.wall);
        let ahead = self.launches.records.iter();
        let ahead = ahead.filter(|(_, record)| record.followed > second);
        for key in ahead.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.edit_launches(&key, |record| record.followed = second);
            self.set_next_launch(now, &key);
        }
        self.set_next_looks(now);
    }

    /// Before anything waits for times of the wall clock: from now on it is followed.
    pub(super) fn begin_wall_times(&mut self, now: Now) {
        if !self.awaits_wall_times() {
            self.launches.ahead = now.wall_ahead();
        }
    }

    /// A job was registered or stopped: a `new` version is launched at times after now.
    pub(super) fn schedule_launches(&mut self, now: Now, key: &JobKey, new: bool) {
        let Some(known) = self.local.jobs.get(key) else {
            return;
        };
        let active = known.job.schedule().is_some();
        if !active && !self.launches.records.contains_key(key) {
            return;
        }
        self.begin_wall_times(now);
        if active && (new || !self.launches.records.contains_key(key)) {
            let second = second_of(now.wall);
            self.edit_launches(key, |record| record.followed = second);
        }
        self.set_next_launch(now, key);
        self.forget_unused_zones();
    }

    /// A job is forgotten.
    pub(super) fn forget_launches(&mut self, key: &JobKey) {
        if self.launches.records.remove(key).is_some() {
            self.shared.ledger.delete(Key::Periodic(key.clone()));
        }
        self.launches.set_next(key, None);
        self.launches.awaits_zone.remove(key);
        self.forget_unused_zones();
    }

    pub(super) fn forget_unused_zones(&mut self) {
        if self.machine.zones.is_empty() {
            return;
        }
        let launched = self.launches.records.keys();
        let jobs = launched.filter_map(|key| self.local.jobs.get(key));
        let used = jobs.filter_map(|job| job.job.schedule());
        let used = used.map(|it| it.time_zone.as_str());
        let used: BTreeSet<&str> = used.chain(self.images.zones(&self.local.jobs)).collect();
        let operations = &mut self.shared.operations;
        self.machine.zones.keep(operations, &used);
    }

    pub(super) fn restore_launches(&mut self, saved: &Saved, now: Now) {
        for (key, record) in &saved.periodic {
            if self.local.jobs.contains_key(key) {
                self.launches.records.insert(key.clone(), record.clone());
            } else if !saved.unreadable.contains(&Key::Job(key.clone())) {
                self.shared.ledger.delete(Key::Periodic(key.clone()));
            }
        }
        let at = i64::try_from(now.at.0).unwrap_or(i64::MAX);
        self.launches.ahead = now.wall.0.saturating_sub(at);
        self.clock_was_set_back(now);
        let jobs = self.local.jobs.iter();
        let periodic = jobs.filter(|(_, job)| job.job.schedule().is_some());
        for key in periodic.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.schedule_launches(now, &key, false);
        }
    }

    /// A zone is known better: its jobs may be launched at other times.
    pub(super) fn zones_changed(&mut self, now: Now) {
        let keys: Vec<JobKey> = self.launches.records.keys().cloned().collect();
        keys.iter().for_each(|key| self.set_next_launch(now, key));
    }

    /// Finds out when a job is considered next.
    fn set_next_launch(&mut self, now: Now, key: &JobKey) {
        self.launches.awaits_zone.remove(key);
        self.launches.set_next(key, None);
        let Some((schedule, zone_name)) = self.schedule_of(key) else {
            return;
        };
        let Some(zone) = self.zone(now, &zone_name) else {
            self.launches.awaits_zone.insert(key.clone());
            return;
        };
        let record = self.launches.records.get(key);
        let next = record.map_or(Next::Never, |record| next_of(record, &schedule, &zone));
        match next {
            Next::At(at) | Next::NotBefore(at) => self.launches.set_next(key, Some(at)),
            Next::Never => {}
        }
    }

    /// The expressions of a job that is launched now, and its zone.
    fn schedule_of(&self, key: &JobKey) -> Option<(Schedule, String)> {
        let periodic = self.local.jobs.get(key)?.job.schedule()?;
        Some((Schedule::of(periodic).ok()?, periodic.time_zone.clone()))
    }

    /// The local time of a zone, if it is known now.
    pub(super) fn zone(&mut self, now: Now, name: &str) -> Option<Arc<ZoneOffsets>> {
        let mut cx = cx(&self.config, &mut self.shared, now);
        let zone = self.machine.zones.of(&mut cx, name);
        zone.filter(|zone| zone.covers(second_of(now.wall)))
    }

    fn edit_launches(&mut self, key: &JobKey, change: impl FnOnce(&mut PeriodicRecord)) {
        let known = self.launches.records.get(key);
        let mut record = known
            .map(|known| PeriodicRecord::clone(known))
            .unwrap_or_default();
        change(&mut record);
        if known.is_some_and(|known| **known == record) {
            return;
        }
        let seen = known.map(|known| known.last) != Some(record.last);
        if seen {
            self.shared.index += 1;
            record.modify_index = self.shared.index;
        }
        let record = Arc::new(record);
        let (to, what) = (Key::Periodic(key.clone()), Record::Periodic(record.clone()));
        self.shared.ledger.put(to, what);
        self.launches.records.insert(key.clone(), record);
    }

    /// What is known of the launches of a periodic job.
    pub(super) fn launches_of(&self, key: &JobKey) -> Option<PeriodicView<'_>> {
        let periodic = self.local.jobs.get(key)?.job.periodic.as_ref()?;
        let record = self.launches.records.get(key);
        let waits = self.launches.awaits_zone.contains(key);
        let why = self.machine.zones.last_error(&periodic.time_zone);
        let zone = self.machine.zones.known(&periodic.time_zone);
        // What a job is considered for may be only that its zone is not known any further.
        let next = self.launches.next.get(key).copied();
        let next = next.filter(|at| zone.is_some_and(|zone| zone.covers(*at)));
        Some(PeriodicView {
            next: next.map(moment_of),
            awaits_zone: waits.then(|| why.unwrap_or("it was not looked up yet")),
            last: record.and_then(|record| record.last),
        })
    }

    /// When a job would be launched next if it was registered now. None if never, or if its zone is not known
    /// and not given.
    pub(super) fn next_launch(
        &self,
        now: Now,
        job: &Job,
        zone: Option<&ZoneOffsets>,
    ) -> Option<Timestamp> {
        let periodic: &PeriodicConfig = job.periodic.as_ref().filter(|it| it.enabled)?;
        let known = self.machine.zones.known(&periodic.time_zone);
        let zone = known.as_deref().or(zone)?;
        match Schedule::of(periodic).ok()?.next(zone, second_of(now.wall)) {
            Next::At(at) => Some(moment_of(at)),
            Next::NotBefore(_) | Next::Never => None,
        }
    }
}

/// The first time after what was followed that is not over.
fn next_of(record: &PeriodicRecord, schedule: &Schedule, zone: &ZoneOffsets) -> Next {
    let mut after = record.followed;
    loop {
        let next = schedule.next(zone, after);
        match next {
            Next::At(at) => match record.stretch_of(at) {
                Some((_, last)) => after = last,
                None => return next,
            },
            Next::NotBefore(_) | Next::Never => return next,
        }
    }
}
