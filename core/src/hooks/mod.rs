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
    /// The whole table begins anew.
    FromStart,
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
    step: Step,
    on_error: OnError,
    collected: Vec<String>,
}

/// How far the hook is that is next.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Step {
    /// It is to begin.
    Begin,
    /// Somebody outside works on it.
    Working(Op),
    /// Its work is over.
    Over(Result<(), Failure>),
}

impl Pipeline {
    /// At the start of a table.
    pub fn new(on_error: OnError) -> Pipeline {
        Pipeline {
            at: 0,
            step: Step::Begin,
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
            let result = match core::mem::replace(&mut self.step, Step::Begin) {
                Step::Over(result) => result,
                Step::Working(op) => return self.works(op),
                Step::Begin => match begin(hook) {
                    HookStart::Done => Ok(()),
                    HookStart::Waiting => return Progress::Pending,
                    HookStart::Failed(failure) => Err(failure),
                    HookStart::Working(op) => return self.works(op),
                },
            };
            self.at += 1;
            let Err(failure) = result else { continue };
            match self.on_error {
                OnError::Stop => return Progress::Failed(hook, failure),
                OnError::Collect => self.collected.push(failure.message),
            }
        }
        Progress::Finished(core::mem::take(&mut self.collected))
    }

    fn works<H>(&mut self, op: Op) -> Progress<H> {
        self.step = Step::Working(op);
        Progress::Pending
    }

    /// The hook at which the pipeline stands.
    pub fn current<H: Copy>(&self, table: &[H]) -> Option<H> {
        table.get(self.at).copied()
    }

    /// Takes the answer to `op`. `false` if it is not the awaited one.
    pub fn answer(&mut self, op: Op, result: Result<(), Failure>) -> bool {
        let awaited = self.step == Step::Working(op);
        if awaited {
            self.step = Step::Over(result);
        }
        awaited
    }

    /// The hook whose answer this is begins anew. `false` if the answer is not the awaited one.
    pub fn again(&mut self, op: Op) -> bool {
        let awaited = self.step == Step::Working(op);
        if awaited {
            self.step = Step::Begin;
        }
        awaited
    }

    /// Whose answer is awaited.
    pub fn awaited(&self) -> Option<Op> {
        match self.step {
            Step::Working(op) => Some(op),
            Step::Begin | Step::Over(_) => None,
        }
    }
}

/// Why an operation failed that is given up.
pub fn too_late() -> Failure {
    Failure::recoverable("it did not end in time")
}

#[cfg(test)]
pub(crate) mod world_tests;

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
