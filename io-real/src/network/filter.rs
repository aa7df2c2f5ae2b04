//! The rules of the packet filter by which networks behind the bridge are reached and reach others: a table of our
//! own, which bears the bridge's name, and two rules in a chain of the host where nothing would pass without them.
//!
//! ```text
//! table ip drover
//!   map forwards     address . protocol . port of the host  ->  address . port behind the bridge; what has the
//!                    address 0.0.0.0 is for all addresses of the host
//!   chain guard        what comes from behind the bridge bears an address of it, and is not for the host's loopback;
//!                      nor for the cloud's metadata, unless that is allowed or a name is asked there
//!   chain prerouting   what comes for a port of the map goes behind the bridge
//!   chain output       the same for what the host itself sends
//!   chain postrouting  what leaves the bridge, what comes back to it, and what the host's loopback sends behind it
//!                      bears the host's address
//!   chain connections_…  who comes from behind the bridge has so many connections at most
//!   chain forward      nothing new comes in from elsewhere but by the map
//! ```
//!
//! The rules are there once; only the map changes with each allocation. All changes are whole: they are made
//! together or not at all. A table that has to be made anew is made with everything that is published.
//!
//! Docker, and firewalls of `iptables`, have the policy that nothing is forwarded. What one chain drops no other can
//! let pass. So where `iptables` has a chain `FORWARD`, two rules stand there (in Docker's chain for that if there
//! is one) that let pass what comes from the bridge or goes there, written as `iptables` itself would.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;

use drover_core::model::network::{Ipv4, Subnet};

use super::connections;
use super::expression::{
    ACCEPT, DROP, EQUAL, IN, L4_PROTOCOL, OUT, PART_1, PART_2, R1, TRANSPORT, compare, dnat,
    expression, forwarded, header_bytes, interface, is_for, is_for_port, is_local, is_new, list,
    lookup, loopback, masquerade, meta, nothing, payload, verdict, within,
};
use super::netlink::{
    APPEND, Answer, Attrs, CREATE, Message, NFTABLES, Socket, attribute, attributes, text,
};

pub(super) const NEW_TABLE: u16 = 0;
pub(super) const GET_TABLE: u16 = 1;
pub(super) const DEL_TABLE: u16 = 2;
pub(super) const NEW_CHAIN: u16 = 3;
const GET_CHAIN: u16 = 4;
pub(super) const DEL_CHAIN: u16 = 5;
const NEW_RULE: u16 = 6;
const GET_RULE: u16 = 7;
pub(super) const DEL_RULE: u16 = 8;
const NEW_SET: u16 = 9;
const GET_SET: u16 = 10;
pub(super) const DEL_SET: u16 = 11;
const NEW_ELEMENT: u16 = 12;
const GET_ELEMENT: u16 = 13;
pub(super) const DEL_ELEMENT: u16 = 14;

/// The family of version 4.
pub(super) const IP: u8 = 2;
pub(super) const MAP: &str = "forwards";
const FORWARD: &str = "forward";

/// Where every cloud tells a machine about itself: 169.254.169.254. What it tells are also the machine's credentials.
const METADATA: Ipv4 = Ipv4(0xa9fe_a9fe);

/// In some clouds (Google's, Oracle's) the machine's only name server has that address, too.
const NAMES: u16 = 53;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What leads to each address behind the bridge that is in use.
pub(super) type Published = BTreeMap<Ipv4, Vec<Forward>>;

/// Where packets for a port of the host go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Forward {
    /// The host's address; any of them if it is 0.0.0.0.
    pub(super) host: Ipv4,
    /// The host's port.
    pub(super) port: u16,
    /// Behind the bridge.
    pub(super) to: Ipv4,
    /// The port there.
    pub(super) to_port: u16,
}

/// The table of a bridge.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) bridge: String,
    pub(super) subnet: Subnet,
    /// Whether the cloud's metadata is reached from behind the bridge.
    pub(super) allow_metadata: bool,
    /// How many connections one who is behind the bridge may have.
    pub(super) connections: Option<u32>,
}

/// What a message about this bears as its kind.
pub(super) fn kind(of: u16) -> u16 {
    (u16::from(NFTABLES) << 8) | of
}

pub(super) fn message(of: u16, flags: u16, attrs: &Attrs) -> Message {
    Message::new(kind(of), flags, &[IP, 0, 0, 0], attrs)
}

