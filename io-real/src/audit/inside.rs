//! What is in this agent's data directory, and the processes that it remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use drover_core::host::{Home, NamedAfter};
use rustix::fs::Dir;
use rustix::io::Errno;

use super::shims::Processes;
use super::{Inner, Kind, Thing};
use crate::dirs::{ARRIVING, enter};
use crate::mounts::{self, Mount};
use crate::network::WrongRule;
use crate::plugin::{Address, Reattach};
use crate::plugins::remembered;

/// Where plugins' sockets are.
pub(super) const SOCKETS: &str = "sockets";
/// Where the agent remembers its plugins.
pub(super) const PLUGINS: &str = "plugin-state";
/// Where artifacts are fetched.
const FETCHING: &str = "artifacts/work";

/// What the names of rules of the packet filter begin with that can be removed.
pub(super) const RULE: &str = "rule ";

/// More names of one directory are not listed.
const MOST: usize = 65_536;

/// Everything that is the agent's own, or lies where it alone makes things.
pub(super) fn things(inner: &Inner, processes: &Processes) -> io::Result<Vec<Thing>> {
    let data = inner.mark.path.as_path();
    let path = |rest: &str| data.join(rest).display().to_string();
    let ours = |kind, name: String, named_after| Thing::new(kind, name, Home::Ours, named_after);
    let plugins = match dir(inner.data.as_fd(), PLUGINS)? {
        Some(dir) => remembered(dir)?,
        None => Vec::new(),
    };
    let mut things = vec![ours(Kind::Directory, path(""), NamedAfter::Agent)];
    things.extend(plugin_processes(&plugins, processes));
    // What we started and is not under a shim: whoever fetches artifacts.
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let own = processes.descendants(&BTreeMap::from([(me, ())]));
    things.extend(
        (own.keys()).filter_map(|pid| processes.thing(*pid, Home::Ours, NamedAfter::Agent)),
    );
    for name in names(inner.data.as_fd(), "alloc")? {
        // What arrives for one is beside its directory.
        let owner = name.strip_suffix(ARRIVING).unwrap_or(&name);
        if let Ok(id) = owner.parse() {
            let path = path(&format!("alloc/{name}"));
            things.push(ours(Kind::Directory, path, NamedAfter::Alloc(id)));
        }
    }
    things.extend(networks(inner)?);
    for name in names(inner.data.as_fd(), FETCHING)? {
        let path = path(&format!("{FETCHING}/{name}"));
        things.push(ours(Kind::Directory, path, NamedAfter::Agent));
    }
    // Every socket of the host that is bound, at the end of a line.
    let bound = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let bound: BTreeSet<&str> = bound
        .lines()
        .filter_map(|it| it.split(' ').next_back())
        .collect();
    things.extend(launch_sockets(inner, &bound)?);
    things.extend(plugin_sockets(inner, &plugins, &bound)?);
    things.extend(mounted(data)?);
    Ok(things)
}

fn plugin_processes(plugins: &[(String, Reattach)], processes: &Processes) -> Vec<Thing> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let thing = |(file, reattach): &(String, Reattach)| {
        let process = &reattach.process;
        let found = processes.find(process.pid)?;
        let same = found.start_time == process.start_time && boot.trim() == process.boot_id;
        let named_after = NamedAfter::Plugin(file.clone());
        same.then(|| processes.thing(process.pid, Home::Ours, named_after))?
    };
    plugins.iter().filter_map(thing).collect()
}

/// Sockets of shims. One of a shim that ended goes with the record beside it, and soon.
fn launch_sockets(inner: &Inner, bound: &BTreeSet<&str>) -> io::Result<Vec<Thing>> {
    let found: BTreeSet<String> = names(inner.data.as_fd(), "run")?.into_iter().collect();
    let thing = |name: &String| {
        let launch = name.strip_suffix(".s")?;
        let alone = !found.contains(&format!("{launch}.r"));
        let launch = launch.parse().ok()?;
        let launch = inner.raw_exec.beside(launch).unwrap_or(launch);
        let path = inner.mark.path.join("run").join(name).display().to_string();
        let thing = || Thing::new(Kind::Socket, path, Home::Ours, NamedAfter::Launch(launch));
        // Shims name theirs as it is seen from where it lies.
        (alone || bound.contains(name.as_str())).then(thing)
    };
    Ok(found.iter().filter_map(thing).collect())
}

