//! Placement by priority: nobody waits for what is free or may be preempted, and nobody is preempted for
//! nothing. What is asked for, held and told to end is the reference model's ([`super::claims`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::{Agent, View};
use drover_core::alloc::runner::AllocRunner;
use drover_core::claims::Claim;
use drover_core::ids::Run;
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::event::EventType;
use drover_core::model::group::TaskGroup;
use drover_core::model::placement::PlacementFailure;
use drover_core::model::task::Stage;
use drover_core::store::record::JobRecord;
use drover_core::task::runner::TaskRunner;

use super::claims::{claims, ends, is_older, is_there};
use super::limits::PREEMPTION_PRIORITY_DELTA;
use super::policy::may_preempt;
use super::resources::{Shares, asks, asks_of, capacity, cores_of, plus, processors, short};
use super::{Checker, Property, Verdict};

/// Whether a group fits beside these on this node; what is too intricate to say here does not.
fn fits(view: View<'_>, shares: Shares, group: &TaskGroup, others: &[&AllocRunner]) -> bool {
    let held: BTreeSet<Claim> = others.iter().flat_map(|it| claims(it)).collect();
    let ports = group.networks.iter().flat_map(|it| &it.reserved_ports);
    let taken = |value: i64| {
        let mut held = held.iter();
        held.any(|claim| matches!(claim, Claim::Port(_, port) if i64::from(*port) == value))
    };
    let cores: i64 = group.tasks.iter().map(|task| task.resources.cores).sum();
    let free = processors(view).map_or(0, |found| {
        let free = |id: &u32| !held.contains(&Claim::Core(*id));
        cores_of(&found).into_iter().filter(free).count()
    });
    let requests: Vec<_> = (group.tasks.iter())
        .flat_map(|task| &task.resources.devices)
        .collect();
    let has_devices = match requests.as_slice() {
        [] => true,
        [one] if one.constraints.is_empty() => {
            let offers = view.machine().devices().offers().into_iter();
            let mut named = offers.filter(|(_, id, _)| id.answers_to(&one.name));
            named.any(|(_, of, group)| {
                let works = group.devices.iter().filter(|(_, device)| device.healthy);
                let device = |id: &String| Claim::Device(of.clone(), id.clone());
                works.filter(|(id, _)| !held.contains(&device(id))).count() as u64 >= one.count
            })
        }
        _ => false,
    };
    let sum = others.iter().map(|it| asks_of(view, it));
    let sum = sum.fold(asks(view, group), plus);
    !ports.map(|port| port.value).any(taken)
        && (cores == 0 || usize::try_from(cores).is_ok_and(|cores| cores <= free))
        && has_devices
        && short(capacity(view, shares), sum).next().is_none()
}

/// Whether there are as many ports left, at whatever address, as a group wants without saying which.
fn has_ports_for(view: View<'_>, group: &TaskGroup, holders: &[&AllocRunner]) -> bool {
    let (first, last) = view.node().dynamic_ports;
    let wanted: Vec<_> = (group.networks.iter())
        .flat_map(|it| &it.dynamic_ports)
        .collect();
    let mut held: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for claim in holders.iter().flat_map(|it| claims(it)) {
        if let Claim::Port(address, port) = claim
            && (first..=last).contains(&port)
        {
            *held.entry(address).or_default() += 1;
        }
    }
    let most = held.values().max().copied().unwrap_or(0);
    wanted.iter().all(|port| {
        let is_free = |value: &u16| !view.node().reserves(port.host_network(), *value);
        most + wanted.len() <= (first..=last).filter(is_free).count()
    })
}

/// Whether a group waits for what it could have.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Nobody holds it.
    free: bool,
    /// The group may preempt who holds it.
    preemptible: bool,
}

fn wait_for_claims(
    view: View<'_>,
    shares: Shares,
    job: &JobRecord,
    name: &str,
    why: &PlacementFailure,
) -> Wait {
    let is_held = matches!(
        why,
        PlacementFailure::Shortage(_)
            | PlacementFailure::PortTaken { .. }
            | PlacementFailure::Devices { .. }
    );
    let holders: Vec<_> = view.allocs().filter(|it| is_there(it)).collect();
    let group = job.job.group(name).filter(|_| is_held);
    // Who ends for another keeps the ports that it got by chance until it is over.
    let Some(group) = group.filter(|group| has_ports_for(view, group, &holders)) else {
        return Wait {
            free: false,
            preemptible: false,
        };
    };
    let free = fits(view, shares, group, &holders);
    let is_preemptible = |it: &AllocRunner| {
        let theirs = view.job(it.job_key()).map(|theirs| theirs.job.priority);
        let lower = theirs.is_some_and(|it| it <= job.job.priority - PREEMPTION_PRIORITY_DELTA);
        // Who ends anyway is awaited whether or not its claims are promised to others.
        !it.record().finished && lower && !ends(it)
    };
    let stay: Vec<_> = (holders.into_iter())
        .filter(|it| !is_preemptible(it))
        .collect();
    let preempts = may_preempt(view.preemption(), job.job.job_type);
    Wait {
        free,
        preemptible: preempts && fits(view, shares, group, &stay),
    }
}

