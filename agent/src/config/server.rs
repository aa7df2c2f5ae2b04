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
    "acl_token_gc_threshold",
    "authoritative_region",
    "batch_eval_gc_threshold",
    "bootstrap_expect",
    "csi_plugin_gc_threshold",
    "csi_volume_claim_gc_interval",
    "csi_volume_claim_gc_threshold",
    "data_dir",
    "deploy_query_rate_limit",
    "deployment_gc_threshold",
    "enable_event_broker",
    "enabled_schedulers",
    "encrypt",
    "eval_gc_threshold",
    "event_buffer_size",
    "failover_heartbeat_ttl",
    "heartbeat_grace",
    "job_default_priority",
    "job_gc_interval",
    "job_gc_threshold",
    "job_max_count",
    "job_max_priority",
    "job_max_source_size",
    "job_tracked_versions",
    "license_path",
    "log_file",
    "max_heartbeats_per_second",
    "min_heartbeat_ttl",
    "node_gc_threshold",
    "non_production",
    "non_voting_server",
    "num_schedulers",
    "oidc_issuer",
    "plan_apply_pipeline",
    "protocol_version",
    "raft_multiplier",
    "raft_protocol",
    "raft_snapshot_interval",
    "raft_snapshot_threshold",
    "raft_trailing_logs",
    "redundancy_zone",
    "rejoin_after_leave",
    "retry_interval",
    "retry_join",
    "retry_max",
    "root_key_gc_interval",
    "root_key_gc_threshold",
    "root_key_rotation_threshold",
    "start_join",
    "start_timeout",
    "upgrade_version",
];

/// Blocks of it that have none.
const BLOCKS_WITHOUT_EFFECT: &[&str] = &[
    "client_introduction",
    "plan_apply_pipeline",
    "plan_rejection_tracker",
    "raft_boltdb",
    "raft_logstore",
    "search",
    "server_join",
];

/// The block that has an effect.
const SCHEDULER: &str = "default_scheduler_config";

/// Settings of that block that have none: requests change what they are about.
const OF_SCHEDULER_WITHOUT_EFFECT: &[&str] = &[
    "memory_oversubscription_enabled",
    "node_limit_for_feasibility",
    "pause_eval_broker",
    "reject_job_registration",
    "scheduler_algorithm",
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
            SCHEDULER => {
                once(&mut found, inner, scheduler).map_err(|why| format!("server: {why}"))?;
            }
            name if BLOCKS_WITHOUT_EFFECT.contains(&name) => {
                config.ignored.push(format!("server.{name}"));
            }
            other => {
                let known = [&[SCHEDULER], BLOCKS_WITHOUT_EFFECT].concat();
                let why = unknown("block", other, &known);
                return Err(format!("server: {why}"));
            }
        }
    }
    let (preemption, without_effect) = found.unwrap_or_default();
    config.preemption = preemption;
    config.ignored.extend(without_effect);
    Ok(config)
}

/// What the block says, and what of it has no effect.
fn scheduler(block: &Block) -> Result<(Preemption, Vec<String>), String> {
    let mut given = fields(&block.body)?;
    let ignored = given.ignore(OF_SCHEDULER_WITHOUT_EFFECT).into_iter();
    let ignored = ignored.map(|name| format!("server.{SCHEDULER}.{name}"));
    given.nothing_else(SCHEDULER)?;
    let config = only_block(&block.body, SCHEDULER, "preemption_config", preemption)?;
    Ok((config.unwrap_or_default(), ignored.collect()))
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
    fn settings_of_servers_have_no_effect_and_are_named() {
        let text = "server {\n enabled = true\n license_path = \"/l\"\n raft_boltdb {}\n \
                    default_scheduler_config {\n scheduler_algorithm = \"spread\"\n}\n}";
        let expected = [
            "server.default_scheduler_config.scheduler_algorithm",
            "server.license_path",
            "server.raft_boltdb",
        ];
        assert_eq!(parse(text).unwrap().ignored, expected);
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
