//! Checks of services: when they run, and what follows from their answers, counted here again from the job file
//! and from what was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::{Agent, Input};
use drover_core::alloc::runner::{AllocRunner, Phase as AllocPhase};
use drover_core::checks::{self, CheckSpec};
use drover_core::effect::request::Health;
use drover_core::effect::{CheckEffect, Probe};
use drover_core::ids::{AllocId, LaunchId, TaskKey, TaskName};
use drover_core::input::{DriverInput, ProbeAnswer};
use drover_core::model::check::{CheckKind, CheckStatus, OnUpdate};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::job::Job;
use drover_core::model::task::Stage;
use drover_core::op::Op;
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Instant, Span};

use super::{Checker, Property, Verdict, policy, scripts, services};
use crate::world::World;

/// How late anything may be: the agent is called back a minute late at most.
const SLACK: Span = Span::secs(62);

/// What is known of the checks in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    all: BTreeMap<(AllocId, usize), Known>,
    /// The tasks that are to be restarted in this step.
    due: BTreeSet<TaskKey>,
    /// The allocations that were seen healthy.
    healthy: BTreeSet<AllocId>,
    /// The checks of allocations, as read from their jobs.
    read: BTreeMap<AllocId, (Arc<Job>, Specs)>,
}

type Specs = Arc<[Arc<CheckSpec>]>;

impl Checks {
    /// What was known of the checks of an allocation.
    fn take(&mut self, id: AllocId) -> BTreeMap<usize, Known> {
        let of_it = self.all.range((id, 0)..=(id, usize::MAX));
        let of_it: Vec<_> = of_it.map(|(key, _)| *key).collect();
        let taken = of_it.into_iter();
        taken
            .filter_map(|key| Some((key.1, self.all.remove(&key)?)))
            .collect()
    }

    /// The checks of an allocation, as the version of the job says that it runs.
    fn of_alloc(&mut self, agent: &Agent, alloc: &AllocRunner) -> Specs {
        let (id, job) = (alloc.record().id, alloc.job());
        if let Some((of, specs)) = self.read.get(&id)
            && Arc::ptr_eq(of, job)
        {
            return specs.clone();
        }
        let group = job.group(alloc.record().group.as_str());
        let consul = agent.view().runs_consul_services();
        let specs = group.map_or(Vec::new(), |group| checks::of_group(group, consul));
        let specs: Specs = specs.into();
        self.read.insert(id, (job.clone(), specs.clone()));
        specs
    }
}

/// What is known of a check from now on, if anything runs that it is about. The same check may stand at another place of
/// a new version.
fn goes_on(
    before: &BTreeMap<usize, Known>,
    at: usize,
    running: Vec<LaunchId>,
    spec: &Arc<CheckSpec>,
    now: Instant,
) -> Option<Known> {
    if running.is_empty() {
        return None;
    }
    let same = |known: &&Known| {
        let mut all = running.iter();
        known.spec == *spec && all.all(|id| known.launches.contains(id))
    };
    let here = before.get(&at).filter(same);
    let known = here.or_else(|| before.values().find(same));
    Some(match known {
        Some(known) => Known {
            launches: running,
            ..known.clone()
        },
        None => Known::new(spec.clone(), running, now),
    })
}

/// What is known of one check.
#[derive(Clone, Debug)]
struct Known {
    spec: Arc<CheckSpec>,
    launches: Vec<LaunchId>,
    since: Instant,
    asked: Option<(Op, Instant)>,
    /// When it was asked last, or began.
    last: Instant,
    good: u32,
    bad: u32,
    over: u32,
    status: CheckStatus,
    /// Since when an allocation can be healthy as far as this goes.
    fine_since: Option<Instant>,
}

impl Known {
    fn new(spec: Arc<CheckSpec>, launches: Vec<LaunchId>, now: Instant) -> Known {
        let mut known = Known {
            launches,
            since: now,
            asked: None,
            last: now,
            good: 0,
            bad: 0,
            over: 0,
            status: spec.check.initial,
            fine_since: None,
            spec,
        };
        known.note_fine(now);
        known
    }

