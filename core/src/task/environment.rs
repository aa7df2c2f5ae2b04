//! A task's environment: the variables that its process starts with.
//!
//! Names and meanings are Nomad's, for drivers that isolate nothing and for ports of the
//! host. From the weakest to the strongest:
//!
//! 1. directories, limits, ids and names, ports and volumes (`NOMAD_*`);
//! 2. the meta of job, group and task, merged in this order (`NOMAD_META_*`);
//! 3. what tasks see of the agent's own environment ([`super::host_env`]), where nothing bears the
//!    name yet;
//! 4. the task's `env` block;
//! 5. what hooks add.
//!
//! **References.** A value of meta may refer to 1 and to the node. A value of the `env` block may
//! refer to 1, 2, 3, to the node, and to other keys of the block. In that order: a name that is
//! known outside the block means what it is outside, so `PATH = "/opt/bin:${PATH}"` does what it
//! says. References among the block's own keys are resolved in the order of their dependencies,
//! so a value does not depend on where it stands. A reference to a key that lies on a cycle, or
//! depends on one, stays as it is written. What hooks and the agent add is not looked into.
//!
//! **Clean names.** Labels of ports and keys of meta may have letters that shells cannot read;
//! see [`clean_key`]. Where two keys become one, the one that was clean already wins, else the
//! last in the order of the alphabet.

use core::net::IpAddr;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::volumes;
use crate::ids::AllocId;
use crate::interpolate::{Names, Piece, clean_key, pieces, replace};
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::node::Node;
use crate::model::task::Task;
use crate::text::glob_match;

/// The longest value that references may make, in bytes: no process can be started with a longer
/// one.
pub const MAX_VALUE: usize = 128 * 1024;

/// The pairs whose names no pattern of `denied` matches: a driver's `denied_envvars`.
pub fn filter_env<P: AsRef<str>>(
    pairs: impl IntoIterator<Item = (String, String)>,
    denied: &[P],
) -> Vec<(String, String)> {
    pairs
        .into_iter()
        .filter(|(key, _)| !denied.iter().any(|p| glob_match(p.as_ref(), key)))
        .collect()
}

/// A port that the allocation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortBinding {
    /// Its label in the job.
    pub label: String,
    /// The host's port number.
    pub value: u16,
    /// The number that the task listens on; 0 for the same.
    pub to: u16,
    /// The host's address.
    pub host_ip: String,
}

/// What an environment is made of.
#[derive(Clone, Copy, Debug)]
pub struct EnvInput<'a> {
    /// The allocation.
    pub alloc_id: AllocId,
    /// Its name, such as `job.group[0]`.
    pub alloc_name: &'a str,
    /// Its number among the group's; none leaves the variable out.
    pub alloc_index: Option<u64>,
    /// The job.
    pub job: &'a Job,
    /// The id of the job that this one was made from, if any.
    pub parent_id: Option<&'a str>,
    /// The group.
    pub group: &'a TaskGroup,
    /// The task.
    pub task: &'a Task,
    /// Whether its `memory_max` counts.
    pub memory_oversubscription: bool,
    /// This node.
    pub node: &'a Node,
    /// The allocation's shared directory on the host.
    pub alloc_dir: &'a str,
    /// The task's own directory on the host.
    pub task_dir: &'a str,
    /// The task's secrets directory on the host.
    pub secrets_dir: &'a str,
    /// The control group under which tasks are, if any.
    pub parent_cgroup: Option<&'a str>,
    /// The group's ports.
    pub ports: &'a [PortBinding],
    /// The address of the network of the allocation's own and its interface, if it has one.
    pub address: Option<(IpAddr, &'a str)>,
    /// The cores that the task has for itself, such as `0-1,4`; empty for none.
    pub cores: &'a str,
    /// What hooks add, in the order of the hooks.
    pub hook_env: &'a [(String, String)],
    /// What tasks see of the agent's environment (see [`super::host_env`]).
    pub host_env: &'a [(String, String)],
}

