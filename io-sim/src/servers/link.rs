//! The way from a node to the servers and back: what is lost on it, late, doubled, or refused.

use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::cluster::{
    Answer, Call, CallError, CallErrorKind, CallKind, Credentials, NodeReply,
};
use drover_core::effect::ServerEffect;
use drover_core::ids::NodeId;
use drover_core::input::ServerInput;
use drover_core::op::Op;
use drover_core::time::Span;

use super::{Caller, Flaws, NAMES, Servers, error};
use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::Later;
use crate::point::Point;
use crate::scene::Scene;

/// Within which time calls are answered that nobody holds back.
const TIMEOUT: Span = Span::secs(30);
/// The same of heartbeats.
const HEARTBEAT_TIMEOUT: Span = Span::secs(7);
/// After how long a dead connection is noticed.
const KEEP_ALIVE: Span = Span::secs(40);

/// A node's end of it.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// The servers of the node's cluster, if it is in one; in a fleet only while it is the node's turn.
    pub servers: Option<Servers>,
    pub(crate) node_id: NodeId,
    /// Whether there are other nodes, and somebody else hands on what servers answer late.
    pub(crate) in_fleet: bool,
    /// What the agent asks of servers, where somebody else carries it there.
    pub(crate) asked: Option<Vec<ServerEffect>>,
    /// Until when no call reaches the servers, since the beginning.
    cut_off_until: Span,
}

impl Link {
    /// The node asks something of the servers.
    pub(crate) fn carry(&mut self, scene: &mut Scene, effect: ServerEffect) {
        if let Some(asked) = &mut self.asked {
            return asked.push(effect);
        }
        match effect {
            ServerEffect::Call {
                op,
                credentials,
                call,
            } => self.send_call(scene, op, credentials, call),
            ServerEffect::Cancel { op } => {
                let node = self.node_id;
                if let Some(servers) = &mut self.servers {
                    servers.cancel(node, op);
                }
            }
            ServerEffect::Servers(_) => {}
        }
    }

    fn send_call(&mut self, scene: &mut Scene, op: Op, credentials: Credentials, call: Call) {
        let entity = entity_of(&call);
        if scene.fires(Fault::CutOff, "servers") {
            let grid = [Span::secs(5), Span::secs(40), Span::secs(600)];
            let span = scene.choices.one_of(&grid, Point::CutOffFor, "servers");
            self.cut_off(scene, span.unwrap_or(Span::ZERO));
        }
        if self.is_cut_off(scene) || scene.fires(Fault::LoseCall, &entity) {
            return self.lose_answer(scene, scene.life, op, call.kind());
        }
        // What is on its way for longer than the node waits does not come after what the node says next: nobody could
        // tell servers which of the two is newer.
        let timeout = timeout_of(&call);
        let delay = scene.latency(&entity, timeout).min(timeout);
        let call = Box::new(call);
        scene.after(
            delay,
            &entity,
            Later::Call {
                op,
                credentials,
                call,
            },
        );
    }

    /// For so long no call of this node reaches the servers. Its connections are found dead after a while, and the
    /// calls that wait in them fail.
    pub fn cut_off(&mut self, scene: &mut Scene, span: Span) {
        let until = Span(scene.elapsed.0 + span.0);
        self.cut_off_until = self.cut_off_until.max(until);
        for whose in self.hang_up() {
            self.lose_answer(scene, whose.life, whose.op, CallKind::WatchAllocs);
        }
    }

    /// A call or its answer is lost. One that may wait for minutes does not wait so long in a connection that is dead.
    fn lose_answer(&mut self, scene: &mut Scene, life: u64, op: Op, kind: CallKind) {
        if kind != CallKind::WatchAllocs || life != scene.life {
            return;
        }
        let result = Err(error(CallErrorKind::Other));
        let input = Input::Server(ServerInput::Answered { op, result });
        let at = scene.at + KEEP_ALIVE;
        scene.deliver(Source::Answer(op, 0), at, &Arc::from(kind.as_str()), input);
    }

    /// Whether no call of this node reaches the servers.
    pub fn is_cut_off(&self, scene: &Scene) -> bool {
        !scene.converging && scene.elapsed < self.cut_off_until
    }

    /// A call arrives at a server.
    pub(crate) fn call_arrives(
        &mut self,
        scene: &mut Scene,
        life: u64,
        op: Op,
        credentials: &Credentials,
        call: Call,
    ) {
        let (entity, kind) = (entity_of(&call), call.kind());
        if self.is_cut_off(scene) {
            return self.lose_answer(scene, life, op, kind);
        }
        if scene.fires(Fault::ForgetNode, "servers") {
            let allocs = scene.choices.either(Point::ForgottenAllocs, "servers");
            let node = self.node_id;
            if let Some(servers) = &mut self.servers {
                servers.forget_node(node, allocs);
            }
        }
        let timeout = timeout_of(&call);
        let result = match self.refusal(scene, kind, &entity) {
            Some(result) => Some(result),
            None => self.ask(scene, life, op, credentials, call, &entity),
        };
        self.go_on(scene);
        match result {
            None => {}
            Some(_) if scene.fires(Fault::LoseReply, &entity) => {
                self.lose_answer(scene, life, op, kind)
            }
            Some(result) => self.reply(scene, life, op, &entity, timeout, result),
        }
    }

