//! How much a job file may ask for. A hostile file must neither eat memory nor hang.

use core::cell::Cell;

/// Longest source, and longest JSON body.
pub(crate) const MAX_SOURCE: usize = 10 << 20;
/// Largest value, fully written out: each byte of text counts one, each item of a collection
/// [`ITEM`] besides what it holds.
pub(crate) const MAX_VALUE: usize = 16 << 20;
/// What an item of a collection counts, and the evaluation of one part of an expression.
pub(crate) const ITEM: usize = 16;
/// Everything that all expressions of a file may produce or look at together.
pub(crate) const MAX_WORK: usize = 64 << 20;
/// How deep collections may lie in each other.
pub(crate) const MAX_DEPTH: usize = 100;
/// Longest result of `range`.
pub(crate) const MAX_RANGE: usize = 65_536;
/// Largest file that a function may read.
pub(crate) const MAX_FILE: u64 = 4 << 20;
/// How many files `fileset` may look at.
pub(crate) const MAX_FILES: usize = 10_000;

/// What is left of [`MAX_WORK`].
#[derive(Debug)]
pub(crate) struct Budget(Cell<usize>);

/// The budget is used up, or one value is too large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exhausted;

impl Exhausted {
    pub(crate) const MESSAGE: &str = "evaluating the job file takes too much work or memory";
    pub(crate) const HELP: &str =
        "Written out, each value may have 16 MiB and a depth of 100, and all together 64 MiB.";
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget(Cell::new(MAX_WORK))
    }

    /// Takes `work` from the budget.
    pub(crate) fn spend(&self, work: usize) -> Result<(), Exhausted> {
        let left = self.0.get().checked_sub(work);
        self.0.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(Exhausted)
    }
}
