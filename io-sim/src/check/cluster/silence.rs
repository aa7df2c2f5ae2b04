//! What may not run without servers for long ends when they are silent, and not for their silence while they answer.

use std::collections::BTreeSet;

use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::CallKind;
use drover_core::ids::AllocId;
use drover_core::model::value::Value;
use drover_core::store::record::AllocRecord;
use drover_core::store::{Key, Record};
use drover_core::time::Span;

use super::{Checker, Property, Verdict};
use crate::world::World;

/// Why an allocation is to end, if it is for the silence of servers.
const OUT_OF_CONTACT: &str = "the node is out of contact with its servers";

/// How late the agent may be called back, and how long a call may take that asks whether servers live.
const SLACK: Span = Span::secs(66 + 64);

/// For how long the servers said nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Silence {
    /// When they acknowledged a heartbeat last, or this life of the agent began.
    since: Span,
    /// Whether a call failed since then by which they hear that the node lives.
    failed: bool,
    /// Those that were to end for it.
    pub(super) ended: BTreeSet<AllocId>,
}

impl Silence {
    pub(super) fn agent_restored(&mut self, world: &World) {
        let records = world.disk.records();
        let is_registered = match records.get(&Key::Server) {
            Some(Record::Server(saved)) => saved.registered,
            _ => false,
        };
        // Servers that do not know the node any more said so.
        (self.since, self.failed) = (world.scene.elapsed, !is_registered);
        for record in records.values() {
            if let Record::Alloc(alloc) = record
                && ends_for_it(alloc)
            {
                self.ended.insert(alloc.id);
            }
        }
    }

    /// Servers took a call.
    pub(super) fn answered(&mut self, kind: CallKind, now: Span) {
        if kind == CallKind::Heartbeat {
            (self.since, self.failed) = (now, false);
        }
    }

    /// A call failed, or was not answered in time.
    pub(super) fn failed(&mut self, kind: Option<CallKind>) {
        self.failed |= matches!(kind, Some(CallKind::Heartbeat | CallKind::Register));
    }
}

impl Checker {
    /// An allocation ends for the silence of servers only if they were silent.
    pub(super) fn servers_that_answer_end_no_alloc_by_silence(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        if !ends_for_it(record) || !self.cluster.silence.ended.insert(record.id) {
            return Ok(());
        }
        let Silence { since, failed, .. } = self.cluster.silence;
        let silent = Span(world.scene.elapsed.0 - since.0);
        let allowed = allowed_silence(alloc);
        let holds = failed && allowed.is_some_and(|allowed| silent >= allowed);
        self.holds(
            Property::ServersThatAnswerEndNoAllocBySilence,
            holds,
            || {
                let name = world.scene.names.alloc(record.id);
                let asked = if failed { "" } else { ", and no call failed" };
                format!("{name} may run alone for {allowed:?}; silent for {silent}{asked}")
            },
        )
    }

    /// What may not run without servers ends when they were silent for as long as its job file allows.
    pub(in super::super) fn silence_ends_alloc_in_time(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        let goes_on = !alloc.is_ending() && !record.is_terminal() && !record.finished;
        let Some(allowed) = allowed_silence(alloc).filter(|_| record.of_servers && goes_on) else {
            return Ok(());
        };
        let Silence { since, failed, .. } = self.cluster.silence;
        let silent = Span(world.scene.elapsed.0 - since.0);
        let holds = !failed || silent.0 <= allowed.0 + SLACK.0;
        self.holds(Property::SilenceEndsAllocInTime, holds, || {
            let name = world.scene.names.alloc(record.id);
            format!("{name} may run alone for {allowed}; servers are silent for {silent}")
        })
    }
}

fn ends_for_it(record: &AllocRecord) -> bool {
    &*record.desired_description == OUT_OF_CONTACT
}

/// For how long servers may be silent, as its group says.
fn allowed_silence(alloc: &AllocRunner) -> Option<Span> {
    let group = alloc.job().group(alloc.record().group.as_str())?;
    let within = match &group.disconnect {
        Some(Value::Map(block)) => block.get("StopOnClientAfter"),
        Some(_) | None => None,
    };
    match within {
        Some(Value::Int(nanos)) => Some(Span(*nanos)),
        Some(_) | None => group.stop_after_client_disconnect,
    }
}
