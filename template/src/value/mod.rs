//! Values as templates see them, with the types that Go would give them.

mod map;
mod record;

use std::rc::Rc;
use std::sync::Arc;

pub(crate) use map::Map;
pub(crate) use record::{Record, Shown};

/// Bytes; texts of Go need not be UTF-8.
pub(crate) type Text = Arc<[u8]>;

/// A value. Copying one is cheap: what is large is shared.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Not even nil: what a template without data is given.
    Absent,
    Nil,
    Bool(bool),
    Int(i64, IntType),
    Uint(u64, UintType),
    Float(f64),
    Text(Text),
    List(Rc<List>),
    Map(Rc<Map>),
    Record(Rc<Record>),
    /// Numbers from one up to before another, which are made while a loop goes over them.
    Count(i64, i64),
    Scratch,
}

/// Which of Go's signed types a number has. They differ in their names only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntType {
    Int,
    Int64,
}

/// Which of Go's unsigned types a number has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UintType {
    Uint8,
    Uint64,
}

/// What a list or map holds, as Go declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Any,
    Texts,
    Ints,
    Records,
}

#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    pub(crate) of: Of,
    /// How deep lists are inside of each other here; maps count as the bottom.
    pub(crate) depth: usize,
}

impl Value {
    pub(crate) fn int(int: i64) -> Self {
        Self::Int(int, IntType::Int)
    }

    pub(crate) fn int64(int: i64) -> Self {
        Self::Int(int, IntType::Int64)
    }

    /// Lengths and places: they always fit.
    pub(crate) fn size(size: usize) -> Self {
        Self::int(i64::try_from(size).unwrap_or(i64::MAX))
    }

    pub(crate) fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(text.as_ref().into())
    }

    /// Whether a condition holds.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Absent | Self::Nil => false,
            Self::Bool(bool) => *bool,
            Self::Int(int, _) => *int != 0,
            Self::Uint(uint, _) => *uint != 0,
            Self::Float(float) => *float != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => map.len() > 0,
            Self::Record(_) | Self::Count(..) | Self::Scratch => true,
        }
    }

    /// The name of its type, as Go has it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Absent | Self::Nil => "nil",
            Self::Bool(_) => "bool",
            Self::Int(_, IntType::Int) => "int",
            Self::Int(_, IntType::Int64) => "int64",
            Self::Uint(_, UintType::Uint8) => "uint8",
            Self::Uint(_, UintType::Uint64) => "uint64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(list) => match list.of {
                Of::Any => "[]interface {}",
                Of::Texts => "[]string",
                Of::Ints => "[]int",
                Of::Records => "[]struct",
            },
            Self::Map(map) => match map.of() {
                Of::Any => "map[string]interface {}",
                Of::Texts => "map[string]string",
                Of::Ints => "map[string]int",
                Of::Records => "map[string]struct",
            },
            Self::Record(record) => record.type_name,
            Self::Count(..) => "<-chan int64",
            Self::Scratch => "*template.Scratch",
        }
    }

    /// The sort of type that it has, as Go has it.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Absent | Self::Nil => "invalid",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Record(_) => "struct",
            Self::Count(..) => "chan",
            Self::Scratch => "ptr",
            Self::Bool(_) | Self::Int(..) | Self::Uint(..) | Self::Float(_) | Self::Text(_) => {
                self.type_name()
            }
        }
    }

    /// How much work it is to look at all of it once.
    pub(crate) fn weight(&self) -> u64 {
        let size = match self {
            Self::List(list) => list.items.len(),
            Self::Map(map) => map.len(),
            Self::Text(text) => text.len() / 64,
            _ => 0,
        };
        u64::try_from(size).unwrap_or(u64::MAX)
    }
}
