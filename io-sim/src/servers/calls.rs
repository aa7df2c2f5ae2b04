//! What servers answer to each call.

use std::sync::Arc;

use drover_core::cluster::{
    AllocIndexes, AllocReport, Answer, Call, CallError, CallErrorKind, ClientNode, Credentials,
    NodeReply, PulledAllocs,
};
use drover_core::ids::{AllocId, NodeId};
use drover_core::model::drain::Eligibility;
use drover_core::model::secret::Secret;
use drover_core::time::Span;

use super::placing::is_live;
use super::{Caller, Flaws, GRACE, Known, NAMES, NodeStatus, Servers, Waiting, error};

/// How much longer nodes may be silent when nothing happens any more.
const CALM_TTL: i64 = 12;

impl Servers {
    /// A call arrives. None if it waits for something to happen.
    pub(crate) fn call(
        &mut self,
        whose: Caller,
        credentials: &Credentials,
        call: Call,
        flaws: Flaws,
    ) -> Option<Result<Answer, CallError>> {
        let node = whose.node;
        if !self.is_believed(node, credentials, &call) {
            return Some(Err(error(CallErrorKind::PermissionDenied)));
        }
        Some(match call {
            Call::Register(registered) => {
                Ok(self.register_node(node, credentials, registered, flaws))
            }
            Call::Heartbeat { renew_identity } => {
                self.heartbeat(node, credentials, renew_identity, flaws)
            }
            Call::EmitEvents(_) => self.of_known(node, Answer::EventsKept),
            Call::WatchAllocs { index, max_wait } => {
                return self.watch(whose, index, max_wait, flaws);
            }
            Call::PullAllocs { ids, .. } => Ok(Answer::Pulled(self.pull(&ids, flaws))),
            Call::ReportAllocs(reports) => self.report_allocs(node, reports),
            Call::RegisterServices(_) | Call::RemoveServices(_)
                if !self.nodes.contains_key(&node) =>
            {
                Err(error(CallErrorKind::PermissionDenied))
            }
            Call::RegisterServices(services) => {
                let services = services.into_iter().map(|it| (it.id.clone(), it));
                self.services.extend(services);
                Ok(Answer::ServicesRegistered)
            }
            Call::RemoveServices(services) => {
                for service in services {
                    self.services.remove(&service.id);
                }
                Ok(Answer::ServicesRemoved)
            }
        })
    }

    /// Whether servers believe that it is the node who calls. By an identity that is over it can still register.
    fn is_believed(&self, node: NodeId, credentials: &Credentials, call: &Call) -> bool {
        let registers = matches!(call, Call::Register(_));
        match credentials {
            Credentials::None => registers,
            Credentials::NodeSecret => self.nodes.contains_key(&node),
            Credentials::Identity(text) => {
                let number = number_of(text);
                let is_signed = number.is_some_and(|it| it > self.of_older_keys);
                is_signed && (registers || number > Some(self.over))
            }
        }
    }

    /// All identities that were signed are over from now on; or, where keys are new, nobody believes them any more.
    pub fn end_identities(&mut self, keys_are_new: bool) {
        self.over = self.identities;
        if keys_are_new {
            self.of_older_keys = self.identities;
        }
    }

    fn of_known(&self, node: NodeId, answer: Answer) -> Result<Answer, CallError> {
        match self.nodes.contains_key(&node) {
            true => Ok(answer),
            false => Err(error(CallErrorKind::UnknownNode)),
        }
    }

