//! Claims: the reference model of who may hold what, and who waits for whom.
//!
//! It says the rule of `drover_core::claims` once more, in the simplest and slowest way: from what job files ask
//! for, what allocations were given, and what is alive in the world. Where the two differ, one is wrong.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::{Agent, View};
use drover_core::alloc::runner::AllocRunner;
use drover_core::claims::{Claim, Holder};
use drover_core::config::Config;
use drover_core::ids::AllocId;
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::task::Stage;
use drover_core::store::record::AssignedPort;
use drover_core::task::runner::TaskRunner;

use super::resources::{Shares, asks_of, capacity, cores_of, plus, processors, short};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What the checks remember.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// Allocations that were looked at when they were placed, if this life of the agent placed them.
    seen: BTreeSet<AllocId>,
    agent_restored: bool,
    /// What the node had when it was looked at last, and whether it ever had less than before.
    had: Option<[Option<u64>; 3]>,
    shrank: bool,
    /// The ports that the node keeps for others, by its networks; of all networks if that has no name.
    reserved: BTreeMap<String, Vec<(u16, u16)>>,
    pub(super) shares: Shares,
}

impl Claims {
    pub(super) fn of(config: &Config) -> Claims {
        Claims {
            reserved: config.node.reserved_ports.clone(),
            shares: Shares::of(config),
            ..Claims::default()
        }
    }

    fn is_reserved(&self, network: &str, value: u16) -> bool {
        let network = if network.is_empty() {
            "default"
        } else {
            network
        };
        let of_it = [network, ""].into_iter();
        let mut ranges = of_it.filter_map(|name| self.reserved.get(name)).flatten();
        ranges.any(|(first, last)| *first <= value && value <= *last)
    }

    pub(super) fn agent_died(&mut self) {
        self.agent_restored = false;
    }
}

/// All that an allocation was given of which there is one.
pub(super) fn claims(alloc: &AllocRunner) -> BTreeSet<Claim> {
    let record = alloc.record();
    let mut all = BTreeSet::new();
    all.insert(Claim::Slot(record.slot()));
    let port = |port: &AssignedPort| Claim::Port(port.host_ip.as_str().into(), port.value);
    all.extend(record.ports.iter().map(port));
    let network = record.network.as_ref().and_then(|network| network.address);
    all.extend(network.map(Claim::Address));
    for one in &record.devices {
        let ids = one.ids.iter().cloned();
        all.extend(ids.map(|id| Claim::Device(one.group.clone(), id)));
    }
    all.extend(
        record
            .cores
            .iter()
            .flat_map(|one| &one.ids)
            .map(|id| Claim::Core(*id)),
    );
    all
}

/// Whether something of it may be alive or its network be there, as far as the agent knows.
pub(super) fn is_there(alloc: &AllocRunner) -> bool {
    let network = alloc.record().network.as_ref();
    !alloc.record().finished
        || alloc.tasks().iter().any(TaskRunner::has_remains)
        || network.is_some_and(|network| !network.removed)
}

pub(super) fn was_asked_to_stop(alloc: &AllocRunner) -> bool {
    alloc.record().desired != DesiredStatus::Run
}

/// Whether it is being ended, or nothing but what follows its main tasks is left of it.
pub(super) fn ends(alloc: &AllocRunner) -> bool {
    let is_main = |task: &&TaskRunner| task.spec().stage() == Stage::Main;
    let mut mains = alloc.tasks().iter().filter(is_main);
    let leads = |task: &&TaskRunner| task.spec().task().leader;
    let mut leaders = alloc.tasks().iter().filter(leads);
    was_asked_to_stop(alloc)
        || alloc.record().status.is_terminal()
        || alloc.is_ending()
        || mains.all(TaskRunner::is_terminal)
        || leaders.any(TaskRunner::is_terminal)
}

pub(super) fn is_older(one: &AllocRunner, other: &AllocRunner) -> bool {
    one.record().create_index < other.record().create_index
}

