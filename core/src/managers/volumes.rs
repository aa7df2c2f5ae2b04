//! The host volumes of the node: those of its configuration, and those that are made and removed while the agent
//! runs.
//!
//! A volume is saved as pending before its directory is made, and as being deleted before it is removed. The
//! directory bears the volume's id, and making or removing it again is doing it once. So an agent that dies at
//! any moment leaves nothing that nobody knows: the next one goes on where it was.
//!
//! Whoever asked is answered when the directory is there or gone. If that takes longer than a hook may, the answer
//! is that it is under way, and the work is asked for again.
//!
//! A volume that a snapshot brought to another data directory is pending again, with the path at which it was
//! ([`VolumeRecord::brought_along`]): its directory is made anew, as Nomad's client does it, and an event says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Changed;
use crate::cx::Cx;
use crate::effect::{Effect, NodeEffect, Refusal, Reply, VolumeWork};
use crate::ids::{RequestId, VolumeId};
use crate::model::node::NodeEvent;
use crate::model::volume::{HostVolume, VolumeSpec};
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};
use crate::store::volume::{VolumeRecord, VolumeState};
use crate::store::{Key, Record};

/// The volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Volumes {
    /// Those of the configuration, by name. They go before others of the same name.
    configured: BTreeMap<String, HostVolume>,
    known: BTreeMap<VolumeId, KnownVolume>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct KnownVolume {
    record: Arc<VolumeRecord>,
    /// The work that is under way.
    op: Option<Op>,
    /// Who awaits its end.
    asked_by: Vec<RequestId>,
}

impl Volumes {
    pub(crate) fn new(configured: &BTreeMap<String, HostVolume>) -> Volumes {
        Volumes {
            configured: configured.clone(),
            known: BTreeMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.known.is_empty()
    }

    /// What was remembered; work that was under way is asked for again.
    pub(crate) fn restore(
        &mut self,
        cx: &mut Cx<'_>,
        saved: &BTreeMap<VolumeId, Arc<VolumeRecord>>,
    ) {
        for (id, record) in saved {
            let known = KnownVolume {
                record: record.clone(),
                op: None,
                asked_by: Vec::new(),
            };
            self.known.insert(*id, known);
            self.ask(cx, *id);
        }
    }

    /// The volumes as jobs find them.
    pub(crate) fn on_node(&self) -> BTreeMap<String, HostVolume> {
        let known = self.known.values();
        let ready = known.filter_map(|known| known.record.on_node());
        let mut all: BTreeMap<_, _> = ready.map(|it| (it.name.clone(), it)).collect();
        all.extend(self.configured.clone());
        all
    }

    /// Those that were made or registered.
    pub fn records(&self) -> impl Iterator<Item = &Arc<VolumeRecord>> {
        self.known.values().map(|known| &known.record)
    }

    /// One of them.
    pub fn record(&self, id: VolumeId) -> Option<&Arc<VolumeRecord>> {
        self.known.get(&id).map(|known| &known.record)
    }

    /// Whether a volume bears this name already.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let mut records = self.records();
        self.configured.contains_key(name) || records.any(|it| it.spec.name == name)
    }

    /// A volume is made, or its directory is looked for. `asked_by` is answered when that is done.
    pub(crate) fn create(&mut self, cx: &mut Cx<'_>, spec: VolumeSpec, asked_by: RequestId) {
        let id = cx.volume_id();
        let (index, now) = (cx.next_index(), cx.now.wall);
        let record = VolumeRecord {
            id,
            spec,
            host_path: String::new(),
            state: VolumeState::Pending,
            create_time: now,
            modify_time: now,
            create_index: index,
            modify_index: index,
        };
        let record = Arc::new(record);
        cx.remember(Key::Volume(id), Record::Volume(record.clone()));
        let known = KnownVolume {
            record,
            op: None,
            asked_by: vec![asked_by],
        };
        self.known.insert(id, known);
        self.ask(cx, id);
    }

    /// A volume that nobody uses is removed. `asked_by` is answered when that is done.
    pub(crate) fn delete(&mut self, cx: &mut Cx<'_>, id: VolumeId, asked_by: RequestId) {
        self.change(cx, id, |record| record.state = VolumeState::Deleting);
        if let Some(known) = self.known.get_mut(&id) {
            known.asked_by.push(asked_by);
        }
        self.ask(cx, id);
    }

    fn change(&mut self, cx: &mut Cx<'_>, id: VolumeId, change: impl FnOnce(&mut VolumeRecord)) {
        let Some(known) = self.known.get_mut(&id) else {
            return;
        };
        let record = Arc::make_mut(&mut known.record);
        change(record);
        record.modify_index = cx.next_index();
        record.modify_time = cx.now.wall;
        cx.remember(Key::Volume(id), Record::Volume(known.record.clone()));
    }

