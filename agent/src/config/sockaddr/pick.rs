//! Which of the addresses a step leaves, in which order, and what is named of them.

use std::cmp::Ordering;
use std::net::IpAddr;

use drover_core::text::quote;
use drover_io_real::fingerprint::{Interface, Subnet};
use regex::{Regex, RegexBuilder};

use super::ranges::{DOCUMENTS, is_forwardable, is_of, is_special};

/// What can be named of an address.
const ATTRIBUTES: [&str; 6] = ["address", "mask_bits", "name", "network", "string", "type"];
/// By what addresses can be picked.
const SELECTORS: [&str; 9] = [
    "address", "flag", "flags", "name", "network", "rfc", "rfcs", "size", "type",
];
/// By what they can be ordered.
const KEYS: [&str; 6] = ["address", "default", "name", "private", "size", "type"];
/// By what doubles can be told.
const UNIQUE: [&str; 2] = ["address", "name"];

/// How large a compiled regular expression may be, in bytes.
const MOST_OF_REGEX: usize = 64 * 1024;

const UP: u32 = 0x1;
const BROADCAST: u32 = 0x2;
const LOOPBACK: u32 = 0x8;
const POINT_TO_POINT: u32 = 0x10;
const MULTICAST: u32 = 0x1000;

/// Addresses of private networks that others can reach, the likeliest first.
pub(super) fn private(all: &[Interface]) -> Vec<Interface> {
    reachable(all, is_special)
}

/// Addresses of the internet, the likeliest first.
pub(super) fn public(all: &[Interface]) -> Vec<Interface> {
    reachable(all, |ip| !is_special(ip))
}

fn reachable(all: &[Interface], is_so: impl Fn(IpAddr) -> bool) -> Vec<Interface> {
    let is_there = |one: &&Interface| one.flags & UP != 0 && is_forwardable(one.ip);
    let found = all.iter().filter(is_there).filter(|one| is_so(one.ip));
    let mut found: Vec<Interface> = found.cloned().collect();
    order(&mut found, &["default", "type", "size"]);
    found
}

/// The addresses of private networks that others could reach, those of interfaces that are down too.
pub(super) fn all_private(all: &[Interface]) -> Vec<Interface> {
    let mut found = reachable_ips(all);
    found.retain(|one| is_special(one.ip));
    found
}

/// The addresses of the internet, those of interfaces that are down too.
pub(super) fn all_public(all: &[Interface]) -> Vec<Interface> {
    let mut found = reachable_ips(all);
    found.retain(|one| !is_special(one.ip));
    found
}

fn reachable_ips(all: &[Interface]) -> Vec<Interface> {
    let found = all.iter().filter(|one| is_forwardable(one.ip));
    let mut found: Vec<Interface> = found.cloned().collect();
    order(&mut found, &["type", "size"]);
    found
}

/// The addresses of interfaces with such a name, the likeliest first.
///
/// # Errors
/// The name is no regular expression.
pub(super) fn of_interface(all: &[Interface], name: &str) -> Result<Vec<Interface>, String> {
    let name = regex(name)?;
    let found = all.iter().filter(|one| name.is_match(&one.name));
    let mut found: Vec<Interface> = found.cloned().collect();
    order(&mut found, &["type", "size"]);
    Ok(found)
}

/// The first address that others can reach, if there is one.
pub(super) fn first_ip(all: &[Interface]) -> Option<String> {
    let mut reached = all.iter().filter(|one| is_forwardable(one.ip));
    reached.next().map(|one| one.ip.to_string())
}

/// What of an address is meant by a name, in which capital letters are as good as small ones.
///
/// # Errors
/// It is not known.
pub(super) fn known_attribute(name: &str) -> Result<&'static str, String> {
    known("attribute", name, &ATTRIBUTES)
}

/// What is known of an address by this name, which is one of those.
pub(super) fn attribute(one: &Interface, name: &str) -> String {
    let longest = if one.ip.is_ipv4() { 32 } else { 128 };
    match name {
        "name" => one.name.clone(),
        "mask_bits" => one.prefix.to_string(),
        "network" => network(one).map_or_else(String::new, |ip| ip.to_string()),
        "string" if one.prefix < longest => format!("{}/{}", one.ip, one.prefix),
        "type" => version(one.ip).to_owned(),
        _ => one.ip.to_string(),
    }
}

