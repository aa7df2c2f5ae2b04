//! The node's bridge: its link, the links of allocations to it, and what the host has to be told so that packets
//! pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;

use drover_core::ids::AllocId;
use drover_core::model::network::{INTERFACE, Ipv4, Subnet};
use drover_core::store::record::AssignedPort;

use super::connections;
use super::filter::{Entry, Filter, Forward, Published};
use super::link::{self, HostEnd, Link};
use super::namespace;
use super::netlink::Socket;

/// Nomad calls its own `nomad`; both can be on one host.
const NAME: &str = "drover";
/// What the names of links to allocations begin with.
const PREFIX: &str = "dr";
/// What they are marked with, before the id and the agent that made them.
const MARK: &str = "drover alloc ";

/// The node's bridge, as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// The addresses behind it.
    pub subnet: Subnet,
    /// Whether the cloud's metadata is reached from behind it, at 169.254.169.254.
    pub allow_metadata: bool,
    /// How many connections each allocation may have; 0 for no limit, none for a part of the kernel's table.
    pub most_connections: Option<u32>,
}

impl Default for Bridge {
    fn default() -> Bridge {
        Bridge {
            name: NAME.to_owned(),
            subnet: Subnet::default(),
            allow_metadata: false,
            most_connections: None,
        }
    }
}

impl fmt::Display for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.subnet)
    }
}

/// A link to an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) alloc: AllocId,
    /// The agent that made it; empty if an older version did.
    pub(super) agent: String,
    /// The bridge that it leads to.
    bridge: Option<u32>,
}

/// The links that are marked with allocations.
pub(super) fn ports() -> io::Result<Vec<Port>> {
    let all = link::all(&mut Socket::route()?)?.into_iter();
    Ok(all.filter_map(port).collect())
}

/// Whose a link is, by its mark.
fn port(link: Link) -> Option<Port> {
    let mark = link.alias.strip_prefix(MARK)?;
    let (alloc, agent) = mark.split_once(' ').unwrap_or((mark, ""));
    Some(Port {
        alloc: alloc.parse().ok()?,
        agent: agent.to_owned(),
        name: link.name,
        bridge: link.master,
    })
}

/// The name of the link to an allocation.
fn link_name(alloc: AllocId) -> String {
    let digits = alloc.to_string().replace('-', "");
    format!("{PREFIX}{}", digits.get(..13).unwrap_or_default())
}

fn named(what: &str) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

impl Bridge {
    pub(super) fn filter(&self) -> Filter {
        Filter {
            bridge: self.name.clone(),
            subnet: self.subnet,
            allow_metadata: self.allow_metadata,
            connections: connections::limit(self.most_connections),
        }
    }

    /// The links that lead to it.
    pub(super) fn ports(&self) -> io::Result<Vec<Port>> {
        let own = link::find(&mut Socket::route()?, &self.name)?.map(|link| link.index);
        let mut ports = ports()?;
        ports.retain(|port| own.is_some() && port.bridge == own);
        Ok(ports)
    }

    /// Its index, if it is there.
    pub(super) fn index(&self) -> io::Result<Option<u32>> {
        let link = link::find(&mut Socket::route()?, &self.name)?;
        Ok(link.map(|link| link.index))
    }

    /// Makes the bridge and the rules, as far as they are not there. Its index.
    fn ensure(&self, route: &mut Socket, published: &Published) -> io::Result<u32> {
        let index = link::bridge(route, &self.name, self.subnet)
            .map_err(named("cannot make the bridge"))?;
        self.set("ipv4", "route_localnet", "1")?;
        // Nobody behind it is to tell the host of routes.
        let _ = self.set("ipv6", "disable_ipv6", "1");
        forward_packets()?;
        let mut filter = Socket::filter()?;
        let rules = named("cannot make the rules of the packet filter");
        self.filter()
            .ensure(&mut filter, published)
            .map_err(&rules)?;
        if connections::learn() {
            self.filter()
                .ensure(&mut filter, published)
                .map_err(&rules)?;
        }
        self.filter().let_pass(&mut filter).map_err(&rules)?;
        Ok(index)
    }

    /// Puts back the rules that somebody else took away. Whether any was missing.
    pub(super) fn restore(&self, published: &Published) -> io::Result<bool> {
        let mut filter = Socket::filter()?;
        let mut rules = self.filter().restore(&mut filter, published)?;
        if connections::learn() {
            rules |= self.filter().restore(&mut filter, published)?;
        }
        Ok(self.filter().let_pass(&mut filter)? || rules)
    }

    /// A setting of the kernel about the bridge.
    fn set(&self, family: &str, name: &str, value: &str) -> io::Result<()> {
        let path = format!("/proc/sys/net/{family}/conf/{}/{name}", self.name);
        set(&path, value)
    }

