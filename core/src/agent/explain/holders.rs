//! Who holds what somebody waits for.

use crate::agent::View;
use crate::alloc::runner::AllocRunner;
use crate::claims::{Holder, Ungranted};
use crate::ids::AllocId;
use crate::model::event::EventType;
use crate::model::placement::{DeviceLack, Dimension, PlacementFailure};
use crate::task::runner::TaskRunner;
use crate::text::quote;
use crate::time::{Now, SECOND, Span, Timestamp};

/// So many holders of a counted resource are named: those that hold the most.
const NAMED: usize = 3;

/// Whose the allocations are that hold these claims; none if none is of this node.
pub(super) fn of_claims(view: View<'_>, now: Now, claims: &[Ungranted]) -> Option<String> {
    let mut ids: Vec<AllocId> = (claims.iter())
        .filter_map(|one| match &one.holder {
            Holder::Alloc(id) => Some(*id),
            Holder::Elsewhere(..) => None,
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let known = ids.into_iter().filter_map(|id| view.alloc(id));
    listed(known.map(|alloc| name(now, alloc)))
}

/// Who holds what a group lacks on this node; none if nobody does, or if it is not something that is held.
pub(super) fn of_lack(view: View<'_>, now: Now, lack: &PlacementFailure) -> Option<String> {
    let living = || view.allocs().filter(|alloc| !alloc.is_gone());
    let name = |alloc| name(now, alloc);
    match lack {
        PlacementFailure::PortTaken { value, .. } => {
            let holds = |alloc: &&AllocRunner| {
                let mut ports = alloc.record().ports.iter();
                ports.any(|port| i64::from(port.value) == *value)
            };
            held_by(living().filter(holds).map(name))
        }
        PlacementFailure::Devices {
            device,
            why: DeviceLack::Taken,
            ..
        } => {
            let holds = |alloc: &&AllocRunner| {
                let mut devices = alloc.record().devices.iter();
                devices.any(|one| one.group.answers_to(device) && !one.ids.is_empty())
            };
            held_by(living().filter(holds).map(name))
        }
        PlacementFailure::Shortage(short) => {
            let mut all: Vec<(u64, &AllocRunner)> = living()
                .map(|alloc| (amount(view, alloc, short.dimension), alloc))
                .filter(|(amount, _)| *amount > 0)
                .collect();
            all.sort_by_key(|(amount, alloc)| (core::cmp::Reverse(*amount), alloc.record().id));
            let most = all.into_iter().take(NAMED);
            held_by(most.map(|(amount, alloc)| format!("{} ({amount})", name(alloc))))
        }
        PlacementFailure::NoSuchGroup
        | PlacementFailure::Datacenters(_)
        | PlacementFailure::Ineligible
        | PlacementFailure::Draining
        | PlacementFailure::Driver { .. }
        | PlacementFailure::Constraint(_)
        | PlacementFailure::PortReserved { .. }
        | PlacementFailure::NoPortLeft
        | PlacementFailure::NetworkMode(_)
        | PlacementFailure::NoAddressLeft
        | PlacementFailure::HostNetwork { .. }
        | PlacementFailure::HostVolume(_)
        | PlacementFailure::Devices { .. }
        | PlacementFailure::Words(_) => None,
    }
}

/// How much of a counted resource an allocation holds.
fn amount(view: View<'_>, alloc: &AllocRunner, dimension: Dimension) -> u64 {
    let amounts = alloc.amounts(view.agent.capacity().core_mhz);
    match dimension {
        Dimension::Cpu => amounts.cpu,
        Dimension::Memory => amounts.memory,
        Dimension::Disk => amounts.disk,
        Dimension::Cores => {
            let cores = alloc.record().cores.iter().map(|one| one.ids.len());
            u64::try_from(cores.sum::<usize>()).unwrap_or(u64::MAX)
        }
    }
}

fn held_by(names: impl Iterator<Item = String>) -> Option<String> {
    listed(names).map(|names| format!("held by {names}"))
}

fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// An allocation, by its job and group; of one that lets go of what it holds, for how long it has been doing so.
fn name(now: Now, alloc: &AllocRunner) -> String {
    let record = alloc.record();
    let ends = match (alloc.is_ending() || record.finished, asked_to_end(alloc)) {
        (true, Some(at)) => {
            let span = Span::secs((now.wall - at).0.max(0) / SECOND);
            format!(", which has been ending for {span}")
        }
        (true, None) => ", which ends".to_owned(),
        (false, _) => String::new(),
    };
    format!(
        "allocation {} of job {}, group {}{ends}",
        record.id.short(),
        quote(&record.job.id),
        quote(record.group.as_str())
    )
}

/// When the first of its tasks was asked to end.
fn asked_to_end(alloc: &AllocRunner) -> Option<Timestamp> {
    let of_task = |task: &TaskRunner| {
        let mut events = task.record().state.events.iter().rev();
        events
            .find(|event| event.kind == EventType::Killing)
            .map(|event| event.time)
    };
    alloc.tasks().iter().filter_map(of_task).min()
}
