//! What the block `client` says of the node itself.
//!
//! ```hcl
//! client {
//!   enabled    = true
//!   node_class = "large"
//!   node_pool  = "gpus"
//!   meta { rack = "r1" }
//!   pids_limit = 8192        # processes and threads of a task; 0 for no limit
//!   io {                     # how fast each task reads and writes at most; see `throttle`
//!     read_bps = 104857600
//!   }
//!   reserved {
//!     cores  = "0-1"         # cores that tasks do not get
//!     cpu    = 500           # MHz
//!     memory = 512           # MB
//!     disk   = 1024          # MB
//!     reserved_ports = "22,80"   # ports that jobs do not get, at any address
//!   }
//!   overcommit {             # how much of the rest tasks may ask for together, in percent
//!     cpu    = 200
//!     memory = 100
//!     disk   = 100
//!   }
//!   host_network "private" { # an address that ports of jobs may name
//!     interface = "eth1"     # of this interface,
//!     cidr      = "10.0.0.0/8"   # or in this network, or both
//!     reserved_ports = "8500-8600"   # ports there that jobs do not get
//!   }
//!   bridge_network_name   = "drover"   # of networks of groups
//!   bridge_network_subnet = "172.26.64.0/20"
//!   bridge_network_allow_metadata = false   # whether they reach the cloud's metadata
//!   bridge_network_max_connections = 65536  # of each allocation; 0 for no limit
//!   bridge_network_resolver = true     # they ask at the bridge's address for names of services
//!   servers = ["10.0.0.1:4647"]       # of the cluster whose node this is; or server_join
//!   server_join { retry_join = ["10.0.0.2"] }
//!   host_volume "data" { path = "/srv/data" }   # see `host_volume`
//! }
//! ```
//!
//! [`super::machine`] lists what may be configured of the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use drover_core::claims::resources::{self, Overcommit};
use drover_core::driver::config::IoLimits;
use drover_core::model::network;
use drover_core::model::volume::HostVolume;
use drover_core::text::quote;
use drover_io_real::fingerprint::{HostNetwork, Subnet};
use drover_io_real::network::Bridge;
use hcl_edit::structure::Block;

use super::address::of_this_machine;
use super::literal::{Fields, as_settings, body, fields};
use super::machine::{MachineConfig, machine};
use super::{host_volume, label, throttle, unknown};

/// How many processes and threads a task has at most where nothing else is configured: more than any sound program
/// starts, and a fork bomb leaves the machine usable.
const PIDS_LIMIT: u64 = 8192;

/// The most cores that a machine has.
const MOST_CORES: u32 = 4096;

/// The most that may be asked for of what there is.
const MOST_PERCENT: u64 = 10_000;

/// Settings of Nomad's block that have no effect here.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "alloc_dir",
    "alloc_mounts_dir",
    "bind_wildcard_default_host_network",
    "bridge_network_hairpin_mode",
    "bridge_network_subnet_ipv6",
    "cgroup_parent",
    "client_max_port",
    "client_min_port",
    "common_plugin_dir",
    "cpu_disable_dmidecode",
    "default_ineligible",
    "gc_volumes_on_node_gc",
    "host_volume_plugin_dir",
    "log_file",
    "max_kill_timeout",
    "no_host_uuid",
    "node_max_allocs",
    "nomad_service_discovery",
    "preferred_address_family",
    "reservable_cores",
    "state_dir",
];

/// What servers are looked for with that a cloud knows.
const CLOUD_DISCOVERY: &str = "provider=";

/// Blocks of it that have none.
pub(super) const BLOCKS_WITHOUT_EFFECT: &[&str] = &["drain_on_shutdown", "template", "users"];