    fn register_node(
        &mut self,
        id: NodeId,
        credentials: &Credentials,
        node: Arc<ClientNode>,
        flaws: Flaws,
    ) -> Answer {
        let before = self.nodes.remove(&id);
        if let Some(before) = &before {
            self.lost_at.remove(&(before.lost_at, id));
        }
        let known = Known {
            node,
            status: before
                .as_ref()
                .map_or(NodeStatus::Initializing, |it| it.status),
            owes_report: before.as_ref().is_some_and(|it| it.owes_report),
            eligibility: before
                .as_ref()
                .map_or(Eligibility::Eligible, |it| it.eligibility),
            lost_at: Span::ZERO,
            beats: before.map_or(0, |it| it.beats),
        };
        self.nodes.insert(id, known);
        self.index += 1;
        self.evaluates = true;
        Answer::Registered(self.reply(id, credentials, false, flaws))
    }

    fn heartbeat(
        &mut self,
        id: NodeId,
        credentials: &Credentials,
        renews: bool,
        flaws: Flaws,
    ) -> Result<Answer, CallError> {
        if !self.nodes.contains_key(&id) {
            return Err(error(CallErrorKind::UnknownNode));
        }
        let mut reply = self.reply(id, credentials, renews, flaws);
        let has_live = self.allocs_of(id).any(|it| is_live(it));
        let Some(known) = self.nodes.get_mut(&id) else {
            return Err(error(CallErrorKind::UnknownNode));
        };
        let beats = match known.status {
            NodeStatus::Ready | NodeStatus::Down => NodeStatus::Ready,
            NodeStatus::Disconnected => NodeStatus::Initializing,
            NodeStatus::Initializing if known.owes_report && has_live => NodeStatus::Initializing,
            NodeStatus::Initializing => NodeStatus::Ready,
        };
        let was = core::mem::replace(&mut known.status, beats);
        if was != beats || reply.identity.is_some() {
            self.index += 1;
            reply.index = self.index;
        }
        self.evaluates |= was != beats;
        Ok(Answer::Heartbeat(reply))
    }

    /// The node is alive for a while from now on.
    fn reply(
        &mut self,
        id: NodeId,
        credentials: &Credentials,
        renews: bool,
        flaws: Flaws,
    ) -> NodeReply {
        let is_over = match credentials {
            Credentials::Identity(text) => number_of(text) <= Some(self.over),
            Credentials::None | Credentials::NodeSecret => false,
        };
        let renews = renews || is_over || *credentials == Credentials::NodeSecret;
        self.identities += u64::from(renews);
        let identity = renews.then(|| format!("identity {}", self.identities).into());
        let now = self.now;
        let Some(known) = self.nodes.get_mut(&id) else {
            return NodeReply::default();
        };
        known.beats += 1;
        let times = if self.is_calm { CALM_TTL } else { 1 };
        let ttl = times * (10 + i64::try_from(known.beats * 7 % 10).unwrap_or(0));
        let ttl = Span::secs(ttl);
        self.lost_at.remove(&(known.lost_at, id));
        known.lost_at = Span(now.0 + ttl.0 + GRACE.0);
        self.lost_at.insert((known.lost_at, id));
        NodeReply {
            heartbeat_ttl: ttl,
            servers: NAMES
                .iter()
                .take(flaws.names)
                .map(|it| (*it).into())
                .collect(),
            eligibility: Some(known.eligibility),
            identity,
            index: 0,
        }
    }

    fn watch(
        &mut self,
        whose: Caller,
        index: u64,
        max_wait: Span,
        flaws: Flaws,
    ) -> Option<Result<Answer, CallError>> {
        // By index 0 a server is asked that is not behind.
        let behind = if index == 0 { 0 } else { flaws.behind };
        let is_news = index == 0 || self.first_index(whose.node, self.index) > index;
        if behind == 0 && !is_news {
            let until = Span(self.now.0 + max_wait.0);
            let had = self.allocs_of(whose.node).count();
            let of_node = self.of_node.entry(whose.node).or_default();
            of_node.waiting.push(Waiting {
                whose,
                index,
                until,
                had,
            });
            self.waits_until.insert((until, whose.node));
            return None;
        }
        let at = self.index.saturating_sub(behind).max(1);
        let named = self.first_index(whose.node, at);
        let indexes = self.indexes(whose.node, at, named);
        Some(Ok(Answer::Indexes(indexes)))
    }

