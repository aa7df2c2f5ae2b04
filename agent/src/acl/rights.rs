//! What the holder of a token may do: the policies of the token put together.

use std::collections::{BTreeMap, BTreeSet};

use super::glob::ByName;
use super::policy::{NamespaceRule, Policy};
use crate::capability::{
    Capability, HostVolumeCapability, Level, PoolCapability, VariableCapability,
};

/// What somebody may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Everything: a management token, the agent's own user, or an agent without access control.
    Management,
    /// What these rules allow.
    Limited(Box<Rules>),
}

/// The rules of several policies: what one of them allows is allowed, and what one of them denies is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    namespaces: ByName<Namespace>,
    host_volumes: ByName<BTreeSet<HostVolumeCapability>>,
    pools: ByName<BTreeSet<PoolCapability>>,
    node: Option<Level>,
    agent: Option<Level>,
    operator: Option<Level>,
    plugin: Option<Level>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Namespace {
    capabilities: BTreeSet<Capability>,
    variables: ByName<BTreeSet<VariableCapability>>,
}

impl Namespace {
    fn add(&mut self, rule: &NamespaceRule) {
        self.capabilities.extend(&rule.capabilities);
        add(&mut self.variables, &rule.variables);
    }

    fn allows(&self, capability: Capability) -> bool {
        use Capability::{
            Deny, HostVolumeCreate, HostVolumeDelete, HostVolumeRead, HostVolumeRegister,
            HostVolumeWrite,
        };
        let has = |one: Capability| self.capabilities.contains(&one);
        let by_write = matches!(
            capability,
            HostVolumeCreate | HostVolumeRegister | HostVolumeRead | HostVolumeDelete
        );
        !has(Deny) && (has(capability) || (by_write && has(HostVolumeWrite)))
    }

    fn allows_any_variable(&self, capability: VariableCapability) -> bool {
        let denied = self.capabilities.contains(&Capability::Deny);
        let mut paths = self.variables.0.values();
        !denied && paths.any(|rule| allows(rule, VariableCapability::Deny, capability))
    }

    fn allows_variable(&self, path: &str, capability: VariableCapability) -> bool {
        let denied = self.capabilities.contains(&Capability::Deny);
        let rule = self.variables.of(path);
        !denied && rule.is_some_and(|rule| allows(rule, VariableCapability::Deny, capability))
    }
}

/// Whether a rule allows something, and denies nothing.
fn allows<C: Ord>(rule: &BTreeSet<C>, deny: C, capability: C) -> bool {
    !rule.contains(&deny) && rule.contains(&capability)
}

fn add<C: Copy + Ord>(to: &mut ByName<BTreeSet<C>>, rules: &BTreeMap<String, BTreeSet<C>>) {
    for (name, capabilities) in rules {
        let rule = to.0.entry(name.clone()).or_default();
        rule.extend(capabilities);
    }
}

fn is_at_least(level: Option<Level>, wanted: Level) -> bool {
    level.is_some_and(|level| level != Level::Deny && level >= wanted)
}

impl Rights {
    /// All of them.
    pub fn all() -> Rights {
        Rights::Management
    }

    /// None of them.
    pub fn none() -> Rights {
        Rights::Limited(Box::default())
    }