/// Whether servers say that an allocation replaces another, or that the other ends for it.
fn is_named_by_servers(alloc: &AllocRunner, other: &AllocRunner) -> bool {
    let (one, other) = (alloc.record(), other.record());
    let named = one.preempts.iter().chain(&one.previous);
    one.of_servers && other.of_servers && named.into_iter().any(|id| *id == other.id)
}

/// Whether an allocation of servers gets what another wrote.
fn gets_disk_of(view: View<'_>, alloc: &AllocRunner, other: &AllocRunner) -> bool {
    let disk = view.disk_of(alloc.record());
    let sources = disk.map_or(&[][..], |disk| disk.sources_of(alloc.record().id));
    alloc.record().of_servers && sources.contains(&other.record().id)
}

/// The rule: what an allocation waits for, and whose that is.
fn waits_for(view: View<'_>, shares: Shares, alloc: &AllocRunner) -> BTreeSet<(Claim, AllocId)> {
    let older = view
        .allocs()
        .filter(|it| is_there(it) && is_older(it, alloc));
    let (own, wants) = (claims(alloc), asks_of(view, alloc));
    let mut waits = BTreeSet::new();
    let mut sum = wants;
    for other in older.clone() {
        let common = claims(other)
            .into_iter()
            .filter(|claim| own.contains(claim));
        waits.extend(common.map(|claim| (claim, other.record().id)));
        if is_named_by_servers(alloc, other) || gets_disk_of(view, alloc, other) {
            waits.insert((Claim::Slot(other.record().slot()), other.record().id));
        }
        sum = plus(sum, asks_of(view, other));
    }
    let counted = [Claim::Cpu, Claim::Memory, Claim::Disk];
    for at in short(capacity(view, shares), sum) {
        let holds = |it: &&AllocRunner| asks_of(view, it)[at] > 0 && it.record().is_terminal();
        let holders = older.clone().filter(|it| wants[at] > 0 && holds(it));
        waits.extend(holders.map(|it| (counted[at].clone(), it.record().id)));
    }
    waits
}

impl Checker {
    /// An allocation waits for exactly its claims that older allocations hold.
    pub(super) fn waiting_alloc_names_ungranted_claims(
        &mut self,
        world: Option<&World>,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let view = agent.view();
        let rests = view.shutdown().is_some() || !view.is_fingerprinted();
        if rests || !alloc.awaits_claims() || alloc.is_ending() {
            return Ok(());
        }
        let ungranted = view.ungranted(alloc).into_iter();
        let reported: BTreeSet<_> = ungranted
            .filter_map(|one| match one.holder {
                Holder::Alloc(id) => Some((one.claim, id)),
                Holder::Elsewhere(..) => None,
            })
            .collect();
        let rule = waits_for(view, self.claims.shares, alloc);
        let name = &alloc.record().name;
        self.holds(
            Property::WaitingAllocNamesUngrantedClaims,
            !rule.is_empty() && reported == rule,
            || format!("{name} waits for {reported:?} and not for {rule:?}"),
        )?;
        // What servers do not name any more ends as soon as it is known that they know the node.
        let is_dropped = |it: &AllocRunner| self.cluster.is_dropped(it.record());
        let goes_on = |id: &AllocId| {
            let holder = view.alloc(*id);
            holder.is_none_or(|it| is_there(it) && !ends(it) && !is_dropped(it))
        };
        // What servers want no more waits until those that are behind know that, too.
        let truth = world.and_then(|world| world.link.servers.as_ref());
        let truth = truth.filter(|_| alloc.record().of_servers);
        let wanted = |id: AllocId| {
            truth.is_none_or(|servers| {
                let placed = servers.alloc(id).and_then(|it| it.now());
                placed.is_some_and(|placed| !placed.desired.is_terminal())
            })
        };
        let both = |id: &AllocId| wanted(alloc.record().id) && wanted(*id);
        let holder = rule.iter().find(|(_, id)| both(id) && goes_on(id));
        let sent = holder.and_then(|(_, id)| self.cluster.sent(*id));
        self.holds(Property::AwaitedHolderIsStopping, holder.is_none(), || {
            format!("{name} waits for {holder:?}, which is not to end; servers sent {sent:?}")
        })
    }

