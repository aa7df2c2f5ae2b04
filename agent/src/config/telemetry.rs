//! The block `telemetry`: what is reported under `/v1/metrics`, by Nomad's names.
//!
//! ```hcl
//! telemetry {
//!   collection_interval        = "5s"     # how old an answer may be
//!   publish_allocation_metrics = true     # what tasks use
//!   publish_node_metrics       = true     # what the machine uses
//!   prefix_filter              = ["-nomad.client.host", "+nomad.client.host.memory"]
//! }
//! ```
//!
//! Metrics are fetched, and sent nowhere: settings of what sends them have no effect. Unlike in Nomad, Prometheus and
//! the metrics of tasks and of the machine are on unless switched off.

use std::collections::BTreeSet;
use std::time::Duration;

use drover_core::text::{parse_duration, quote};
use drover_core::time::Span;
use hcl_edit::structure::Block;

use super::literal::fields;
use super::unknown;

/// Settings of Nomad's block that have no effect here: metrics are sent nowhere, counters count since the agent started,
/// and there are none of hooks, quotas and calls.
const WITHOUT_EFFECT: &[&str] = &[
    "circonus_api_app",
    "circonus_api_token",
    "circonus_api_url",
    "circonus_broker_id",
    "circonus_broker_select_tag",
    "circonus_check_display_name",
    "circonus_check_force_metric_activation",
    "circonus_check_id",
    "circonus_check_instance_id",
    "circonus_check_search_tag",
    "circonus_check_tags",
    "circonus_submission_interval",
    "circonus_submission_url",
    "datadog_address",
    "datadog_tags",
    "disable_allocation_hook_metrics",
    "disable_quota_utilization_metrics",
    "disable_rpc_rate_metrics_labels",
    "in_memory_collection_interval",
    "in_memory_retention_period",
    "statsd_address",
    "statsite_address",
];

/// What is told of this agent, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Whether the text of Prometheus is there.
    pub prometheus: bool,
    /// Whether it is told what tasks use.
    pub allocations: bool,
    /// Whether it is told what the machine uses.
    pub node: bool,
    /// Whether it is told what became of each dispatched job.
    pub dispatched_jobs: bool,
    /// How old an answer may be; a second at least.
    pub interval: Duration,
    /// Whether gauges bear a label with the name of the host.
    pub hostname: bool,
    /// Whether that is the node's name instead.
    pub use_node_name: bool,
    /// Which keys of jobs' metadata are labels of tasks' metrics.
    pub metadata: Metadata,
    /// Which metrics are there.
    pub filter: Filter,
    /// What is given and has no effect here.
    pub(super) ignored: Vec<String>,
}

/// Which keys of metadata are labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// None.
    #[default]
    None,
    /// Every one.
    All,
    /// These.
    Only(BTreeSet<String>),
}

impl Metadata {
    /// Whether this key is one.
    pub fn has(&self, key: &str) -> bool {
        match self {
            Metadata::None => false,
            Metadata::All => true,
            Metadata::Only(keys) => keys.contains(key),
        }
    }
}

/// Which metrics are there, by the longest prefix of their names that is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Prefixes, and whether what begins so is there.
    prefixes: Vec<(String, bool)>,
    /// Whether the others are.
    others: bool,
}

impl Filter {
    /// Whether the metric of this dotted name is there.
    pub fn allows(&self, name: &str) -> bool {
        let fitting = self
            .prefixes
            .iter()
            .filter(|(prefix, _)| name.starts_with(prefix.as_str()));
        let longest = fitting.max_by_key(|(prefix, _)| prefix.len());
        longest.map_or(self.others, |(_, there)| *there)
    }
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        Telemetry {
            prometheus: true,
            allocations: true,
            node: true,
            dispatched_jobs: true,
            interval: Duration::from_secs(1),
            hostname: true,
            use_node_name: false,
            metadata: Metadata::None,
            filter: Filter {
                prefixes: Vec::new(),
                others: true,
            },
            ignored: Vec::new(),
        }
    }
}

