//! The network of a group: how its tasks are reached, and what they see of the world.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::value::Value;

/// The name that the interface of an allocation has in its own network.
pub const INTERFACE: &str = "eth0";
/// The longest host name, in bytes: what the kernel keeps.
pub const MAX_HOSTNAME: usize = 63;
/// The most name servers, search domains or options of a resolver.
pub const MAX_DNS: usize = 16;
/// The longest search domain or option, in bytes.
const MAX_WORD: usize = 253;
/// The most arguments for plugins of CNI.
pub const MAX_ARGS: usize = 64;
/// The longest of them, in bytes: a name, and a value.
const MAX_ARG_NAME: usize = 64;
const MAX_ARG: usize = 1024;
/// The name that a port's `host_network` has where it has none.
pub const DEFAULT_HOST_NETWORK: &str = "default";

/// The group's network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Network {
    /// `host` (also the empty text), `bridge`, `none` or `cni/<name>`.
    pub mode: String,
    /// Ports whose number the author chose.
    pub reserved_ports: Vec<Port>,
    /// Ports whose number this node chooses.
    pub dynamic_ports: Vec<Port>,
    /// What resolves names for its tasks; the host's resolver if none.
    #[serde(rename = "DNS")]
    pub dns: Option<Dns>,
    /// The name that its tasks have for themselves.
    pub hostname: String,
    /// For modes of CNI: under `Args`, arguments for the plugins, by their names.
    #[serde(rename = "CNI")]
    pub cni: Option<Value>,
}

/// One port of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Port {
    /// Its name; `NOMAD_PORT_<label>` carries its number.
    pub label: String,
    /// The host's port number; 0 until this node chose one.
    pub value: i64,
    /// The number inside the group's network; 0 or -1 for the same as outside.
    pub to: i64,
    /// Which of the node's addresses; `default` unless given.
    pub host_network: String,
    /// Whether two groups may hold the same static port; kept.
    pub ignore_collision: bool,
}

impl Port {
    /// The name of the network of the host that it is reached through.
    pub fn host_network(&self) -> &str {
        match self.host_network.as_str() {
            "" => DEFAULT_HOST_NETWORK,
            name => name,
        }
    }
}

/// What a resolver asks, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Dns {
    /// Addresses of name servers, in the order in which they are asked.
    pub servers: Vec<String>,
    /// Domains in which short names are looked for.
    pub searches: Vec<String>,
    /// Options of the resolver, such as `ndots:2`.
    pub options: Vec<String>,
}

/// What kind of network a group has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NetworkMode {
    /// The host's own.
    #[default]
    Host,
    /// One of its own behind the node's bridge.
    Bridge,
    /// One of its own in which there is nobody else.
    None,
    /// One of its own that a CNI configuration of this name describes.
    Cni(String),
}

/// A text that names no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMode;

impl FromStr for NetworkMode {
    type Err = NoMode;

    fn from_str(text: &str) -> Result<NetworkMode, NoMode> {
        match (text, text.strip_prefix("cni/")) {
            ("" | "host", _) => Ok(NetworkMode::Host),
            ("bridge", _) => Ok(NetworkMode::Bridge),
            ("none", _) => Ok(NetworkMode::None),
            (_, Some(name)) if is_name(name) => Ok(NetworkMode::Cni(name.to_owned())),
            (_, Some(_) | None) => Err(NoMode),
        }
    }
}

impl fmt::Display for NetworkMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkMode::Host => f.write_str("host"),
            NetworkMode::Bridge => f.write_str("bridge"),
            NetworkMode::None => f.write_str("none"),
            NetworkMode::Cni(name) => write!(f, "cni/{name}"),
        }
    }
}

impl NetworkMode {
    /// Whether the tasks of a group have a network namespace of their own.
    pub fn is_own(&self) -> bool {
        match self {
            NetworkMode::Host => false,
            NetworkMode::Bridge | NetworkMode::None | NetworkMode::Cni(_) => true,
        }
    }
}

impl Network {
    /// Its mode; that of the host if it names none that there is, which validation refuses.
    pub fn mode(&self) -> NetworkMode {
        self.mode.parse().unwrap_or_default()
    }

    /// The arguments that it has for plugins of CNI. What is no text is left out, which validation refuses.
    pub fn cni_args(&self) -> impl Iterator<Item = (&str, &str)> {
        let block = self.cni.as_ref().and_then(Value::as_map);
        let args = block.and_then(|block| block.get(ARGS)?.as_map());
        let args = args.into_iter().flatten();
        args.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }
}

/// The name that arguments for plugins of CNI have in a network's `cni`.
pub const ARGS: &str = "Args";

/// What plugins of CNI said of the network that they made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginNetwork {
    /// The name of the interface in there.
    pub interface: String,
    /// Its first address of version 4.
    pub address: Option<Ipv4>,
    /// Its first address of version 6.
    pub address_ipv6: Option<Ipv6Addr>,
    /// What resolves names there, if that was said.
    pub dns: Option<Dns>,
}

impl PluginNetwork {
    /// The address at which others reach it, if it has one.
    pub fn reached_at(&self) -> Option<IpAddr> {
        let first = self.address.map(IpAddr::from);
        first.or(self.address_ipv6.map(IpAddr::V6))
    }
}

/// An address of version 4.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ipv4(pub u32);

impl fmt::Display for Ipv4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0.to_be_bytes();
        write!(f, "{a}.{b}.{c}.{d}")
    }
}

impl From<Ipv4> for IpAddr {
    fn from(address: Ipv4) -> IpAddr {
        IpAddr::V4(address.0.into())
    }
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subnet {
    first: Ipv4,
    prefix: u8,
}

/// Why a text is no subnet for a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSubnet;

impl fmt::Display for NoSubnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a network of version 4 with 8 to 29 bits is needed, as 172.26.64.0/20 is")
    }
}

