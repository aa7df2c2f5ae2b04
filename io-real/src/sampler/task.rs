//! One launch that is measured: its files, their last content, and what that came to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use drover_core::stats::sample::{Counters, ProcessId, Sample};
use drover_core::stats::usage::TaskUsage;
use drover_core::time::Timestamp;

use super::Depth;
use crate::stats::counters::pids;
use crate::stats::group::GroupFiles;
use crate::stats::processes::{MOST, Proc};
use crate::stats::read::Buffer;
use crate::stats::{FRESH, RECENT, SHORT, StatsSource};

/// What a launch is measured by.
#[derive(Debug)]
enum Source {
    Group(GroupFiles),
    /// No group: the process that it began with, and what descends from it.
    Tree((i32, u64)),
}

/// The counters, and when they were read.
#[derive(Debug)]
struct Read {
    at: Instant,
    depth: Depth,
    sample: Sample,
}

/// The first pass of a look, or the one that is there to have two samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    First,
    Second,
}

/// What a look comes to.
pub(super) enum Outcome {
    /// What is known is good enough.
    Fresh,
    /// A second sample is needed, a little later.
    Again,
    /// This was measured.
    Measured(Arc<TaskUsage>),
    /// The launch is gone.
    Gone,
}

/// A launch that is looked at.
#[derive(Debug)]
pub(super) struct Watched {
    source: Source,
    last: Option<Read>,
    /// What the last two samples came to; none while there is only one that counts.
    usage: Option<Arc<TaskUsage>>,
    /// When somebody last looked.
    pub(super) last_used: Instant,
}

impl Watched {
    /// `None`: nothing of it can be measured.
    pub(super) fn open(stats_source: &StatsSource, now: Instant) -> Option<Watched> {
        let group = stats_source.group.as_ref().and_then(GroupFiles::open);
        let tree = || stats_source.process.map(Source::Tree);
        Some(Watched {
            source: group.map(Source::Group).or_else(tree)?,
            last: None,
            usage: None,
            last_used: now,
        })
    }

    /// Whether what was measured last is good enough.
    pub(super) fn is_fresh(&self, now: Instant, depth: Depth) -> bool {
        let fresh = |last: &Read| now - last.at < FRESH && last.depth >= depth;
        self.usage.is_some() && self.last.as_ref().is_some_and(fresh)
    }

    /// Measures it, if what was measured last is not good enough.
    pub(super) fn measure(&mut self, with: &mut With<'_>, round: Round) -> Outcome {
        let now = Instant::now();
        if self.is_fresh(now, with.depth) {
            return Outcome::Fresh;
        }
        let recent = self.has_recent(now, with.depth);
        let short = |last: &Read| now - last.at < SHORT;
        if recent && self.usage.is_none() && self.last.as_ref().is_some_and(short) {
            // Somebody else took the first one just now.
            return Outcome::Again;
        }
        if !self.sample(with) {
            return Outcome::Gone;
        }
        match (recent, round) {
            (false, Round::First) => {
                self.usage = None;
                Outcome::Again
            }
            (true, _) | (false, Round::Second) => match &self.usage {
                Some(usage) => Outcome::Measured(usage.clone()),
                None => Outcome::Fresh,
            },
        }
    }

    /// Whether there is a sample that the next one can be compared with.
    pub(super) fn has_recent(&self, now: Instant, depth: Depth) -> bool {
        let recent = |last: &Read| now - last.at < RECENT && last.depth >= depth;
        self.last.as_ref().is_some_and(recent)
    }

    /// Takes a sample. False: the launch is gone.
    fn sample(&mut self, with: &mut With<'_>) -> bool {
        let Some(sample) = self.read(with) else {
            return false;
        };
        let at = Instant::now();
        if let Some(last) = &self.last {
            let elapsed = u64::try_from((at - last.at).as_nanos()).unwrap_or(u64::MAX);
            let usage = sample.since(&last.sample, elapsed, with.mhz, with.wall);
            self.usage = Some(Arc::new(usage));
        }
        self.last = Some(Read {
            at,
            depth: with.depth,
            sample,
        });
        true
    }

    /// One pass over everything.
    fn read(&self, with: &mut With<'_>) -> Option<Sample> {
        match &self.source {
            Source::Group(files) => {
                let group = Some(files.read(with.buffer)?);
                let members = match with.depth {
                    Depth::Processes => files.members(with.buffer).unwrap_or_default(),
                    Depth::Totals => &[],
                };
                let members = pids(members, MOST);
                let processes = with.each(&members);
                Some(Sample { group, processes })
            }
            Source::Tree(root) => {
                let members = with.proc.map(|proc| proc.tree(*root, with.buffer))?;
                let processes = with.each(&members);
                let group = None;
                (!processes.is_empty()).then_some(Sample { group, processes })
            }
        }
    }
}

/// What a pass over many launches has at hand.
pub(super) struct With<'a> {
    pub(super) proc: Option<&'a Proc>,
    pub(super) buffer: &'a mut Buffer,
    pub(super) depth: Depth,
    /// MHz of a core, if that is known.
    pub(super) mhz: Option<f64>,
    pub(super) wall: Timestamp,
}

impl With<'_> {
    fn each(&mut self, members: &[u32]) -> BTreeMap<ProcessId, Counters> {
        let Some(proc) = self.proc else {
            return BTreeMap::new();
        };
        let measure = |pid: &u32| proc.sample(*pid, self.buffer);
        members.iter().filter_map(measure).collect()
    }
}