    /// What is answered without anybody having listened.
    fn refusal(
        &mut self,
        scene: &mut Scene,
        asked: CallKind,
        entity: &str,
    ) -> Option<Result<Answer, CallError>> {
        if scene.fires(Fault::RefuseCall, entity) {
            let kinds = [
                CallErrorKind::Other,
                CallErrorKind::NoServers,
                CallErrorKind::NoLeader,
                CallErrorKind::PermissionDenied,
            ];
            let kind = scene.choices.one_of(&kinds, Point::Refusal, entity);
            return Some(Err(error(kind.unwrap_or(CallErrorKind::Other))));
        }
        let is_odd = scene.fires(Fault::OddReply, entity);
        is_odd.then(|| Ok(self.odd_reply(scene, asked, entity)))
    }

    /// An answer to something else, or one that says nothing of what a server knows.
    fn odd_reply(&mut self, scene: &mut Scene, asked: CallKind, entity: &str) -> Answer {
        let nothing = Answer::Heartbeat(NodeReply::default());
        let all = [
            nothing.clone(),
            Answer::ReportsKept,
            Answer::EventsKept,
            Answer::ServicesRegistered,
        ];
        let grid = [0, 1, 2, 3];
        let at = scene.choices.one_of(&grid, Point::OddReply, entity);
        let odd = at.and_then(|at| all.get(at)).cloned();
        // What was asked for was not done.
        let odd = odd.filter(|it| it.answers() != asked);
        odd.unwrap_or(nothing)
    }

    fn ask(
        &mut self,
        scene: &mut Scene,
        life: u64,
        op: Op,
        credentials: &Credentials,
        call: Call,
        entity: &str,
    ) -> Option<Result<Answer, CallError>> {
        let mut view = Flaws {
            names: NAMES.len(),
            ..Flaws::default()
        };
        if scene.fires(Fault::ServerBehind, entity) {
            let behind = scene.choices.one_of(&[1, 2, 5, 20], Point::Behind, entity);
            view.behind = behind.unwrap_or(0);
        }
        view.doubles = scene.fires(Fault::DoubledAnswer, entity);
        if scene.fires(Fault::FewServers, entity) {
            let names = scene.choices.one_of(&[2, 1, 0], Point::Names, entity);
            view.names = names.unwrap_or(view.names);
        }
        let node = self.node_id;
        let now = scene.elapsed;
        let servers = self.servers.as_mut()?;
        servers.go_on(now);
        servers.call(Caller { node, life, op }, credentials, call, view)
    }

    /// What was due at the servers happens, and this node hears what they answer to calls that waited.
    pub(crate) fn go_on(&mut self, scene: &mut Scene) {
        let now = scene.elapsed;
        let Some(servers) = &mut self.servers else {
            return;
        };
        servers.go_on(now);
        if !self.in_fleet {
            for answered in servers.take_answers() {
                self.answered_late(scene, answered.to.life, answered.to.op, answered.result);
            }
        }
    }

    /// The answer to a call that waited is on its way.
    pub(crate) fn answered_late(
        &mut self,
        scene: &mut Scene,
        life: u64,
        op: Op,
        result: Result<Answer, CallError>,
    ) {
        let kind = CallKind::WatchAllocs;
        match self.is_cut_off(scene) || scene.fires(Fault::LoseReply, kind.as_str()) {
            true => self.lose_answer(scene, life, op, kind),
            false => self.reply(scene, life, op, &Arc::from(kind.as_str()), TIMEOUT, result),
        }
    }

    fn reply(
        &mut self,
        scene: &mut Scene,
        life: u64,
        op: Op,
        entity: &Arc<str>,
        timeout: Span,
        result: Result<Answer, CallError>,
    ) {
        let input = Input::Server(ServerInput::Answered { op, result });
        scene.answer(life, op, entity, timeout, input);
    }

    /// The agent died: its connections end with it.
    pub(crate) fn hang_up(&mut self) -> Vec<Caller> {
        let node = self.node_id;
        let servers = self.servers.as_mut();
        servers.map_or_else(Vec::new, |it| it.hang_up(node))
    }

    /// When servers do something by themselves, since the beginning.
    pub(crate) fn deadline(&self) -> Option<Span> {
        self.servers.as_ref().and_then(Servers::deadline)
    }
}

fn entity_of(call: &Call) -> Arc<str> {
    call.kind().as_str().into()
}

fn timeout_of(call: &Call) -> Span {
    match call {
        Call::Heartbeat { .. } => HEARTBEAT_TIMEOUT,
        Call::Register(_)
        | Call::EmitEvents(_)
        | Call::WatchAllocs { .. }
        | Call::PullAllocs { .. }
        | Call::ReportAllocs(_)
        | Call::RegisterServices(_)
        | Call::RemoveServices(_) => TIMEOUT,
    }
}
