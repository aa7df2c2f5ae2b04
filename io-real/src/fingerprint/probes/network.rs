//! Network interfaces, their addresses, and the one that tasks are reached at.

use std::collections::BTreeMap;
use std::net::IpAddr;

use drover_core::fingerprint::{Address, Fingerprint, Network};
use drover_core::scheduler::ports::host_network_attribute;

use super::super::put::{plain, put};
use super::super::{Context, HostNetwork, InterfaceAddress, ProbeError, Root, Settings};
use super::routes;

/// How many interfaces are told of.
const MOST: usize = 256;

const UP: u64 = 0x1;
const LOOPBACK: u64 = 0x8;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let settings = &context.settings;
    let mut devices = addresses(context)?;
    let named = named_networks(settings, &devices)?;
    let chosen = match &settings.network_interface {
        Some(name) if !is_there(context, &devices, name)? => {
            return Err(ProbeError::Setting {
                name: "network_interface",
                why: format!("this machine has no {name:?}"),
            });
        }
        Some(name) => Some(name.clone()),
        None => default_interface(context, &devices)?,
    };
    if let Some(chosen) = &chosen {
        devices.entry(chosen.clone()).or_default();
    }
    let mut reported = Vec::new();
    for (device, ips) in devices {
        let is_default = chosen.as_ref() == Some(&device);
        // Of what containers hang on, too many come and go that nobody is reached at.
        if !is_default && ips.iter().all(|ip| is_local(ip.ip)) {
            continue;
        }
        let flags = flags(&context.root, &device)?;
        if is_default || flags & UP != 0 {
            reported.push((flags, device, ips, is_default));
        }
    }
    reported.sort_by_key(|(_, _, _, is_default)| !is_default);
    reported.truncate(MOST);
    let mut networks = Vec::new();
    for (flags, device, ips, is_default) in reported {
        networks.push((flags, network(context, device, ips, is_default)?));
    }
    let mut found = Fingerprint::default();
    if let Some(ip) = reached_at(&networks) {
        put(&mut found, "unique.network.ip-address", ip);
    }
    for (name, ip) in named {
        put(&mut found, &host_network_attribute(name), ip);
    }
    found.resources.networks = networks.into_iter().map(|(_, network)| network).collect();
    Ok(found)
}

/// The address of each network that has a name.
fn named_networks<'a>(
    settings: &'a Settings,
    devices: &BTreeMap<String, Vec<InterfaceAddress>>,
) -> Result<Vec<(&'a str, IpAddr)>, ProbeError> {
    let address = |network: &'a HostNetwork| {
        let all = devices.values().flatten();
        let mut fits = all.filter(|address| {
            let interface = network.interface.as_ref();
            interface.is_none_or(|name| *name == address.device)
                && network
                    .subnet
                    .is_none_or(|subnet| subnet.contains(address.ip))
        });
        match fits.next() {
            Some(found) => Ok((network.name.as_str(), found.ip)),
            None => Err(ProbeError::Setting {
                name: "host_network",
                why: format!("this machine has no address in {:?}", network.name),
            }),
        }
    };
    settings.host_networks.iter().map(address).collect()
}

/// The addresses of each interface.
fn addresses(context: &Context) -> Result<BTreeMap<String, Vec<InterfaceAddress>>, ProbeError> {
    let all = context.kernel.addresses();
    let all = all.map_err(|error| ProbeError::unreadable("the kernel's addresses", error))?;
    let mut devices: BTreeMap<String, Vec<InterfaceAddress>> = BTreeMap::new();
    for address in all {
        let device = address.device.clone();
        devices.entry(device).or_default().push(address);
    }
    Ok(devices)
}

/// The interface of the default route, if there is such an interface.
fn default_interface(
    context: &Context,
    devices: &BTreeMap<String, Vec<InterfaceAddress>>,
) -> Result<Option<String>, ProbeError> {
    let Some(name) = routes::default_interface(&context.root)? else {
        return Ok(None);
    };
    Ok(is_there(context, devices, &name)?.then_some(name))
}

fn is_there(
    context: &Context,
    devices: &BTreeMap<String, Vec<InterfaceAddress>>,
    name: &str,
) -> Result<bool, ProbeError> {
    let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    let known = devices.contains_key(name);
    Ok(known || (plain && context.root.has(&format!("sys/class/net/{name}"))?))
}

fn network(
    context: &Context,
    device: String,
    mut ips: Vec<InterfaceAddress>,
    is_default: bool,
) -> Result<Network, ProbeError> {
    let root = &context.root;
    let mac = root.value(&format!("sys/class/net/{device}/address"))?;
    // The kernel says -1 where there is no such thing as a speed.
    let speed = root.number(&format!("sys/class/net/{device}/speed"))?;
    let set = context.settings.network_speed.filter(|_| is_default);
    ips.sort_by_key(|address| (address.ip.is_ipv6(), is_local(address.ip)));
    Ok(Network {
        mac: mac
            .map(|mac| plain(&mac))
            .filter(|mac| is_mac(mac))
            .unwrap_or_default(),
        speed: set.or(speed).unwrap_or_default(),
        addresses: ips.iter().map(to_address).collect(),
        is_default,
        device,
    })
}

fn to_address(address: &InterfaceAddress) -> Address {
    Address {
        ip: address.ip.to_string(),
        prefix: address.prefix,
    }
}

/// Whether it is a hardware address, and not that of a thing without one.
fn is_mac(text: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_hexdigit() || letter == ':';
    text.len() <= 64
        && text.chars().all(letters)
        && text.chars().any(|letter| !"0:".contains(letter))
}

/// The flags of an interface; without `/sys` it counts as up.
fn flags(root: &Root, device: &str) -> Result<u64, ProbeError> {
    let text = root.value(&format!("sys/class/net/{device}/flags"))?;
    let digits = text.as_deref().and_then(|text| text.strip_prefix("0x"));
    let flags = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Ok(flags.unwrap_or(if device == "lo" { UP | LOOPBACK } else { UP }))
}

/// The address that tasks are reached at: of the default's, or else of the first that others see.
fn reached_at(networks: &[(u64, Network)]) -> Option<&str> {
    let mut outside = networks
        .iter()
        .filter(|(flags, network)| network.is_default || flags & LOOPBACK == 0);
    outside.find_map(|(_, network)| {
        let mut ips = network.addresses.iter().map(|address| address.ip.as_str());
        ips.find(|ip| ip.parse().is_ok_and(|ip| !is_local(ip)))
    })
}

/// Whether an address means something on its own wire only.
fn is_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.is_unspecified(),
    }
}
