//! How the effects of a step are compared: of each is kept what kind it is, and a fingerprint.
//!
//! Both are taken on the core's own thread after every step, so they cost nanoseconds: nothing is
//! allocated, and of what is large only its size counts ([`super::cover`] says what is covered).
//! What they leave out is made good by states: where a segment begins with one, all of it is compared.
//!
//! Marks leave out everything that is hidden in a recording, because secrets are mixed into other
//! texts. They cover kinds, ids, operations, states, times, counters and order; not the values of
//! variables and configurations, and not the words of events and failures.
//! `sim-tests/tests/marks.rs` changes effects at each place in turn and lists what goes unnoticed.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::cover;
use crate::effect::{DriverEffect, Effect, HookEffect, NodeEffect, StoreEffect, Told};

/// What an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "they are the variants of effects")]
pub enum Kind {
    Start,
    Recover,
    Stop,
    Signal,
    Destroy,
    Forget,
    Hook,
    CancelHook,
    Probe,
    WatchDriver,
    MeasureRoom,
    WatchDevices,
    Commit,
    Reply,
    Event,
    Index,
    Stopped,
    Exec,
}

impl Kind {
    /// All of them, each at the place of its number.
    pub const ALL: [Kind; 18] = [
        Kind::Start,
        Kind::Recover,
        Kind::Stop,
        Kind::Signal,
        Kind::Destroy,
        Kind::Forget,
        Kind::Hook,
        Kind::CancelHook,
        Kind::Probe,
        Kind::WatchDriver,
        Kind::MeasureRoom,
        Kind::WatchDevices,
        Kind::Commit,
        Kind::Reply,
        Kind::Event,
        Kind::Index,
        Kind::Stopped,
        Kind::Exec,
    ];

    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Recover => "look for",
            Kind::Stop => "stop",
            Kind::Signal => "signal",
            Kind::Destroy => "destroy",
            Kind::Forget => "forget launch",
            Kind::Hook => "hook",
            Kind::CancelHook => "cancel hook",
            Kind::Probe => "probe",
            Kind::WatchDriver => "listen to driver",
            Kind::MeasureRoom => "measure room",
            Kind::WatchDevices => "listen to plugin",
            Kind::Commit => "commit",
            Kind::Reply => "reply",
            Kind::Event => "event",
            Kind::Index => "index",
            Kind::Stopped => "stopped",
            Kind::Exec => "run beside",
        }
    }
}

/// What is kept of one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// What it is.
    #[serde(rename = "is")]
    pub kind: Kind,
    /// The hash of what is covered of it, of [`Mark::BITS`] bits.
    #[serde(rename = "fp", with = "hexadecimal")]
    pub fingerprint: u64,
}

impl Mark {
    /// How many bits of a fingerprint are used.
    pub const BITS: u32 = 56;

    /// The mark of an effect.
    // Not inline: with its caller's crate it would be made small, and not fast.
    pub fn of(effect: &Effect) -> Mark {
        let (kind, hash) = match effect {
            Effect::Driver(driver, key, asked) => {
                (of_driver(asked), cover::driver(driver, key, asked))
            }
            Effect::Forget(driver, launch) => (Kind::Forget, cover::forget(driver, *launch)),
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task,
                work,
            }) => (Kind::Hook, cover::hook(*op, *alloc, task.as_ref(), work)),
            Effect::Hook(HookEffect::Cancel { op }) => (Kind::CancelHook, cover::number(op.0)),
            Effect::Node(asked) => (of_node(asked), cover::node(asked)),
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                (Kind::Commit, cover::commit(*id, batch))
            }
            Effect::Reply(request, reply) => (Kind::Reply, cover::reply(*request, reply)),
            Effect::Tell(Told::Event(key, event)) => (Kind::Event, cover::event(key, event)),
            Effect::Tell(Told::Index(index)) => (Kind::Index, cover::number(*index)),
            Effect::Stopped => (Kind::Stopped, cover::number(0)),
        };
        Mark {
            kind,
            fingerprint: hash >> (u64::BITS - Mark::BITS),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:014x})", self.kind.as_str(), self.fingerprint)
    }
}

fn of_driver(asked: &DriverEffect) -> Kind {
    match asked {
        DriverEffect::Start { .. } => Kind::Start,
        DriverEffect::Recover { .. } => Kind::Recover,
        DriverEffect::Stop { .. } => Kind::Stop,
        DriverEffect::Signal { .. } => Kind::Signal,
        DriverEffect::Exec { .. } => Kind::Exec,
        DriverEffect::Destroy { .. } => Kind::Destroy,
    }
}

fn of_node(asked: &NodeEffect) -> Kind {
    match asked {
        NodeEffect::Probe { .. } => Kind::Probe,
        NodeEffect::WatchDriver { .. } => Kind::WatchDriver,
        NodeEffect::MeasureRoom { .. } => Kind::MeasureRoom,
        NodeEffect::WatchDevices { .. } => Kind::WatchDevices,
    }
}

/// Numbers as texts: not every reader of JSON keeps as many bits.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{number:014x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_at_its_number() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }
}