    /// The index that is answered, by an index, to a call that did not wait.
    fn first_index(&self, node: NodeId, at: u64) -> u64 {
        match self.answers_by_all {
            true => self.allocs_index.min(at),
            false => self.index_of(node, at),
        }
    }

    /// The index of the last change to an allocation that a node has, by an index; where it has none, to any. So it
    /// falls when the allocation is removed that changed last.
    pub(super) fn index_of(&self, node: NodeId, at: u64) -> u64 {
        let of_node = self.of_node.get(&node).into_iter();
        let all = of_node.flat_map(|it| &it.ever);
        let changed = all.filter_map(|id| self.allocs.get(id)?.changed_at(at));
        let last = changed.map(|(since, _)| since).max();
        last.unwrap_or(self.allocs_index.min(at))
    }

    /// Which allocations a node has, by an index, and the index that is answered.
    pub(super) fn indexes(&self, node: NodeId, at: u64, index: u64) -> AllocIndexes {
        // Of a node that they do not know, they know nothing.
        let known = self.nodes.contains_key(&node) || at < self.index;
        let of_node = self.of_node.get(&node).filter(|_| known);
        let all = of_node.into_iter().flat_map(|it| it.ever.iter().copied());
        let of = |id: AllocId| {
            let alloc = self.allocs.get(&id)?;
            Some((id, alloc.at(at)?.modify_index))
        };
        AllocIndexes {
            index,
            allocs: all.clone().filter_map(of).collect(),
            migrate_tokens: all.filter_map(|id| self.migrate_token(id)).collect(),
        }
    }

    /// The token for the disk of the allocation that this one replaces, if it gets that from another node.
    fn migrate_token(&self, id: AllocId) -> Option<(AllocId, Secret)> {
        let alloc = self.allocs.get(&id)?;
        let placed = alloc.now().filter(|it| is_live(it))?;
        let previous = self.allocs.get(&placed.previous?)?;
        let group = placed.job.as_ref().ok()?.group(placed.group.as_str())?;
        let migrates = group.ephemeral_disk.is_some_and(|it| it.migrate);
        let moves = migrates && previous.node != alloc.node;
        moves.then(|| (id, format!("disk of {:?}", placed.previous).into()))
    }

    fn pull(&self, ids: &[AllocId], flaws: Flaws) -> PulledAllocs {
        let index = self.index.saturating_sub(flaws.behind).max(1);
        let found = ids.iter().filter_map(|id| self.allocs.get(id)?.at(index));
        let mut allocs: Vec<_> = found.cloned().collect();
        if flaws.doubles {
            allocs.extend(allocs.clone());
            allocs.reverse();
        }
        PulledAllocs {
            index,
            allocs,
            unreadable: Vec::new(),
        }
    }

    fn report_allocs(
        &mut self,
        node: NodeId,
        reports: Vec<Arc<AllocReport>>,
    ) -> Result<Answer, CallError> {
        let known = self.nodes.get_mut(&node);
        let Some(known) = known.filter(|it| it.status.beats()) else {
            return Err(error(CallErrorKind::Other));
        };
        known.owes_report = false;
        reports.into_iter().for_each(|it| self.take(it));
        Ok(Answer::ReportsKept)
    }

    fn take(&mut self, report: Arc<AllocReport>) {
        let id = report.id;
        let status = report.status;
        self.report(id, |placed| placed.client_status = status);
        if status.is_terminal() {
            self.services.retain(|_, it| it.alloc != id);
            self.evaluates = true;
        }
        if let Some(alloc) = self.allocs.get_mut(&id) {
            alloc.reported = Some(report);
        }
    }
}

/// The how-manieth identity this is that servers signed.
fn number_of(identity: &Secret) -> Option<u64> {
    let number = identity.expose().strip_prefix("identity ");
    number.and_then(|number| number.parse().ok())
}
