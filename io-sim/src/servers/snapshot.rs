//! Servers that are restored from a snapshot: what they decided since it was taken, they did not decide.
//!
//! What nodes said since then stays. Real servers forget that as well, and no node hears that it has to say it again,
//! so nothing could be demanded of what follows. For the same reason what was removed while it lived stays removed:
//! its node may have nothing of it any more. All else is as it was, by the index that it had.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::cluster::PlacedAlloc;
use drover_core::ids::{AllocId, NodeId};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::drain::Eligibility;

use super::placing::is_live;
use super::{Alloc, ClusterJob, NodeStatus, Servers, survives_disconnect};

/// What is restored. What allocations were by its index is kept with them.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    index: u64,
    allocs_index: u64,
    jobs: BTreeMap<String, ClusterJob>,
    eligibility: BTreeMap<NodeId, Eligibility>,
}

impl Servers {
    /// A snapshot is taken of what they are now.
    pub fn save(&mut self) {
        let nodes = self.nodes.iter();
        self.snapshot = Some(Snapshot {
            index: self.index,
            allocs_index: self.allocs_index,
            jobs: self.jobs.clone(),
            eligibility: nodes.map(|(id, it)| (*id, it.eligibility)).collect(),
        });
    }

    /// They are restored from the last snapshot, if there is one. Where they are the same machines as before they count
    /// on from their own index, else from the snapshot's. Whoever waits is answered at once.
    pub fn go_back(&mut self) {
        let Some(snapshot) = self.snapshot.clone() else {
            return;
        };
        let are_others = self.index.is_multiple_of(2);
        if are_others {
            self.index = snapshot.index;
        }
        for alloc in self.allocs.values_mut() {
            alloc.go_back(snapshot.index);
        }
        (self.allocs_index, self.jobs) = (snapshot.allocs_index, snapshot.jobs);
        for (id, eligibility) in snapshot.eligibility {
            if let Some(known) = self.nodes.get_mut(&id) {
                known.eligibility = eligibility;
            }
        }
        let allocs = &self.allocs;
        let has = |id: AllocId| allocs.get(&id).is_some_and(|it| it.now().is_some());
        self.services.retain(|_, it| has(it.alloc));
        self.lose_again();
        self.evaluates = true;
        self.answer_all();
    }

    /// Whether they placed something to replace this one, or what was to replace it, and forgot that, or collected it as
    /// garbage.
    pub(crate) fn forgot_who_replaced(&self, id: AllocId) -> bool {
        let mut forgot = self.allocs.values().filter(|it| it.now().is_none());
        forgot.any(|alloc| {
            let mut previous = alloc.previous();
            for _ in 0..self.allocs.len() {
                if previous == Some(id) {
                    return true;
                }
                previous = previous.and_then(|it| self.allocs.get(&it)?.previous());
            }
            false
        })
    }

    /// What is to run on nodes that do not beat is lost, as it was before.
    fn lose_again(&mut self) {
        let live = self.allocs.values().filter_map(|alloc| {
            let placed = alloc.now().filter(|it| is_live(it))?;
            let status = self.nodes.get(&alloc.node).map(|it| it.status);
            let is_lost = status.is_none_or(|it| !it.beats());
            is_lost.then(|| (placed.clone(), status))
        });
        let lost: Vec<_> = live.collect();
        for (placed, status) in lost {
            let disconnected = status == Some(NodeStatus::Disconnected);
            match disconnected && survives_disconnect(&placed) {
                true => self.change(placed.id, |it| it.client_status = ClientStatus::Unknown),
                false => self.give_up(placed.id),
            }
        }
    }

    /// Nobody waits any longer.
    fn answer_all(&mut self) {
        let now = self.now;
        self.waits_until.clear();
        for (id, of_node) in &mut self.of_node {
            for one in &mut of_node.waiting {
                one.until = now;
                self.waits_until.insert((now, *id));
            }
        }
    }
}

impl Alloc {
    /// What it was placed to replace.
    fn previous(&self) -> Option<AllocId> {
        self.states().next()?.previous
    }

    /// Whether servers forgot that it became another one by this index.
    pub(super) fn was_at(&self, index: u64) -> bool {
        self.forgotten.iter().any(|(since, _)| *since == index)
    }

    /// It is what it was by this index, but for what its node reported.
    fn go_back(&mut self, index: u64) {
        let kept = self.versions.partition_point(|(since, _)| *since <= index);
        let forgotten = self.versions.split_off(kept);
        let is_removed = forgotten.iter().any(|(_, it)| it.is_none());
        let since = forgotten.iter().rev().find_map(|(_, it)| it.as_ref());
        let since = since.map(|it| it.client_status);
        self.forgotten.extend(forgotten);
        let Some(before) = self.now().cloned() else {
            return;
        };
        let reported = self.reported.as_ref().map(|it| it.status);
        let client_status = match since {
            // They lost sight of it then, or had before.
            Some(since) if is_given_up(since) && is_given_up(before.client_status) => {
                before.client_status
            }
            Some(since) if is_given_up(since) => reported.unwrap_or(ClientStatus::Pending),
            Some(since) => since,
            None => before.client_status,
        };
        if is_removed && !client_status.is_terminal() {
            self.versions.push((index, None));
        } else if before.client_status != client_status {
            let placed = PlacedAlloc {
                client_status,
                ..PlacedAlloc::clone(&before)
            };
            self.versions.push((index, Some(Arc::new(placed))));
        }
    }
}

/// Whether servers lost sight of it.
fn is_given_up(status: ClientStatus) -> bool {
    matches!(status, ClientStatus::Unknown | ClientStatus::Lost)
}