    /// Links a namespace to the bridge, as far as it is not linked, for the agent of this mark. The rules are there
    /// then, with what is published.
    pub(super) fn connect(
        &self,
        (alloc, agent): (AllocId, &str),
        namespace: BorrowedFd<'_>,
        address: Ipv4,
        published: &Published,
    ) -> io::Result<()> {
        let mut route = Socket::route()?;
        let bridge = self.ensure(&mut route, published)?;
        let (name, alias) = (link_name(alloc), format!("{MARK}{alloc} {agent}"));
        let is_inside = namespace::on_a_thread(|| {
            namespace::enter(namespace)?;
            Ok(link::find(&mut Socket::route()?, INTERFACE)?.is_some())
        })?;
        let outside = link::find(&mut route, &name)?;
        let linked = is_inside && outside.as_ref().is_some_and(|it| it.master == Some(bridge));
        if !linked {
            // One end alone is of a namespace that is gone, or of another bridge.
            if let Some(rest) = outside {
                link::remove(&mut route, rest.index)?;
            }
            let end = HostEnd {
                name: &name,
                alias: &alias,
            };
            link::pair(&mut route, end, bridge, namespace, address)
                .map_err(named("cannot make the link to the bridge"))?;
        }
        let subnet = self.subnet;
        namespace::on_a_thread(|| {
            namespace::enter(namespace)?;
            let mut route = Socket::route()?;
            let inside = link::find(&mut route, INTERFACE)?;
            let inside = inside.ok_or_else(|| io::Error::other("the link is not there"))?;
            link::add_address(&mut route, inside.index, address, subnet.prefix())?;
            link::set_up(&mut route, inside.index)?;
            link::add_default_route(&mut route, inside.index, subnet.gateway())
        })
        .map_err(named("cannot set the address up"))
    }

    /// Has these lead to an address, and nothing else.
    pub(super) fn publish(&self, to: Ipv4, wanted: &[Forward]) -> io::Result<()> {
        let mut filter = Socket::filter()?;
        let rules = named("cannot publish the ports");
        self.filter()
            .set_forwards(&mut filter, to, wanted)
            .map_err(rules)
    }

    /// Has nothing lead to an address.
    pub(super) fn unpublish(&self, to: Ipv4) -> io::Result<()> {
        self.filter().set_forwards(&mut Socket::filter()?, to, &[])
    }

    /// All that leads anywhere.
    pub(super) fn forwards(&self) -> io::Result<BTreeSet<Entry>> {
        self.filter().forwards(&mut Socket::filter()?)
    }

    /// Removes the bridge and the rules, if they are there and nobody is behind it.
    pub(super) fn remove_unused(&self) -> io::Result<()> {
        let mut route = Socket::route()?;
        let own = link::find(&mut route, &self.name)?.filter(|link| link.kind == "bridge");
        if let Some(own) = &own {
            let ports = link::all(&mut route)?;
            if ports.iter().any(|port| port.master == Some(own.index)) {
                return Ok(());
            }
        }
        let mut filter = Socket::filter()?;
        if self.filter().is_there(&mut filter)? {
            self.filter().remove(&mut filter)?;
        }
        own.map_or(Ok(()), |link| link::remove(&mut route, link.index))
    }

    /// Reads what [`fmt::Display`] wrote.
    pub(super) fn read(text: &str) -> Option<Bridge> {
        let (name, subnet) = text.trim().split_once(' ')?;
        Some(Bridge {
            name: name.to_owned(),
            subnet: subnet.parse().ok()?,
            allow_metadata: false,
            most_connections: None,
        })
    }
}

/// What is to lead to an address, so that these ports of the host do.
pub(super) fn forwards(to: Ipv4, ports: &[AssignedPort]) -> io::Result<Vec<Forward>> {
    let forward = |port: &AssignedPort| {
        let to_port = match port.to {
            0 => port.value,
            to => to,
        };
        Ok(Forward {
            host: host_address(port)?,
            port: port.value,
            to,
            to_port,
        })
    };
    ports.iter().map(forward).collect()
}

/// Where a port is on the host: in the default network at all its addresses, as it is for tasks in the host's own
/// network.
fn host_address(port: &AssignedPort) -> io::Result<Ipv4> {
    if port.host_network.is_empty() {
        return Ok(Ipv4(0));
    }
    let known: Result<std::net::Ipv4Addr, _> = port.host_ip.parse();
    known.map(|address| Ipv4(address.into())).map_err(|_| {
        let why = format!(
            "port {} is at {}, and only addresses of version 4 lead behind the bridge",
            port.label, port.host_ip
        );
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

/// The host passes packets on that are not for itself.
fn forward_packets() -> io::Result<()> {
    set("/proc/sys/net/ipv4/ip_forward", "1")
}

/// Changes a setting of the kernel, if it is another one.
fn set(path: &str, value: &str) -> io::Result<()> {
    let known = fs::read_to_string(path).map_err(named(path))?;
    match known.trim() == value {
        true => Ok(()),
        false => fs::write(path, value).map_err(named(path)),
    }
}

/// Switches the loopback of the calling thread's namespace on.
pub(super) fn switch_loopback_on() -> io::Result<()> {
    let mut route = Socket::route()?;
    let loopback = link::find(&mut route, "lo")?;
    let loopback = loopback.ok_or_else(|| io::Error::other("there is no loopback"))?;
    link::set_up(&mut route, loopback.index)
}

/// Why no network namespaces can be made here, if they cannot.
pub fn fault_of_namespaces() -> Option<String> {
    let tried = namespace::on_a_thread(|| {
        namespace::enter_new()?;
        switch_loopback_on()
    });
    let why = |error| format!("no network namespace can be made: {error}");
    tried.err().map(why)
}

/// Why no bridge can be made here, if it cannot: tried in a namespace that ends with that, so that nothing of the
/// host changes.
pub fn fault_of_bridge(bridge: &Bridge) -> Option<String> {
    let tried = namespace::on_a_thread(|| {
        namespace::enter_new()?;
        let mut route = Socket::route()?;
        bridge.ensure(&mut route, &BTreeMap::new())?;
        bridge.publish(bridge.subnet.address(0), &[])
    });
    tried.err().map(|error| error.to_string())
}