/// What is said of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeConfig {
    /// Its class.
    pub class: String,
    /// Its pool; `default` unless given.
    pub pool: Option<String>,
    /// Its own keys.
    pub meta: BTreeMap<String, String>,
    /// What tasks do not get.
    pub reserved: Reserved,
    /// How much of the rest they may ask for together.
    pub overcommit: Overcommit,
    /// Addresses that ports may name.
    pub host_networks: Vec<HostNetwork>,
    /// Directories of the host that jobs may use, by name.
    pub host_volumes: BTreeMap<String, HostVolume>,
    /// Where the directories of volumes are made; in the data directory unless given.
    pub host_volumes_dir: Option<PathBuf>,
    /// The bridge of networks of groups.
    pub bridge: Bridge,
    /// Whether tasks behind it ask at its address for names of services, and all others.
    pub bridge_resolver: bool,
    /// Ports that are not given away, by the network of the host; those of the empty name in none.
    pub reserved_ports: BTreeMap<String, PortRanges>,
    /// The interface at which tasks are reached.
    pub network_interface: Option<String>,
    /// How many processes and threads a task has at most; no limit if that is 0.
    pub pids_limit: Option<u64>,
    /// How fast each task reads and writes the disk at most.
    pub io: IoLimits,
    /// The servers of the cluster whose node this is, as `HOST:PORT`; none if it is on its own.
    pub servers: Vec<String>,
    /// Whether they are spoken to over TLS.
    pub servers_tls: bool,
    /// Whether nobody runs programs beside tasks.
    pub disable_remote_exec: bool,
    /// What is said of the machine, in place of what is found out.
    pub machine: MachineConfig,
}

impl NodeConfig {
    /// The most processes and threads of a task; 0 for no limit.
    pub fn most_processes(&self) -> u64 {
        self.pids_limit.unwrap_or(PIDS_LIMIT)
    }
}

/// What tasks do not get of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Whole cores.
    pub cores: BTreeSet<u32>,
    /// A part of the processors.
    pub mhz: u64,
    /// Memory and disk space.
    pub amounts: resources::Reserved,
}

/// Servers to join. It is tried until it works, whatever the other settings say.
fn server_join(block: &Block, ignored: &mut Vec<String>) -> Result<Vec<String>, String> {
    let at = |why| format!("client: server_join: {why}");
    let mut given = fields(&block.body).map_err(at)?;
    let servers = ["retry_join", "start_join"].map(|name| given.texts(name));
    let without_effect = given.ignore(&["retry_interval", "retry_max"]);
    ignored.extend((without_effect.iter()).map(|name| format!("client.server_join.{name}")));
    given.nothing_else("server_join").map_err(at)?;
    let servers = servers.into_iter().collect::<Result<Vec<_>, _>>();
    Ok(servers.map_err(at)?.concat())
}

/// Reads the attributes that are about the node.
pub(super) fn node(given: &mut Fields) -> Result<NodeConfig, String> {
    if given.flag("enabled")? == Some(false) {
        return Err("client: enabled: this agent is a client and is nothing else".to_owned());
    }
    Ok(NodeConfig {
        class: given.text("node_class")?.unwrap_or_default(),
        pool: given.text("node_pool")?,
        meta: given.settings("meta")?,
        network_interface: interface(given, "network_interface")?,
        machine: machine(given)?,
        disable_remote_exec: given.flag("disable_remote_exec")?.unwrap_or(false),
        pids_limit: pids_limit(given)?,
        servers: given.texts("servers")?,
        bridge: bridge(given)?,
        bridge_resolver: given.flag("bridge_network_resolver")?.unwrap_or(false),
        host_volumes_dir: host_volume::dir(given)?,
        ..NodeConfig::default()
    })
}

/// The name of an interface, which the machine may be asked for.
fn interface(given: &mut Fields, name: &'static str) -> Result<Option<String>, String> {
    let text = given.text(name)?.filter(|text| !text.is_empty());
    text.map(|given| of_this_machine(name, &given)).transpose()
}

