//! The addresses of this machine's interfaces, for whoever picks one of them by a rule.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use super::probes::default_interface;
use super::{Kernel, Live, Root};

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name.
    pub name: String,
    /// The address.
    pub ip: IpAddr,
    /// How many bits of it name the network.
    pub prefix: u8,
    /// The interface's flags, as the kernel counts them (`IFF_UP` is 1).
    pub flags: u32,
    /// Whether the default route goes over it.
    pub is_default: bool,
}

/// All of this machine's.
///
/// # Errors
/// The kernel does not say them.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let addresses = Live::default().addresses()?;
    let root = Root::open(Path::new("/"))?;
    let default = default_interface(&root).map_err(io::Error::other)?;
    let interface = |found: super::InterfaceAddress| Interface {
        flags: flags(&found.device),
        is_default: default.as_ref() == Some(&found.device),
        name: found.device,
        ip: found.ip,
        prefix: found.prefix,
    };
    Ok(addresses.into_iter().map(interface).collect())
}

/// The flags of an interface; none of one that went away meanwhile.
fn flags(name: &str) -> u32 {
    let path = Path::new("/sys/class/net").join(name).join("flags");
    let text = fs::read_to_string(path).unwrap_or_default();
    let digits = text.trim().trim_start_matches("0x");
    u32::from_str_radix(digits, 16).unwrap_or(0)
}
