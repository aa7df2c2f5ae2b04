//! Commands and options that Nomad has and this program has not: what to use instead, so that nobody searches
//! the help for what is not there.

/// The words of a command, and what to say of it. The longest that fits counts.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["acl", "auth-method"],
        "nobody logs in by another service: \"drover acl token create\" makes a token",
    ),
    (
        &["acl", "binding-rule"],
        "nobody logs in by another service: \"drover acl token create\" makes a token",
    ),
    (
        &["acl", "policy", "self"],
        "tasks have no policies of their own; \"drover acl token self\" shows those of a token",
    ),
    (
        &["acl", "role"],
        "a token names its policies itself: \"drover acl token create -policy NAME\", once for each",
    ),
    (
        &["alloc", "pause"],
        "schedules of tasks, which it overrides, are of Nomad's enterprise edition; \"drover job stop\" and \"drover job \
         start\" end a job's tasks and start them again",
    ),
    (
        &["check"],
        "\"drover operator api /v1/agent/health\" ends with exit code 0 if the agent is well",
    ),
    (
        &["eval", "delete"],
        "a queue of evaluations never piles up on a single node; \"drover system gc\" removes those that are over",
    ),
    (&["keygen"], "a single node has nobody to gossip with"),
    (
        &["keyring"],
        "a single node has nobody to gossip with; \"drover operator root keyring\" is about the key of variables",
    ),
    (&["license"], "Drover needs no licence key"),
    (
        &["login"],
        "nobody logs in by another service: \"drover acl token create\" makes a token, and NOMAD_TOKEN holds it",
    ),
    (
        &["monitor", "export"],
        "the agent's log goes where its standard error output goes: journalctl -u drover shows it where systemd runs the \
         agent, and \"drover monitor\" follows it",
    ),
    (
        &["node", "identity"],
        "a single node needs no identity that servers would check",
    ),
    (
        &["node", "intro"],
        "a single node is introduced to nobody; for one that joins a cluster, ask a server: nomad node intro create",
    ),
    (
        &["node", "pool", "init"],
        "a single node has the pools \"default\" and \"all\", so there is none to describe in a file",
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
        &["operator", "keygen"],
        "a single node has nobody to gossip with",
    ),
    (
        &["operator", "keyring"],
        "a single node has nobody to gossip with; \"drover operator root keyring\" is about the key of variables",
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
        &["operator", "snapshot", "redact"],
        "what a snapshot holds is encrypted with the root key, which is not in it",
    ),
    (
        &["operator", "utilization"],
        "reports of use are of Nomad's enterprise edition; \"drover operator metrics\" shows the agent's numbers",
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
        &["service", "delete"],
        "a registration lasts as long as its task runs: \"drover alloc stop\" or \"drover job stop\" ends both",
    ),
    (
        &["server-force-leave"],
        "a single node has no other servers",
    ),
    (&["server-join"], "a single node joins no servers"),
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
        "openssl(1) makes certificates, and so does Nomad's program; the block \"tls\" of the agent's configuration uses them",
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
    (
        &["volume", "claim"],
        "claims belong to allocations of clusters; \"drover volume status\" shows who uses a volume",
    ),
    (
        &["volume", "deregister"],
        "\"drover volume delete\" forgets a volume that was registered, and leaves its directory where it is",
    ),
    (
        &["volume", "detach"],
        "host volumes are attached to nothing: stop the job that uses one",
    ),
    (
        &["volume", "snapshot"],
        "snapshots are of storage plugins (CSI), which there are none of here; the file system's own do the same for a \
         host volume's directory",
    ),
];

/// What is said of all that concerns a program that Drover does not use.
const NO_CONSUL: &str = "Drover does not use Consul; services are its own (docs/checks.md)";
const NO_VAULT: &str = "Drover does not use Vault; variables are its own (docs/variables.md)";
const NO_ROLES: &str = "a token names its policies itself: -policy NAME, once for each";
const ONE_NODE: &str = "a single node has no others to choose from";
const IN_FILE: &str = "it is a setting of the agent's configuration file (docs/agent.md)";
const NO_CSI: &str = "it is for storage plugins (CSI), which there are none of here";
const OWN_PRIORITY: &str = "a job is planned by its own priority: set that in the job file";
const NO_CLUSTER: &str =
    "it is for Nomad's servers; a single node is its own, and -servers names those of a cluster";