/// The same of all, with this between them.
pub(super) fn joined(all: &[Interface], name: &str, between: &str) -> String {
    let texts: Vec<String> = all.iter().map(|one| attribute(one, name)).collect();
    texts.join(between)
}

/// Of those that follow each other and have the same address or name, the first.
///
/// # Errors
/// It is neither of them that is named.
pub(super) fn unique(mut all: Vec<Interface>, by: &str) -> Result<Vec<Interface>, String> {
    let by = known("attribute", by, &UNIQUE)?;
    all.dedup_by(|a, b| match by {
        "name" => a.name == b.name,
        _ => (a.ip, a.prefix) == (b.ip, b.prefix),
    });
    Ok(all)
}

/// The one of these names that is meant.
fn known(kind: &str, name: &str, all: &[&'static str]) -> Result<&'static str, String> {
    let found = all.iter().find(|one| one.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        format!(
            "{}: no such {kind} is evaluated here, only {}",
            quote(name),
            all.join(", ")
        )
    })
}

fn version(ip: IpAddr) -> &'static str {
    match ip {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

/// The first address of the network.
fn network(one: &Interface) -> Option<IpAddr> {
    let prefix = u32::from(one.prefix);
    match one.ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(prefix)?);
            Some(IpAddr::V4((u32::from(ip) & mask.unwrap_or(0)).into()))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(prefix)?);
            Some(IpAddr::V6((u128::from(ip) & mask.unwrap_or(0)).into()))
        }
    }
}

/// Leaves what a selector picks, or what it does not.
///
/// # Errors
/// There is no such selector, or it selects by nothing that is known.
pub(super) fn filter(
    mut all: Vec<Interface>,
    by: &str,
    what: &str,
    keeps: bool,
) -> Result<Vec<Interface>, String> {
    let by = known("selector", by, &SELECTORS)?;
    let picks = selector(by, what)?;
    all.retain(|one| picks(one) == keeps);
    Ok(all)
}

type Picks = Box<dyn Fn(&Interface) -> bool>;

fn selector(by: &str, what: &str) -> Result<Picks, String> {
    let picks: Picks = match by {
        "name" => {
            let regex = regex(what)?;
            Box::new(move |one| regex.is_match(&one.name))
        }
        "address" => {
            let regex = regex(what)?;
            Box::new(move |one| regex.is_match(&attribute(one, "string")))
        }
        "network" => {
            let networks: Result<Vec<Subnet>, String> = parts(what).map(subnet).collect();
            let networks = networks?;
            Box::new(move |one| networks.iter().any(|network| network.contains(one.ip)))
        }
        "rfc" | "rfcs" => {
            let documents: Vec<String> = parts(what).map(str::to_owned).collect();
            for document in &documents {
                known("document", document, &DOCUMENTS)?;
            }
            Box::new(move |one| {
                let mut documents = documents.iter();
                documents.any(|document| is_of(document, one.ip) == Some(true))
            })
        }
        "size" => {
            let size: Result<u8, _> = what.parse();
            let size = size.map_err(|_| format!("{}: no size such as 24", quote(what)))?;
            Box::new(move |one| one.prefix == size)
        }
        "type" => {
            let types: Result<Vec<Option<bool>>, String> = parts(what).map(of_type).collect();
            let types = types?;
            Box::new(move |one| {
                let is_v4 = one.ip.is_ipv4();
                types.iter().any(|v4| v4.is_none_or(|v4| v4 == is_v4))
            })
        }
        _ => flags(what)?,
    };
    Ok(picks)
}

/// What is written with `|` between.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split('|').map(str::trim)
}

fn regex(text: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(text);
    let built = builder.size_limit(MOST_OF_REGEX).build();
    built.map_err(|error| format!("{}: no regular expression: {error}", quote(text)))
}

fn subnet(text: &str) -> Result<Subnet, String> {
    let read = || {
        let (ip, prefix) = text.split_once('/')?;
        let (ip, prefix): (IpAddr, u8) = (ip.parse().ok()?, prefix.parse().ok()?);
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        (prefix <= longest).then_some(Subnet { ip, prefix })
    };
    read().ok_or_else(|| format!("{}: no network such as 10.0.0.0/8", quote(text)))
}