/// The environment of a task. Keys that no process can have (empty, or with `=` or NUL) are left
/// out.
pub fn environment(input: &EnvInput<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    add_dirs_and_limits(&mut env, input);
    add_names(&mut env, input);
    for port in input.ports {
        add_port(&mut env, port, input.address);
    }
    let index = input
        .alloc_index
        .and_then(|index| u32::try_from(index).ok());
    let index = index.unwrap_or(0);
    env.extend(volumes::variables(
        input.node,
        input.group,
        input.task,
        index,
    ));
    add_meta(&mut env, input);
    for (key, value) in input.host_env {
        env.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let own = resolve_block(&input.task.env, &env, input.node);
    env.extend(own);
    env.extend(input.hook_env.iter().cloned());
    clean(env)
}

fn set(env: &mut BTreeMap<String, String>, key: &str, value: impl ToString) {
    env.insert(key.to_owned(), value.to_string());
}

fn add_dirs_and_limits(env: &mut BTreeMap<String, String>, input: &EnvInput<'_>) {
    set(env, "NOMAD_ALLOC_DIR", input.alloc_dir);
    set(env, "NOMAD_TASK_DIR", input.task_dir);
    set(env, "NOMAD_SECRETS_DIR", input.secrets_dir);
    let resources = &input.task.resources;
    set(env, "NOMAD_MEMORY_LIMIT", resources.memory_mb);
    if resources.memory_max_mb > 0 && input.memory_oversubscription {
        set(env, "NOMAD_MEMORY_MAX_LIMIT", resources.memory_max_mb);
    }
    set(env, "NOMAD_CPU_LIMIT", resources.cpu);
    if !input.cores.is_empty() {
        set(env, "NOMAD_CPU_CORES", input.cores);
    }
    if let Some(cgroup) = input.parent_cgroup {
        set(env, "NOMAD_PARENT_CGROUP", cgroup);
    }
}

fn add_names(env: &mut BTreeMap<String, String>, input: &EnvInput<'_>) {
    set(env, "NOMAD_ALLOC_ID", input.alloc_id);
    set(env, "NOMAD_SHORT_ALLOC_ID", input.alloc_id.short());
    set(env, "NOMAD_ALLOC_NAME", input.alloc_name);
    if let Some(index) = input.alloc_index {
        set(env, "NOMAD_ALLOC_INDEX", index);
    }
    set(env, "NOMAD_TASK_NAME", &input.task.name);
    set(env, "NOMAD_GROUP_NAME", &input.group.name);
    set(env, "NOMAD_JOB_ID", &input.job.id);
    let job_name = if input.job.name.is_empty() {
        &input.job.id
    } else {
        &input.job.name
    };
    set(env, "NOMAD_JOB_NAME", job_name);
    if let Some(parent) = input.parent_id {
        set(env, "NOMAD_JOB_PARENT_ID", parent);
    }
    set(env, "NOMAD_NAMESPACE", &input.job.namespace);
    set(env, "NOMAD_DC", &input.node.datacenter);
    let region = if input.node.region.is_empty() {
        &input.job.region
    } else {
        &input.node.region
    };
    set(env, "NOMAD_REGION", region);
}

/// The variables of one port. The address is the host's, and that of the allocation beside it if it has one.
fn add_port(env: &mut BTreeMap<String, String>, port: &PortBinding, own: Option<(IpAddr, &str)>) {
    let PortBinding {
        label,
        value,
        to,
        host_ip,
    } = port;
    let inside = if *to == 0 { value } else { to };
    let address = if host_ip.contains(':') {
        format!("[{host_ip}]:{value}")
    } else {
        format!("{host_ip}:{value}")
    };
    set(env, &format!("NOMAD_IP_{label}"), host_ip);
    set(env, &format!("NOMAD_PORT_{label}"), inside);
    set(env, &format!("NOMAD_ADDR_{label}"), &address);
    set(env, &format!("NOMAD_HOST_PORT_{label}"), value);
    set(env, &format!("NOMAD_HOST_IP_{label}"), host_ip);
    set(env, &format!("NOMAD_HOST_ADDR_{label}"), &address);
    set(env, &format!("NOMAD_ALLOC_PORT_{label}"), inside);
    if let Some((own, interface)) = own {
        set(env, &format!("NOMAD_ALLOC_INTERFACE_{label}"), interface);
        set(env, &format!("NOMAD_ALLOC_IP_{label}"), own);
        let address = match own {
            IpAddr::V4(_) => format!("{own}:{inside}"),
            IpAddr::V6(_) => format!("[{own}]:{inside}"),
        };
        set(env, &format!("NOMAD_ALLOC_ADDR_{label}"), address);
    }
}

/// `NOMAD_META_<key>` in both spellings. Where `A` and `a` are two keys, each spelling that an
/// author wrote means what its author wrote.
fn add_meta(env: &mut BTreeMap<String, String>, input: &EnvInput<'_>) {
    let mut meta: BTreeMap<&str, &str> = BTreeMap::new();
    // What a dispatch might have brought is there nevertheless, and empty.
    let rules = input.job.parameterized_job.iter();
    meta.extend(
        rules
            .flat_map(|rules| &rules.meta_optional)
            .map(|key| (key.as_str(), "")),
    );
    for level in [&input.job.meta, &input.group.meta, &input.task.meta] {
        meta.extend(level.iter().map(|(k, v)| (k.as_str(), v.as_str())));
    }
    let names = Names {
        env,
        node: input.node,
    };
    let resolved: Vec<(&str, String)> = meta
        .into_iter()
        .map(|(key, value)| (key, replace(value, MAX_VALUE, known(&names))))
        .collect();
    for (key, value) in &resolved {
        set(env, &format!("NOMAD_META_{}", key.to_uppercase()), value);
    }
    for (key, value) in resolved {
        env.insert(format!("NOMAD_META_{key}"), value);
    }
}

fn known<'a>(names: &Names<'a>) -> impl Fn(&str, bool) -> Option<Cow<'a, str>> {
    move |name, env_only| names.resolve(name, env_only)
}

