//! The functions: a table of them, and how each is found and called.
//!
//! Each file has a part of the table. The page about them is made from the same table.

mod args;
mod ask;
mod builtin;
mod checksums;
mod compare;
mod dicts;
mod encode;
mod escape;
mod lists;
mod numbers;
pub(crate) mod parse;
mod refused;
pub(crate) mod scratch;
mod sprig_lists;
mod sprig_text;
mod text;
mod types;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) use args::{Args, Param};

use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::value::Value;

type Result<T = Value> = std::result::Result<T, Fault>;

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// What it must be given.
    pub(crate) takes: &'static [Param],
    /// What more it may be given, and how many at most.
    pub(crate) more: Option<(Param, usize)>,
    /// What it does, for the page about functions.
    pub(crate) description: &'static str,
    pub(crate) run: Run,
    /// Whether it is as fast for a large value as for a small one, but for what it writes.
    pub(crate) cheap: bool,
}

/// How a function is run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    Plain(fn(&mut Cx<'_>, Args<'_>) -> Result),
    /// Up to the first argument that is false.
    And,
    /// Up to the first argument that is true.
    Or,
}

type Plain = fn(&mut Cx<'_>, Args<'_>) -> Result;

const fn function(
    name: &'static str,
    takes: &'static [Param],
    description: &'static str,
    run: Plain,
) -> Function {
    Function {
        name,
        takes,
        more: None,
        description,
        run: Run::Plain(run),
        cheap: false,
    }
}

impl Function {
    /// It is as fast for a large value as for a small one, but for what it writes.
    const fn cheap(mut self) -> Self {
        self.cheap = true;
        self
    }

    /// It takes any number of these, too.
    const fn and_any(self, param: Param) -> Self {
        self.and_up_to(usize::MAX, param)
    }

    const fn and_up_to(mut self, most: usize, param: Param) -> Self {
        self.more = Some((param, most));
        self
    }

    /// Whether these are its arguments.
    pub(crate) fn check(&self, args: &[Value]) -> Result<()> {
        let most = match self.more {
            None => self.takes.len(),
            Some((_, most)) => self.takes.len().saturating_add(most),
        };
        if args.len() < self.takes.len() || args.len() > most {
            return Err(self.wrong_number(args.len()));
        }
        let more = std::iter::repeat(self.more.map(|(param, _)| param).unwrap_or(Param::Any));
        let params = self.takes.iter().copied().chain(more);
        for (at, (arg, param)) in args.iter().zip(params).enumerate() {
            if !param.takes(arg) {
                let Self { name, .. } = self;
                let (wanted, at, given) = (param.name(), at + 1, arg.type_name());
                let message = format!("{name}: argument {at} must be {wanted}, and is {given}");
                return Err(Fault::failed(message));
            }
        }
        Ok(())
    }

    fn wrong_number(&self, given: usize) -> Fault {
        let Self { name, .. } = self;
        let usage = self.usage();
        Fault::failed(format!(
            "{name}: {given} arguments are not what it takes: {usage}"
        ))
    }

    /// How it is written, by the sorts of its arguments.
    pub(crate) fn usage(&self) -> String {
        let mut usage = self.name.to_owned();
        for param in self.takes {
            usage.push(' ');
            usage.push_str(param.name());
        }
        match self.more {
            None => {}
            Some((param, usize::MAX)) => usage.push_str(&format!(" [{}…]", param.name())),
            Some((param, most)) => {
                for _ in 0..most {
                    usage.push_str(&format!(" [{}]", param.name()));
                }
            }
        }
        usage
    }
}

/// A part of the table.
pub(crate) struct Chapter {
    pub(crate) title: &'static str,
    pub(crate) functions: &'static [Function],
}

/// The table.
pub(crate) const CHAPTERS: &[Chapter] = &[
    Chapter {
        title: "Built in",
        functions: builtin::TABLE,
    },
    Chapter {
        title: "Comparing",
        functions: compare::TABLE,
    },
    Chapter {
        title: "Escaping",
        functions: escape::TABLE,
    },
    Chapter {
        title: "From outside",
        functions: ask::TABLE,
    },
    Chapter {
        title: "Texts",
        functions: text::TABLE,
    },
    Chapter {
        title: "Numbers",
        functions: numbers::TABLE,
    },
    Chapter {
        title: "Lists and maps",
        functions: lists::TABLE,
    },
    Chapter {
        title: "Reading",
        functions: parse::TABLE,
    },
    Chapter {
        title: "Writing",
        functions: encode::TABLE,
    },
    Chapter {
        title: "Checksums and encodings",
        functions: checksums::TABLE,
    },
    Chapter {
        title: "Notes that last through one rendering",
        functions: scratch::TABLE,
    },
    Chapter {
        title: "Sprig: texts",
        functions: sprig_text::TABLE,
    },
    Chapter {
        title: "Sprig: numbers",
        functions: numbers::SPRIG,
    },
    Chapter {
        title: "Sprig: lists",
        functions: sprig_lists::TABLE,
    },
    Chapter {
        title: "Sprig: maps",
        functions: dicts::TABLE,
    },
    Chapter {
        title: "Sprig: types, defaults and encodings",
        functions: types::TABLE,
    },
    Chapter {
        title: "Refused",
        functions: refused::TABLE,
    },
];

static BY_NAME: LazyLock<BTreeMap<&str, &Function>> = LazyLock::new(|| {
    let all = CHAPTERS.iter().flat_map(|chapter| chapter.functions);
    all.map(|function| (function.name, function)).collect()
});

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name).copied()
}

/// Why a function is refused, if it is.
pub(crate) fn refused(name: &str) -> Option<&'static str> {
    refused::reason(name)
}