/// Whether a type is that of version 4, or of version 6; none if it is both.
fn of_type(text: &str) -> Result<Option<bool>, String> {
    match text.to_ascii_lowercase().as_str() {
        "ip" => Ok(None),
        "ipv4" => Ok(Some(true)),
        "ipv6" => Ok(Some(false)),
        _ => Err(format!(
            "{}: no type of addresses, which are ip, ipv4 and ipv6",
            quote(text)
        )),
    }
}

/// Those that have all flags of interfaces that are named, and those that have any of what is named of addresses.
fn flags(text: &str) -> Result<Picks, String> {
    let (mut of_interfaces, mut of_addresses) = (Vec::new(), Vec::new());
    for part in parts(text) {
        let (of_interface, of_address) = flag(part)?;
        of_interfaces.extend(of_interface);
        of_addresses.extend(of_address);
    }
    Ok(Box::new(move |one| {
        let has_all = !of_interfaces.is_empty() && of_interfaces.iter().all(|has| has(one.flags));
        has_all || of_addresses.iter().any(|is_so| is_so(one.ip))
    }))
}

type OfInterface = fn(u32) -> bool;
type OfAddress = fn(IpAddr) -> bool;

/// What a flag is of an interface, and of an address.
fn flag(text: &str) -> Result<(Option<OfInterface>, Option<OfAddress>), String> {
    let flag: (Option<OfInterface>, Option<OfAddress>) = match text.to_ascii_lowercase().as_str() {
        "up" => (Some(|flags| flags & UP != 0), None),
        "down" => (Some(|flags| flags & UP == 0), None),
        "broadcast" => (Some(|flags| flags & BROADCAST != 0), None),
        "loopback" => (
            Some(|flags| flags & LOOPBACK != 0),
            Some(|ip| ip.is_loopback()),
        ),
        "multicast" => (Some(|flags| flags & MULTICAST != 0), None),
        "point-to-point" => (Some(|flags| flags & POINT_TO_POINT != 0), None),
        "forwardable" => (None, Some(is_forwardable)),
        "link-local unicast" => (None, Some(is_link_local)),
        _ => {
            return Err(format!(
                "{}: no flag, which are up, down, broadcast, loopback, multicast, point-to-point, forwardable and \
                 link-local unicast",
                quote(text)
            ));
        }
    };
    Ok(flag)
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn order(all: &mut [Interface], keys: &[&str]) {
    all.sort_by(|a, b| {
        let each = keys.iter().map(|key| compare(a, b, key));
        each.fold(Ordering::Equal, Ordering::then)
    });
}

/// Orders them by keys with commas between, each with `-` in front for the other way round.
///
/// # Errors
/// There is no such key.
pub(super) fn sort(mut all: Vec<Interface>, keys: &str) -> Result<Vec<Interface>, String> {
    let mut by = Vec::new();
    for key in keys.split(',').map(str::trim) {
        let (key, descends) = match key.strip_prefix('-') {
            Some(key) => (key, true),
            None => (key.strip_prefix('+').unwrap_or(key), false),
        };
        by.push((known("key", key, &KEYS)?, descends));
    }
    all.sort_by(|a, b| {
        let each = by.iter().map(|(key, descends)| match descends {
            true => compare(b, a, key),
            false => compare(a, b, key),
        });
        each.fold(Ordering::Equal, Ordering::then)
    });
    Ok(all)
}

/// By one of the keys. What the default route goes over, what is private, and what is of a larger network comes first.
fn compare(a: &Interface, b: &Interface, key: &str) -> Ordering {
    match key {
        "address" => a.ip.cmp(&b.ip),
        "default" => b.is_default.cmp(&a.is_default),
        "name" => a.name.cmp(&b.name),
        "private" => is_special(b.ip).cmp(&is_special(a.ip)),
        "type" => a.ip.is_ipv6().cmp(&b.ip.is_ipv6()),
        _ => a.prefix.cmp(&b.prefix),
    }
}
