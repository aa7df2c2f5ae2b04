//! The pipeline: one generic sub-machine that runs an ordered table of hooks.
//!
//! Hooks are data. A phase of a runner's life has a table of hooks; the pipeline knows where it
//! is, whose answer it awaits, and whether an error ends it or is collected. What a hook does is
//! its owner's business: the owner is asked to begin it and says what that led to.

use serde::{Deserialize, Serialize};

use crate::op::{Failure, Op};

/// What an error does to the rest of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OnError {
    /// The rest does not run: what prepares something.
    Stop,
    /// The rest runs, and errors are collected: what cleans up.
    Collect,
}

/// What beginning a hook led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookStart {
    /// It is done already, or does not apply.
    Done,
    /// Somebody outside works on it.
    Working(Op),
    /// It waits for something of the owner's; ask again when anything changed.
    Waiting,
    /// It failed.
    Failed(Failure),
}

/// What follows from the answer to a hook's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookOutcome {
    /// The hook is over, so or so.
    Over(Result<(), Failure>),
    /// It begins anew.
    Again,
}

/// How far a pipeline is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<H> {
    /// Not at its end.
    Pending,
    /// Every hook ran; with the errors that were collected.
    Finished(Vec<String>),
    /// This hook failed, and the rest does not run.
    Failed(H, Failure),
}

/// A walk through a table of hooks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pipeline {
    at: usize,
    awaited: Option<Op>,
    answer: Option<Result<(), Failure>>,
    on_error: OnError,
    collected: Vec<String>,
}

impl Pipeline {
    /// At the start of a table.
    pub fn new(on_error: OnError) -> Pipeline {
        Pipeline {
            at: 0,
            awaited: None,
            answer: None,
            on_error,
            collected: Vec::new(),
        }
    }

    /// Goes as far as it can. `begin` is asked to begin the hook that is next; `done` is told of
    /// each hook whose work outside succeeded.
    pub fn advance<H: Copy>(
        &mut self,
        table: &[H],
        mut begin: impl FnMut(H) -> HookStart,
    ) -> Progress<H> {
        while let Some(&hook) = table.get(self.at) {
            let failure = match self.answer.take() {
                Some(Ok(())) => None,
                Some(Err(failure)) => Some(failure),
                None if self.awaited.is_some() => return Progress::Pending,
                None => match begin(hook) {
                    HookStart::Done => None,
                    HookStart::Waiting => return Progress::Pending,
                    HookStart::Failed(failure) => Some(failure),
                    HookStart::Working(op) => {
                        self.awaited = Some(op);
                        return Progress::Pending;
                    }
                },
            };
            self.at += 1;
            let Some(failure) = failure else { continue };
            match self.on_error {
                OnError::Stop => return Progress::Failed(hook, failure),
                OnError::Collect => self.collected.push(failure.message),
            }
        }
        Progress::Finished(core::mem::take(&mut self.collected))
    }

    /// The hook at which the pipeline stands.
    pub fn current<H: Copy>(&self, table: &[H]) -> Option<H> {
        table.get(self.at).copied()
    }

    /// Takes the answer to `op`. `false` if it is not the awaited one.
    pub fn answer(&mut self, op: Op, result: Result<(), Failure>) -> bool {
        if self.awaited != Some(op) {
            return false;
        }
        self.awaited = None;
        self.answer = Some(result);
        true
    }

    /// The hook whose answer this is begins anew. `false` if the answer is not the awaited one.
    pub fn again(&mut self, op: Op) -> bool {
        let awaited = self.awaited == Some(op);
        if awaited {
            self.awaited = None;
        }
        awaited
    }

    /// Whose answer is awaited.
    pub fn awaited(&self) -> Option<Op> {
        self.awaited
    }
}

/// Why an operation failed that is given up.
pub fn too_late() -> Failure {
    Failure::recoverable("it did not end in time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_stops_at_first_error_and_cleanup_collects_all() {
        let table = ["a", "b", "c"];
        let failing = |hook| match hook {
            "b" => HookStart::Failed(Failure::fatal("no b")),
            _ => HookStart::Done,
        };
        let mut prepare = Pipeline::new(OnError::Stop);
        assert_eq!(
            prepare.advance(&table, failing),
            Progress::Failed("b", Failure::fatal("no b"))
        );
        let mut clean = Pipeline::new(OnError::Collect);
        let mut started = Vec::new();
        let finished = clean.advance(&table, |hook| {
            started.push(hook);
            failing(hook)
        });
        assert_eq!(finished, Progress::Finished(vec!["no b".to_owned()]));
        assert_eq!(started, table, "each hook has its turn");
    }

    #[test]
    fn only_awaited_answer_counts_once() {
        let table = ["work"];
        let mut pipeline = Pipeline::new(OnError::Stop);
        assert_eq!(
            pipeline.advance(&table, |_| HookStart::Working(Op(7))),
            Progress::Pending
        );
        assert!(
            !pipeline.answer(Op(6), Ok(())),
            "an answer of somebody else"
        );
        assert!(pipeline.answer(Op(7), Ok(())));
        assert!(!pipeline.answer(Op(7), Ok(())), "a doubled answer");
        let finished = pipeline.advance(&table, |_| HookStart::Waiting);
        assert_eq!(finished, Progress::Finished(Vec::new()));
    }
}