impl Filter {
    fn table(&self) -> Attrs {
        Attrs::new().text(1, &self.bridge)
    }

    /// Makes the table with all that is published, if it is not there as a whole. Whether it was made.
    pub(super) fn ensure(&self, socket: &mut Socket, published: &Published) -> io::Result<bool> {
        if self.is_whole(socket)? {
            return Ok(false);
        }
        let entries = entries(published);
        let mut all = self.all();
        all.extend(self.elements(NEW_ELEMENT, &entries.iter().collect::<Vec<_>>()));
        match socket.ask_together(&all) {
            Err(error) if self.connections.is_some() && connections::may_be_unknown(&error) => {
                let without = Filter {
                    connections: None,
                    ..self.clone()
                };
                let made = without.ensure(socket, published)?;
                // Nothing else was wrong.
                connections::are_unknown(&error);
                Ok(made)
            }
            asked => asked.map(|()| true),
        }
    }

    /// Whether each chain has as many rules as it should. A map that they look into nobody can remove.
    pub(super) fn is_whole(&self, socket: &mut Socket) -> io::Result<bool> {
        let found = list_rules(socket, &self.table())?;
        let chain = |answer: &Answer| attribute(answer.body.get(4..)?, 2).map(text);
        let mut there: Vec<String> = found.iter().filter_map(chain).collect();
        let mut wanted: Vec<&str> = self.rules().into_iter().map(|(chain, _)| chain).collect();
        let limit = self.connections.map(connections::chain);
        wanted.extend(limit.as_deref());
        there.sort_unstable();
        wanted.sort_unstable();
        Ok(there == wanted)
    }

    /// Puts back what is missing of the table and of what is published. Whether anything was.
    pub(super) fn restore(&self, socket: &mut Socket, published: &Published) -> io::Result<bool> {
        if self.ensure(socket, published)? {
            return Ok(true);
        }
        let known = self.forwards(socket)?;
        let missing = missing(published, &known);
        let keys: BTreeSet<Key> = missing.iter().map(|entry| entry.key).collect();
        let in_the_way = known.iter().filter(|entry| keys.contains(&entry.key));
        let new: Vec<&Entry> = missing.iter().collect();
        self.change(socket, &in_the_way.collect::<Vec<_>>(), &new)
    }

    /// The table as a whole, in place of whatever bears its name.
    fn all(&self) -> Vec<Message> {
        let table = self.table().be32(2, 0);
        let mut all = vec![
            message(NEW_TABLE, CREATE, &table),
            message(DEL_TABLE, 0, &self.table()),
            message(NEW_TABLE, CREATE, &table),
            message(NEW_SET, CREATE, &self.map()),
        ];
        for (name, what, hook, priority) in [
            ("guard", "filter", 0, -300),
            ("prerouting", "nat", 0, -100),
            ("output", "nat", 3, -100),
            ("postrouting", "nat", 4, 100),
            (FORWARD, "filter", 2, 0),
        ] {
            all.push(self.chain(name, what, hook, priority));
        }
        for (chain, rule) in self.rules() {
            all.push(self.rule(chain, &rule));
        }
        if let Some(most) = self.connections {
            let chain = connections::chain(most);
            // Where connections are known, and nothing is sent elsewhere yet.
            all.push(message(NEW_SET, CREATE, &connections::set(self.table())));
            all.push(self.chain(&chain, "filter", 0, -150));
            all.push(self.rule(&chain, &connections::rule(&self.bridge, most)));
        }
        all
    }

    fn chain(&self, name: &str, what: &str, hook: u32, priority: i32) -> Message {
        let place = Attrs::new().be32(1, hook).be32(2, priority.cast_unsigned());
        let chain = self
            .table()
            .text(3, name)
            .text(7, what)
            .be32(5, 1)
            .nest(4, &place);
        message(NEW_CHAIN, CREATE, &chain)
    }

    /// The map, described so that the program `nft` can show it.
    fn map(&self) -> Attrs {
        const MAP_FLAG: u32 = 8;
        // Types as `nft` numbers them, 6 bits each: an address, a protocol, a port.
        const KEY: u32 = (7 << 12) | (12 << 6) | 13;
        const VALUE: u32 = (7 << 6) | 13;
        self.table()
            .text(2, MAP)
            .be32(3, MAP_FLAG)
            .be32(4, KEY)
            .be32(5, 12)
            .be32(6, VALUE)
            .be32(7, 8)
            .be32(10, 1)
    }

