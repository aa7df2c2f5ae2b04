//! What is known of what templates ask, wherever it comes from: the agent's own state, or the servers of the cluster.

use drover_core::model::variable::Reads;
use drover_template::{Answer, Need};
use tokio::sync::watch;

use super::feed::{Feed, State};
use super::servers::{Answered, Questions};
use super::source::Asked;

/// What is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// Of the agent's own state.
    State(State),
    /// Of the servers.
    Servers(Answered),
}

impl Known {
    /// The answer to a need, for a task that may read these variables of this node's own.
    pub(super) fn answer(&self, need: &Need, reads: &Reads) -> Option<Answer> {
        match self {
            Known::State(state) => state.answer(need, reads),
            Known::Servers(answered) => answered.answer(need),
        }
    }

    /// Whether it has an answer to each of these.
    pub(super) fn answers_all(&self, asked: &Asked) -> bool {
        match self {
            Known::State(state) => state.answers_all(asked),
            Known::Servers(answered) => answered.answers_all(asked),
        }
    }

    /// Those of these to which there is no answer, for people, and why.
    pub(super) fn unanswered(&self, asked: &Asked) -> Vec<String> {
        match self {
            Known::State(_) => Vec::new(),
            Known::Servers(answered) => answered.unanswered(asked),
        }
    }

    /// What of these is not answered anew, because servers refuse that.
    pub(super) fn refused(&self) -> Option<String> {
        match self {
            Known::State(_) => None,
            Known::Servers(answered) => answered.refused(),
        }
    }
}

/// What is known, once anything is, and whatever else will be.
pub(super) type News = watch::Receiver<Option<Known>>;

/// Whom a rendering asks.
pub(super) enum Asking {
    /// The agent's own state, as all others do.
    State(Feed),
    /// The servers, by itself.
    Servers(Questions),
}

impl Asking {
    /// From now on.
    pub(super) fn listen(&self) -> News {
        match self {
            Asking::State(feed) => feed.listen(),
            Asking::Servers(questions) => questions.listen(),
        }
    }

    /// Sees to it that these are asked from now on.
    pub(super) fn begin(&mut self, asked: &Asked) {
        match self {
            Asking::State(feed) => feed.begin(asked),
            Asking::Servers(questions) => questions.begin(asked),
        }
    }
}
