//! The core's configuration.

use std::env;
use std::net::Ipv4Addr;

use drover_core::config::{Config, ProbeConfig};
use drover_core::ids::NodeId;
use drover_core::model::node::Node as NodeModel;
use drover_core::time::Span;
use drover_io_real::data_dir::DataDir;
use drover_io_real::facts;
use drover_io_real::fingerprint::{PROBES, Probe};

use super::{Settings, cluster};
use crate::config::client::ClientConfig;

/// What tells files of volumes that the plugin `mkdir` is there; in the version of its rules.
const VOLUME_PLUGIN: [(&str, &str); 1] = [("plugins.host_volume.mkdir.version", "0.0.1")];

/// What the core is told of this node and of the wishes for it.
pub(super) fn config(settings: &Settings, id: NodeId, data_dir: &DataDir) -> Config {
    let node = NodeModel {
        id,
        name: settings.node_name.clone().unwrap_or_else(facts::hostname),
        datacenter: settings.datacenter.clone(),
        region: settings.file.agent.region(),
        class: settings.file.client.node.class.clone(),
        pool: (settings.file.client.node.pool.clone()).unwrap_or_else(|| "default".to_owned()),
        meta: settings.file.client.node.meta.clone(),
        http_addr: settings.file.agent.advertised(&settings.http_addr),
        dynamic_ports: settings.file.client.node.machine.dynamic_ports,
        attributes: VOLUME_PLUGIN
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        host_volumes: settings.file.client.node.host_volumes.clone(),
        bridge_subnet: settings.file.client.node.bridge.subnet,
        reserved_ports: settings.file.client.node.reserved_ports.clone(),
        address: Ipv4Addr::LOCALHOST.to_string(),
        ..NodeModel::default()
    };
    // The lower half of random bits is as random as all of them.
    let seed = u64::try_from(facts::random() & u128::from(u64::MAX)).unwrap_or(0);
    let root = data_dir.alloc_root().to_string_lossy().into_owned();
    let mut config = Config::new(seed, node, root);
    config.cluster = cluster::config(settings);
    let env = env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    let wanted = &settings.file.client;
    let probes = PROBES.iter().filter_map(|it| probe(it, wanted));
    config.probes = probes.collect();
    config.keep_terminal = wanted.gc.keep;
    config.preemption = settings.file.preemption;
    config.reserved = settings.file.client.node.reserved.amounts;
    config.overcommit = settings.file.client.node.overcommit;
    config.exec = settings.file.exec.policy.clone();
    config.docker = settings.file.docker_policy();
    let namespaces = settings.file.agent.namespaces.iter();
    config.namespaces = Some(namespaces.map(|name| name.as_str().into()).collect());
    config.consul_services = settings.file.client.consul_services;
    config.parallel_destroys = wanted.gc.parallel;
    config.disk_limits = Some(wanted.gc.disk_limits);
    config.dir_usage = wanted.gc.dir_usage;
    config.disk_quota = wanted.gc.disk_quota;
    config.host_env = env.filter(|(key, _)| wanted.env.allows(key)).collect();
    config
}

/// How a probe is used, if it is wanted: those that ask others than this machine or start programs
/// hold nothing up.
fn probe(probe: &Probe, wanted: &ClientConfig) -> Option<ProbeConfig> {
    let asks_here = !probe.off_unless_enabled;
    wanted
        .wants_probe(probe.name, probe.off_unless_enabled)
        .ok()?;
    Some(ProbeConfig {
        name: probe.name.into(),
        every: probe.period.map(|seconds| Span::secs(i64::from(seconds))),
        essential: asks_here && probe.name != "plugins_cni",
    })
}
