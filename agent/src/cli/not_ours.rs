//! Commands that Nomad has and this program has not: what to use instead, so that nobody searches the help
//! for what is not there.

/// The words of a command, and what to say of it. The longest that fits counts.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["acl"],
        "there is no access control yet: keep the API on the loopback address",
    ),
    (
        &["alloc", "pause"],
        "schedules of tasks, which it overrides, are of Nomad's enterprise edition; \"drover job stop\" and \"drover job \
         start\" end a job's tasks and start them again",
    ),
    (&["license"], "Drover needs no licence key"),
    (
        &["login"],
        "there is no access control yet: no login is needed",
    ),
    (
        &["node", "pool", "apply"],
        "a single node has the pools \"default\" and \"all\"; \"node_pool\" of its configuration is another name for it",
    ),
    (
        &["node", "pool", "delete"],
        "a single node has the pools that \"drover node pool list\" shows",
    ),
    (
        &["operator", "autopilot"],
        "a single node has no servers to keep in order",
    ),
    (
        &["operator", "client-state"],
        "\"drover system audit\" and \"drover replay\" show what an agent keeps and did",
    ),
    (
        &["operator", "gossip"],
        "a single node has nobody to gossip with",
    ),
    (
        &["operator", "raft"],
        "a single node has no Raft; its state is one embedded store (see docs/install.md for backups)",
    ),
    (
        &["operator", "snapshot", "agent"],
        "a timer of the machine can run \"drover operator snapshot save\"",
    ),
    (
        &["quota"],
        "quotas are of Nomad's enterprise edition; \"resources\" of a job are counted",
    ),
    (
        &["recommendation"],
        "recommendations are of Nomad's enterprise edition; \"drover top\" shows what tasks use",
    ),
    (
        &["sentinel"],
        "policies in Sentinel are of Nomad's enterprise edition",
    ),
    (
        &["server", "force-leave"],
        "a single node has no other servers",
    ),
    (&["server", "join"], "a single node joins no servers"),
    (
        &["setup"],
        "there is nothing to set up for Consul or Vault, which Drover does not use",
    ),
    (
        &["system", "reconcile"],
        "summaries are never stored, so they cannot be wrong",
    ),
    (
        &["tls"],
        "the API has no TLS yet: keep it on the loopback address",
    ),
    (
        &["ui"],
        "there is no web page yet; \"drover top\" and \"drover status\" show what runs",
    ),
    (
        &["var", "lock"],
        "variables have no locks yet; \"drover var put -check-index\" lets one of several win, and flock(1) holds a lock on \
         this machine for as long as a program runs",
    ),
];

/// What to say of a command line that asks for such a command.
pub(super) fn advice(args: &[String]) -> Option<String> {
    let words: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let fits = |(command, _): &&(&[&str], &str)| words.starts_with(command);
    let (command, advice) = COMMANDS.iter().filter(fits).max_by_key(|one| one.0.len())?;
    Some(format!(
        "\"{}\" is a command of Nomad's that Drover does not have: {advice}",
        command.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn advice_is_for_commands_that_are_not_there() {
        for (words, _) in COMMANDS {
            let mut command = Cli::command();
            let is_there = words.iter().all(|word| {
                let found = command.find_subcommand(word).cloned();
                found.map(|found| command = found).is_some()
            });
            assert!(!is_there, "{words:?} is a command of ours");
        }
    }

    #[test]
    fn advice_names_the_command_without_options() {
        let args = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let advice = advice(&args(&["operator", "-address=x", "raft", "list-peers"]));
        assert!(advice.is_some_and(|words| words.starts_with("\"operator raft\" is a command")));
        assert_eq!(super::advice(&args(&["operator", "api"])), None);
    }
}
