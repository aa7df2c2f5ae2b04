//! What probes look at, and what people set.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::kernel::{Kernel, Live};
use super::root::Root;
use crate::network::{Bridge, Networks};

/// What probes look at.
#[derive(Clone)]
pub struct Context {
    /// The machine's files.
    pub root: Arc<Root>,
    /// What the kernel says in no file.
    pub kernel: Arc<dyn Kernel>,
    /// What people set.
    pub settings: Settings,
}

impl Context {
    /// This machine.
    ///
    /// # Errors
    /// Its root directory cannot be opened.
    pub fn of_this_machine(settings: Settings) -> io::Result<Context> {
        Ok(Context {
            root: Arc::new(Root::open(Path::new("/"))?),
            kernel: Arc::new(Live::default()),
            settings,
        })
    }

    /// This machine, on which an agent makes these networks.
    ///
    /// # Errors
    /// Its root directory cannot be opened.
    pub fn with_networks(settings: Settings, networks: Networks) -> io::Result<Context> {
        let networks = Some(networks);
        Ok(Context {
            kernel: Arc::new(Live { networks }),
            ..Context::of_this_machine(settings)?
        })
    }
}

/// What people set of a node, by Nomad's names where it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the allocations' directories are, or will be.
    pub alloc_dir: PathBuf,
    /// Where CNI plugins are; earlier ones win.
    pub cni_path: Vec<PathBuf>,
    /// Where CNI networks are described.
    pub cni_config_dir: PathBuf,
    /// Cores that tasks may not use.
    pub reserved_cores: BTreeSet<u32>,
    /// MHz that tasks may not use.
    pub reserved_compute: u64,
    /// MHz of all cores together, instead of what the machine says.
    pub cpu_total_compute: Option<u64>,
    /// MiB of memory, instead of what the machine says.
    pub memory_total_mb: Option<u64>,
    /// MiB of the allocations' volume, instead of what the machine says.
    pub disk_total_mb: Option<u64>,
    /// The interface that tasks are reached at, instead of that of the default route.
    pub network_interface: Option<String>,
    /// Mbit/s of that interface, instead of what the machine says.
    pub network_speed: Option<u64>,
    /// Addresses of this machine that ports of jobs may name.
    pub host_networks: Vec<HostNetwork>,
    /// The bridge of networks of allocations.
    pub bridge: Bridge,
    /// Whether tasks of a bridge reach themselves through it.
    pub bridge_hairpin: bool,
    /// The agent's version.
    pub version: String,
    /// The version of Nomad that the node is compatible with.
    pub nomad_version: String,
    /// What the agent was built from; empty if unknown.
    pub revision: String,
    /// Where others reach the agent: address and port.
    pub advertise: String,
    /// How long one CNI plugin may take to say its version.
    pub plugin_timeout: Duration,
    /// The clouds' services.
    pub clouds: Clouds,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            alloc_dir: PathBuf::from("/"),
            cni_path: vec![PathBuf::from("/opt/cni/bin")],
            cni_config_dir: PathBuf::from("/opt/cni/config"),
            reserved_cores: BTreeSet::new(),
            reserved_compute: 0,
            cpu_total_compute: None,
            memory_total_mb: None,
            disk_total_mb: None,
            network_interface: None,
            network_speed: None,
            host_networks: Vec::new(),
            bridge: Bridge::default(),
            bridge_hairpin: false,
            version: String::new(),
            nomad_version: String::new(),
            revision: String::new(),
            advertise: String::new(),
            plugin_timeout: Duration::from_secs(3),
            clouds: Clouds::default(),
        }
    }
}

/// A network of the host by a name: the first address of an interface, or in a subnet, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNetwork {
    /// Its name in jobs.
    pub name: String,
    /// The interface, if it is said.
    pub interface: Option<String>,
    /// The subnet, if it is said.
    pub subnet: Option<Subnet>,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// One of them.
    pub ip: IpAddr,
    /// How many bits are the same.
    pub prefix: u8,
}

impl Subnet {
    /// Whether an address is one of them.
    pub fn contains(&self, ip: IpAddr) -> bool {
        // Shifted by all of its bits, nothing is left to compare.
        let same = |a: u128, b: u128, bits: u32| {
            let shift = bits.saturating_sub(u32::from(self.prefix));
            (a ^ b).checked_shr(shift).unwrap_or(0) == 0
        };
        match (self.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                same(u32::from(own).into(), u32::from(ip).into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => same(own.into(), ip.into(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// Where clouds tell a machine about itself: `http://` with an address, without a path. Names are
/// not resolved, since that may take long on a machine of no cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clouds {
    /// Amazon's.
    pub aws: String,
    /// Google's.
    pub gce: String,
    /// Microsoft's.
    pub azure: String,
    /// DigitalOcean's.
    pub digitalocean: String,
    /// How long one probe may take, with all of its questions.
    pub timeout: Duration,
}

impl Default for Clouds {
    fn default() -> Clouds {
        // The same for all of them, on every machine.
        let service = || "http://169.254.169.254".to_owned();
        Clouds {
            aws: service(),
            gce: service(),
            azure: service(),
            digitalocean: service(),
            timeout: Duration::from_secs(2),
        }
    }
}