/// The command that an option is of, the option, or what options begin with and a star, and what to say of it.
/// The first that fits counts.
const OPTIONS: &[(&[&str], &str, &str)] = &[
    (
        &[],
        "ui",
        "there is no web page yet; \"drover top\" and \"drover status\" show what runs",
    ),
    (&[], "consul-*", NO_CONSUL),
    (&[], "vault-*", NO_VAULT),
    (&[], "eval-priority", OWN_PRIORITY),
    (
        &["acl", "policy", "apply"],
        "job",
        "a policy belongs to tokens: tasks have no rights by their identity yet",
    ),
    (
        &["acl", "token", "create"],
        "accessor",
        "the agent makes ids and secrets of tokens; the first one may have a secret of yours (\"drover acl bootstrap FILE\")",
    ),
    (&["acl", "token"], "role-*", NO_ROLES),
    (
        &["agent"],
        "acl-*",
        "it is a setting of the agent's configuration file: acl { enabled = true } (docs/access.md)",
    ),
    (
        &["agent"],
        "alloc-dir",
        "allocations are in the data directory (-data-dir)",
    ),
    (
        &["agent"],
        "state-dir",
        "the state is in the data directory (-data-dir)",
    ),
    (
        &["agent"],
        "bind",
        "where the API listens is set by -http ADDR:PORT",
    ),
    (&["agent"], "client", "an agent always runs jobs"),
    (
        &["agent"],
        "server",
        "an agent is its own server, unless -servers names those of a cluster",
    ),
    (&["agent"], "dev-connect", NO_CONSUL),
    (&["agent"], "dev-consul", NO_CONSUL),
    (&["agent"], "dev-vault", NO_VAULT),
    (&["agent"], "eventlog*", "the event log is of Windows"),
    (&["agent"], "host-volume*", IN_FILE),
    (
        &["agent"],
        "log-include-location",
        "log lines name the module that writes them",
    ),
    (&["agent"], "meta", IN_FILE),
    (&["agent"], "network-*", IN_FILE),
    (&["agent"], "node-*", IN_FILE),
    (&["agent"], "preferred-address-family", IN_FILE),
    (&["agent"], "bootstrap-expect", NO_CLUSTER),
    (&["agent"], "encrypt", NO_CLUSTER),
    (&["agent"], "join", NO_CLUSTER),
    (&["agent"], "raft-protocol", NO_CLUSTER),
    (&["agent"], "rejoin", NO_CLUSTER),
    (&["agent"], "retry-*", NO_CLUSTER),
    (&["job", "init"], "connect", NO_CONSUL),
    (&["init"], "connect", NO_CONSUL),
    (&["operator", "debug"], "node-*", ONE_NODE),
    (&["operator", "debug"], "server-id", ONE_NODE),
    (&["operator", "debug"], "max-nodes", ONE_NODE),
    (&["operator", "debug"], "stale", ONE_NODE),
    (
        &["operator", "debug"],
        "event-*",
        "all that changed is in the recording, which the archive has",
    ),
    (
        &["operator", "debug"],
        "log-*",
        "the archive has the log from its beginning on; journalctl -u drover shows earlier lines",
    ),
    (
        &["operator", "debug"],
        "pprof-*",
        "an agent measures no profiles of itself; perf(1) does",
    ),
    (
        &["operator", "debug"],
        "verbose",
        "what it captures is always shown",
    ),
    (
        &["operator", "root", "keyring", "remove"],
        "force",
        "variables that a key encrypts could never be read again: \"drover operator root keyring rotate -full\" encrypts \
         them with another first",
    ),
    (
        &["operator", "root", "keyring", "rotate"],
        "prepublish",
        "a key is used as soon as it is made, since there are no other servers that have to know it first",
    ),
    (
        &["operator", "snapshot", "save"],
        "redact",
        "what a snapshot holds is encrypted with the root key, which is not in it",
    ),
    (
        &["operator", "snapshot", "state"],
        "filter",
        "-t shows a part of it, and jq(1) filters the rest",
    ),
    (
        &["volume", "create"],
        "id",
        "a volume does not change: delete it and make another",
    ),
    (
        &["volume", "register"],
        "id",
        "a volume does not change: delete it and register another",
    ),
    (
        &["volume", "delete"],
        "force",
        "its node is this one, which is there",
    ),
    (&["volume", "delete"], "secret", NO_CSI),
];

/// What to say of an option of a command line that clap does not know: `--ui` or `-ui=true`.
pub(super) fn option_advice(args: &[String], option: &str) -> Option<String> {
    let name = option.trim_start_matches('-');
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    let words: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_meant = |known: &str| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == known,
    };
    let fits = |(command, known, _): &&(&[&str], &str, &str)| {
        words.starts_with(command) && is_meant(known)
    };
    let (_, _, advice) = OPTIONS.iter().find(fits)?;
    Some(format!(
        "\"-{name}\" is an option of Nomad's that Drover does not have: {advice}"
    ))
}

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
    fn advice_is_for_options_that_are_not_there() {
        for (words, option, _) in OPTIONS {
            let mut command = Cli::command();
            for word in *words {
                let below = command.find_subcommand(word).cloned();
                command = below.unwrap_or_else(|| panic!("{words:?} is no command of ours"));
            }
            let mut own = command.get_arguments().filter_map(clap::Arg::get_long);
            let known = own.any(|name| name == *option);
            assert!(!known, "{words:?} has {option}");
        }
    }

    #[test]
    fn advice_about_an_option_is_that_of_its_command() {
        let advice = |command: &str, option| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            option_advice(&words, option)
        };
        let words = advice("job run web.hcl", "--vault-namespace=x").unwrap_or_default();
        assert!(
            words.starts_with("\"-vault-namespace\" is an option of Nomad's"),
            "{words}"
        );
        assert!(advice("agent", "--join").is_some());
        assert_eq!(advice("job run web.hcl", "--join"), None);
        assert_eq!(advice("job run web.hcl", "--detatch"), None);
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