fn plugin_sockets(
    inner: &Inner,
    plugins: &[(String, Reattach)],
    bound: &BTreeSet<&str>,
) -> io::Result<Vec<Thing>> {
    let dir = inner.mark.path.join(SOCKETS);
    let mut known = BTreeMap::new();
    for (file, reattach) in plugins {
        if let Address::Unix(path) = &reattach.address {
            known.insert(path.clone(), file.clone());
        }
    }
    let thing = |name: String| {
        let path = dir.join(name);
        let text = path.display().to_string();
        let (home, named_after) = match known.get(&path) {
            Some(file) => (Home::Ours, NamedAfter::Plugin(file.clone())),
            // Somebody is there; it is not known who.
            None if bound.contains(text.as_str()) => (Home::Unknown, NamedAfter::Nobody),
            None => (Home::Ours, NamedAfter::Nobody),
        };
        Thing::new(Kind::Socket, text, home, named_after)
    };
    Ok(names(inner.data.as_fd(), SOCKETS)?
        .into_iter()
        .map(thing)
        .collect())
}

/// Networks of allocations. Which agent made a link whose network is not here nobody can tell.
fn networks(inner: &Inner) -> io::Result<Vec<Thing>> {
    let networks = &inner.networks;
    let owners = networks.owners()?;
    let own = owners.iter().map(|alloc| {
        let path = networks.path(*alloc).display().to_string();
        Thing::new(Kind::Network, path, Home::Ours, NamedAfter::Alloc(*alloc))
    });
    let links = networks.links().unwrap_or_default().into_iter();
    let links = links.filter(|(_, alloc)| !owners.contains(alloc));
    let links = links.map(|(name, alloc)| {
        let name = format!("link {name}");
        Thing::new(Kind::Network, name, Home::Unknown, NamedAfter::Alloc(alloc))
    });
    let rules = networks.wrong_rules().unwrap_or_default().into_iter();
    Ok(own.chain(links).chain(rules.map(rule)).collect())
}

/// A rule of the packet filter that is missing, or leads to a network that is not there.
fn rule(wrong: WrongRule) -> Thing {
    let (name, named_after) = match wrong {
        WrongRule::NoTable(table) => (
            format!("missing: table {table} of the packet filter"),
            NamedAfter::Agent,
        ),
        WrongRule::Missing(alloc, rule) => (format!("missing: {rule}"), NamedAfter::Alloc(alloc)),
        WrongRule::Stale(rule) => (format!("{RULE}{rule}"), NamedAfter::Nobody),
    };
    Thing::new(Kind::Network, name, Home::Ours, named_after)
}

/// Mounts below the directories of the allocations.
fn mounted(data: &Path) -> io::Result<Vec<Thing>> {
    let root = data.join("alloc");
    let thing = |mount: Mount| {
        let rest = mount.point.strip_prefix(&root).ok()?;
        let alloc = rest.components().next()?;
        let named_after = match alloc.as_os_str().to_str()?.parse() {
            Ok(id) => NamedAfter::Alloc(id),
            Err(_) => return None,
        };
        let path = mount.point.display().to_string();
        Some(Thing::new(Kind::Mount, path, Home::Ours, named_after))
    };
    Ok(mounts::here()?.into_iter().filter_map(thing).collect())
}

/// Opens a directory of the agent's own; none if there is none.
pub(super) fn dir(at: BorrowedFd<'_>, path: &str) -> io::Result<Option<OwnedFd>> {
    match enter(at, path) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn names(at: BorrowedFd<'_>, path: &str) -> io::Result<Vec<String>> {
    let Some(dir) = dir(at, path)? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in Dir::read_from(&dir)?.take(MOST) {
        let entry = entry?;
        // What we make has plain names.
        if let Ok(name) = entry.file_name().to_str()
            && !matches!(name, "." | "..")
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
