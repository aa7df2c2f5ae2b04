//! From the tree of an expression to its steps.

use super::parse::Tree;
use super::{Place, Step};

/// The most steps that an expression may have.
pub const MAX_PROGRAM: usize = 10_000;

/// The steps of an expression.
pub(super) fn compile(tree: &Tree) -> Result<Vec<Step>, String> {
    let mut compiler = Compiler {
        steps: Vec::new(),
        work: 0,
    };
    compiler.tree(tree)?;
    compiler.emit(Step::Found)?;
    Ok(compiler.steps)
}

struct Compiler {
    steps: Vec<Step>,
    /// Counts the parts of the tree that were looked at: repeating nothing makes no steps, but
    /// takes time.
    work: usize,
}

impl Compiler {
    fn emit(&mut self, step: Step) -> Result<usize, String> {
        if self.steps.len() >= MAX_PROGRAM {
            return Err(too_large());
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn set(&mut self, at: usize, step: Step) {
        if let Some(place) = self.steps.get_mut(at) {
            *place = step;
        }
    }

    fn tree(&mut self, tree: &Tree) -> Result<(), String> {
        self.work += 1;
        if self.work > 4 * MAX_PROGRAM {
            return Err(too_large());
        }
        match tree {
            Tree::Empty => Ok(()),
            Tree::Take(set) => self.emit(Step::Take(*set)).map(|_| ()),
            Tree::At(place) => self.emit(Step::At(*place)).map(|_| ()),
            Tree::All(parts) => parts.iter().try_for_each(|part| self.tree(part)),
            Tree::Any(parts) => self.any(parts),
            Tree::Repeat(part, least, most) => self.repeat(part, *least, *most),
        }
    }

    fn any(&mut self, parts: &[Tree]) -> Result<(), String> {
        let mut jumps = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if at + 1 == parts.len() {
                self.tree(part)?;
                break;
            }
            let split = self.emit(Step::At(Place::Start))?;
            self.tree(part)?;
            jumps.push(self.emit(Step::At(Place::Start))?);
            self.set(split, Step::Split(split + 1, self.steps.len()));
        }
        for jump in jumps {
            self.set(jump, Step::Jump(self.steps.len()));
        }
        Ok(())
    }

    fn repeat(&mut self, part: &Tree, least: u32, most: Option<u32>) -> Result<(), String> {
        for _ in 0..least {
            self.tree(part)?;
        }
        let Some(most) = most else {
            let split = self.emit(Step::At(Place::Start))?;
            self.tree(part)?;
            self.emit(Step::Jump(split))?;
            self.set(split, Step::Split(split + 1, self.steps.len()));
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.emit(Step::At(Place::Start))?);
            self.tree(part)?;
        }
        for split in splits {
            self.set(split, Step::Split(split + 1, self.steps.len()));
        }
        Ok(())
    }
}

fn too_large() -> String {
    "the regular expression is too large".to_owned()
}