    /// What starts has no claim in common with anything of another allocation that lives, and there is enough
    /// for all of them, unless the node has less than it once had.
    pub(super) fn no_start_while_claim_is_held(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let view = agent.view();
        let id = alloc.record().id;
        let alive = world.alive().map(|(_, process)| process.key.alloc);
        let alive: BTreeSet<AllocId> = alive.filter(|other| *other != id).collect();
        let others = || alive.iter().filter_map(|id| view.alloc(*id));
        let own = claims(alloc);
        let beside = others().find(|other| !claims(other).is_disjoint(&own));
        let sum = others().map(|other| asks_of(view, other));
        let sum = sum.fold(asks_of(view, alloc), plus);
        let over = short(capacity(view, self.claims.shares), sum)
            .next()
            .is_some()
            && !self.claims.shrank;
        let holds = beside.is_none() && !over;
        self.holds(Property::NoStartWhileClaimIsHeld, holds, || {
            let other = beside.map(|it| (it.record().name.clone(), claims(it)));
            let name = &alloc.record().name;
            format!(
                "{name} {} with {own:?} starts beside {other:?}; together {sum:?}",
                id.short()
            )
        })
    }

    /// Looks at what is new, and at what the node has.
    pub(super) fn placements_fit(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        if view.is_fingerprinted() {
            let has = capacity(view, self.claims.shares);
            let before = self.claims.had.replace(has).unwrap_or(has);
            let less = |at: usize| has[at].unwrap_or(u64::MAX) < before[at].unwrap_or(u64::MAX);
            self.claims.shrank |= (0..3).any(less);
        }
        for alloc in view.allocs() {
            if self.claims.seen.insert(alloc.record().id) && self.claims.agent_restored {
                self.placed_alloc_fits_capacity(view, alloc)?;
                self.given_port_is_not_reserved(alloc)?;
            }
        }
        self.claims.agent_restored = true;
        Ok(())
    }

    /// What servers chose is theirs to answer for.
    fn given_port_is_not_reserved(&mut self, alloc: &AllocRunner) -> Verdict {
        let record = alloc.record();
        if record.ports.is_empty() || record.of_servers {
            return Ok(());
        }
        let reserved = |port: &&AssignedPort| {
            let network = &port.host_network;
            self.claims.is_reserved(network, port.value)
        };
        let wrong = record.ports.iter().find(reserved);
        self.holds(Property::GivenPortIsNotReserved, wrong.is_none(), || {
            format!("{} has {wrong:?}", record.name)
        })
    }

    /// What is new fits beside all that is older and goes on, and has the cores that it asks for.
    fn placed_alloc_fits_capacity(&mut self, view: View<'_>, alloc: &AllocRunner) -> Verdict {
        let stays = |it: &&AllocRunner| is_there(it) && is_older(it, alloc) && !ends(it);
        let older = view.allocs().filter(stays);
        let sum = older.map(|it| asks_of(view, it));
        let sum = sum.fold(asks_of(view, alloc), plus);
        let has = capacity(view, self.claims.shares);
        let over = short(has, sum).next();
        let group = alloc.job().group(alloc.record().group.as_str());
        let tasks = group.into_iter().flat_map(|group| &group.tasks);
        let wanted: i64 = tasks.map(|task| task.resources.cores).sum();
        let given: Vec<u32> = (alloc.record().cores.iter())
            .flat_map(|one| one.ids.clone())
            .collect();
        let all = processors(view).map(|found| cores_of(&found));
        let distinct: BTreeSet<u32> = given.iter().copied().collect();
        let right = all.is_none_or(|all| {
            i64::try_from(distinct.len()) == Ok(wanted) && distinct.is_subset(&all)
        });
        self.holds(
            Property::PlacedAllocFitsCapacity,
            over.is_none() && right,
            || {
                let name = &alloc.record().name;
                format!("{name} makes it {sum:?} of {has:?}, with cores {given:?}")
            },
        )
    }
}
