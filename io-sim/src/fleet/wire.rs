//! A fleet whose nodes reach their servers by somebody else: what agents ask is handed out, and calls that arrive
//! somewhere are answered by the model. So what speaks to servers in production can stand in between.

use drover_core::agent::Input;
use drover_core::cluster::{Answer, Call, CallError, Credentials};
use drover_core::effect::ServerEffect;
use drover_core::input::ServerInput;
use drover_core::op::Op;
use drover_core::time::Span;

use super::Fleet;
use crate::check::Verdict;
use crate::inbox::Source;
use crate::servers::{Caller, Flaws};

impl Fleet {
    /// As [`Fleet::new`], with nothing between nodes and servers.
    pub fn over_wire(seed: u64, count: usize) -> Fleet {
        let mut fleet = Fleet::new(seed, count);
        fleet.answers = Some(Vec::new());
        for index in 0..count {
            fleet.at_node(index, |node| {
                node.world.link.asked = Some(Vec::new());
                // What the first agent asked is under way already.
                node.goes_down(false, Span::ZERO);
            });
        }
        fleet
    }

    /// Lets time pass until so long after the beginning.
    ///
    /// # Errors
    /// As [`Fleet::run`].
    pub fn run_until(&mut self, at: Span) -> Verdict {
        let node = self.queue.first().map(|(next, _)| *next);
        let next = node.into_iter().chain(self.servers.deadline()).min();
        match next.is_some_and(|next| next <= at) {
            true => self.run(Span((at.0 - self.at.0).max(0))),
            false => {
                self.at = self.at.max(at);
                Ok(())
            }
        }
    }

    /// What the agent of a node asked of servers since this was looked at last.
    pub fn asked(&mut self, index: usize) -> Vec<ServerEffect> {
        let node = self.nodes.get_mut(index);
        let asked = node.and_then(|node| node.world.link.asked.as_mut());
        asked.map(core::mem::take).unwrap_or_default()
    }

    /// The agent of a node hears what became of a call.
    pub fn hears(&mut self, index: usize, op: Op, result: Result<Answer, CallError>) {
        let input = Input::Server(ServerInput::Answered { op, result });
        self.at_node(index, |node| {
            let now = node.world.scene.at;
            let entity = "servers".into();
            node.world
                .scene
                .deliver(Source::Answer(op, 0), now, &entity, input);
        });
    }

    /// A call of a node arrives. None if it waits: its answer is among [`Fleet::answers`] later, with this number.
    pub fn call(
        &mut self,
        index: usize,
        number: u64,
        credentials: &Credentials,
        call: Call,
        flaws: Flaws,
    ) -> Option<Result<Answer, CallError>> {
        let whose = Caller {
            node: self.nodes.get(index)?.world.link.node_id,
            life: 0,
            op: Op(number),
        };
        self.servers.go_on(self.at);
        let answer = self.servers.call(whose, credentials, call, flaws);
        self.servers.go_on(self.at);
        self.hand_on();
        answer
    }

    /// What servers answered to calls that waited since this was looked at last.
    pub fn answers(&mut self) -> Vec<(u64, Result<Answer, CallError>)> {
        let answers = self.answers.as_mut().map(core::mem::take);
        let answers = answers.unwrap_or_default().into_iter();
        answers.map(|one| (one.to.op.0, one.result)).collect()
    }
}
