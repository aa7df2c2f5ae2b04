//! What keeps tasks apart from the host and from each other: control groups, networks, an engine of containers.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use drover_core::driver::config::IoLimits;
use drover_core::store::Saved;
use drover_io_real::cgroup::Cgroups;
use drover_io_real::data_dir::DataDir;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::driver::Inbox;
use drover_io_real::driver::docker::{Docker, Pins, Records};
use drover_io_real::network::resolver::{Resolver, resolver};
use drover_io_real::network::{CniPlugins, NETWORKS, Networks};

use super::Settings;
use crate::config::CGROUP_PARENT;

/// Where tasks are limited, if anywhere. Groups of all agents of a host lie side by side, so ours
/// say whose they are.
pub(super) fn cgroups(
    data_dir: &DataDir,
    reserved: &BTreeSet<u32>,
    remarks: &mut Vec<String>,
) -> io::Result<Option<Cgroups>> {
    let found = Cgroups::detect(CGROUP_PARENT)?.map(|groups| groups.reserving(reserved));
    // An agent that died may have left what nobody uses any more.
    if let Some(groups) = &found
        && let Err(error) = groups.share_cores()
    {
        remarks.push(format!(
            "cannot share the cores that nobody has for itself any more; tasks may have fewer until some start or \
             end: {error}"
        ));
    }
    let mark = data_dir.mark()?;
    // A mark that cannot be read again as it was would name another directory.
    let readable = mark.path.to_str().is_some();
    Ok(found.map(|groups| match readable {
        true => groups.marked(mark.to_string()),
        false => groups,
    }))
}

/// Control groups whose tasks read and write the disk of the data directory within limits.
///
/// # Errors
/// The agent's own limits cannot be set here: its tasks would not have them.
pub(super) fn throttled(
    groups: Option<Cgroups>,
    data_dir: &DataDir,
    settings: &Settings,
) -> io::Result<Option<Cgroups>> {
    let most = settings.file.client.node.io;
    let dir = data_dir.path().to_owned();
    let Some(groups) = groups.map(|groups| groups.with_disk_of(dir, most)) else {
        let why = "client: io: no cgroups are available (not root?); leave it out";
        return match most.is_none() {
            true => Ok(None),
            false => Err(io::Error::other(why)),
        };
    };
    groups.io_limits(IoLimits::default())?;
    Ok(Some(groups))
}

/// The networks of allocations of their own, and who resolves names behind their bridge, if somebody does. What is left
/// of allocations that nobody knows is removed, unless the state was lost.
pub(super) fn networks(
    settings: &Settings,
    data_dir: &DataDir,
    saved: &Saved,
    whole: bool,
    remarks: &mut Vec<String>,
) -> io::Result<(Networks, Option<Resolver>)> {
    let dir = data_dir.own(NETWORKS, None)?;
    let bridge = settings.file.client.node.bridge.clone();
    let machine = settings.file.client.node.machine.probe_settings();
    let plugins = CniPlugins {
        path: machine.cni_path,
        config_dir: machine.cni_config_dir,
    };
    let networks = Networks::new(dir, data_dir.path().join(NETWORKS), bridge);
    let mut networks = networks.with_plugins(plugins);
    let mut resolves = None;
    if settings.file.client.node.bridge_resolver {
        let (listener, resolver) = resolver();
        networks = networks.with_resolver(listener);
        resolves = Some(resolver);
    }
    let is_known = |alloc| saved.allocs.contains_key(&alloc);
    if whole && let Err(error) = networks.remove_unknown(is_known) {
        remarks.push(format!(
            "cannot clear away networks of allocations that nobody knows: {error}"
        ));
    }
    let known = saved.allocs.values().filter(|alloc| alloc.has_network());
    let known = known.filter_map(|alloc| Some((alloc.id, alloc.address()?, alloc.ports.clone())));
    if let Err(error) = networks.resume(known) {
        remarks.push(format!("networks behind the bridge: {error}"));
    }
    Ok((networks, resolves))
}

/// What makes containers. It looks for an engine when somebody listens to it, and not before.
pub(super) fn docker(
    settings: &Settings,
    data_dir: &DataDir,
    dirs: &AllocDirs,
    (networks, shim): (&Networks, PathBuf),
    groups: Option<Cgroups>,
    inbox: Inbox,
) -> io::Result<Docker> {
    let records = Records::new(data_dir.own("docker", None)?)?;
    let place = std::path::absolute(data_dir.path().join("docker-mounts"))?;
    let pins = Pins::new(data_dir.own("docker-mounts", None)?, place)?;
    let mut wanted = settings.file.docker.settings.clone();
    wanted.mark = data_dir.mark()?.to_string();
    let most = settings.file.client.node.most_processes();
    wanted.pids_limit = Some(most).filter(|most| *most > 0);
    let root = std::path::absolute(data_dir.alloc_root())?;
    Ok(Docker::new(
        wanted,
        records,
        pins,
        (dirs.clone(), root),
        (Some(networks.clone()), shim),
        groups,
        inbox,
    ))
}