    fn rule(&self, chain: &str, expressions: &[Attrs]) -> Message {
        let attrs = self.table().text(2, chain).nest(4, &list(expressions));
        message(NEW_RULE, CREATE | APPEND, &attrs)
    }

    fn rules(&self) -> Vec<(&'static str, Vec<Attrs>)> {
        let (bridge, subnet) = (self.bridge.as_str(), self.subnet);
        let by_map = || {
            vec![
                meta(PART_1, L4_PROTOCOL),
                payload(PART_2, TRANSPORT, 2, 2),
                lookup(),
                dnat(),
            ]
        };
        let forward = || [vec![header_bytes(R1, 16, 4)], by_map()].concat();
        let forward_any = || [is_local(), vec![nothing()], by_map()].concat();
        let mut rules = vec![
            (
                "guard",
                [
                    interface(IN, bridge, true),
                    within(subnet, 12, false),
                    vec![verdict(DROP)],
                ]
                .concat(),
            ),
            (
                "guard",
                [
                    interface(IN, bridge, true),
                    loopback(16),
                    vec![verdict(DROP)],
                ]
                .concat(),
            ),
            ("prerouting", forward()),
            ("prerouting", forward_any()),
            ("output", forward()),
            ("output", forward_any()),
            (
                "postrouting",
                [
                    within(subnet, 12, true),
                    interface(OUT, bridge, false),
                    vec![masquerade()],
                ]
                .concat(),
            ),
            (
                "postrouting",
                [
                    within(subnet, 12, true),
                    interface(OUT, bridge, true),
                    forwarded(true),
                    vec![masquerade()],
                ]
                .concat(),
            ),
            (
                "postrouting",
                [
                    loopback(12),
                    interface(OUT, bridge, true),
                    vec![masquerade()],
                ]
                .concat(),
            ),
            (
                FORWARD,
                [
                    interface(OUT, bridge, true),
                    interface(IN, bridge, false),
                    is_new(),
                    forwarded(false),
                    vec![verdict(DROP)],
                ]
                .concat(),
            ),
        ];
        if !self.allow_metadata {
            let from_behind = || [interface(IN, bridge, true), is_for(METADATA)].concat();
            for protocol in [UDP, TCP] {
                let names = is_for_port(protocol, NAMES);
                let pass = [from_behind(), names, vec![verdict(ACCEPT)]];
                rules.push(("guard", pass.concat()));
            }
            // The last one: what passes before it has passed those above.
            rules.push(("guard", [from_behind(), vec![verdict(DROP)]].concat()));
        }
        rules
    }

    /// What leads to an address now.
    pub(super) fn forwards(&self, socket: &mut Socket) -> io::Result<BTreeSet<Entry>> {
        let of_map = self.table().text(2, MAP);
        if socket.get(message(GET_SET, 0, &of_map))?.is_none() {
            return Ok(BTreeSet::new());
        }
        let found = socket.list(message(GET_ELEMENT, 0, &of_map))?;
        let lists = found
            .iter()
            .filter_map(|answer| attribute(answer.body.get(4..)?, 3));
        let elements = lists.flat_map(attributes);
        Ok(elements.filter_map(|(_, one)| Entry::parse(one)).collect())
    }

    /// Has exactly these lead to an address.
    pub(super) fn set_forwards(
        &self,
        socket: &mut Socket,
        to: Ipv4,
        wanted: &[Forward],
    ) -> io::Result<()> {
        let known = self.forwards(socket)?;
        let wanted: BTreeSet<Entry> = wanted.iter().flat_map(Entry::both).collect();
        let is_wrong = |entry: &&Entry| {
            let taken = wanted.iter().any(|new| new.key == entry.key);
            !wanted.contains(entry) && (entry.is_for(to) || taken)
        };
        let gone: Vec<&Entry> = known.iter().filter(is_wrong).collect();
        let new: Vec<&Entry> = wanted.difference(&known).collect();
        self.change(socket, &gone, &new).map(drop)
    }

    /// Takes entries out of the map and puts others in. Whether there were any.
    pub(super) fn change(
        &self,
        socket: &mut Socket,
        gone: &[&Entry],
        new: &[&Entry],
    ) -> io::Result<bool> {
        let mut changes = self.elements(DEL_ELEMENT, gone);
        changes.extend(self.elements(NEW_ELEMENT, new));
        match changes.is_empty() {
            true => Ok(false),
            false => socket.ask_together(&changes).map(|()| true),
        }
    }

