//! A template that was read.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Position;
use crate::functions::Function;

/// What is between two places where control may go.
pub(crate) type Body = Vec<Node>;

#[derive(Debug)]
pub(crate) enum Node {
    /// Text as it is, by its place in the template.
    Text(Range<usize>),
    /// `{{pipeline}}`
    Action(Pipe),
    /// `{{if}}`
    If(Choice),
    /// `{{with}}`
    With(Choice),
    /// `{{range}}`
    Range(Loop),
    /// `{{template "name" pipeline}}`
    Template {
        position: Position,
        name: Arc<[u8]>,
        data: Option<Pipe>,
    },
    /// `{{break}}`
    Break,
    /// `{{continue}}`
    Continue,
}

/// The first arm whose pipeline is true. `else if` is one more arm, so that a long chain of them
/// is not deep.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) arms: Vec<(Pipe, Body)>,
    pub(crate) otherwise: Body,
}

#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) position: Position,
    pub(crate) over: Pipe,
    pub(crate) body: Body,
    /// If there was nothing to go over.
    pub(crate) otherwise: Body,
}

/// Commands, each of which gets what the one before it said as its last argument.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) sets: Sets,
    pub(crate) commands: Vec<Command>,
}

/// Which variables a pipeline sets, by their places on the stack of variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sets {
    Nothing,
    /// `$x :=`, or `$i, $x :=`
    New {
        first: usize,
        count: usize,
    },
    /// `$x =`, or `$i, $x =`
    Old(Vec<usize>),
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) position: Position,
    pub(crate) words: Vec<Word>,
}

#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) position: Position,
    pub(crate) kind: WordKind,
}

#[derive(Debug)]
pub(crate) enum WordKind {
    /// `.`
    Dot,
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<[u8]>),
    /// `.a.b`
    Fields(Vec<Arc<[u8]>>),
    /// `$x.a.b`
    Variable(usize, Vec<Arc<[u8]>>),
    Function(&'static Function),
    /// `(pipeline)`
    Group(Box<Pipe>),
    /// `(pipeline).a.b`, or `function.a.b`
    Chain(Box<Word>, Vec<Arc<[u8]>>),
}