impl Checker {
    /// No step ends with a job waiting for what is free, or for what jobs of lower priority hold where it may
    /// preempt them.
    pub(super) fn free_claim_is_granted_at_once(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        // Before, and when the agent ends, nothing is planned.
        if !view.is_fingerprinted() || view.shutdown().is_some() {
            return Ok(());
        }
        for job in view.jobs() {
            for (name, why) in view.blocked(&job.job.key()) {
                let shortage = matches!(why, PlacementFailure::Shortage(_));
                self.sometimes(Property::SometimesResourceIsExhausted, shortage);
                let wait = wait_for_claims(view, self.claims.shares, job, name, why);
                let holds = !wait.free && !wait.preemptible;
                self.holds(Property::FreeClaimIsGrantedAtOnce, holds, || {
                    format!(
                        "{} {name} waits ({why}), and what it could have: {wait:?}",
                        job.job.id
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Who is preempted has a lower priority by the margin, something that the other gets, and work to do.
    pub(super) fn preempted_alloc_has_lower_priority(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let (view, record) = (agent.view(), alloc.record());
        // Later each of them may matter more or less than it did: this is looked at once, and not where a
        // job is another one already.
        let first = (record.id, record.preempted_by);
        if record.desired != DesiredStatus::Evict || !self.lives.evicted.insert(first) {
            return Ok(());
        }
        self.sometimes(Property::SometimesAllocIsPreempted, true);
        let placed_in_vain = !self.lives.allocs.contains_key(&record.id);
        let right = record.preempted_by.and_then(|id| {
            let by = view.alloc(id)?;
            let (more, less) = (&view.job(by.job_key())?.job, &view.job(&record.job)?.job);
            let changed = more.job_modify_index.max(less.job_modify_index);
            let changed = changed > by.record().create_index;
            let margin = changed || more.priority - less.priority >= PREEMPTION_PRIORITY_DELTA;
            let both = (asks_of(view, by).into_iter().zip(asks_of(view, alloc)))
                .any(|(one, other)| one > 0 && other > 0);
            let common = both || !claims(by).is_disjoint(&claims(alloc));
            let named = by.record().preempts.contains(&record.id);
            let set = view.scheduler_config().modify_index;
            let may =
                set > by.record().create_index || may_preempt(view.preemption(), more.job_type);
            Some([may, margin, common, named, is_older(alloc, by)])
        });
        let found = (right, placed_in_vain, has_done_its_work(alloc));
        let right = found == (Some([true; 5]), false, false);
        self.holds(Property::PreemptedAllocHasLowerPriority, right, || {
            format!("{found:?} (may, margin, common, named, older; in vain, done) {record:?}")
        })?;
        self.least_important_alloc_is_preempted(agent, alloc)
    }

    /// Nobody is preempted in vain, or where one of lower priority in its place would have been enough.
    fn least_important_alloc_is_preempted(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let (view, record) = (agent.view(), alloc.record());
        let shares = self.claims.shares;
        let shown = self.lives.allocs.get(&record.id);
        let shown = shown.and_then(|known| known.shown.as_ref());
        let by = record.preempted_by.and_then(|id| view.alloc(id));
        // What happened in this step can be played again.
        let Some(by) = by.filter(|_| shown.is_some_and(|before| !before.stops)) else {
            return Ok(());
        };
        let Some(group) = by.job().group(by.record().group.as_str()) else {
            return Ok(());
        };
        let preempted = &by.record().preempts;
        let stays = |it: &&AllocRunner| {
            let id = it.record().id;
            // It may be over as soon as it was told to end.
            let other = is_there(it) && !preempted.contains(&id) && id != by.record().id;
            other || id == record.id
        };
        let stay: Vec<_> = view.allocs().filter(stays).collect();
        let in_vain = fits(view, shares, group, &stay);
        self.holds(Property::NoAllocIsPreemptedInVain, !in_vain, || {
            let (gone, by) = (&record.name, &by.record().name);
            format!("{gone} goes for {by}, which has all that it needs without that")
        })?;
        let priority = |it: &AllocRunner| {
            let job = &view.job(it.job_key())?.job;
            (job.job_modify_index <= by.record().create_index).then_some(job.priority)
        };
        let is_less = |it: &AllocRunner| match (priority(it), priority(alloc)) {
            (Some(less), Some(more)) => less < more,
            (None, _) | (_, None) => false,
        };
        let would_do = |other: &&&AllocRunner| {
            let one = other.record();
            let without = stay.iter().filter(|it| it.record().id != one.id);
            let without: Vec<_> = without.copied().collect();
            let own = one.slot() == by.record().slot();
            let may = !own && !one.of_servers && !one.finished && !ends(other);
            may && is_less(other) && fits(view, shares, group, &without)
        };
        let instead = stay.iter().find(would_do);
        let name = instead.map(|it| it.record().name.clone());
        self.holds(
            Property::LeastImportantAllocIsPreempted,
            name.is_none(),
            || {
                let (gone, by) = (&record.name, &by.record().name);
                format!("{gone} goes for {by}, and {name:?} would have been enough")
            },
        )
    }
}

/// Whether its main tasks ran, and nobody had to end them.
fn has_done_its_work(alloc: &AllocRunner) -> bool {
    let is_main = |task: &&TaskRunner| task.spec().stage() == Stage::Main;
    alloc.tasks().iter().filter(is_main).all(|task| {
        let since_start = task.state().events.iter().rev();
        let mut since_start = since_start.take_while(|event| event.kind != EventType::Started);
        let was_told = since_start.any(|event| event.kind == EventType::Killing);
        task.record().runs != Run::default() && !was_told && task.state().is_successful()
    })
}
