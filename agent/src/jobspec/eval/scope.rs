//! Names that a `for` or a `dynamic` block brings into scope.

use std::rc::Rc;

use super::value::Val;

/// The names around an expression, innermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope(Option<Rc<Frame>>);

#[derive(Debug)]
struct Frame {
    name: String,
    value: Val,
    outer: Scope,
}

impl Scope {
    /// This scope with one more name.
    #[must_use]
    pub(crate) fn with(&self, name: &str, value: Val) -> Scope {
        Scope(Some(Rc::new(Frame {
            name: name.to_owned(),
            value,
            outer: self.clone(),
        })))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Val> {
        let mut at = self;
        while let Some(frame) = &at.0 {
            if frame.name == name {
                return Some(&frame.value);
            }
            at = &frame.outer;
        }
        None
    }
}