    /// Those that these policies give together.
    pub fn of<'p>(policies: impl IntoIterator<Item = &'p Policy>) -> Rights {
        let mut rules = Rules::default();
        for policy in policies {
            for (name, rule) in &policy.namespaces {
                let known = rules.namespaces.0.entry(name.clone()).or_default();
                known.add(rule);
            }
            add(&mut rules.host_volumes, &policy.host_volumes);
            add(&mut rules.pools, &policy.pools);
            rules.node = rules.node.max(policy.node);
            rules.agent = rules.agent.max(policy.agent);
            rules.operator = rules.operator.max(policy.operator);
            rules.plugin = rules.plugin.max(policy.plugin);
        }
        Rights::Limited(Box::new(rules))
    }

    /// Whether everything is allowed.
    pub fn is_management(&self) -> bool {
        matches!(self, Rights::Management)
    }

    fn ask(&self, question: impl FnOnce(&Rules) -> bool) -> bool {
        match self {
            Rights::Management => true,
            Rights::Limited(rules) => question(rules),
        }
    }

    /// Whether something may be done in a namespace.
    pub fn may(&self, namespace: &str, capability: Capability) -> bool {
        self.ask(|rules| {
            let rule = rules.namespaces.of(namespace);
            rule.is_some_and(|rule| rule.allows(capability))
        })
    }

    /// Whether it may be done in some namespace, be it there or not.
    pub fn may_in_any(&self, capability: Capability) -> bool {
        self.ask(|rules| {
            let mut all = rules.namespaces.0.values();
            all.any(|rule| rule.allows(capability))
        })
    }

    /// Whether a namespace may be seen: something may be done in it, or with variables of it.
    pub fn may_see_namespace(&self, namespace: &str) -> bool {
        self.ask(|rules| {
            let rule = rules.namespaces.of(namespace);
            rule.is_some_and(|rule| {
                let is_empty = rule.capabilities.is_empty() && rule.variables.0.is_empty();
                !is_empty && !rule.capabilities.contains(&Capability::Deny)
            })
        })
    }

    /// Whether some namespace may be seen.
    pub fn may_see_any_namespace(&self) -> bool {
        self.ask(|rules| {
            let mut names = rules.namespaces.0.keys();
            names.any(|name| self.may_see_namespace(name))
        })
    }

    /// Whether something may be done with a variable.
    pub fn may_variable(
        &self,
        namespace: &str,
        path: &str,
        capability: VariableCapability,
    ) -> bool {
        self.ask(|rules| {
            let rule = rules.namespaces.of(namespace);
            rule.is_some_and(|rule| rule.allows_variable(path, capability))
        })
    }

    /// Whether it may be done with some variable of a namespace; of any for `*`.
    pub fn may_any_variable(&self, namespace: &str, capability: VariableCapability) -> bool {
        self.ask(|rules| match namespace {
            "*" => {
                let mut all = rules.namespaces.0.values();
                all.any(|rule| rule.allows_any_variable(capability))
            }
            namespace => {
                let rule = rules.namespaces.of(namespace);
                rule.is_some_and(|rule| rule.allows_any_variable(capability))
            }
        })
    }

    /// Whether nodes may be read or changed.
    pub fn node(&self, level: Level) -> bool {
        self.ask(|rules| is_at_least(rules.node, level))
    }

    /// Whether the agent may be read or changed.
    pub fn agent(&self, level: Level) -> bool {
        self.ask(|rules| is_at_least(rules.agent, level))
    }

    /// Whether what operates a cluster may be read or changed.
    pub fn operator(&self, level: Level) -> bool {
        self.ask(|rules| is_at_least(rules.operator, level))
    }

    /// Whether plugins may be listed or read.
    pub fn plugin(&self, level: Level) -> bool {
        self.ask(|rules| is_at_least(rules.plugin, level))
    }

    /// Whether something may be done with a node pool.
    pub fn may_pool(&self, pool: &str, capability: PoolCapability) -> bool {
        self.ask(|rules| {
            let rule = rules.pools.of(pool);
            rule.is_some_and(|rule| allows(rule, PoolCapability::Deny, capability))
        })
    }

    /// Whether it may be done with some node pool.
    pub fn may_any_pool(&self, capability: PoolCapability) -> bool {
        self.ask(|rules| {
            let mut all = rules.pools.0.values();
            all.any(|rule| allows(rule, PoolCapability::Deny, capability))
        })
    }

    /// Whether a job may mount a host volume so.
    pub fn may_host_volume(&self, volume: &str, capability: HostVolumeCapability) -> bool {
        use HostVolumeCapability::{Deny, MountReadonly, MountReadwrite};
        self.ask(|rules| {
            let Some(rule) = rules.host_volumes.of(volume) else {
                return false;
            };
            let by_write = capability == MountReadonly && allows(rule, Deny, MountReadwrite);
            by_write || allows(rule, Deny, capability)
        })
    }
}