    fn note_fine(&mut self, now: Instant) {
        let fine = match self.spec.check.on_update {
            OnUpdate::Ignore => true,
            OnUpdate::RequireHealthy => self.status == CheckStatus::Success,
            OnUpdate::IgnoreWarnings => {
                matches!(self.status, CheckStatus::Success | CheckStatus::Warning)
            }
        };
        self.fine_since = fine.then(|| self.fine_since.unwrap_or(now));
    }

    /// Since when failures count for restarts, if the job file asks for any.
    fn restarts_from(&self) -> Option<Instant> {
        Some(self.since + self.spec.check.restart?.grace)
    }

    /// A result. Returns whether its tasks are to be restarted, as the job file's numbers say.
    fn result(&mut self, now: Instant, found: CheckStatus) -> bool {
        let check = &self.spec.check;
        self.asked = None;
        // A task that starts is neither well nor unwell.
        if found == CheckStatus::Pending && check.kind == CheckKind::Own {
            return false;
        }
        if matches!(found, CheckStatus::Failure | CheckStatus::Pending) {
            (self.good, self.bad) = (0, self.bad + 1);
            if self.bad >= check.failures_before_critical.max(1) {
                self.status = CheckStatus::Failure;
            } else if (1..=self.bad).contains(&check.failures_before_warning) {
                self.status = CheckStatus::Warning;
            }
        } else {
            (self.good, self.bad) = (self.good + 1, 0);
            if self.good >= check.success_before_passing.max(1) {
                self.status = found;
            }
        }
        let restart = check.restart;
        self.note_fine(now);
        let counts = self.restarts_from().is_some_and(|from| now >= from);
        let Some(restart) = restart.filter(|_| counts) else {
            return false;
        };
        let warned = self.status == CheckStatus::Warning && !restart.ignore_warnings;
        self.over = match self.status == CheckStatus::Failure || warned {
            true => self.over + 1,
            false => 0,
        };
        let due = self.over == restart.limit;
        if due {
            self.over = 0;
        }
        due
    }
}

/// The one task that a check is about, as its block and that of its service say; none if it is about the group.
fn named(spec: &CheckSpec) -> Option<&str> {
    let owner = spec.owner.as_ref().map(TaskName::as_str);
    owner.or(Some(spec.check.task.as_str()).filter(|name| !name.is_empty()))
}

/// Whether a check is about a task: the one that is named, or each main task of the group.
fn is_about(spec: &CheckSpec, task: &TaskRunner) -> bool {
    let of = task.spec();
    match named(spec) {
        Some(name) => name == of.key.task.as_str(),
        None => of.stage() == Stage::Main,
    }
}

/// The launches that a check is about, as far as the agent knows.
fn launches(alloc: &AllocRunner, spec: &CheckSpec) -> Vec<LaunchId> {
    if alloc.is_ending() || !matches!(alloc.phase(), AllocPhase::Tasks(_)) {
        return Vec::new();
    }
    let about = |task: &&TaskRunner| {
        let runs = matches!(task.phase(), Phase::Running) && !task.is_ending();
        runs && is_about(spec, task)
    };
    let tasks = alloc.tasks().iter().filter(about);
    tasks
        .filter_map(|task| Some(task.record().launch.as_ref()?.id))
        .collect()
}

impl Checker {
    /// An answer is about to be taken, or the time for one is over.
    pub(super) fn check_answered(&mut self, world: &World, agent: &Agent, input: Option<&Input>) {
        let now = world.scene.at;
        let awaited = |op: Op| agent.view().operations().get(op);
        let found: Vec<(Op, CheckStatus)> = match input {
            Some(Input::Check(answer)) if awaited(answer.op).is_some() => {
                let good = match &answer.result {
                    Ok(ProbeAnswer::Http { code, .. }) => *code < 400,
                    Ok(ProbeAnswer::Connected) => true,
                    Ok(ProbeAnswer::Grpc { serves, .. }) => *serves,
                    Err(_) => false,
                };
                let found = match good {
                    true => CheckStatus::Success,
                    false => CheckStatus::Failure,
                };
                vec![(answer.op, found)]
            }
            Some(Input::Driver(_, DriverInput::Executed { op, result, .. }))
                if awaited(*op).is_some() =>
            {
                let found = match result {
                    Ok(0) => CheckStatus::Success,
                    Ok(1) => CheckStatus::Warning,
                    Ok(Health::STARTING) => CheckStatus::Pending,
                    Ok(_) | Err(_) => CheckStatus::Failure,
                };
                vec![(*op, found)]
            }
            None => {
                let asked = self.checks.all.values().filter_map(|known| known.asked);
                let late = |op: &Op| {
                    let until = awaited(*op).and_then(|one| one.until());
                    until.is_some_and(|until| until <= now)
                };
                let late = asked.map(|(op, _)| op).filter(late);
                late.map(|op| (op, CheckStatus::Failure)).collect()
            }
            Some(_) => Vec::new(),
        };
        for (op, found) in found {
            self.check_result(now, agent, op, found);
        }
    }

