//! The model of the servers.

use std::sync::Arc;

use crate::world::{World, dice};
use drover_core::cluster::{
    Answer, Call, CallError, CallErrorKind, ClientNode, Credentials, NodeReply,
};
use drover_core::cx::Rng;
use drover_core::model::drain::Eligibility;
use drover_core::op::Op;
use drover_core::time::{Instant, Span};

/// What an agent hears after a while.
pub(crate) struct Reaction {
    pub(crate) after: Span,
    pub(crate) op: Op,
    pub(crate) result: Result<Answer, CallError>,
}

/// How likely troubles are, in percent of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trouble {
    /// A call or its answer is lost.
    pub(crate) lost: u64,
    /// A call is refused.
    pub(crate) refused: u64,
    /// An answer is late, doubled or of another kind.
    pub(crate) strange: u64,
    /// The node is forgotten.
    pub(crate) forgotten: u64,
}

/// What servers know of the node.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) node: Arc<ClientNode>,
    pub(crate) ready: bool,
    /// When it counts as lost.
    pub(crate) lost_at: Instant,
    pub(crate) eligibility: Eligibility,
}

/// The servers.
pub(crate) struct Servers {
    pub(crate) known: Option<Known>,
    pub(crate) trouble: Trouble,
    pub(crate) names: Vec<Arc<str>>,
    /// How often the node was lost: no heartbeat came in time.
    pub(crate) losses: u64,
    /// The identity that the node has to bear, once it has one.
    identity: Option<u64>,
    identities: u64,
    rng: Rng,
}

/// After its time, a node has so much longer.
const GRACE: Span = Span::secs(10);

fn error(kind: CallErrorKind) -> CallError {
    CallError {
        kind,
        message: format!("{kind:?}"),
    }
}

impl Servers {
    pub(crate) fn new(seed: u64) -> Servers {
        let mut rng = Rng::new(seed ^ 0xacdc);
        // In half of the worlds each trouble is there or not; in the others there is some of each.
        let swarm = seed % 2 == 0;
        let mut level = |most: u64| match swarm {
            true => [0, most][usize::try_from(dice(&mut rng, 2)).unwrap_or(0)],
            false => most / 3,
        };
        let trouble = Trouble {
            lost: level(40),
            refused: level(40),
            strange: level(40),
            forgotten: level(10),
        };
        Servers {
            known: None,
            trouble,
            names: World::names(),
            losses: 0,
            identity: None,
            identities: 0,
            rng,
        }
    }

    fn happens(&mut self, percent: u64, calm: bool) -> bool {
        !calm && dice(&mut self.rng, 100) < percent
    }

    /// When something happens here by itself.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let known = self.known.as_ref().filter(|it| it.ready);
        known.map(|it| it.lost_at)
    }

    pub(crate) fn time_passes(&mut self, now: Instant) -> Vec<Reaction> {
        if let Some(known) = self.known.as_mut().filter(|it| it.lost_at <= now) {
            self.losses += u64::from(known.ready);
            known.ready = false;
        }
        Vec::new()
    }

    /// A call arrives.
    pub(crate) fn call(
        &mut self,
        now: Instant,
        calm: bool,
        op: Op,
        credentials: &Credentials,
        call: Call,
    ) -> Vec<Reaction> {
        if self.happens(self.trouble.forgotten, calm) {
            (self.known, self.identity) = (None, None);
        }
        if self.happens(self.trouble.refused, calm) {
            let kinds = [
                CallErrorKind::NoServers,
                CallErrorKind::NoLeader,
                CallErrorKind::Other,
                CallErrorKind::PermissionDenied,
            ];
            let kind = kinds[usize::try_from(dice(&mut self.rng, 4)).unwrap_or(0)];
            return self.answer(calm, op, Err(error(kind)));
        }
        if self.happens(self.trouble.strange / 4, calm) {
            return self.answer(calm, op, Ok(Answer::Heartbeat(NodeReply::default())));
        }
        let result = self.handle(now, calm, credentials, call);
        if self.happens(self.trouble.lost, calm) {
            return Vec::new();
        }
        self.answer(calm, op, result)
    }

    /// The answer comes once and soon, unless it does not.
    fn answer(&mut self, calm: bool, op: Op, result: Result<Answer, CallError>) -> Vec<Reaction> {
        let mut all = vec![Reaction {
            after: Span::millis(1),
            op,
            result: result.clone(),
        }];
        if self.happens(self.trouble.strange, calm) {
            let after = [0, 1, 6999, 7000, 7001, 29_999, 60_000].map(Span::millis);
            let mut some = || after[usize::try_from(dice(&mut self.rng, 7)).unwrap_or(0)];
            let (first, second) = (some(), some());
            all = [first, second]
                .map(|after| (after, result.clone()))
                .map(|(after, result)| Reaction { after, op, result })
                .into();
        }
        all
    }

    fn is_known(&self, credentials: &Credentials) -> bool {
        match (credentials, self.identity) {
            (Credentials::None, _) => false,
            (Credentials::NodeSecret, _) => self.known.is_some(),
            (Credentials::Identity(text), _) => text.expose().starts_with("identity"),
        }
    }

    fn handle(
        &mut self,
        now: Instant,
        calm: bool,
        credentials: &Credentials,
        call: Call,
    ) -> Result<Answer, CallError> {
        let is_first = matches!((&call, credentials), (Call::Register(_), Credentials::None));
        if !is_first && !self.is_known(credentials) {
            return Err(error(CallErrorKind::PermissionDenied));
        }
        match call {
            Call::Register(node) => {
                let reply = self.reply(calm, credentials, now);
                let lost_at = now + reply.heartbeat_ttl + GRACE;
                let before = self.known.take();
                self.known = Some(Known {
                    node,
                    ready: before.as_ref().is_some_and(|it| it.ready),
                    lost_at,
                    eligibility: before.map_or(Eligibility::Eligible, |it| it.eligibility),
                });
                Ok(Answer::Registered(reply))
            }
            Call::Heartbeat { .. } => {
                let reply = self.reply(calm, credentials, now);
                let Some(known) = &mut self.known else {
                    return Err(error(CallErrorKind::UnknownNode));
                };
                known.ready = true;
                known.lost_at = now + reply.heartbeat_ttl + GRACE;
                Ok(Answer::Heartbeat(reply))
            }
            Call::EmitEvents(_) => match self.known {
                Some(_) => Ok(Answer::EventsKept),
                None => Err(error(CallErrorKind::UnknownNode)),
            },
        }
    }

    fn reply(&mut self, calm: bool, credentials: &Credentials, _: Instant) -> NodeReply {
        if self.happens(self.trouble.strange / 2, calm) {
            self.names = World::names();
            self.names
                .truncate(usize::try_from(dice(&mut self.rng, 4)).unwrap_or(0));
        }
        if calm && self.names.is_empty() {
            self.names = World::names();
        }
        let renews = *credentials == Credentials::NodeSecret || dice(&mut self.rng, 10) == 0;
        let identity = renews.then(|| {
            self.identities += 1;
            self.identity = Some(self.identities);
            format!("identity {}", self.identities).into()
        });
        let seconds = 10 + dice(&mut self.rng, 10);
        let known = self.known.as_ref();
        NodeReply {
            heartbeat_ttl: Span::secs(i64::try_from(seconds).unwrap_or(10)),
            servers: self.names.clone(),
            eligibility: known.map(|it| it.eligibility),
            identity,
        }
    }
}