impl FromStr for Subnet {
    type Err = NoSubnet;

    fn from_str(text: &str) -> Result<Subnet, NoSubnet> {
        let (ip, prefix) = text.split_once('/').ok_or(NoSubnet)?;
        let ip: core::net::Ipv4Addr = ip.parse().map_err(|_| NoSubnet)?;
        let prefix: u8 = prefix.parse().map_err(|_| NoSubnet)?;
        if !(8..=29).contains(&prefix) {
            return Err(NoSubnet);
        }
        let subnet = Subnet {
            first: Ipv4(0),
            prefix,
        };
        let first = Ipv4(u32::from(ip) & !(subnet.size() - 1));
        Ok(Subnet { first, prefix })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl Default for Subnet {
    /// Nomad's: 172.26.64.0/20.
    fn default() -> Subnet {
        Subnet {
            first: Ipv4(0xac1a_4000),
            prefix: 20,
        }
    }
}

impl Subnet {
    /// How many bits of an address name it.
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// Its first address, which names it.
    pub fn first(self) -> Ipv4 {
        self.first
    }

    /// The address of the bridge itself, by which whoever is behind it reaches the rest of the world.
    pub fn gateway(self) -> Ipv4 {
        Ipv4(self.first.0.saturating_add(1))
    }

    /// How many allocations it has addresses for: all but its name, the bridge's, and the last one, which means
    /// everybody.
    pub fn capacity(self) -> u32 {
        self.size().saturating_sub(3)
    }

    /// The address of this number for an allocation, from 0.
    pub fn address(self, number: u32) -> Ipv4 {
        let number = number.checked_rem(self.capacity()).unwrap_or_default();
        Ipv4(self.first.0.saturating_add(2).saturating_add(number))
    }

    /// Whether an address is one of it.
    pub fn holds(self, address: Ipv4) -> bool {
        let number = address.0.checked_sub(self.first.0);
        number.is_some_and(|number| number < self.size())
    }

    fn size(self) -> u32 {
        1_u32
            .checked_shl(u32::from(32 - self.prefix.min(32)))
            .unwrap_or(u32::MAX)
    }
}

/// Whether a text can be the name of a machine: labels of letters, digits and `-`, with dots between them.
pub fn is_hostname(name: &str) -> bool {
    let plain = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(inside)
    };
    name.len() <= MAX_HOSTNAME && name.split('.').all(plain)
}

/// Whether a text can be a name server's address.
pub fn is_server(text: &str) -> bool {
    text.parse::<core::net::IpAddr>().is_ok()
}

/// Whether a text can be a search domain, or an option of a resolver: one word of a line.
pub fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_WORD && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text can be the name of an argument for plugins of CNI.
pub fn is_arg_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !name.is_empty() && name.len() <= MAX_ARG_NAME && name.bytes().all(plain)
}

/// Whether a text can be its value: arguments are one text in which `;` and `=` separate them.
pub fn is_arg(value: &str) -> bool {
    let plain = |letter: char| !letter.is_control() && !matches!(letter, ';' | '=');
    value.len() <= MAX_ARG && value.chars().all(plain)
}

/// Whether a text can be the name of a CNI network.
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_written_as_it_is_read() {
        for text in ["host", "bridge", "none", "cni/mine"] {
            let mode: Result<NetworkMode, _> = text.parse();
            assert_eq!(mode.map(|mode| mode.to_string()), Ok(text.to_owned()));
        }
        for bad in ["brige", "cni/", "cni/a b", "container:x"] {
            assert_eq!(bad.parse::<NetworkMode>(), Err(NoMode), "{bad}");
        }
    }

    #[test]
    fn subnet_gives_addresses_between_bridge_and_broadcast() {
        let subnet: Subnet = "10.1.2.77/29".parse().unwrap_or_default();
        assert_eq!(subnet.to_string(), "10.1.2.72/29");
        assert_eq!(subnet.gateway().to_string(), "10.1.2.73");
        let all: Vec<String> = (0..subnet.capacity())
            .map(|at| subnet.address(at).to_string())
            .collect();
        assert_eq!((all.len(), all[0].as_str()), (5, "10.1.2.74"));
        assert_eq!(all[4], "10.1.2.78");
        for (address, inside) in [
            (0x0a01_0247, false),
            (0x0a01_0248, true),
            (0x0a01_0250, false),
        ] {
            assert_eq!(subnet.holds(Ipv4(address)), inside, "{address:x}");
        }
        assert_eq!(Subnet::default().to_string(), "172.26.64.0/20");
        for bad in ["10.0.0.0", "10.0.0.0/30", "10.0.0.0/7", "::/20", "x/20", ""] {
            assert_eq!(bad.parse::<Subnet>(), Err(NoSubnet), "{bad}");
        }
    }

    #[test]
    fn hostile_names_are_none() {
        for good in ["a", "web-1", "a.b.c", "1"] {
            assert!(is_hostname(good), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", "-a", "a-", "a..b", "a b", "a\nb", "é", "a_b", &long] {
            assert!(!is_hostname(bad), "{bad:?}");
        }
        assert!(is_server("1.1.1.1") && is_server("::1") && !is_server("1.1.1.1\nx"));
        assert!(is_arg("a b") && !is_arg("a;IP=1") && !is_arg("a=b") && !is_arg("a\0"));
        assert!(is_arg_name("MAC") && !is_arg_name("a;b") && !is_arg_name(""));
        assert!(is_word("ndots:2") && !is_word("a b") && !is_word("a\n") && !is_word(""));
    }
}
