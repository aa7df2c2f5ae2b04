//! Periodic jobs: which times come is computed here from the expressions, second by second.

use drover_core::model::job::JobStatus;
use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::requests::Request;
use drover_core::agent::{Agent, View};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::JobKey;
use drover_core::model::job::Job;
use drover_core::model::periodic::{launch_id, launch_of};
use drover_core::model::policy::{Missed, PeriodicConfig};
use drover_core::store::periodic::second_of;
use drover_core::store::record::JobRecord;
use drover_core::store::{Key, Record};

use super::limits::PERIODIC_GRACE;
use super::{Checker, Property, Verdict};
use crate::world::World;
use crate::zones;

/// How far back a time is looked for that should have been launched, in seconds.
const LOOK_BACK: i64 = 48 * 3600;

/// What is remembered of launches over all lives of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Launched {
    /// How much of the disk's list of new jobs was seen.
    seen: usize,
    /// The times that each job was launched for.
    times: BTreeMap<JobKey, BTreeSet<i64>>,
    /// Times that were rightly not launched: an earlier launch overlaps, or there is one for this time.
    excused: BTreeSet<(JobKey, i64)>,
    /// How often each job was to be launched by hand.
    forced: BTreeMap<JobKey, usize>,
    /// How many launches of each job bear a time that it has not, or one that was there before.
    odd: BTreeMap<JobKey, usize>,
    /// What was there before the agent was called back: of each job that prohibits overlap, the launches that
    /// were not dead.
    before: Option<BTreeMap<JobKey, BTreeSet<JobKey>>>,
    /// How often the wall clock was set.
    wall_jumps: u32,
    /// When it was last set back: what it shows of the time before that did not come.
    set_back_to: i64,
}

impl Launched {
    pub(super) fn asked(&mut self, asked: &Request) {
        if let Request::ForcePeriodic(force) = asked {
            *self.forced.entry(force.job.clone()).or_default() += 1;
        }
    }

    /// The agent is called back.
    pub(super) fn called_back(&mut self, agent: &Agent) {
        let view = agent.view();
        let alone = periodic(view).filter(|(_, it)| it.prohibit_overlap);
        let alive = alone.map(|(job, _)| (job.key(), alive(view, job).collect()));
        self.before = Some(alive.collect());
    }

    pub(super) fn agent_died(&mut self) {
        self.before = None;
    }
}

/// The jobs that are launched by the clock now.
fn periodic(view: View<'_>) -> impl Iterator<Item = (&Job, &PeriodicConfig)> {
    view.jobs()
        .filter_map(|record| Some((&*record.job, record.job.schedule()?)))
}

fn launches<'a>(view: View<'a>, parent: &Job) -> impl Iterator<Item = &'a JobRecord> {
    let (id, namespace) = (parent.id.clone(), parent.namespace.clone());
    let of_parent = move |job: &Job| job.parent_id == id && job.namespace == namespace;
    let jobs = view.jobs().map(|record| &**record);
    jobs.filter(move |record| of_parent(&record.job) && record.job.is_child())
}

fn alive<'a>(view: View<'a>, parent: &Job) -> impl Iterator<Item = JobKey> {
    let keys = launches(view, parent).map(|record| record.job.key());
    keys.filter(move |key| view.job_status(key) != JobStatus::Dead)
}