/// The bridge of networks of groups: its name and its addresses.
fn bridge(given: &mut Fields) -> Result<Bridge, String> {
    let mut bridge = Bridge::default();
    if let Some(name) = given.text("bridge_network_name")? {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 15 || !name.chars().all(plain) {
            let name = quote(&name);
            return Err(format!(
                "client: bridge_network_name: {name} is no name of an interface: 1 to 15 letters, digits, _ and -"
            ));
        }
        bridge.name = name;
    }
    if let Some(text) = given.text("bridge_network_subnet")? {
        let subnet: Result<network::Subnet, _> = text.parse();
        bridge.subnet = subnet
            .map_err(|why| format!("client: bridge_network_subnet: {}: {why}", quote(&text)))?;
    }
    let allowed = given.flag("bridge_network_allow_metadata")?;
    bridge.allow_metadata = allowed.unwrap_or(false);
    if let Some(most) = given.number("bridge_network_max_connections")? {
        let most = u32::try_from(most).map_err(|_| {
            format!("client: bridge_network_max_connections: {most} is no number of connections; 0 is no limit")
        })?;
        bridge.most_connections = Some(most);
    }
    Ok(bridge)
}

fn pids_limit(given: &mut Fields) -> Result<Option<u64>, String> {
    let Some(number) = given.number("pids_limit")? else {
        return Ok(None);
    };
    let known = u64::try_from(number).ok();
    let wrong = || format!("client: pids_limit: {number} is no number of processes; 0 is no limit");
    known.ok_or_else(wrong).map(Some)
}

impl NodeConfig {
    /// Reads one of the blocks that are about the node; whether it is one.
    pub(super) fn block(
        &mut self,
        block: &Block,
        ignored: &mut Vec<String>,
    ) -> Result<bool, String> {
        match block.ident.as_str() {
            "meta" => self.meta.extend(meta(block)?),
            "reserved" => {
                let (reserved, ports) = reserved(block)?;
                self.reserved = reserved;
                self.reserve_ports("", ports);
            }
            "overcommit" => self.overcommit = overcommit(block)?,
            "io" => self.io = throttle::io(block)?,
            "host_network" => {
                let (network, ports) = host_network(block)?;
                if self.host_networks.iter().any(|it| it.name == network.name) {
                    let name = quote(&network.name);
                    return Err(format!("client: host_network {name} is there twice"));
                }
                self.reserve_ports(&network.name, ports);
                self.host_networks.push(network);
            }
            "host_volume" => host_volume::add(&mut self.host_volumes, block)?,
            "server_join" => self.servers.extend(server_join(block, ignored)?),
            name if BLOCKS_WITHOUT_EFFECT.contains(&name) => {
                let name = format!("client.{name}");
                if !ignored.contains(&name) {
                    ignored.push(name);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl NodeConfig {
    /// Leaves servers to others that only a cloud knows.
    ///
    /// # Errors
    /// There are no other servers.
    pub(super) fn check_discovery(&mut self, ignored: &mut Vec<String>) -> Result<(), String> {
        let is_cloud = |server: &mut String| server.contains(CLOUD_DISCOVERY);
        let clouds: Vec<String> = self.servers.extract_if(.., is_cloud).collect();
        let Some(cloud) = clouds.first() else {
            return Ok(());
        };
        // The rest of it may have secrets.
        let mut words = cloud.split_whitespace();
        let provider = words.find(|word| word.starts_with(CLOUD_DISCOVERY));
        let provider = provider.unwrap_or(CLOUD_DISCOVERY);
        if self.servers.is_empty() {
            return Err(format!(
                "client: server_join: retry_join: {}: servers are not discovered at a cloud here; name their \
                 addresses, such as \"10.0.0.1:4647\"",
                quote(provider)
            ));
        }
        ignored.push(format!("client.server_join.retry_join {provider}"));
        Ok(())
    }

    fn reserve_ports(&mut self, network: &str, ports: PortRanges) {
        if !ports.is_empty() {
            self.reserved_ports.insert(network.to_owned(), ports);
        }
    }
}

/// Ports, each from the first to the last number.
pub type PortRanges = Vec<(u16, u16)>;

/// `22,80,8500-8600`
fn port_ranges(text: &str, about: &str) -> Result<PortRanges, String> {
    let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().ok();
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first > 0 && first <= last => Ok((first, last)),
            _ => {
                let part = quote(part);
                Err(format!(
                    "{about}: reserved_ports: {part} is not as \"22,8500-8600\" is"
                ))
            }
        }
    };
    parts.map(range).collect()
}

fn meta(block: &Block) -> Result<BTreeMap<String, String>, String> {
    as_settings("client: meta", body(&block.body)?)
}

fn reserved(block: &Block) -> Result<(Reserved, PortRanges), String> {
    let mut given = fields(&block.body)?;
    let mut amount = |name: &'static str| {
        let value = given.number(name)?.unwrap_or(0);
        u64::try_from(value).map_err(|_| format!("client: reserved: {name}: {value} is too few"))
    };
    let mhz = amount("cpu")?;
    let amounts = resources::Reserved {
        memory: amount("memory")?,
        disk: amount("disk")?,
    };
    let cores = given.text("cores")?.unwrap_or_default();
    let ports = given.text("reserved_ports")?.unwrap_or_default();
    let ports = port_ranges(&ports, "client: reserved")?;
    given.nothing_else("client: reserved")?;
    let reserved = Reserved {
        cores: core_set(&cores)?,
        mhz,
        amounts,
    };
    Ok((reserved, ports))
}

/// How much may be asked for of what there is: all of it unless given, and never less.
fn overcommit(block: &Block) -> Result<Overcommit, String> {
    let mut given = fields(&block.body)?;
    let mut overcommit = Overcommit::default();
    let percent = [
        ("cpu", &mut overcommit.cpu),
        ("memory", &mut overcommit.memory),
        ("disk", &mut overcommit.disk),
    ];
    for (name, percent) in percent {
        if let Some(number) = given.number(name)? {
            let known = u64::try_from(number).ok();
            *percent = known
                .filter(|percent| (100..=MOST_PERCENT).contains(percent))
                .ok_or_else(|| {
                    format!(
                        "client: overcommit: {name}: {number} is no percentage from 100 to {MOST_PERCENT}"
                    )
                })?;
        }
    }
    given.nothing_else("client: overcommit")?;
    Ok(overcommit)
}

/// `0-3,7`
fn core_set(text: &str) -> Result<BTreeSet<u32>, String> {
    let mut cores = BTreeSet::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.trim()
                .parse::<u32>()
                .ok()
                .filter(|it| *it < MOST_CORES)
        };
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cores.extend(first..=last),
            _ => {
                let part = quote(part);
                return Err(format!(
                    "client: reserved: cores: {part} is not as \"0-3,7\" is"
                ));
            }
        }
    }
    Ok(cores)
}

