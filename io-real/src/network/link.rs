//! Links, addresses and routes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use drover_core::model::network::{INTERFACE, Ipv4, Subnet};

use super::netlink::{
    Attrs, CREATE, EXCLUSIVE, Message, Socket, attribute, attributes, text, u32_at,
};

const NEW_LINK: u16 = 16;
const DEL_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;

const V4: u8 = 2;
const UP: u32 = 1;

const ADDRESS: u16 = 1;
const NAME: u16 = 3;
const MASTER: u16 = 10;
const LINK_INFO: u16 = 18;
const ALIAS: u16 = 20;
const NAMESPACE_FD: u16 = 28;

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    /// What somebody wrote to it, for people and for us.
    pub(super) alias: String,
    pub(super) is_up: bool,
    /// What kind of link it is, such as `bridge`.
    pub(super) kind: String,
    /// The bridge that it is a port of.
    pub(super) master: Option<u32>,
}

/// The end of a pair that is on the host: its name, and what it is marked with.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostEnd<'a> {
    pub(super) name: &'a str,
    pub(super) alias: &'a str,
}

/// A link's header, with the flags that it is to have.
fn header(index: u32, flags: u32) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    for (at, word) in [(4, index), (8, flags), (12, flags)] {
        for (byte, value) in bytes.iter_mut().skip(at).zip(word.to_ne_bytes()) {
            *byte = value;
        }
    }
    bytes
}

/// All links of the socket's namespace.
pub(super) fn all(socket: &mut Socket) -> io::Result<Vec<Link>> {
    let message = Message::new(GET_LINK, 0, &header(0, 0), &Attrs::new());
    let found = socket.list(message)?;
    let links = found.iter().filter(|answer| answer.kind == NEW_LINK);
    Ok(links.filter_map(|answer| parse(&answer.body)).collect())
}

fn parse(body: &[u8]) -> Option<Link> {
    let (index, flags) = (u32_at(body, 4)?, u32_at(body, 8)?);
    let rest = body.get(16..)?;
    let mut link = Link {
        index,
        name: String::new(),
        alias: String::new(),
        is_up: flags & UP != 0,
        kind: String::new(),
        master: None,
    };
    for (kind, value) in attributes(rest) {
        match kind {
            NAME => link.name = text(value),
            ALIAS => link.alias = text(value),
            MASTER => link.master = u32_at(value, 0),
            LINK_INFO => link.kind = attribute(value, 1).map(text).unwrap_or_default(),
            _ => {}
        }
    }
    Some(link)
}

/// The link of this name.
pub(super) fn find(socket: &mut Socket, name: &str) -> io::Result<Option<Link>> {
    let attrs = Attrs::new().text(NAME, name);
    let found = socket.get(Message::new(GET_LINK, 0, &header(0, 0), &attrs))?;
    Ok(found.and_then(|answer| parse(&answer.body)))
}

