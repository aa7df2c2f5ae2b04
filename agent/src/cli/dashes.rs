//! Long options with one dash, as users of Nomad write them: `-detach`, `-data-dir=DIR`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::{ArgAction, Command};

/// Rewrites what is written in Nomad's manner for clap: known long names get two dashes, a
/// separate value is joined to its name, and `-flag=true` becomes the flag alone. Other words get
/// two dashes as well, for what clap then says of them, unless they may be short options in a row
/// or with a value. Everything after `--` stays, and so does somebody else's command: what follows
/// the first word of a command that ends with one.
pub(super) fn rewrite(
    command: &Command,
    args: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut known = BTreeMap::new();
    collect(command, &mut known);
    let mut current = command;
    let mut args = args.into_iter();
    let mut out: Vec<OsString> = args.next().into_iter().collect();
    while let Some(arg) = args.next() {
        if arg == "--" {
            out.push(arg);
            out.extend(args);
            break;
        }
        let Some((name, value)) = arg.to_str().and_then(split) else {
            let takes = takes_next(current, &arg);
            let below = current.find_subcommand(&arg);
            let is_word = below.is_none() && !arg.to_string_lossy().starts_with('-');
            current = below.unwrap_or(current);
            out.push(arg);
            if is_word && ends_with_a_command(current) {
                out.extend(args);
                break;
            }
            if takes {
                out.extend(args.next());
            }
            continue;
        };
        let name = name.to_owned();
        // The same name may take a value in one command and none in another.
        let mut own = current.get_arguments();
        let own = own.find(|arg| arg.get_long() == Some(name.as_str()));
        if own.is_some_and(clap::Arg::is_require_equals_set) {
            // A switch that may be written with its value; the next word is none of its.
            let value = value.map_or_else(String::new, |value| format!("={value}"));
            out.push(format!("--{name}{value}").into());
            continue;
        }
        let takes = own.map(takes_value);
        match (takes.or_else(|| known.get(&name).copied()), value) {
            (None, _) if begins_short(current, &name) => out.push(arg),
            (None, None) => out.push(format!("--{name}").into()),
            (None, Some(value)) => out.push(format!("--{name}={value}").into()),
            (Some(false), Some("true" | "1" | "t")) | (Some(false), None) => {
                out.push(format!("--{name}").into());
            }
            (Some(false), Some("false" | "0" | "f")) => {}
            (Some(_), Some(value)) => out.push(format!("--{name}={value}").into()),
            (Some(true), None) => {
                let mut joined = OsString::from(format!("--{name}"));
                if let Some(value) = args.next() {
                    joined.push("=");
                    joined.push(value);
                }
                out.push(joined);
            }
        }
    }
    out
}

/// Whether this is a short option whose value is the next argument.
fn takes_next(command: &Command, arg: &OsStr) -> bool {
    let Some([b'-', short]) = arg.to_str().map(str::as_bytes) else {
        return false;
    };
    let own = |arg: &&clap::Arg| arg.get_short() == Some(char::from(*short));
    let found = command.get_arguments().find(own);
    found.is_some_and(|arg| takes_value(arg) && !arg.is_require_equals_set())
}

fn takes_value(arg: &clap::Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Whether the last arguments of this command are a program's.
fn ends_with_a_command(command: &Command) -> bool {
    let mut all = command.get_arguments();
    all.any(clap::Arg::is_trailing_var_arg_set)
}

/// The name and value of something that looks like a long option.
fn split(arg: &str) -> Option<(&str, Option<&str>)> {
    let rest = arg.strip_prefix('-')?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    };
    (name.len() > 1).then_some((name, value))
}

/// Whether this may be a short option of the command, with more of them or its value behind it. A
/// number is no name at all.
fn begins_short(command: &Command, name: &str) -> bool {
    let first = name.chars().next();
    let mut short = command.get_arguments().filter_map(clap::Arg::get_short);
    short.any(|short| Some(short) == first) || !name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Every long name of a command and those below it, and whether it takes a value.
fn collect(command: &Command, known: &mut BTreeMap<String, bool>) {
    for arg in command.get_arguments() {
        if let Some(name) = arg.get_long() {
            known.insert(name.to_owned(), takes_value(arg));
        }
    }
    known.insert("help".to_owned(), false);
    for below in command.get_subcommands() {
        collect(below, known);
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Cli;

    fn rewritten(args: &[&str]) -> Vec<String> {
        let args = args.iter().map(OsString::from);
        let out = rewrite(&Cli::command(), args);
        out.into_iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn unknown_name_becomes_long_option() {
        let given = ["drover", "run", "-detatch", "-v4r=x", "-10", "x.hcl"];
        let wanted = ["drover", "run", "--detatch", "--v4r=x", "-10", "x.hcl"];
        assert_eq!(rewritten(&given), wanted);
        let short = ["drover", "operator", "api", "-d{}", "-XPUT", "/v1/jobs"];
        assert_eq!(rewritten(&short), short);
        let short = ["drover", "alloc", "logs", "-fn", "5", "abcd"];
        assert_eq!(rewritten(&short), short);
    }

    #[test]
    fn words_of_another_program_are_left_alone() {
        let given = [
            "drover", "alloc", "exec", "-t=false", "-e", "none", "-job", "web", "/bin/ls", "-la",
            "-job", "--", "-task",
        ];
        let wanted = [
            "drover", "alloc", "exec", "-t=false", "-e", "none", "--job", "web", "/bin/ls", "-la",
            "-job", "--", "-task",
        ];
        assert_eq!(rewritten(&given), wanted);
        let given = ["drover", "action", "-job", "web", "-task", "main", "greet"];
        let wanted = ["drover", "action", "--job=web", "--task=main", "greet"];
        assert_eq!(rewritten(&given), wanted);
    }

    #[test]
    fn long_option_with_one_dash_is_accepted() {
        let given = [
            "drover",
            "run",
            "-detach",
            "-var",
            "a=b",
            "-check-index=7",
            "web.hcl",
        ];
        let wanted = [
            "drover",
            "run",
            "--detach",
            "--var=a=b",
            "--check-index=7",
            "web.hcl",
        ];
        assert_eq!(rewritten(&given), wanted);
    }

    #[test]
    fn switch_that_is_on_may_be_turned_off() {
        let given = ["drover", "fmt", "-list", "-write=false", "a.hcl"];
        let wanted = ["drover", "fmt", "--list", "--write=false", "a.hcl"];
        assert_eq!(rewritten(&given), wanted);
    }

    #[test]
    fn short_options_and_unknown_arguments_are_unchanged() {
        let given = [
            "drover",
            "logs",
            "-f",
            "-n",
            "5",
            "-nonsense",
            "--",
            "-detach",
        ];
        assert_eq!(rewritten(&given), given);
    }

    #[test]
    fn flag_with_true_or_false_is_accepted() {
        let given = [
            "drover",
            "stop",
            "-purge=true",
            "-detach=false",
            "--yes",
            "-hcl2-strict=false",
        ];
        assert_eq!(
            rewritten(&given),
            ["drover", "stop", "--purge", "--yes", "--hcl2-strict=false"]
        );
    }

    #[test]
    fn clap_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