    /// What puts entries into the map, or takes them out: as many at once as fit into one message.
    fn elements(&self, of: u16, entries: &[&Entry]) -> Vec<Message> {
        let is_new = of == NEW_ELEMENT;
        let flags = if is_new { CREATE } else { 0 };
        let some = |some: &[&Entry]| {
            let elements: Vec<Attrs> = some.iter().map(|entry| entry.element(is_new)).collect();
            let attrs = self.table().text(2, MAP).nest(3, &list(&elements));
            message(of, flags, &attrs)
        };
        entries.chunks(256).map(some).collect()
    }

    /// Lets what comes from the bridge or goes there pass where `iptables` has a chain for it. Whether it could not
    /// pass before.
    pub(super) fn let_pass(&self, socket: &mut Socket) -> io::Result<bool> {
        let Some(chain) = chain_of_iptables(socket)? else {
            return Ok(false);
        };
        let known = rules_of(socket, chain)?;
        let mut new = Vec::new();
        for side in [IN, OUT] {
            if !known.iter().any(|rule| rule.is_for(side, &self.bridge)) {
                let rule = pass(side, &self.bridge);
                let attrs = Attrs::new()
                    .text(1, IPTABLES)
                    .text(2, chain)
                    .nest(4, &list(&rule));
                // At the beginning, before anything is dropped.
                new.push(message(NEW_RULE, CREATE, &attrs));
            }
        }
        match new.is_empty() {
            true => Ok(false),
            false => socket.ask_together(&new).map(|()| true),
        }
    }

    /// Whether anything of it is there, in the own table and elsewhere.
    pub(super) fn is_there(&self, socket: &mut Socket) -> io::Result<bool> {
        let last = self.table().text(3, FORWARD);
        Ok(socket.get(message(GET_CHAIN, 0, &last))?.is_some())
    }

    /// Removes all of it.
    pub(super) fn remove(&self, socket: &mut Socket) -> io::Result<()> {
        let mut changes = vec![
            message(NEW_TABLE, CREATE, &self.table().be32(2, 0)),
            message(DEL_TABLE, 0, &self.table()),
        ];
        for chain in CHAINS {
            for rule in rules_of(socket, chain).unwrap_or_default() {
                if [IN, OUT]
                    .iter()
                    .any(|side| rule.is_for(*side, &self.bridge))
                {
                    let attrs = Attrs::new()
                        .text(1, IPTABLES)
                        .text(2, chain)
                        .bytes(3, &rule.handle);
                    changes.push(message(DEL_RULE, 0, &attrs));
                }
            }
        }
        socket.ask_together(&changes)
    }
}

/// An address, a protocol and a port, as the map has them.
type Key = [u8; 12];

/// An element of the map: one protocol of one port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    key: Key,
    value: [u8; 8],
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, protocol, _, _, _, high, low, ..] = self.key;
        let [e, g, h, i, to_high, to_low, ..] = self.value;
        let protocol = if protocol == UDP { "udp" } else { "tcp" };
        let (host, port) = (Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
        let to = Ipv4Addr::new(e, g, h, i);
        let to_port = u16::from_be_bytes([to_high, to_low]);
        write!(f, "{protocol} {host}:{port} to {to}:{to_port}")
    }
}

/// What the map is to have.
fn entries(published: &Published) -> BTreeSet<Entry> {
    let entries = published.values().flatten().flat_map(Entry::both);
    // Of two that have the same port only one can be there.
    let by_key: BTreeMap<Key, Entry> = entries.map(|entry| (entry.key, entry)).collect();
    by_key.into_values().collect()
}

/// What of that it has not.
pub(super) fn missing(published: &Published, known: &BTreeSet<Entry>) -> Vec<Entry> {
    entries(published).difference(known).cloned().collect()
}

impl Entry {
    fn both(forward: &Forward) -> [Entry; 2] {
        [TCP, UDP].map(|protocol| {
            let [a, b, c, d] = forward.host.0.to_be_bytes();
            let [high, low] = forward.port.to_be_bytes();
            let [e, f, g, h] = forward.to.0.to_be_bytes();
            let [to_high, to_low] = forward.to_port.to_be_bytes();
            Entry {
                key: [a, b, c, d, protocol, 0, 0, 0, high, low, 0, 0],
                value: [e, f, g, h, to_high, to_low, 0, 0],
            }
        })
    }

