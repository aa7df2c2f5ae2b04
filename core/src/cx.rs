//! What every component of the core may use while it handles one input.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::announced::Announced;
use crate::broadcast::Broadcasts;
use crate::config::Config;
use crate::effect::{DriverEffect, Effect, Notification};
use crate::gc::Destroys;
use crate::ids::{
    AllocId, DeploymentId, EvalId, LaunchId, Slot, TaskKey, VolumeId, uuid_of_version,
};
use crate::ledger::{Haste, Ledger};
use crate::model::event::TaskEvent;
use crate::op::Op;
use crate::operations::{Operations, Owner, Purpose};
use crate::service_waits::ServiceWaits;
use crate::store::disk::Disk;
use crate::store::{Key, Meta, Record, SCHEMA};
use crate::time::{Now, Span};

/// Random numbers that are no secret and no luck: the same seed gives the same numbers.
/// The generator is SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rng(u64);

impl Rng {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A new allocation id.
    pub fn alloc_id(&mut self) -> AllocId {
        AllocId(self.next_uuid())
    }

    /// The next 128 bits, as an id of version 4.
    fn next_uuid(&mut self) -> u128 {
        let bits = (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64());
        uuid_of_version(4, bits)
    }
}

/// What is counted, because it should be rare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counters {
    /// Inputs handled.
    pub steps: u64,
    /// Answers that nobody awaited: late, doubled, or of an earlier launch.
    pub stale: u64,
    /// Operations whose deadline passed.
    pub overdue: u64,
}

/// What is shared by all components, and outlives one input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Shared {
    /// Random numbers.
    pub rng: Rng,
    /// The number of the last operation.
    pub last_op: u64,
    /// The state's index: rises with each change that people can see.
    pub index: u64,
    /// What is counted.
    pub counters: Counters,
    /// Whether too little is known of the machine for anything to be placed or prepared.
    pub fingerprint_pending: bool,
    /// What allocations tell each other.
    pub broadcasts: Broadcasts,
    /// Who is garbage-collected now.
    pub destroys: Destroys,
    /// Tasks that wait for services.
    pub service_waits: ServiceWaits,
    /// The services that the servers of the cluster have of this node, and that they shall have.
    #[serde(skip_serializing_if = "Announced::is_empty")]
    pub announced: Announced,
    /// The disks of slots.
    #[serde(with = "crate::pairs")]
    pub disks: BTreeMap<Slot, Arc<Disk>>,
    /// How often one of them was changed in this life of the agent.
    pub disk_changes: u64,
    /// The store's side.
    pub ledger: Ledger,
    /// What was asked of the outside and is not answered.
    pub operations: Operations,
    /// Effects that may leave.
    pub out: VecDeque<Effect>,
}

/// One input's context.
pub struct Cx<'a> {
    /// The clocks.
    pub now: Now,
    /// What the agent was told at its start.
    pub config: &'a Config,
    /// What is shared by all components.
    pub shared: &'a mut Shared,
}

