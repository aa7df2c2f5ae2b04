//! The addresses of network interfaces, as the kernel reports them over a netlink socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, recv, send,
    socket_with,
};

use super::kernel::InterfaceAddress;

/// How many addresses are looked at: a host of very many containers has some thousands.
const MOST: usize = 16 * 1024;

/// How long the kernel may think. It answers at once.
const TIMEOUT: Duration = Duration::from_secs(1);

const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_ADDRESS: u16 = 20;
/// Dump all addresses: length, `RTM_GETADDR`, request and dump flags, number, port, any family.
const QUESTION: [u8; 24] = {
    let length = 24_u32.to_ne_bytes();
    let kind = 22_u16.to_ne_bytes();
    let flags = 0x0301_u16.to_ne_bytes();
    let mut bytes = [0; 24];
    (bytes[0], bytes[1], bytes[2], bytes[3]) = (length[0], length[1], length[2], length[3]);
    (bytes[4], bytes[5]) = (kind[0], kind[1]);
    (bytes[6], bytes[7]) = (flags[0], flags[1]);
    bytes
};

/// Asks the kernel.
///
/// # Errors
/// It cannot be asked, or does not answer.
pub(super) fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
    send(&socket, &QUESTION, SendFlags::empty())?;
    let mut found = Vec::new();
    let mut names = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let (length, _) = retry_on_intr(|| recv(&socket, &mut *buffer, RecvFlags::empty()))?;
        let reported = parse(buffer.get(..length).unwrap_or_default());
        for address in reported.addresses.iter().filter(|address| address.lasts) {
            found.extend(named(&socket, address, &mut names));
        }
        match reported.end {
            None if length > 0 && found.len() < MOST => {}
            Some(error) if error != 0 => return Err(io::Error::from_raw_os_error(error)),
            None | Some(_) => return Ok(found),
        }
    }
}

/// An address with its interface's name. An interface that went away meanwhile has none.
fn named(
    socket: impl std::os::fd::AsFd,
    address: &Raw,
    names: &mut Vec<(u32, String)>,
) -> Option<InterfaceAddress> {
    let known = names.iter().find(|(index, _)| *index == address.index);
    let device = match known {
        Some((_, name)) => name.clone(),
        None => {
            let name = netdevice::index_to_name(socket, address.index).ok()?;
            names.push((address.index, name.clone()));
            name
        }
    };
    Some(InterfaceAddress {
        device,
        ip: address.ip,
        prefix: address.prefix,
    })
}

/// The content of one packet.
#[derive(Debug, Default)]
struct Reply {
    addresses: Vec<Raw>,
    /// The last message's error, 0 for none; `None` if there is more to come.
    end: Option<i32>,
}

/// An address, with its interface by number.
#[derive(Debug, PartialEq, Eq)]
struct Raw {
    index: u32,
    ip: IpAddr,
    prefix: u8,
    /// Whether it is there to stay: not one that changes each day, is being tried, or runs out.
    lasts: bool,
}

/// Reads a packet. What does not fit ends it.
fn parse(mut packet: &[u8]) -> Reply {
    let mut reported = Reply::default();
    while let (Some(length), Some(kind)) = (u32_at(packet, 0), u16_at(packet, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(body) = packet.get(HEADER..length) else {
            break;
        };
        match kind {
            NEW_ADDRESS => reported.addresses.extend(address(body)),
            DONE => reported.end = Some(0),
            ERROR => reported.end = u32_at(body, 0).map(|code| code.cast_signed().saturating_neg()),
            _ => {}
        }
        packet = packet.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    reported
}

/// Reads an `RTM_NEWADDR`: family, prefix, flags, scope, index, attributes.
fn address(body: &[u8]) -> Option<Raw> {
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    const FLAGS: u16 = 8;
    const V6: u8 = 10;
    const TEMPORARY: u32 = 0x01;
    const FAILED: u32 = 0x08;
    const DEPRECATED: u32 = 0x20;
    const TENTATIVE: u32 = 0x40;

    let v6 = *body.first()? == V6;
    let mut flags = u32::from(*body.get(2)?);
    let (mut ip, mut local) = (None, None);
    let mut rest = body.get(8..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        let value = rest.get(4..length)?;
        match kind {
            ADDRESS => ip = to_ip(value),
            // At a line from point to point the other end is the address, and this is ours.
            LOCAL => local = to_ip(value),
            FLAGS => flags = u32_at(value, 0)?,
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    // Of version 4, the lowest bit means "another of the same network".
    let passing = FAILED | DEPRECATED | TENTATIVE | if v6 { TEMPORARY } else { 0 };
    Some(Raw {
        index: u32_at(body, 4)?,
        ip: local.or(ip)?,
        prefix: *body.get(1)?,
        lasts: flags & passing == 0,
    })
}

fn to_ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|octets| IpAddr::from(Ipv4Addr::from(octets)));
    let v6 = <[u8; 16]>::try_from(bytes).map(|octets| IpAddr::from(Ipv6Addr::from(octets)));
    v4.or(v6).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
#[path = "netlink_tests.rs"]
mod tests;