    fn check_result(&mut self, now: Instant, agent: &Agent, op: Op, found: CheckStatus) {
        let mut all = self.checks.all.iter_mut();
        let known = all.find(|(_, known)| known.asked.is_some_and(|(asked, _)| asked == op));
        let Some(((id, _), known)) = known else {
            return;
        };
        let restart = known.result(now, found);
        let (id, spec) = (*id, known.spec.clone());
        let fails = found == CheckStatus::Failure;
        let in_grace = known.restarts_from().is_some_and(|from| now < from);
        self.sometimes(Property::SometimesCheckFails, fails);
        self.sometimes(Property::SometimesCheckFailsInItsGrace, fails && in_grace);
        let alloc = agent.view().alloc(id).filter(|_| restart);
        for task in alloc.into_iter().flat_map(AllocRunner::tasks) {
            let of = task.spec();
            let meant = named(&spec).is_none_or(|name| name == of.key.task.as_str());
            if meant && matches!(task.phase(), Phase::Running) && !task.is_ending() {
                self.checks.due.insert(of.key.clone());
            }
        }
    }

    /// A check asks its service.
    pub(super) fn check_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        effect: &CheckEffect,
    ) -> Verdict {
        match effect {
            CheckEffect::Run {
                op,
                alloc,
                check,
                probe,
            } => {
                self.check_begins(world, agent, (*alloc, None), *check, *op)?;
                self.check_asks_the_port_of_its_job_file(world, agent, (*alloc, *check), probe)
            }
            CheckEffect::Cancel { op } => {
                for known in self.checks.all.values_mut() {
                    known.asked = known.asked.filter(|(asked, _)| asked != op);
                }
                Ok(())
            }
        }
    }

    /// A check asks its own port, if it has one, and else that of its service, where that is found.
    fn check_asks_the_port_of_its_job_file(
        &mut self,
        world: &World,
        agent: &Agent,
        (id, at): (AllocId, usize),
        probe: &Probe,
    ) -> Verdict {
        let Some(alloc) = agent.view().alloc(id) else {
            return Ok(());
        };
        let specs = self.checks.of_alloc(agent, alloc);
        let file = self.files.of(alloc);
        let group = file.and_then(|file| policy::group(file, alloc.record().group.as_str()));
        let (Some(spec), Some(group)) = (specs.get(at), group) else {
            return Ok(());
        };
        let or = |own: &'_ str, other| match own {
            "" => other,
            own => own.to_owned(),
        };
        let label = or(&spec.check.port, spec.service_port.clone());
        let mode = or(&spec.check.address_mode, "host".to_owned());
        let expected = services::found_at(world, agent, alloc, group, (&label, &mode));
        let asked = (probe.host.clone(), probe.port);
        let holds = expected.as_ref().is_none_or(|expected| *expected == asked);
        self.holds(Property::CheckAsksThePortOfItsJobFile, holds, || {
            let name = world.scene.names.alloc(id);
            format!("{name} check {at} asks {asked:?}, not {expected:?}")
        })
    }

    /// The same by a program in a task.
    pub(super) fn check_program(
        &mut self,
        world: &World,
        agent: &Agent,
        (alloc, task): (&AllocRunner, &TaskKey),
        op: Op,
    ) -> Verdict {
        let own = |check: &checks::CheckRunner| check.awaited() == Some(op);
        match alloc.checks().iter().position(own) {
            Some(at) => self.check_begins(world, agent, (task.alloc, Some(task)), at, op),
            // It was given up in the same step.
            None => Ok(()),
        }
    }

    fn check_begins(
        &mut self,
        world: &World,
        agent: &Agent,
        (id, inside): (AllocId, Option<&TaskKey>),
        at: usize,
        op: Op,
    ) -> Verdict {
        let alloc = agent.view().alloc(id);
        let specs = alloc.map(|alloc| self.checks.of_alloc(agent, alloc));
        let specs = specs.unwrap_or_default();
        let spec = specs.get(at);
        let so = spec.is_some_and(|spec| {
            let mut tasks = alloc.into_iter().flat_map(AllocRunner::tasks);
            tasks.any(|task| {
                let about = is_about(spec, task);
                let about = about && inside.is_none_or(|inside| *inside == task.spec().key);
                let runs = scripts::runs_until_now(agent, world, task);
                about && runs && self.services.lives(task)
            })
        });
        self.holds(Property::CheckRunsOnlyWhileItsTaskRuns, so, || {
            format!("{} check {at}", world.scene.names.alloc(id))
        })?;
        let ends = alloc.is_some_and(AllocRunner::is_ending);
        self.holds(Property::EndingAllocIsNotChecked, !ends, || {
            format!("{} check {at}", world.scene.names.alloc(id))
        })?;
        let known = self.checks.all.get(&(id, at));
        let open = known.and_then(|known| known.asked);
        self.holds(Property::CheckRunsOnceAtATime, open.is_none(), || {
            format!("{} check {at} awaits {open:?}", world.scene.names.alloc(id))
        })?;
        if let Some(known) = self.checks.all.get_mut(&(id, at)) {
            known.asked = Some((op, world.scene.at));
            known.last = world.scene.at;
        }
        Ok(())
    }

    /// A task is said to be restarted: for a check only when the job file's numbers say so.
    pub(super) fn check_restarts(
        &mut self,
        world: &World,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let for_check = event.display_message.starts_with("healthcheck: ");
        if event.kind != EventType::RestartSignaled || !for_check {
            return Ok(());
        }
        let due = self.checks.due.remove(&task.spec().key);
        self.holds(Property::CheckRestartFollowsJobFile, due, || {
            let name = world.scene.names.task(&task.spec().key);
            format!("{name} is restarted: {}", event.display_message)
        })
    }

    /// After a step: whoever was to be restarted is.
    pub(super) fn due_check_restarts_happened(&mut self, world: &World) -> Verdict {
        let left = core::mem::take(&mut self.checks.due);
        let left = left.first().map(|key| world.scene.names.task(key));
        match left {
            None => Ok(()),
            Some(name) => self.holds(Property::CheckRestartFollowsJobFile, false, || {
                format!("{name} is not restarted")
            }),
        }
    }

    /// Looks at the checks of an allocation.
    pub(super) fn checks_of(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        if self.leaving || agent.view().stopped() {
            return Ok(());
        }
        let (id, now) = (alloc.record().id, world.scene.at);
        let specs = self.checks.of_alloc(agent, alloc);
        let before = self.checks.take(id);
        for (at, spec) in specs.iter().enumerate() {
            if let Some(known) = goes_on(&before, at, launches(alloc, spec), spec, now) {
                self.checks.all.insert((id, at), known);
            }
            self.check_status_follows_its_runs(world, alloc, at)?;
            self.running_task_is_checked(world, agent, (id, at))?;
        }
        self.healthy_alloc_passes_its_checks(world, alloc)
    }

    /// What is thought of a check is what its runs in a row say.
    fn check_status_follows_its_runs(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        at: usize,
    ) -> Verdict {
        let known = self.checks.all.get(&(alloc.record().id, at));
        let (Some(known), Some(check)) = (known, alloc.checks().get(at)) else {
            return Ok(());
        };
        let (runs, status) = (known.status, check.status());
        self.holds(Property::CheckStatusFollowsItsRuns, runs == status, || {
            let name = world.scene.names.alloc(alloc.record().id);
            format!("{name} check {at} is {status:?}, and its runs say {runs:?}")
        })
    }

    /// A check of a running task runs within its interval, and its answer comes or is given up in time. The interval
    /// begins with the question: however long the answer took, the agent wants to be called when it is over.
    fn running_task_is_checked(
        &mut self,
        world: &World,
        agent: &Agent,
        key: (AllocId, usize),
    ) -> Verdict {
        let Some(known) = self.checks.all.get(&key) else {
            return Ok(());
        };
        let check = &known.spec.check;
        let timeouts = &world.scene.timeouts;
        let of_script = match check.is_in_task() {
            true => timeouts.signal.0 + 2 * timeouts.destroy.0,
            false => 0,
        };
        let longest = check.interval.0.max(check.timeout.0 + of_script) + SLACK.0;
        let due = (known.last + check.interval).max(world.scene.at);
        let called = agent.poll_timeout().map(|(at, _)| at);
        let asleep = known.asked.is_none() && called.is_none_or(|at| at > due);
        let late = asleep || (world.scene.at - known.last).0 > longest;
        let (last, since) = (known.last, known.since);
        self.holds(Property::RunningTaskIsChecked, !late, || {
            let name = world.scene.names.alloc(key.0);
            let now = world.scene.at;
            format!(
                "{name} check {}: last {last:?}, since {since:?}, now {now:?}, called {called:?}",
                key.1
            )
        })
    }

    /// An allocation that waits for its checks is healthy only after they passed for min_healthy_time.
    fn healthy_alloc_passes_its_checks(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
        let record = alloc.record();
        let healthy = record.health.is_some_and(|health| health.healthy);
        if !healthy {
            self.checks.healthy.remove(&record.id);
            return Ok(());
        }
        let fresh = self.checks.healthy.insert(record.id) && world.scene.at > self.lives.began;
        if self.replies.says_healthy(record.id) {
            return Ok(());
        }
        let group = alloc.job().group(record.group.as_str());
        let update = group.and_then(|group| group.update.as_ref());
        let (Some(update), true) = (update, fresh) else {
            return Ok(());
        };
        if update.health_check == "task_states" {
            return Ok(());
        }
        let of_it = (record.id, 0)..=(record.id, usize::MAX);
        let mut all = self.checks.all.range(of_it).peekable();
        if all.peek().is_none() {
            return Ok(());
        }
        let time = update.min_healthy_time;
        let bad = all.find(|(_, known)| {
            let counts = known.spec.check.on_update != OnUpdate::Ignore;
            counts
                && known
                    .fine_since
                    .is_none_or(|since| world.scene.at - since < time)
        });
        let bad = bad.map(|(key, known)| (key.1, known.status, known.fine_since));
        self.holds(Property::HealthyAllocPassesItsChecks, bad.is_none(), || {
            format!("{} {bad:?}", record.name)
        })
    }

    /// Whether a check of the allocation began too lately to have run.
    fn is_young(&self, world: &World, id: AllocId) -> bool {
        let mut of_it = self.checks.all.range((id, 0)..=(id, usize::MAX));
        of_it.any(|(_, known)| {
            let check = &known.spec.check;
            let runs = i64::from(check.success_before_passing.max(1));
            let first = check.interval.0.saturating_mul(runs) + check.timeout.0;
            (world.scene.at - known.since).0 <= first + SLACK.0
        })
    }

    /// Every service of a running task works, and every check has found that out.
    pub(super) fn checks_pass_at_rest(&mut self, world: &World, agent: &Agent) -> Verdict {
        for alloc in agent.view().allocs() {
            for check in alloc.checks() {
                let running = launches(alloc, check.spec());
                let so = match running.is_empty() {
                    true => !check.is_on() && check.awaited().is_none(),
                    // One may have begun a moment ago.
                    false => check.passes() || self.is_young(world, alloc.record().id),
                };
                self.holds(Property::ChecksPassAtRest, so, || {
                    format!("{} {} {running:?}", alloc.record().name, check.words())
                })?;
            }
        }
        Ok(())
    }
}
