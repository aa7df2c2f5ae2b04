//! What may stand in a configuration, as plugins announce it. Unlike a [`super::schema::Schema`],
//! which is a table in this program, a [`Spec`] is data that came from outside, and what is
//! decoded by it has every field of it, `null` where nothing was given.

mod cursor;
mod decode;
mod literal;
mod types;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use cursor::{MAX_DEPTH, Malformed};
pub use decode::{Strictness, decode};
pub use literal::literal;
pub use types::Type;

use crate::model::value::Value;

/// What may stand at one place. The names are of attributes and blocks in the body around it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Spec {
    /// Named parts of the same body.
    Object(BTreeMap<String, Spec>),
    /// Parts of the same body, in order.
    Tuple(Vec<Spec>),
    /// One value.
    Attr {
        /// Its name.
        name: String,
        /// What it is.
        kind: Type,
        /// Whether it must be given.
        required: bool,
    },
    /// One block, or none.
    Block {
        /// Its name.
        name: String,
        /// Whether it must be given.
        required: bool,
        /// What stands in it.
        nested: Box<Spec>,
    },
    /// One block of free names, all of one type.
    BlockAttrs {
        /// Its name.
        name: String,
        /// What each of its values is.
        kind: Type,
        /// Whether it must be given.
        required: bool,
    },
    /// Any number of blocks, in order.
    BlockList {
        /// Their name.
        name: String,
        /// How many must be given.
        min: u64,
        /// How many may be given; 0 for any number.
        max: u64,
        /// What stands in each.
        nested: Box<Spec>,
    },
    /// Blocks with labels.
    BlockMap {
        /// Their name.
        name: String,
        /// What each label says; one at least.
        labels: Vec<String>,
        /// What stands in each.
        nested: Box<Spec>,
    },
    /// The second, where the first gives nothing.
    Default {
        /// What is wanted.
        primary: Box<Spec>,
        /// What is taken else.
        default: Box<Spec>,
    },
    /// Always this.
    Literal(Value),
}

impl Spec {
    /// The names in the body around this that it looks at.
    fn names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Spec::Object(parts) => parts.values().for_each(|part| part.names(names)),
            Spec::Tuple(parts) => parts.iter().for_each(|part| part.names(names)),
            Spec::Attr { name, .. }
            | Spec::Block { name, .. }
            | Spec::BlockAttrs { name, .. }
            | Spec::BlockList { name, .. }
            | Spec::BlockMap { name, .. } => names.push(name),
            Spec::Default { primary, default } => {
                primary.names(names);
                default.names(names);
            }
            Spec::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
