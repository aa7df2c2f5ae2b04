//! What the kernel says in no file.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustix::system::uname;

use super::netlink;
use crate::network::{self, Bridge, Networks};

/// What the kernel says in no file. This machine's is [`Live`].
pub trait Kernel: Send + Sync {
    /// Its name, version, and machine.
    fn name(&self) -> Name;

    /// Which version of landlock it speaks; `None` if it has none.
    fn landlock(&self) -> Option<u32>;

    /// The addresses of its network interfaces.
    ///
    /// # Errors
    /// It does not say.
    fn addresses(&self) -> io::Result<Vec<InterfaceAddress>>;

    /// The modes besides `host` that networks of groups may have, each with the reason why there are none of it, if
    /// so.
    fn network_modes(&self, _bridge: &Bridge) -> Vec<(&'static str, Option<String>)> {
        vec![("bridge", None)]
    }

    /// Why no network namespaces can be made, if they cannot.
    fn fault_of_namespaces(&self) -> Option<String> {
        None
    }

    /// The volume that a directory is on, or will be on; `None` if there is none.
    ///
    /// # Errors
    /// It does not say.
    fn volume(&self, dir: &Path) -> io::Result<Option<Volume>>;
}

/// A kernel's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// `Linux`.
    pub kernel: String,
    /// Its version.
    pub release: String,
    /// Its name of the architecture, such as `x86_64`.
    pub machine: String,
    /// The host's name.
    pub host: String,
}

/// An address of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface.
    pub device: String,
    /// The address.
    pub ip: IpAddr,
    /// How many bits of it name the network.
    pub prefix: u8,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The directory that was asked for, or the nearest above it that is there, without links.
    pub dir: PathBuf,
    /// All of its bytes, used ones included.
    pub bytes: u64,
}

/// This machine's kernel.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The networks that the agent makes with it, if it makes any.
    pub networks: Option<Networks>,
}

impl Kernel for Live {
    fn name(&self) -> Name {
        let name = uname();
        Name {
            kernel: name.sysname().to_string_lossy().into_owned(),
            release: name.release().to_string_lossy().into_owned(),
            machine: name.machine().to_string_lossy().into_owned(),
            host: name.nodename().to_string_lossy().into_owned(),
        }
    }

    fn landlock(&self) -> Option<u32> {
        const VERSION: libc::c_ulong = 1;
        let nothing = std::ptr::null::<libc::c_void>();
        // SAFETY: with this flag the kernel takes no pointer and no size, and answers a number.
        let answer =
            unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
        u32::try_from(answer).ok().filter(|version| *version > 0)
    }

    fn addresses(&self) -> io::Result<Vec<InterfaceAddress>> {
        netlink::addresses()
    }

    fn network_modes(&self, bridge: &Bridge) -> Vec<(&'static str, Option<String>)> {
        let none = network::fault_of_namespaces();
        let used = || self.networks.as_ref().and_then(Networks::fault);
        let behind = none.clone().or_else(|| network::fault_of_bridge(bridge));
        let behind = behind.or_else(used);
        vec![("bridge", behind), ("none", none)]
    }

    fn fault_of_namespaces(&self) -> Option<String> {
        network::fault_of_namespaces()
    }

    fn volume(&self, dir: &Path) -> io::Result<Option<Volume>> {
        for dir in dir.ancestors() {
            let dir = match fs::canonicalize(dir) {
                Ok(dir) => dir,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let stat = rustix::fs::statvfs(&dir)?;
            let bytes = stat.f_blocks.saturating_mul(stat.f_frsize);
            return Ok(Some(Volume { dir, bytes }));
        }
        Ok(None)
    }
}
