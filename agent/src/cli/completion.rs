//! `drover completion SHELL`: what a shell reads to complete command lines. The scripts ask this program
//! (`drover __complete WORDS…`), so they know options with one dash, and the jobs and allocations of an agent
//! that answers quickly.

use std::time::Duration;

use clap::{Command, CommandFactory};
use serde_json::Value;
use tokio::time::timeout;

use super::args::{Cli, Shell};
use super::context::{Context, Outcome};
use crate::http::dto::{AllocStub, JobStub};

/// Nobody waits longer for names at a key press.
const COMPLETION_TIMEOUT: Duration = Duration::from_millis(500);
/// More names than these help nobody.
const MOST: &str = "100";

const BASH: &str = r#"_drover() {
    local IFS=$'\n'
    COMPREPLY=($(drover __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _drover drover"#;

const ZSH: &str = r#"#compdef drover
_drover() {
    local -a found
    found=("${(@f)$(drover __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n ${found[1]} ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _drover drover"#;

const FISH: &str = r"function __drover_complete
    set -l words (commandline -opc) (commandline -ct)
    drover __complete $words[2..-1] 2>/dev/null
end
complete -c drover -a '(__drover_complete)'";

/// Runs `completion`.
///
/// # Errors
/// Nobody reads any more.
pub(super) fn script(cx: &mut Context, shell: Shell) -> Outcome {
    cx.screen.print_line(match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    })?;
    Ok(0)
}

/// Runs `__complete`: what the last of `words` may become, one a line.
///
/// # Errors
/// Nobody reads any more.
pub(super) async fn complete(cx: &mut Context, words: &[String]) -> Outcome {
    let (begun, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", words),
    };
    let cli = Cli::command();
    let at = Position::after(&cli, before);
    let mut found = at.candidates(begun);
    if let (Some(kind), false) = (at.takes, begun.starts_with('-')) {
        found.extend(names(cx, kind, begun).await);
    }
    if !found.is_empty() {
        cx.screen.print_line(&found.join("\n"))?;
    }
    Ok(0)
}

/// What an agent knows names of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Job,
    Alloc,
    Policy,
    Token,
}

/// Where a command line stands.
struct Position<'a> {
    command: &'a Command,
    /// Of what its next word is the name.
    takes: Option<Kind>,
}

impl<'a> Position<'a> {
    fn after(cli: &'a Command, words: &[String]) -> Position<'a> {
        let mut command = cli;
        let mut named = 0;
        for word in words.iter().filter(|word| !word.starts_with('-')) {
            match command.find_subcommand(word) {
                Some(below) => command = below,
                None => named += 1,
            }
        }
        let next = command.get_positionals().nth(named);
        let takes = next.and_then(|arg| match arg.get_id().as_str() {
            "job" | "jobs" => Some(Kind::Job),
            "alloc" => Some(Kind::Alloc),
            "accessor" => Some(Kind::Token),
            "policy" => Some(Kind::Policy),
            // Of whatever it may be, a job is the most likely.
            "id" if command.get_name() == "explain" => Some(Kind::Job),
            "id" => Some(Kind::Alloc),
            _ => None,
        });
        Position { command, takes }
    }

    /// Commands and options that begin so.
    fn candidates(&self, begun: &str) -> Vec<String> {
        let Some(option) = begun.strip_prefix('-') else {
            let below = self.command.get_subcommands();
            let shown = below.filter(|one| !one.is_hide_set());
            let names = shown.map(|one| one.get_name().to_owned());
            return names.filter(|name| name.starts_with(begun)).collect();
        };
        let dash = if option.starts_with('-') { "--" } else { "-" };
        let option = option.trim_start_matches('-');
        let shown = self
            .command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set());
        let names = shown.filter_map(clap::Arg::get_long);
        let names = names.filter(|name| name.starts_with(option));
        names.map(|name| format!("{dash}{name}")).collect()
    }
}

/// Names that an agent knows and that begin so; none if it does not answer in time.
async fn names(cx: &Context, kind: Kind, begun: &str) -> Vec<String> {
    let query = [("prefix", begun), ("per_page", MOST)];
    let asked = async {
        match kind {
            Kind::Job => {
                let jobs: Vec<JobStub> = cx.client.get("/v1/jobs", &query).await.ok()?;
                Some(jobs.into_iter().map(|job| job.id).collect())
            }
            Kind::Alloc => {
                // Agents want whole bytes.
                let even = &begun[..begun.len() - begun.len() % 2];
                let query = [("prefix", even), ("per_page", MOST)];
                let allocs: Vec<AllocStub> = cx.client.get("/v1/allocations", &query).await.ok()?;
                let ids = allocs.into_iter().map(|alloc| alloc.id);
                Some(ids.filter(|id| id.starts_with(begun)).collect())
            }
            Kind::Policy => fields(cx, "/v1/acl/policies", "Name", begun).await,
            Kind::Token => fields(cx, "/v1/acl/tokens", "AccessorID", begun).await,
        }
    };
    timeout(COMPLETION_TIMEOUT, asked)
        .await
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// This field of everything in a list that begins so there.
async fn fields(cx: &Context, path: &str, field: &str, begun: &str) -> Option<Vec<String>> {
    let all: Vec<Value> = cx.client.get(path, &[("prefix", begun)]).await.ok()?;
    let names = all.iter().filter_map(|one| one.get(field)?.as_str());
    let names = names.filter(|name| name.starts_with(begun));
    Some(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (begun, before) = words.split_last().unwrap();
        Position::after(&Cli::command(), before).candidates(begun)
    }

    fn takes(words: &[&str]) -> Option<Kind> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Position::after(&Cli::command(), &words).takes
    }

    #[test]
    fn commands_and_options_are_completed() {
        assert_eq!(candidates(&["expl"]), ["explain"]);
        assert_eq!(candidates(&["alloc", "ex"]), ["exec"]);
        assert_eq!(candidates(&["job", "run", "-deta"]), ["-detach"]);
        assert_eq!(candidates(&["job", "run", "--deta"]), ["--detach"]);
        assert!(!candidates(&[""]).iter().any(|name| name.starts_with("__")));
    }

    #[test]
    fn arguments_take_names_of_their_kind() {
        assert_eq!(takes(&["job", "status"]), Some(Kind::Job));
        assert_eq!(takes(&["job", "status", "-verbose"]), Some(Kind::Job));
        assert_eq!(takes(&["job", "status", "web"]), None);
        assert_eq!(takes(&["alloc", "status"]), Some(Kind::Alloc));
        assert_eq!(takes(&["acl", "policy", "info"]), Some(Kind::Policy));
        assert_eq!(takes(&["acl", "token", "delete"]), Some(Kind::Token));
        assert_eq!(takes(&["job", "run"]), None);
    }
}