/// Reads a block.
pub(super) fn telemetry(block: &Block) -> Result<Telemetry, String> {
    if let Some(inner) = block.body.blocks().next() {
        return Err(format!(
            "telemetry: {}",
            unknown("block", inner.ident.as_str(), &[])
        ));
    }
    let none = Telemetry::default();
    let mut given = fields(&block.body)?;
    let mut flag = |name, unset| Ok::<bool, String>(given.flag(name)?.unwrap_or(unset));
    let prometheus = flag("prometheus_metrics", none.prometheus)?;
    let allocations = flag("publish_allocation_metrics", none.allocations)?;
    let node = flag("publish_node_metrics", none.node)?;
    let dispatched_jobs = !flag(
        "disable_dispatched_job_summary_metrics",
        !none.dispatched_jobs,
    )?;
    let hostname = !flag("disable_hostname", !none.hostname)?;
    let use_node_name = flag("use_node_name", none.use_node_name)?;
    let include = flag("include_alloc_metadata_in_metrics", false)?;
    let others = flag("filter_default", true)?;
    let interval = match given.text("collection_interval")? {
        None => none.interval,
        Some(text) => interval(&text)?,
    };
    let keys = given.texts("allowed_metadata_keys_in_metrics")?;
    let prefixes = given.texts("prefix_filter")?;
    let ignored = given.ignore(WITHOUT_EFFECT);
    given.nothing_else("telemetry")?;
    let metadata = match (include, keys.is_empty()) {
        (false, _) => Metadata::None,
        (true, true) => Metadata::All,
        (true, false) => Metadata::Only(keys.into_iter().collect()),
    };
    let prefixes = prefixes
        .iter()
        .map(|text| prefix(text))
        .collect::<Result<_, _>>()?;
    Ok(Telemetry {
        prometheus,
        allocations,
        node,
        dispatched_jobs,
        interval,
        hostname,
        use_node_name,
        metadata,
        filter: Filter { prefixes, others },
        ignored: (ignored.iter())
            .map(|name| format!("telemetry.{name}"))
            .collect(),
    })
}

fn interval(text: &str) -> Result<Duration, String> {
    let span = parse_duration(text).map_err(|why| format!("collection_interval: {why}"))?;
    if span < Span::secs(1) {
        return Err("collection_interval: a second is the shortest".to_owned());
    }
    Ok(Duration::from_nanos(u64::try_from(span.0).unwrap_or(0)))
}

fn prefix(text: &str) -> Result<(String, bool), String> {
    let (sign, prefix) = match text.split_at_checked(1) {
        Some(("+", prefix)) => (true, prefix),
        Some(("-", prefix)) => (false, prefix),
        _ => {
            return Err(format!(
                "prefix_filter: {} must begin with + or -",
                quote(text)
            ));
        }
    };
    if prefix.is_empty() {
        return Err("prefix_filter: a sign alone has no prefix; see filter_default".to_owned());
    }
    Ok((prefix.to_owned(), sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn read(text: &str) -> Result<Telemetry, String> {
        Ok(parse(&format!("telemetry {{\n{text}\n}}"))?.telemetry)
    }

    #[test]
    fn telemetry_settings_are_read() {
        let telemetry = read(
            r#"
            publish_allocation_metrics        = false
            collection_interval               = "5s"
            disable_hostname                  = true
            include_alloc_metadata_in_metrics = true
            allowed_metadata_keys_in_metrics  = ["owner"]
            prefix_filter  = ["-nomad.client.host", "+nomad.client.host.memory", "-drover"]
            "#,
        )
        .unwrap();
        assert!(!telemetry.allocations && telemetry.node && telemetry.prometheus);
        assert!(!telemetry.hostname);
        assert_eq!(telemetry.interval, Duration::from_secs(5));
        assert!(telemetry.metadata.has("owner") && !telemetry.metadata.has("other"));
        let there = |name: &str| telemetry.filter.allows(name);
        assert!(there("nomad.client.uptime") && there("nomad.client.host.memory.free"));
        assert!(!there("nomad.client.host.cpu.user") && !there("drover.core.steps"));
        assert_eq!(read("").unwrap(), Telemetry::default());
        let nothing_else = read("filter_default = false\n prefix_filter = [\"+nomad\"]").unwrap();
        assert!(nothing_else.filter.allows("nomad.x") && !nothing_else.filter.allows("drover.x"));
    }

    #[test]
    fn settings_of_what_sends_metrics_have_no_effect_and_are_named() {
        let text = "telemetry {\n statsd_address = \"x:1\"\n datadog_tags = [\"a:b\"]\n}";
        let expected = ["telemetry.datadog_tags", "telemetry.statsd_address"];
        assert_eq!(parse(text).unwrap().ignored, expected);
    }

    #[test]
    fn unsupported_setting_is_refused_by_name() {
        for (text, expected) in [
            (
                "collection_intervall = \"1s\"",
                "did you mean collection_interval?",
            ),
            ("collection_interval = \"10ms\"", "a second is the shortest"),
            ("collection_interval = \"soon\"", "collection_interval: "),
            ("publish_node_metrics = \"yes\"", "true or false is needed"),
            ("prefix_filter = [\"nomad\"]", "begin with + or -"),
            ("prefix_filter = [\"-\"]", "see filter_default"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