fn host_network(block: &Block) -> Result<(HostNetwork, PortRanges), String> {
    let name = label(block)?.to_owned();
    let about = format!("client: host_network {}", quote(&name));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) {
        return Err(format!("{about}: a name has letters, digits, _ and -"));
    }
    let mut given = fields(&block.body)?;
    let interface = interface(&mut given, "interface").map_err(|why| format!("{about}: {why}"))?;
    let subnet = match given.text("cidr")? {
        None => None,
        Some(text) => Some(subnet(&text).ok_or_else(|| {
            let text = quote(&text);
            format!("{about}: cidr: {text} is no network, as \"10.0.0.0/8\" is")
        })?),
    };
    let ports = given.text("reserved_ports")?.unwrap_or_default();
    let ports = port_ranges(&ports, &about)?;
    given.nothing_else(&about)?;
    if interface.is_none() && subnet.is_none() {
        return Err(format!("{about}: needs an interface or a cidr"));
    }
    match block.body.blocks().next() {
        None => {
            let network = HostNetwork {
                name,
                interface,
                subnet,
            };
            Ok((network, ports))
        }
        Some(inner) => Err(format!(
            "{about}: {}",
            unknown("block", inner.ident.as_str(), &[])
        )),
    }
}

fn subnet(text: &str) -> Option<Subnet> {
    let (ip, prefix) = text.split_once('/')?;
    let (ip, prefix): (IpAddr, u8) = (ip.parse().ok()?, prefix.parse().ok()?);
    let most = if ip.is_ipv4() { 32 } else { 128 };
    (prefix <= most).then_some(Subnet { ip, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_ranges_are_parsed() {
        let read = |text| core_set(text).map(|cores| cores.into_iter().collect::<Vec<_>>());
        assert_eq!(read("0-2, 7"), Ok(vec![0, 1, 2, 7]));
        assert_eq!(read(""), Ok(vec![]));
        for bad in ["3-1", "x", "0-99999999", "-"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn reserved_resources_and_overcommit_are_read() {
        let read = |text: &str| super::super::parse(&format!("client {{\n{text}\n}}"));
        let text = "reserved {\n memory = 512\n disk = 9\n}\novercommit {\n memory = 150\n}";
        let node = read(text).unwrap().client.node;
        let amounts = resources::Reserved {
            memory: 512,
            disk: 9,
        };
        assert_eq!(node.reserved.amounts, amounts);
        assert_eq!((node.overcommit.cpu, node.overcommit.memory), (100, 150));
        for (text, words) in [
            ("reserved {\n memory = -1\n}", "memory: -1 is too few"),
            ("overcommit {\n cpu = 99\n}", "no percentage from 100"),
            ("overcommit {\n cpus = 200\n}", "did you mean cpu?"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn metadata_of_cloud_is_reached_only_if_that_is_allowed() {
        let read = |text: &str| super::super::parse(&format!("client {{\n{text}\n}}"));
        let allows = |text: &str| read(text).unwrap().client.node.bridge.allow_metadata;
        assert!(!allows(""));
        assert!(!allows("bridge_network_allow_metadata = false"));
        assert!(allows("bridge_network_allow_metadata = true"));
        assert!(read("bridge_network_allow_metadata = \"no\"").is_err());
    }

    #[test]
    fn connections_of_an_allocation_have_a_limit() {
        let read = |text: &str| super::super::parse(&format!("client {{\n{text}\n}}"));
        let most = |text: &str| read(text).unwrap().client.node.bridge.most_connections;
        assert_eq!(most(""), None);
        assert_eq!(most("bridge_network_max_connections = 0"), Some(0));
        assert_eq!(most("bridge_network_max_connections = 9000"), Some(9000));
        assert!(read("bridge_network_max_connections = -1").is_err());
    }

    #[test]
    fn names_of_services_are_resolved_only_if_that_is_wanted() {
        let read = |text: &str| super::super::parse(&format!("client {{\n{text}\n}}"));
        let wants = |text: &str| read(text).unwrap().client.node.bridge_resolver;
        assert!(!wants(""));
        assert!(wants("bridge_network_resolver = true"));
        let why = read("bridge_network_resolvers = true").unwrap_err();
        assert!(
            why.contains("did you mean bridge_network_resolver?"),
            "{why}"
        );
    }

    #[test]
    fn servers_that_only_a_cloud_knows_are_left_to_the_others() {
        let read = |more: &str| {
            let cloud = "retry_join = [\"provider=aws tag_key=a secret_access_key=s3cret\"]";
            super::super::parse(&format!(
                "client {{\n server_join {{\n {cloud}\n}}\n{more}\n}}"
            ))
        };
        let why = read("").unwrap_err();
        assert!(
            why.contains("\"provider=aws\": servers are not discovered"),
            "{why}"
        );
        let config = read("servers = [\"10.0.0.1\"]").unwrap();
        assert_eq!(config.client.node.servers, ["10.0.0.1"]);
        let ignored = "client.server_join.retry_join provider=aws";
        assert_eq!(config.ignored, [ignored]);
    }

    #[test]
    fn invalid_host_network_is_refused_by_name() {
        for (text, words) in [
            ("host_network \"a\" {}", "needs an interface or a cidr"),
            (
                "host_network \"a\" {\n cidr = \"10.0.0.0/33\"\n}",
                "is no network",
            ),
            (
                "host_network \"a\" {\n cird = \"\"\n}",
                "did you mean cidr?",
            ),
            (
                "host_network \"a b\" {\n interface = \"lo\"\n}",
                "letters, digits",
            ),
            (
                "host_network \"a\" {\n interface = \"{{ GetPrivateInterfaces }}\"\n}",
                "\"a\": interface: \"{{ GetPrivateInterfaces }}\": \"GetPrivateInterfaces\": it ends in interfaces",
            ),
        ] {
            let why = super::super::parse(&format!("client {{\n{text}\n}}")).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