impl Checker {
    /// Looks at launches after a step.
    pub(super) fn periodic_jobs(&mut self, world: &World, agent: &Agent) -> Verdict {
        while let Some(made) = world.disk.made.get(self.launched.seen) {
            self.launched.seen += 1;
            self.job_was_made(world, made)?;
        }
        match self.launched.before.take() {
            Some(before) if agent.view().shutdown().is_none() => {
                self.launches_are_on_time(world, agent, &before)?;
                self.launches_do_not_overlap(agent, &before)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A job is on the disk that was not there before.
    fn job_was_made(&mut self, world: &World, made: &JobRecord) -> Verdict {
        let job = &*made.job;
        if job.is_periodic() {
            // A new job of an old name has no launches.
            self.launched.times.remove(&job.key());
        }
        let Some(time) = launch_of(&job.parent_id, &job.id) else {
            return Ok(());
        };
        let parent = JobKey {
            namespace: job.namespace.as_str().into(),
            id: job.parent_id.as_str().into(),
        };
        let times = self.launched.times.entry(parent.clone()).or_default();
        let is_new = times.insert(time);
        let by_hand = self.launched.forced.get(&parent).copied().unwrap_or(0);
        let known = match world.disk.records().get(&Key::Job(parent.clone())) {
            Some(Record::Job(known)) => Some((known.job.periodic.clone(), &known.job)),
            _ => None,
        };
        let Some((Some(periodic), parent_job)) = known else {
            return Ok(());
        };
        let handed_in = second_of(parent_job.submit_time);
        let odd = self.launched.odd.entry(parent).or_default();
        let fits = fits(&periodic, time);
        *odd += usize::from(!is_new || !fits);
        let odd = *odd;
        let name = || format!("{} with {odd} odd ones, {by_hand} by hand", job.id);
        let holds = is_new || odd <= by_hand;
        self.holds(Property::NoTimeIsLaunchedTwice, holds, name)?;
        let holds = fits || odd <= by_hand;
        self.holds(Property::LaunchHasATimeOfItsJob, holds, name)?;
        let at = second_of(job.submit_time);
        let late = at - time;
        if !fits || world.scene.wall_jumps > 0 || by_hand > 0 {
            return Ok(());
        }
        // Nobody missed a time of what was handed in after it. It may have been launched before that.
        let holds = time >= handed_in || job.create_index < parent_job.job_modify_index;
        self.holds(Property::LaunchHasATimeOfItsJob, holds, || {
            format!("{} is of {time}, its job of {handed_in}", job.id)
        })?;
        let later =
            late > PERIODIC_GRACE && (time + 1..=at).any(|later| self::fits(&periodic, later));
        let holds =
            late >= 0 && (late <= PERIODIC_GRACE || periodic.missed == Missed::RunOnce && !later);
        self.sometimes(
            Property::SometimesMissedTimeIsLaunched,
            late > PERIODIC_GRACE,
        );
        self.holds(Property::OnlyTheLatestMissedTimeIsLaunched, holds, || {
            format!("{} comes {late} s late", job.id)
        })
    }

    fn note_wall_jump(&mut self, world: &World, now: i64) {
        if self.launched.wall_jumps == world.scene.wall_jumps {
            return;
        }
        self.launched.wall_jumps = world.scene.wall_jumps;
        if now < second_of(self.lives.latest_wall) {
            self.launched.set_back_to = now;
        }
    }

    /// When the agent was called back, every time of the last seconds is launched, or an earlier launch
    /// overlaps it.
    fn launches_are_on_time(
        &mut self,
        world: &World,
        agent: &Agent,
        before: &BTreeMap<JobKey, BTreeSet<JobKey>>,
    ) -> Verdict {
        let view = agent.view();
        let now = second_of(world.now().wall);
        self.note_wall_jump(world, now);
        // Who is called back at once once more has not done all that is due.
        let is_due = agent
            .poll_timeout()
            .is_some_and(|(at, _)| at <= world.now().at);
        for (job, periodic) in periodic(view) {
            let key = job.key();
            let known = view.periodic(&key);
            if known.is_none_or(|it| it.awaits_zone.is_some()) {
                continue;
            }
            // What overlaps now is an excuse, whether or not all that is due is done.
            let waits = periodic.prohibit_overlap && (!view.is_fingerprinted() || is_due);
            let registered = second_of(job.submit_time);
            let mut overlaps = before.get(&key).is_some_and(|alive| !alive.is_empty());
            let recent = (now - PERIODIC_GRACE..=now)
                .filter(|at| *at > registered.max(self.launched.set_back_to));
            for time in recent.filter(|at| fits(periodic, *at)).collect::<Vec<_>>() {
                let launch = JobKey {
                    namespace: key.namespace.clone(),
                    id: launch_id(&job.id, time).into(),
                };
                let saved = self.launched.times.get(&key);
                let there = view.job(&launch).is_some();
                let launched = there || saved.is_some_and(|times| times.contains(&time));
                let excuse = (key.clone(), time);
                // One that is there may be of an earlier job of this name, and is collected as soon as that.
                if overlaps && !launched || there {
                    self.launched.excused.insert(excuse.clone());
                }
                self.sometimes(
                    Property::SometimesLaunchIsSkippedForOverlap,
                    overlaps && !launched,
                );
                let holds = waits || launched || self.launched.excused.contains(&excuse);
                self.holds(Property::LaunchIsOnTime, holds, || {
                    format!("no {} at {now}", launch.id)
                })?;
                // When it was called back late, a launch of just now is in the way of later times.
                overlaps |= periodic.prohibit_overlap && alive(view, job).any(|key| key == launch);
            }
        }
        Ok(())
    }

    /// A job that prohibits overlap is not launched by the clock while an earlier launch is not dead.
    fn launches_do_not_overlap(
        &mut self,
        agent: &Agent,
        before: &BTreeMap<JobKey, BTreeSet<JobKey>>,
    ) -> Verdict {
        let view = agent.view();
        for (job, _) in periodic(view).filter(|(_, it)| it.prohibit_overlap) {
            let Some(earlier) = before.get(&job.key()).filter(|it| !it.is_empty()) else {
                continue;
            };
            let new = alive(view, job).find(|key| !earlier.contains(key));
            // What was dead may live again when its node does.
            let new = new.filter(|key| {
                let saved = self.launched.times.get(&job.key());
                let time = launch_of(&job.id, &key.id).unwrap_or(0);
                !saved.is_some_and(|times| times.contains(&time))
            });
            self.holds(Property::LaunchesDoNotOverlap, new.is_none(), || {
                format!("{new:?} is made beside {earlier:?}")
            })?;
        }
        Ok(())
    }

    /// A periodic job runs no allocation itself.
    pub(super) fn periodic_job_never_runs(&mut self, alloc: &AllocRunner) -> Verdict {
        let runs = alloc.job().periodic.is_some();
        self.holds(Property::PeriodicJobNeverRuns, !runs, || {
            alloc.record().name.to_string()
        })
    }

    /// The latest time of each periodic job was launched, whatever was missed.
    pub(super) fn latest_time_is_launched(&mut self, world: &World, agent: &Agent) -> Verdict {
        let now = second_of(world.now().wall) - PERIODIC_GRACE;
        for (job, periodic) in periodic(agent.view()) {
            let exempt = periodic.prohibit_overlap || periodic.missed == Missed::Skip;
            if exempt || world.scene.wall_jumps > 0 {
                continue;
            }
            let from = second_of(job.submit_time).max(now - LOOK_BACK);
            let mut past = (from + 1..=now).rev();
            let Some(time) = past.find(|at| fits(periodic, *at)) else {
                continue;
            };
            let times = self.launched.times.get(&job.key());
            let launched = times.is_some_and(|times| times.contains(&time));
            self.holds(Property::LatestTimeIsLaunched, launched, || {
                format!("{} was not launched for {time}", job.id)
            })?;
        }
        Ok(())
    }
}

/// Whether a second is a time of a job.
pub(super) fn fits(periodic: &PeriodicConfig, at: i64) -> bool {
    let local = at + zones::offset(&periodic.time_zone, at);
    let one = Some(&periodic.spec).filter(|spec| !spec.is_empty());
    let mut specs = one.into_iter().chain(&periodic.specs);
    specs.any(|spec| fits_one(spec, local))
}

/// Whether a local second fits an expression of seven fields of numbers.
fn fits_one(spec: &str, local: i64) -> bool {
    let (mut day, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let weekday = (day + 4).rem_euclid(7);
    let (mut year, mut month) = (1970, 1);
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while day >= 365 + i64::from(is_leap(year)) {
        day -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + i64::from(is_leap(year));
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        (day, month) = (day - length, month + 1);
    }
    let numbers = [
        second % 60,
        second / 60 % 60,
        second / 3600,
        day + 1,
        month,
        weekday,
        year,
    ];
    let fields: Vec<&str> = spec.split_whitespace().collect();
    let fits = |at: usize| fits_field(fields.get(at).copied().unwrap_or("*"), numbers[at]);
    let either = match (fields.get(3), fields.get(5)) {
        (Some(&"*"), _) | (_, Some(&"*")) => fits(3) && fits(5),
        _ => fits(3) || fits(5),
    };
    either && [0, 1, 2, 4, 6].into_iter().all(fits)
}

fn fits_field(field: &str, number: i64) -> bool {
    field.split(',').any(|item| {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => ("0", "9999"),
            Some(range) => range,
            None if item.contains('/') => (range, "9999"),
            None => (range, range),
        };
        let [first, last, step] = [first, last, step].map(|text| text.parse().unwrap_or(1));
        (first..=last).contains(&number) && (number - first) % step == 0
    })
}
