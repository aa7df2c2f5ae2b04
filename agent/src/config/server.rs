//! The block `server`: how this node chooses what runs. It is its own only server, so nothing else of
//! Nomad's block has a meaning here.
//!
//! ```hcl
//! server {
//!   default_scheduler_config {
//!     preemption_config {                  # who may take ports and devices of less important jobs
//!       system_scheduler_enabled   = true  # as without this block; the others are off
//!       service_scheduler_enabled  = true
//!       batch_scheduler_enabled    = true
//!       sysbatch_scheduler_enabled = true
//!     }
//!   }
//! }
//! ```

use drover_core::config::Preemption;
use drover_core::text::quote;
use hcl_edit::structure::{Block, Body};

use super::literal::fields;
use super::{once, unknown};

/// Settings of Nomad's block that have no effect here: they are about many servers.
const WITHOUT_EFFECT: &[&str] = &[
    "authoritative_region",
    "batch_eval_gc_threshold",
    "bootstrap_expect",
    "data_dir",
    "deployment_gc_threshold",
    "encrypt",
    "enabled_schedulers",
    "eval_gc_threshold",
    "event_buffer_size",
    "heartbeat_grace",
    "job_gc_interval",
    "job_gc_threshold",
    "job_max_priority",
    "job_default_priority",
    "job_tracked_versions",
    "max_heartbeats_per_second",
    "min_heartbeat_ttl",
    "node_gc_threshold",
    "num_schedulers",
    "raft_multiplier",
    "raft_protocol",
    "rejoin_after_leave",
    "retry_join",
    "start_join",
    "upgrade_version",
];

/// Blocks of it that have none.
const BLOCKS_WITHOUT_EFFECT: &[&str] = &[
    "client_introduction",
    "plan_rejection_tracker",
    "raft_boltdb",
    "raft_logstore",
    "search",
    "server_join",
];

/// What the block says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// Whose jobs may preempt jobs of lower priority.
    pub preemption: Preemption,
    /// Whether the agent is a server, so that the cluster is itself.
    pub enabled: bool,
    /// What is given and has no effect here.
    pub ignored: Vec<String>,
}

/// Reads the block.
pub(super) fn server(block: &Block) -> Result<ServerConfig, String> {
    let mut given = fields(&block.body)?;
    let enabled = given.flag("enabled")?.unwrap_or(false);
    let ignored = given.ignore(WITHOUT_EFFECT);
    given.nothing_else("server")?;
    let mut config = ServerConfig {
        ignored: ignored
            .iter()
            .map(|name| format!("server.{name}"))
            .collect(),
        enabled,
        ..ServerConfig::default()
    };
    let mut found = None;
    for inner in block.body.blocks() {
        match inner.ident.as_str() {
            "default_scheduler_config" => {
                once(&mut found, inner, scheduler).map_err(|why| format!("server: {why}"))?;
            }
            name if BLOCKS_WITHOUT_EFFECT.contains(&name) => {
                config.ignored.push(format!("server.{name}"));
            }
            other => {
                let why = unknown("block", other, &["default_scheduler_config"]);
                return Err(format!("server: {why}"));
            }
        }
    }
    config.preemption = found.unwrap_or_default();
    Ok(config)
}

fn scheduler(block: &Block) -> Result<Preemption, String> {
    let about = "default_scheduler_config";
    fields(&block.body)?.nothing_else(about)?;
    let config = only_block(&block.body, about, "preemption_config", preemption)?;
    Ok(config.unwrap_or_default())
}

/// What the one block says that may be in a body.
fn only_block<T>(
    body: &Body,
    about: &str,
    name: &str,
    read: fn(&Block) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let mut found = None;
    for inner in body.blocks() {
        if inner.ident.as_str() != name {
            let why = unknown("block", inner.ident.as_str(), &[name]);
            return Err(format!("{about}: {why}"));
        }
        once(&mut found, inner, read).map_err(|why| format!("{about}: {why}"))?;
    }
    Ok(found)
}

fn preemption(block: &Block) -> Result<Preemption, String> {
    let mut given = fields(&block.body)?;
    let mut config = Preemption::default();
    for (name, allowed) in [
        ("system_scheduler_enabled", &mut config.system),
        ("service_scheduler_enabled", &mut config.service),
        ("batch_scheduler_enabled", &mut config.batch),
        ("sysbatch_scheduler_enabled", &mut config.sysbatch),
    ] {
        if let Some(wanted) = given.flag(name)? {
            *allowed = wanted;
        }
    }
    given.nothing_else("preemption_config")?;
    match block.body.blocks().next() {
        None => Ok(config),
        Some(inner) => Err(format!(
            "preemption_config: unexpected block {}",
            quote(inner.ident.as_str())
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn with(settings: &str) -> Result<Preemption, String> {
        let text = format!(
            "server {{\n default_scheduler_config {{\n preemption_config {{\n{settings}\n}}\n}}\n}}"
        );
        parse(&text).map(|config| config.preemption)
    }

    #[test]
    fn preemption_is_configurable_by_job_type() {
        let some = with("service_scheduler_enabled = true\nsystem_scheduler_enabled = false");
        let expected = Preemption {
            service: true,
            system: false,
            ..Preemption::default()
        };
        assert_eq!(some, Ok(expected));
        for text in ["", "server {}", "server {\n default_scheduler_config {}\n}"] {
            let config = parse(text).unwrap();
            assert_eq!(config.preemption, Preemption::default(), "{text}");
        }
        assert!(Preemption::default().system, "as in Nomad");
    }

    #[test]
    fn invalid_setting_is_refused_by_name() {
        for (text, expected) in [
            ("server {\n enabledd = true\n}", "did you mean enabled?"),
            ("server {\n enabled = 1\n}", "true or false is needed"),
            (
                "server {\n raft {}\n}",
                "known are default_scheduler_config",
            ),
            (
                "server {\n default_scheduler_config {\n preemption {}\n}\n}",
                "known are preemption_config",
            ),
            (
                "server {\n default_scheduler_config {}\n default_scheduler_config {}\n}",
                "is there twice",
            ),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        let why = with("service_scheduler_enabled = 1").unwrap_err();
        assert!(why.contains("true or false is needed"), "{why}");
        let why = with("services_enabled = true").unwrap_err();
        assert!(why.contains("unknown setting"), "{why}");
        let why = with("more {}").unwrap_err();
        assert!(why.contains("unexpected block"), "{why}");
    }
}