    /// Where it leads.
    pub(super) fn to(&self) -> Ipv4 {
        let [a, b, c, d, ..] = self.value;
        Ipv4(u32::from_be_bytes([a, b, c, d]))
    }

    fn is_for(&self, address: Ipv4) -> bool {
        self.to() == address
    }

    fn parse(element: &[u8]) -> Option<Entry> {
        let value = |kind| attribute(attribute(element, kind)?, 1);
        Some(Entry {
            key: value(1)?.try_into().ok()?,
            value: value(2)?.try_into().ok()?,
        })
    }

    fn element(&self, whole: bool) -> Attrs {
        let key = Attrs::new().nest(1, &Attrs::new().bytes(1, &self.key));
        match whole {
            true => key.nest(2, &Attrs::new().bytes(1, &self.value)),
            false => key,
        }
    }
}

/// The table of `iptables`.
pub(super) const IPTABLES: &str = "filter";
/// Where a rule of ours may stand in it: first Docker's chain for rules of others, which it leaves alone.
const CHAINS: [&str; 2] = ["DOCKER-USER", "FORWARD"];

/// The chain in which we let things pass, if something could be dropped there.
fn chain_of_iptables(socket: &mut Socket) -> io::Result<Option<&'static str>> {
    for chain in CHAINS {
        let attrs = Attrs::new().text(1, IPTABLES).text(3, chain);
        if socket.get(message(GET_CHAIN, 0, &attrs))?.is_some() {
            return Ok(Some(chain));
        }
    }
    Ok(None)
}

/// A rule of others, as far as we understand it: its conditions and what it does.
struct Rule {
    handle: Vec<u8>,
    interfaces: Vec<(u32, String)>,
    expressions: usize,
    passes: bool,
}

impl Rule {
    /// Whether it is one that we write.
    fn is_for(&self, side: u32, bridge: &str) -> bool {
        let same = self.interfaces == [(side, bridge.to_owned())];
        same && self.passes && self.expressions == 4
    }

    fn parse(answer: &Answer) -> Option<Rule> {
        let body = answer.body.get(4..)?;
        let mut rule = Rule {
            handle: attribute(body, 3)?.to_vec(),
            interfaces: Vec::new(),
            expressions: 0,
            passes: false,
        };
        let mut side = None;
        for (_, expression) in attributes(attribute(body, 4)?) {
            rule.expressions += 1;
            let name = attribute(expression, 1).map(text).unwrap_or_default();
            let data = attribute(expression, 2).unwrap_or_default();
            let number = |kind| {
                let bytes: [u8; 4] = attribute(data, kind)?.try_into().ok()?;
                Some(u32::from_be_bytes(bytes))
            };
            match name.as_str() {
                "meta" => side = number(2),
                "cmp" if number(2) == Some(EQUAL) => {
                    let value = attribute(data, 3).and_then(|value| attribute(value, 1));
                    let value = value.map(text).unwrap_or_default();
                    rule.interfaces
                        .extend(side.take().map(|side| (side, value)));
                }
                "immediate" => {
                    let value = attribute(data, 2).and_then(|value| attribute(value, 2));
                    let code = value.and_then(|value| attribute(value, 1));
                    rule.passes = code == Some(&ACCEPT.to_be_bytes()[..]);
                }
                _ => {}
            }
        }
        Some(rule)
    }
}

/// The rules of a chain of `iptables`.
fn rules_of(socket: &mut Socket, chain: &str) -> io::Result<Vec<Rule>> {
    let attrs = Attrs::new().text(1, IPTABLES).text(2, chain);
    let found = list_rules(socket, &attrs)?;
    Ok(found.iter().filter_map(Rule::parse).collect())
}

/// The rules of a table, or of a chain of it; none where it is not there.
fn list_rules(socket: &mut Socket, of: &Attrs) -> io::Result<Vec<Answer>> {
    match socket.list(message(GET_RULE, 0, of)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}

/// A rule as `iptables -i BRIDGE -j ACCEPT` writes it.
fn pass(side: u32, bridge: &str) -> Vec<Attrs> {
    let mut name = bridge.as_bytes().to_vec();
    name.push(0);
    vec![
        meta(R1, side),
        compare(EQUAL, &name),
        expression("counter", &Attrs::new().bytes(1, &[0; 8]).bytes(2, &[0; 8])),
        verdict(ACCEPT),
    ]
}
