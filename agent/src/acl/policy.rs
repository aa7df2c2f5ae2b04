//! One policy: rules in Nomad's language, in HCL or in JSON.
//!
//! ```hcl
//! namespace "team-*" {
//!   policy       = "read"                      # a shorthand for several capabilities
//!   capabilities = ["submit-job", "read-logs"] # and some more
//!   variables {
//!     path "project/*" {
//!       capabilities = ["read", "list"]
//!     }
//!   }
//! }
//! node        { policy = "read" }              # also agent, operator, quota, plugin
//! node_pool   "*" { policy = "read" }
//! host_volume "data-*" { policy = "write" }
//! ```
//!
//! What Nomad knows and this agent has nothing for (quotas, CSI volumes, Sentinel) is read and means nothing. What
//! nobody knows is a mistake, so that no rule is ignored because a word of it is misspelt.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use crate::capability::{
    self, Capability, HostVolumeCapability, Level, PoolCapability, VariableCapability,
};
use crate::jobspec;
use crate::json::typed;

/// The longest text of a policy, in bytes.
pub const MAX_TEXT: usize = 64 << 10;
/// The most rules of a policy; each path of variables is one.
pub const MAX_RULES: usize = 1_000;
/// The longest name or pattern of names, in bytes.
const MAX_NAME: usize = 512;
/// What the text is called in messages.
const FILE: &str = "policy";

/// What one policy says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub(super) namespaces: BTreeMap<String, NamespaceRule>,
    pub(super) host_volumes: BTreeMap<String, BTreeSet<HostVolumeCapability>>,
    pub(super) pools: BTreeMap<String, BTreeSet<PoolCapability>>,
    pub(super) node: Option<Level>,
    pub(super) agent: Option<Level>,
    pub(super) operator: Option<Level>,
    pub(super) plugin: Option<Level>,
}

/// What may be done in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamespaceRule {
    pub(super) capabilities: BTreeSet<Capability>,
    /// By path.
    pub(super) variables: BTreeMap<String, BTreeSet<VariableCapability>>,
}

/// Why a text is no policy, with the line where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// All mistakes that could be found in one go, or that it is too large, or says nothing.
    pub fn parse(text: &str) -> Result<Policy, PolicyError> {
        if text.len() > MAX_TEXT {
            let words = format!("the policy has more than {MAX_TEXT} bytes");
            return Err(PolicyError(words));
        }
        let read = jobspec::parse_policy(text, FILE);
        let read = read.map_err(|errors| PolicyError(errors.to_string()))?;
        let written: Written = typed(&read).map_err(PolicyError)?;
        written.policy()
    }
}

/// A policy as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Written {
    namespace: Vec<WrittenNamespace>,
    host_volume: Vec<WrittenRule>,
    node_pool: Vec<WrittenRule>,
    node: Option<WrittenLevel>,
    agent: Option<WrittenLevel>,
    operator: Option<WrittenLevel>,
    plugin: Option<WrittenLevel>,
    quota: Option<WrittenLevel>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenRule {
    name: String,
    policy: String,
    capabilities: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenNamespace {
    #[serde(flatten)]
    rule: WrittenRule,
    variables: WrittenVariables,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenVariables {
    path: Vec<WrittenRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenLevel {
    policy: String,
}

impl WrittenRule {
    /// What its shorthand and its capabilities mean together. Their names were checked when they were read.
    fn meaning<C: Ord>(
        &self,
        of_policy: fn(&str) -> BTreeSet<C>,
        named: fn(&str) -> Option<C>,
    ) -> BTreeSet<C> {
        let given = self.capabilities.iter().filter_map(|name| named(name));
        of_policy(&self.policy).into_iter().chain(given).collect()
    }
}

impl Written {
    fn names(&self) -> impl Iterator<Item = &str> {
        let paths = self.namespace.iter().flat_map(|it| &it.variables.path);
        let namespaces = self.namespace.iter().map(|it| &it.rule);
        let rules = namespaces.chain(&self.host_volume).chain(&self.node_pool);
        rules.chain(paths).map(|rule| rule.name.as_str())
    }

    /// Checks how many rules there are, and for which names.
    fn check(&self) -> Result<(), PolicyError> {
        let count = self.names().count();
        if count > MAX_RULES {
            let words =
                format!("the policy has {count} rules, and must not have more than {MAX_RULES}");
            return Err(PolicyError(words));
        }
        if self
            .names()
            .any(|name| name.is_empty() || name.len() > MAX_NAME)
        {
            let words = format!(
                "the name of a rule has 1 to {MAX_NAME} bytes: write namespace \"*\" {{ … }} for all"
            );
            return Err(PolicyError(words));
        }
        let levels = [
            &self.node,
            &self.agent,
            &self.operator,
            &self.plugin,
            &self.quota,
        ];
        if count == 0 && levels.iter().all(|level| level.is_none()) {
            let words = "the policy has no rules: write one such as namespace \"default\" { policy = \"read\" }";
            return Err(PolicyError(words.to_owned()));
        }
        Ok(())
    }

    fn policy(self) -> Result<Policy, PolicyError> {
        self.check()?;
        let level = |written: &Option<WrittenLevel>| {
            let written = written.as_ref()?;
            Level::named(&written.policy)
        };
        let mut policy = Policy {
            node: level(&self.node),
            agent: level(&self.agent),
            operator: level(&self.operator),
            plugin: level(&self.plugin),
            ..Policy::default()
        };
        for written in self.namespace {
            let name = written.rule.name.clone();
            let rule = policy.namespaces.entry(name).or_default();
            let meaning = written
                .rule
                .meaning(capability::of_namespace, Capability::named);
            rule.capabilities.extend(meaning);
            for path in written.variables.path {
                let meaning = path.meaning(|_| BTreeSet::new(), VariableCapability::named);
                let known = rule.variables.entry(path.name).or_default();
                known.extend(meaning);
                capability::implied(known);
            }
        }
        for rule in self.host_volume {
            let meaning = rule.meaning(capability::of_host_volume, HostVolumeCapability::named);
            (policy.host_volumes.entry(rule.name).or_default()).extend(meaning);
        }
        for rule in self.node_pool {
            let meaning = rule.meaning(capability::of_pool, PoolCapability::named);
            policy.pools.entry(rule.name).or_default().extend(meaning);
        }
        Ok(policy)
    }
}