    /// Asks for the work that a volume waits for, if it does, once its record is saved.
    fn ask(&mut self, cx: &mut Cx<'_>, id: VolumeId) {
        let Some(known) = self.known.get_mut(&id).filter(|known| known.op.is_none()) else {
            return;
        };
        let spec = &known.record.spec;
        let work = match (known.record.state, &spec.registered) {
            (VolumeState::Ready, _) => return,
            (VolumeState::Pending, None) => VolumeWork::Make(spec.directory),
            (VolumeState::Pending, Some(path)) => VolumeWork::Find { path: path.clone() },
            // What was registered is somebody else's directory.
            (VolumeState::Deleting, Some(path)) => VolumeWork::Leave { path: path.clone() },
            (VolumeState::Deleting, None) => VolumeWork::Remove,
        };
        let limit = cx.config.timeouts.hook;
        let op = cx.operation(Owner::Machine, Purpose::Volume(id), limit);
        known.op = Some(op);
        let effect = NodeEffect::Volume {
            op,
            volume: id,
            work,
        };
        cx.send_after_save(Effect::Node(effect));
    }

    /// Takes the answer of who makes and removes directories: where the volume lies, or why it could not be done.
    pub(crate) fn on_answer(
        &mut self,
        cx: &mut Cx<'_>,
        id: VolumeId,
        op: Op,
        result: Result<String, Failure>,
    ) -> Changed {
        let asked = |known: &&mut KnownVolume| known.op == Some(op);
        let Some(known) = self.known.get_mut(&id).filter(asked) else {
            cx.count_stale();
            return Changed::default();
        };
        known.op = None;
        let (asked_by, state) = (core::mem::take(&mut known.asked_by), known.record.state);
        let mut changed = Changed::default();
        let reply = match (state, result) {
            (VolumeState::Pending, Ok(path)) => {
                changed.events.extend(made_anew(cx, &known.record, &path));
                self.change(cx, id, |record| {
                    (record.state, record.host_path) = (VolumeState::Ready, path);
                });
                changed.node = true;
                Reply::Volume(id)
            }
            (VolumeState::Deleting, Ok(_)) => {
                self.forget(cx, id);
                let index = cx.shared.index;
                Reply::Done { index }
            }
            // What was ready once may be there nevertheless: nothing of it is removed.
            (VolumeState::Pending, Err(failure)) if !known.record.host_path.is_empty() => {
                let why = format!(
                    "cannot make the directory of the volume anew: {}; the agent tries it again when it starts next",
                    failure.message
                );
                changed.events.push(event(cx, &known.record, &why));
                refused(why)
            }
            (VolumeState::Pending, Err(failure)) => {
                let why = format!("cannot make the volume: {}", failure.message);
                changed.events.push(event(cx, &known.record, &why));
                // What was asked for earlier, and took too long, may have made something.
                self.change(cx, id, |record| record.state = VolumeState::Deleting);
                self.ask(cx, id);
                refused(why)
            }
            (VolumeState::Deleting, Err(failure)) => {
                let why = format!(
                    "cannot remove the volume: {}; it is not usable, and can be deleted again",
                    failure.message
                );
                changed.events.push(event(cx, &known.record, &why));
                refused(why)
            }
            (VolumeState::Ready, _) => return changed,
        };
        for request in asked_by {
            cx.send_after_save(Effect::Reply(request, reply.clone()));
        }
        changed
    }

    /// Nobody answers: whoever asked learns that it is under way, and it is asked for again.
    pub(crate) fn on_overdue(&mut self, cx: &mut Cx<'_>, id: VolumeId, op: Op) {
        let asked = |known: &&mut KnownVolume| known.op == Some(op);
        let Some(known) = self.known.get_mut(&id).filter(asked) else {
            return;
        };
        known.op = None;
        let reply = match known.record.state {
            VolumeState::Pending | VolumeState::Ready => Reply::Volume(id),
            VolumeState::Deleting => {
                refused("removing the volume takes long; it goes on".to_owned())
            }
        };
        for request in core::mem::take(&mut known.asked_by) {
            cx.send_after_save(Effect::Reply(request, reply.clone()));
        }
        self.ask(cx, id);
    }

    /// Nothing of a volume is left.
    fn forget(&mut self, cx: &mut Cx<'_>, id: VolumeId) {
        self.known.remove(&id);
        cx.forget(Key::Volume(id));
        cx.next_index_without_a_record();
    }

    /// Whether the directory of a volume is being made or removed.
    pub(crate) fn is_under_way(&self, id: VolumeId) -> bool {
        self.known.get(&id).is_some_and(|known| known.op.is_some())
    }

    /// The operations whose answers are awaited.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = Op> {
        self.known.values().filter_map(|known| known.op)
    }
}

/// A volume was brought along without what it held.
fn made_anew(cx: &Cx<'_>, volume: &VolumeRecord, path: &str) -> Option<NodeEvent> {
    let before = volume.host_path.as_str();
    let moved = !before.is_empty() && before != path;
    let why = format!(
        "the volume was at {before} where its agent ran before: an empty directory is made"
    );
    moved.then(|| event(cx, volume, &why))
}

fn refused(why: String) -> Reply {
    Reply::Refused(Refusal::Conflict(why))
}

/// What people should know, also if nobody waits for the answer any more.
fn event(cx: &Cx<'_>, volume: &VolumeRecord, why: &str) -> NodeEvent {
    NodeEvent {
        time: cx.now.wall,
        subsystem: "Volume".to_owned(),
        message: why.to_owned(),
        details: [("volume".to_owned(), volume.spec.name.clone())].into(),
    }
}