/// Makes a bridge that is up, if it is not there. Its index.
pub(super) fn bridge(socket: &mut Socket, name: &str, subnet: Subnet) -> io::Result<u32> {
    let found = find(socket, name)?;
    if found.as_ref().is_some_and(|link| link.kind != "bridge") {
        let why = format!("the interface {name} is there and is no bridge");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    if found.is_none() {
        let info = Attrs::new().text(1, "bridge");
        let attrs = Attrs::new().text(NAME, name).nest(LINK_INFO, &info);
        let flags = CREATE | EXCLUSIVE;
        let made = socket.ask(Message::new(NEW_LINK, flags, &header(0, 0), &attrs));
        unless_there(made)?;
    }
    let link = find(socket, name)?.ok_or_else(|| io::Error::other("the bridge is not there"))?;
    add_address(socket, link.index, subnet.gateway(), subnet.prefix())?;
    if !link.is_up {
        set_up(socket, link.index)?;
    }
    Ok(link.index)
}

/// Makes a pair of links: one end is up and a port of the bridge, the other one is born in a namespace, where it has
/// a hardware address that follows from its address. It cannot be up before it has its other end.
pub(super) fn pair(
    socket: &mut Socket,
    end: HostEnd<'_>,
    bridge: u32,
    namespace: BorrowedFd<'_>,
    address: Ipv4,
) -> io::Result<()> {
    let namespace = u32::try_from(namespace.as_raw_fd()).unwrap_or(u32::MAX);
    let mut hardware = vec![0x0a, 0x58];
    hardware.extend(address.0.to_be_bytes());
    let inner = Attrs::new()
        .text(NAME, INTERFACE)
        .bytes(ADDRESS, &hardware)
        .u32(NAMESPACE_FD, namespace);
    let data = Attrs::new().nest(1, &Attrs::raw(Attrs::after(&header(0, 0), &inner)));
    let info = Attrs::new().text(1, "veth").nest(2, &data);
    let attrs = Attrs::new()
        .text(NAME, end.name)
        .u32(MASTER, bridge)
        .nest(LINK_INFO, &info);
    let flags = CREATE | EXCLUSIVE;
    socket.ask(Message::new(NEW_LINK, flags, &header(0, UP), &attrs))?;
    // What comes from a port may go back to it: a task that reaches itself through the host.
    let port = find(socket, end.name)?.ok_or_else(|| io::Error::other("the link is not there"))?;
    let hairpin = Attrs::new().bytes(4, &[1]);
    let info = Attrs::new().text(4, "bridge").nest(5, &hairpin);
    let attrs = Attrs::new().text(ALIAS, end.alias).nest(LINK_INFO, &info);
    socket.ask(Message::new(NEW_LINK, 0, &header(port.index, 0), &attrs))
}

/// Switches a link on.
pub(super) fn set_up(socket: &mut Socket, index: u32) -> io::Result<()> {
    socket.ask(Message::new(SET_LINK, 0, &header(index, UP), &Attrs::new()))
}

/// Removes a link. That it is not there is success.
pub(super) fn remove(socket: &mut Socket, index: u32) -> io::Result<()> {
    let removed = socket.ask(Message::new(DEL_LINK, 0, &header(index, 0), &Attrs::new()));
    match removed {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        removed => removed,
    }
}

/// Gives a link an address, if it has not got it.
pub(super) fn add_address(
    socket: &mut Socket,
    index: u32,
    address: Ipv4,
    prefix: u8,
) -> io::Result<()> {
    let mut header = vec![V4, prefix, 0, 0];
    header.extend(index.to_ne_bytes());
    let bytes = address.0.to_be_bytes();
    let attrs = Attrs::new().bytes(2, &bytes).bytes(1, &bytes);
    let flags = CREATE | EXCLUSIVE;
    unless_there(socket.ask(Message::new(NEW_ADDRESS, flags, &header, &attrs)))
}

/// Sends all that is not near through a gateway, if it is not sent somewhere already.
pub(super) fn add_default_route(socket: &mut Socket, index: u32, gateway: Ipv4) -> io::Result<()> {
    // Family, lengths, service; main table, made at boot, from everywhere, unicast; flags.
    let header = [V4, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
    let attrs = Attrs::new()
        .bytes(5, &gateway.0.to_be_bytes())
        .u32(4, index);
    let flags = CREATE | EXCLUSIVE;
    unless_there(socket.ask(Message::new(NEW_ROUTE, flags, &header, &attrs)))
}

/// Whether it was there already is all the same.
fn unless_there(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_is_read_from_any_bytes() {
        let mut body = header(7, UP);
        body.extend(Attrs::after(
            &[],
            &Attrs::new().text(NAME, "drover").u32(MASTER, 3),
        ));
        let link = parse(&body).unwrap_or_else(|| panic!("it is a link"));
        assert_eq!((link.index, link.name.as_str()), (7, "drover"));
        assert_eq!((link.master, link.is_up), (Some(3), true));
        for cut in 0..body.len() {
            let _ = parse(&body[..cut]);
        }
    }
}
