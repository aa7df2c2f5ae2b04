//! The functions of job files.
//!
//! Not supported, with an error that says so: `bcrypt` (a different result each time would make
//! every submission a change) and `rsadecrypt` (private keys do not belong into job files).

mod args;
mod collections;
mod encoding;
mod files;
mod format;
mod hash;
mod network;
mod numbers;
mod sets;
mod strings;
mod time;

use std::path::Path;

use super::bounds::Exhausted;
use super::error::did_you_mean;
use super::eval::value::Val;

/// What functions may use besides their arguments.
pub(crate) struct Context<'a> {
    /// The directory of the job file, if functions may read files.
    pub(crate) files: Option<&'a Path>,
}

/// Why a function has no result.
pub(crate) enum Refused {
    Because(String),
    Exhausted,
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Because(why)
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        Refused::Because(why.to_owned())
    }
}

impl From<Exhausted> for Refused {
    fn from(_: Exhausted) -> Refused {
        Refused::Exhausted
    }
}

type Outcome = Result<Val, Refused>;

/// One function.
pub(crate) struct Function {
    name: &'static str,
    /// How many arguments it needs and takes.
    arity: (usize, usize),
    /// Whether it looks at the text of its arguments or changes it, which it cannot do with
    /// references that are resolved at run time.
    pub(crate) reads_inside: bool,
    run: fn(&Context<'_>, &[Val]) -> Outcome,
}

impl Function {
    /// A function that looks at its arguments.
    const fn new(
        name: &'static str,
        arity: (usize, usize),
        run: fn(&Context<'_>, &[Val]) -> Outcome,
    ) -> Function {
        Function {
            name,
            arity,
            reads_inside: true,
            run,
        }
    }

    /// A function that only moves its arguments, or puts them together.
    const fn moving(
        name: &'static str,
        arity: (usize, usize),
        run: fn(&Context<'_>, &[Val]) -> Outcome,
    ) -> Function {
        Function {
            name,
            arity,
            reads_inside: false,
            run,
        }
    }

    pub(crate) fn call(&self, context: &Context<'_>, args: &[Val]) -> Outcome {
        let (min, max) = self.arity;
        if (min..=max).contains(&args.len()) {
            return (self.run)(context, args);
        }
        let wanted = match (min, max) {
            (min, max) if min == max => min.to_string(),
            (min, MANY) => format!("at least {min}"),
            (min, max) => format!("{min} to {max}"),
        };
        let plural = if wanted == "1" || wanted == "at least 1" {
            ""
        } else {
            "s"
        };
        let message = format!("needs {wanted} argument{plural}, not {}", args.len());
        Err(Refused::Because(message))
    }
}

/// No upper limit of arguments.
const MANY: usize = usize::MAX;

/// No function of this name can be called.
pub(crate) struct NoFunction {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

const TABLES: [&[Function]; 9] = [
    strings::FUNCTIONS,
    format::FUNCTIONS,
    collections::FUNCTIONS,
    sets::FUNCTIONS,
    numbers::FUNCTIONS,
    encoding::FUNCTIONS,
    hash::FUNCTIONS,
    network::FUNCTIONS,
    time::FUNCTIONS,
];

fn all() -> impl Iterator<Item = &'static Function> {
    TABLES.into_iter().flatten().chain(files::FUNCTIONS)
}

/// The function of this name.
pub(crate) fn find(name: &str) -> Result<&'static Function, NoFunction> {
    if let Some(function) = all().find(|function| function.name == name) {
        return Ok(function);
    }
    let unsupported = match name {
        "bcrypt" => Some("Hash the password beforehand and write the hash into the job file."),
        "rsadecrypt" => Some("Decrypt the text beforehand and pass it as a variable."),
        _ => None,
    };
    if let Some(help) = unsupported {
        return Err(NoFunction {
            message: format!("the function {name} is not supported"),
            help: Some(help.to_owned()),
        });
    }
    let special = ["try", "can", "convert"].into_iter();
    Err(NoFunction {
        message: format!("there is no function {name}"),
        help: did_you_mean(name, all().map(|function| function.name).chain(special)),
    })
}
