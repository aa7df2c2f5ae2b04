//! The time zones of periodic jobs: each is looked up when it is first needed, when a day has passed since (rules
//! change), and when the time has come up to which it is known.
//!
//! A zone that cannot be looked up is tried again after a pause; jobs wait meanwhile for what they do not know, and
//! go by what they know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cron::zone::{ZoneOffsets, is_utc};
use crate::cx::Cx;
use crate::effect::{Effect, NodeEffect};
use crate::op::{Failure, Op};
use crate::operations::{Operations, Owner, Purpose};
use crate::store::periodic::second_of;
use crate::time::{Instant, Span};

/// The pause before a zone is looked up again that could not be.
const PAUSE: Span = Span::secs(300);

/// How long what is known of a zone is believed without looking.
const BELIEVED: Span = Span::secs(24 * 3600);

/// The zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Zones {
    zones: BTreeMap<Arc<str>, Zone>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Zone {
    offsets: Option<Arc<ZoneOffsets>>,
    state: State,
    /// Why it is not known, if it could not be looked up.
    last_error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    Asked(Op),
    /// It was looked up then.
    Known(Instant),
    /// It is looked up again then.
    Failed(Instant),
}

impl Zones {
    pub(crate) fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// What is known of a zone; it is looked up if that is nothing of now, or old.
    pub(crate) fn of(&mut self, cx: &mut Cx<'_>, name: &str) -> Option<Arc<ZoneOffsets>> {
        if is_utc(name) {
            return Some(Arc::new(ZoneOffsets::utc()));
        }
        let second = second_of(cx.now.wall);
        let known = self.zones.get(name);
        let asks = known.is_none_or(|zone| match zone.state {
            State::Asked(_) | State::Failed(_) => false,
            State::Known(at) => cx.now.at - at >= BELIEVED || !zone.covers(second),
        });
        if asks {
            self.ask(cx, name);
        }
        self.zones.get(name)?.offsets.clone()
    }

    /// What is known of a zone, without asking.
    pub(crate) fn known(&self, name: &str) -> Option<Arc<ZoneOffsets>> {
        match is_utc(name) {
            true => Some(Arc::new(ZoneOffsets::utc())),
            false => self.zones.get(name)?.offsets.clone(),
        }
    }

    /// Why a zone could not be looked up the last time.
    pub(crate) fn last_error(&self, name: &str) -> Option<&str> {
        self.zones.get(name)?.last_error.as_deref()
    }

    fn ask(&mut self, cx: &mut Cx<'_>, name: &str) {
        let zone: Arc<str> = name.into();
        let limit = cx.config.timeouts.probe;
        let op = cx.operation(Owner::Machine, Purpose::TimeZone(zone.clone()), limit);
        let known = self.zones.entry(zone.clone()).or_insert(Zone {
            offsets: None,
            state: State::Asked(op),
            last_error: None,
        });
        known.state = State::Asked(op);
        let around = second_of(cx.now.wall);
        cx.send(Effect::Node(NodeEffect::LookUpTimeZone {
            op,
            zone,
            around,
        }));
    }

    /// Takes an answer. Returns whether what is known changed.
    pub(crate) fn on_answer(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        op: Op,
        result: Result<ZoneOffsets, Failure>,
    ) -> bool {
        let asked = |zone: &&mut Zone| zone.state == State::Asked(op);
        let Some(zone) = self.zones.get_mut(name).filter(asked) else {
            cx.count_stale();
            return false;
        };
        let second = second_of(cx.now.wall);
        let result = result
            .map_err(|failure| failure.message)
            .and_then(|offsets| {
                offsets.check()?;
                match offsets.covers(second) {
                    true => Ok(offsets),
                    false => Err("what is known of it is not of now".to_owned()),
                }
            });
        match result {
            Ok(offsets) => {
                (zone.state, zone.last_error) = (State::Known(cx.now.at), None);
                let changed = zone.offsets.as_deref() != Some(&offsets);
                zone.offsets = Some(Arc::new(offsets));
                changed
            }
            Err(why) => {
                zone.state = State::Failed(cx.now.at + PAUSE);
                zone.last_error = Some(why);
                false
            }
        }
    }

    /// Forgets the zones that are not used any more.
    pub(crate) fn keep(&mut self, operations: &mut Operations, used: &BTreeSet<&str>) {
        self.zones.retain(|name, zone| {
            let kept = used.contains(&**name);
            if let (false, State::Asked(op)) = (kept, zone.state) {
                operations.end(op);
            }
            kept
        });
    }

    /// Looks up again what could not be.
    pub(crate) fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        let due = |zone: &Zone| matches!(zone.state, State::Failed(at) if at <= cx.now.at);
        let due: Vec<Arc<str>> = (self.zones.iter())
            .filter(|(_, zone)| due(zone))
            .map(|(name, _)| name.clone())
            .collect();
        due.iter().for_each(|name| self.ask(cx, name));
    }

    /// When [`Zones::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let failed = self.zones.values().filter_map(|zone| match zone.state {
            State::Failed(at) => Some(at),
            State::Asked(_) | State::Known(_) => None,
        });
        failed.min()
    }

    /// The operations whose answers are awaited.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = Op> {
        self.zones.values().filter_map(|zone| match zone.state {
            State::Asked(op) => Some(op),
            State::Known(_) | State::Failed(_) => None,
        })
    }
}

impl Zone {
    fn covers(&self, second: i64) -> bool {
        let known = self.offsets.as_ref();
        known.is_some_and(|offsets| offsets.covers(second))
    }
}