impl Cx<'_> {
    /// A new operation, whose request is sent in this step: its answer may take `limit` from when that leaves.
    pub fn operation(&mut self, owner: Owner, purpose: Purpose, limit: Span) -> Op {
        self.shared.last_op += 1;
        let op = Op(self.shared.last_op);
        self.shared.operations.begin(op, owner, purpose, limit);
        op
    }

    /// Takes back a request that did not leave yet. `false` if it did.
    pub fn withdraw(&mut self, op: Op) -> bool {
        let held = self.shared.ledger.withdraw(op);
        if held {
            self.shared.operations.end(op);
        }
        held
    }

    /// A new launch id.
    pub fn launch_id(&mut self) -> LaunchId {
        LaunchId(self.shared.rng.next_uuid())
    }

    /// A new evaluation id.
    pub fn eval_id(&mut self) -> EvalId {
        EvalId(self.shared.rng.next_uuid())
    }

    /// A new deployment id.
    pub fn deployment_id(&mut self) -> DeploymentId {
        DeploymentId(self.shared.rng.next_uuid())
    }

    /// A new volume id.
    pub fn volume_id(&mut self) -> VolumeId {
        VolumeId(self.shared.rng.next_uuid())
    }

    /// `span` and up to a quarter more, so that what failed together does not return together.
    pub fn jittered(&mut self, span: Span) -> Span {
        let quarter = u64::try_from(span.0 / 4).unwrap_or(0);
        let extra = if quarter == 0 {
            0
        } else {
            self.shared.rng.next_u64() % quarter
        };
        Span(span.0.saturating_add(i64::try_from(extra).unwrap_or(0)))
    }

    /// Any time from none to `span`.
    pub fn at_most(&mut self, span: Span) -> Span {
        let steps = u64::try_from(span.0).unwrap_or(0).saturating_add(1);
        let drawn = self.shared.rng.next_u64() % steps;
        Span(i64::try_from(drawn).unwrap_or(0))
    }

    /// Sends an effect now.
    pub fn send(&mut self, effect: Effect) {
        self.shared.out.push_back(effect);
    }

    /// Sends an effect once everything decided up to now is saved.
    pub fn send_after_save(&mut self, effect: Effect) {
        self.shared.ledger.after_save(effect, Haste::AtOnce);
    }

    /// What the driver keeps of a launch may go, once it is saved that the launch is over.
    pub fn forget_launch(&mut self, driver: &Arc<str>, launch: LaunchId) {
        let effect = Effect::Forget(driver.clone(), launch);
        self.shared.ledger.after_save(effect, Haste::Lazy);
    }

    /// Asks a driver, now.
    pub fn drive(&mut self, driver: &Arc<str>, task: &TaskKey, what: impl Into<DriverEffect>) {
        self.send(Effect::Driver(driver.clone(), task.clone(), what.into()));
    }

    /// Asks a driver once everything decided up to now is saved.
    pub fn drive_after_save(
        &mut self,
        driver: &Arc<str>,
        task: &TaskKey,
        what: impl Into<DriverEffect>,
    ) {
        self.drive_after_save_within(driver, task, what, Haste::AtOnce);
    }

    /// As [`Cx::drive_after_save`], and says how long saving may be put off.
    pub fn drive_after_save_within(
        &mut self,
        driver: &Arc<str>,
        task: &TaskKey,
        what: impl Into<DriverEffect>,
        haste: Haste,
    ) {
        let effect = Effect::Driver(driver.clone(), task.clone(), what.into());
        self.shared.ledger.after_save(effect, haste);
    }

    /// Remembers a record.
    pub fn remember(&mut self, key: Key, record: Record) {
        self.shared.ledger.put(key, record);
    }

    /// Forgets a record.
    pub fn forget(&mut self, key: Key) {
        self.shared.ledger.delete(key);
    }

    /// Remembers what is known of the disk of a slot, or that nothing is.
    pub fn save_disk(&mut self, slot: Slot, disk: Option<Disk>) {
        match disk.filter(|disk| !disk.is_forgotten()) {
            Some(disk) => {
                let disk = Arc::new(disk);
                self.remember(Key::Disk(slot.clone()), Record::Disk(disk.clone()));
                self.shared.disks.insert(slot, disk);
            }
            None if self.shared.disks.remove(&slot).is_some() => self.forget(Key::Disk(slot)),
            None => return,
        }
        self.shared.disk_changes += 1;
    }

    /// Changes what is known of the disk of a slot, if anything is.
    pub fn edit_disk(&mut self, slot: &Slot, change: impl FnOnce(&mut Disk)) {
        let Some(known) = self.shared.disks.get(slot) else {
            return;
        };
        let mut disk = Disk::clone(known);
        change(&mut disk);
        if disk != **known {
            self.save_disk(slot.clone(), Some(disk));
        }
    }

    /// Something that people can see changed of which no record is left, or never was one: a new
    /// index for it, remembered by itself, so that the index never goes back.
    pub fn next_index_without_a_record(&mut self) {
        let meta = Meta {
            schema: SCHEMA,
            node: self.config.node.id,
            index: self.next_index(),
        };
        self.remember(Key::Meta, Record::Meta(Arc::new(meta)));
    }

    /// Something that people can see changed: a new index for it.
    pub fn next_index(&mut self) -> u64 {
        self.shared.index += 1;
        self.shared.index
    }

    /// Emits an event.
    pub fn emit(&mut self, task: &TaskKey, event: &Arc<TaskEvent>) {
        self.send(Effect::Notify(Notification::Event(
            task.clone(),
            event.clone(),
        )));
    }

    /// An answer came that nobody awaits.
    pub fn count_stale(&mut self) {
        self.shared.counters.stale += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that are published for this seed.
    #[test]
    fn generator_matches_splitmix64_reference() {
        let mut rng = Rng::new(1_234_567);
        let numbers = [(); 5].map(|()| rng.next_u64());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }
}