/// The `env` block with its references resolved; see the module's rules.
fn resolve_block(
    block: &BTreeMap<String, String>,
    outside: &BTreeMap<String, String>,
    node: &Node,
) -> BTreeMap<String, String> {
    let names = Names { env: outside, node };
    // Who refers to a key, and how many keys a key still waits for.
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, value) in block {
        let needs = own_references(value, block, &names);
        missing.insert(key, needs.len());
        for need in needs {
            waiting.entry(need).or_default().push(key);
        }
    }
    let mut ready: BTreeSet<&str> = missing
        .iter()
        .filter_map(|(key, count)| (*count == 0).then_some(*key))
        .collect();
    let mut done: BTreeMap<String, String> = BTreeMap::new();
    while let Some(key) = ready.pop_first() {
        let Some(value) = block.get(key) else {
            continue;
        };
        let resolved = expand(value, &names, &done);
        done.insert(key.to_owned(), resolved);
        for waiter in waiting.get(key).into_iter().flatten() {
            if let Some(count) = missing.get_mut(waiter) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.insert(waiter);
                }
            }
        }
    }
    // What is left lies on a cycle or depends on one.
    let left: Vec<(String, String)> = block
        .iter()
        .filter(|(key, _)| !done.contains_key(*key))
        .map(|(key, value)| (key.clone(), expand(value, &names, &done)))
        .collect();
    done.extend(left);
    done
}

/// The keys of the block that a value refers to and that mean nothing outside of it.
fn own_references<'a>(
    value: &str,
    block: &'a BTreeMap<String, String>,
    names: &Names<'_>,
) -> BTreeSet<&'a str> {
    pieces(value)
        .filter_map(|piece| match piece {
            Piece::Text(_) | Piece::Escape => None,
            Piece::Reference { name, env_only, .. } => match names.resolve(name, env_only) {
                Some(_) => None,
                None => block_key(name, env_only, block),
            },
        })
        .collect()
}

/// The key of the block that a reference means, also written as `env.<key>`.
fn block_key<'a, V>(name: &str, env_only: bool, block: &'a BTreeMap<String, V>) -> Option<&'a str> {
    let direct = block.get_key_value(name);
    let found = match (direct, name.strip_prefix("env.")) {
        (None, Some(key)) if !env_only => block.get_key_value(key),
        (direct, _) => direct,
    };
    found.map(|(key, _)| key.as_str())
}

fn expand(value: &str, names: &Names<'_>, done: &BTreeMap<String, String>) -> String {
    replace(value, MAX_VALUE, |name, env_only| {
        names.resolve(name, env_only).or_else(|| {
            block_key(name, env_only, done)
                .and_then(|key| done.get(key))
                .map(|value| Cow::Borrowed(value.as_str()))
        })
    })
}

fn clean(env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut exact = Vec::new();
    for (key, value) in env {
        if key.is_empty() || key.contains(['=', '\0']) && clean_key(&key) == key {
            continue;
        }
        let cleaned = clean_key(&key);
        if cleaned == key {
            exact.push((key, value));
        } else {
            out.insert(cleaned, value);
        }
    }
    out.extend(exact);
    out
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
