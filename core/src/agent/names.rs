//! Names of services: which name means which address, and for whom.
//!
//! ```text
//! NAME.service.drover        the instances of the service
//! TAG.NAME.service.drover    those that have this tag
//! ADDRESS.addr.drover        the address itself, in hexadecimal digits: what a record of a service leads to
//! ```
//!
//! Whoever asks is known by the address of its allocation, and is told of its own namespace alone: for everybody else a
//! name that is there is not. A task that may forge packets (`net_raw`) can ask as a neighbour and get its answer.
//! The instances are those that are registered ([`super::services`]), in the order of
//! allocations, without those that have a check which does not pass. A name all of whose instances fail is there, and
//! leads nowhere.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::View;
use super::services::{self, Registration};
use crate::checks::CheckRunner;
use crate::model::check::CheckStatus;
use crate::model::network::{Ipv4, is_hostname};

/// The domain of all names that nobody else is asked about.
pub const ZONE: &str = "drover";
/// Below it, services.
const SERVICE: &str = "service";
/// Below it, addresses.
const ADDRESS: &str = "addr";

/// What is asked about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Addresses of version 4.
    Ipv4,
    /// Addresses of version 6.
    Ipv6,
    /// Ports, and the names of the hosts where they are.
    Service,
    /// Something that no name here has.
    Other,
}

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An address of version 4.
    Ipv4(Ipv4Addr),
    /// An address of version 6.
    Ipv6(Ipv6Addr),
    /// A port of a host.
    Service {
        /// The port.
        port: u16,
        /// The host's name.
        target: String,
    },
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is not below [`ZONE`]: others know.
    Elsewhere,
    /// There is no such name for whoever asks.
    NoName,
    /// What was asked about it; nothing if it has nothing of the kind.
    Records(Vec<Record>),
}

/// An instance of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Instance {
    tags: Vec<String>,
    address: String,
    port: u16,
    passes: bool,
}

/// The names of services as they are at one moment, and who may ask for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The namespace of the allocation at each address behind the bridge.
    namespaces: BTreeMap<Ipv4, Arc<str>>,
    /// By namespace and name, in small letters.
    services: BTreeMap<(Arc<str>, String), Vec<Instance>>,
}

impl Names {
    /// Those of the node's own allocations.
    pub fn of(view: View<'_>) -> Names {
        let mut names = Names::default();
        for alloc in view.allocs() {
            let record = alloc.record();
            let address = record.address().filter(|_| record.has_network());
            let namespace = record.job.namespace.clone();
            names
                .namespaces
                .extend(address.map(|address| (address, namespace)));
            for one in services::of_alloc(&view.agent.config, alloc) {
                let passes = alloc.checks().iter().all(|check| lets_pass(check, &one));
                names.add(one, passes);
            }
        }
        names
    }

    fn add(&mut self, one: Registration, passes: bool) {
        let key = (one.job.namespace, one.name.to_ascii_lowercase());
        self.services.entry(key).or_default().push(Instance {
            tags: one.tags,
            address: one.address,
            port: one.port,
            passes,
        });
    }

    /// Whether a name, label by label, is one of those that nobody else is asked about.
    pub fn are_ours(name: &[String]) -> bool {
        name.last().is_some_and(|last| is(last, ZONE))
    }

    /// What a name, label by label, means for the allocation at an address. Of several instances another one is the
    /// first at each turn.
    pub fn find(&self, asker: Ipv4, name: &[String], wanted: Wanted, turn: usize) -> Found {
        let Some((_, name)) = name.split_last().filter(|_| Names::are_ours(name)) else {
            return Found::Elsewhere;
        };
        match name.split_last() {
            None => Found::Records(Vec::new()),
            Some((kind, rest)) if is(kind, SERVICE) => self.service(asker, rest, wanted, turn),
            Some((kind, rest)) if is(kind, ADDRESS) => address(rest, wanted),
            Some(_) => Found::NoName,
        }
    }

    fn service(&self, asker: Ipv4, rest: &[String], wanted: Wanted, turn: usize) -> Found {
        let (tag, name) = match rest {
            [] => return Found::Records(Vec::new()),
            [name] => (None, name),
            [tag, name] => (Some(tag), name),
            [..] => return Found::NoName,
        };
        let namespace = self.namespaces.get(&asker).cloned();
        let key = namespace.map(|namespace| (namespace, name.to_ascii_lowercase()));
        let all = key.and_then(|key| self.services.get(&key));
        let has_tag = |one: &&Instance| match tag {
            None => true,
            Some(tag) => one.tags.iter().any(|own| is(own, tag)),
        };
        let tagged: Vec<&Instance> = all.into_iter().flatten().filter(has_tag).collect();
        if tagged.is_empty() {
            return Found::NoName;
        }
        let passing = tagged.into_iter().filter(|one| one.passes);
        let mut records = Vec::new();
        for record in passing.filter_map(|one| one.record(wanted)) {
            // Several instances may be at one address.
            if !records.contains(&record) {
                records.push(record);
            }
        }
        let first = turn.checked_rem(records.len()).unwrap_or_default();
        records.rotate_left(first);
        Found::Records(records)
    }
}

impl Instance {
    fn record(&self, wanted: Wanted) -> Option<Record> {
        let address: Option<IpAddr> = self.address.parse().ok();
        match (wanted, address) {
            (Wanted::Service, Some(address)) => Some(Record::Service {
                port: self.port,
                target: name_of(address),
            }),
            (Wanted::Service, None) => {
                let target = Some(&self.address).filter(|name| is_hostname(name))?;
                Some(Record::Service {
                    port: self.port,
                    target: target.clone(),
                })
            }
            (Wanted::Ipv4 | Wanted::Ipv6 | Wanted::Other, address) => of_address(address?, wanted),
        }
    }
}

/// Whether two labels are the same.
fn is(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Whether a check has nothing against an instance: it is another service's, or passes.
fn lets_pass(check: &CheckRunner, one: &Registration) -> bool {
    let spec = check.spec();
    // Before its first run, names in it are not resolved, and it passes nowhere.
    let named = check.service() == one.name || check.service().contains("${");
    let end = format!("-{}-{}", one.name, spec.service_port);
    let is_its = named && spec.owner == one.task && one.id.ends_with(&end);
    match check.status() {
        CheckStatus::Success | CheckStatus::Warning => true,
        CheckStatus::Pending | CheckStatus::Failure => !is_its,
    }
}

fn of_address(address: IpAddr, wanted: Wanted) -> Option<Record> {
    match (address, wanted) {
        (IpAddr::V4(address), Wanted::Ipv4) => Some(Record::Ipv4(address)),
        (IpAddr::V6(address), Wanted::Ipv6) => Some(Record::Ipv6(address)),
        (IpAddr::V4(_) | IpAddr::V6(_), _) => None,
    }
}

/// The name that leads to an address.
fn name_of(address: IpAddr) -> String {
    let digits = match address {
        IpAddr::V4(address) => format!("{:08x}", u32::from(address)),
        IpAddr::V6(address) => format!("{:032x}", u128::from(address)),
    };
    format!("{digits}.{ADDRESS}.{ZONE}")
}

/// The address that a name leads to which was made of it.
fn address(rest: &[String], wanted: Wanted) -> Found {
    let digits = match rest {
        [] => return Found::Records(Vec::new()),
        [digits] => digits.as_str(),
        [..] => return Found::NoName,
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| plain);
    let address = match (digits.len(), number) {
        (8, Some(number)) => u32::try_from(number).ok().map(|it| IpAddr::V4(it.into())),
        (32, Some(number)) => Some(IpAddr::V6(number.into())),
        (_, _) => None,
    };
    address.map_or(Found::NoName, |address| {
        Found::Records(of_address(address, wanted).into_iter().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKER: Ipv4 = Ipv4(0xac1a_4002);
    const STRANGER: Ipv4 = Ipv4(0xac1a_4003);
    const NOBODY: Ipv4 = Ipv4(0xac1a_4004);

    fn instance(address: &str, port: u16, tags: &[&str], passes: bool) -> Instance {
        Instance {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            address: address.to_owned(),
            port,
            passes,
        }
    }

    /// Two namespaces with a service of the same name, and one in which nothing works.
    fn names() -> Names {
        let web = vec![
            instance("10.0.0.1", 80, &["v1", "Blue"], true),
            instance("10.0.0.2", 81, &["v2"], true),
            instance("10.0.0.2", 82, &["v2"], true),
            instance("10.0.0.3", 80, &["v1"], false),
            instance("fd00::1", 80, &[], true),
            instance("db.example.com", 5432, &[], true),
        ];
        let failing = vec![instance("10.0.0.9", 80, &[], false)];
        let secret = vec![instance("10.0.0.66", 80, &[], true)];
        Names {
            namespaces: BTreeMap::from([(ASKER, "default".into()), (STRANGER, "other".into())]),
            services: BTreeMap::from([
                (("default".into(), "web".to_owned()), web),
                (("default".into(), "failing".to_owned()), failing),
                (("other".into(), "web".to_owned()), secret),
                (("other".into(), "secret".to_owned()), Vec::new()),
            ]),
        }
    }

    fn ask(asker: Ipv4, name: &str, wanted: Wanted, turn: usize) -> Found {
        let labels: Vec<String> = name.split('.').map(str::to_owned).collect();
        names().find(asker, &labels, wanted, turn)
    }

    fn addresses(asker: Ipv4, name: &str, turn: usize) -> Vec<String> {
        let text = |record| match record {
            Record::Ipv4(address) => address.to_string(),
            Record::Ipv6(_) | Record::Service { .. } => "not of version 4".to_owned(),
        };
        match ask(asker, name, Wanted::Ipv4, turn) {
            Found::Records(records) => records.into_iter().map(text).collect(),
            Found::Elsewhere => vec!["elsewhere".to_owned()],
            Found::NoName => vec!["no name".to_owned()],
        }
    }

    #[test]
    fn passing_instances_are_found_in_turns_and_each_address_once() {
        assert_eq!(
            addresses(ASKER, "web.service.drover", 0),
            ["10.0.0.1", "10.0.0.2"]
        );
        assert_eq!(
            addresses(ASKER, "WEB.Service.Drover", 1),
            ["10.0.0.2", "10.0.0.1"]
        );
        let all = addresses(ASKER, "web.service.drover", usize::MAX);
        assert_eq!(all.len(), 2);
        let six = Found::Records(vec![Record::Ipv6(
            "fd00::1".parse().unwrap_or(Ipv6Addr::LOCALHOST),
        )]);
        assert_eq!(ask(ASKER, "web.service.drover", Wanted::Ipv6, 0), six);
    }

    #[test]
    fn tags_select_instances() {
        assert_eq!(addresses(ASKER, "v1.web.service.drover", 0), ["10.0.0.1"]);
        assert_eq!(addresses(ASKER, "blue.web.service.drover", 0), ["10.0.0.1"]);
        assert_eq!(addresses(ASKER, "v3.web.service.drover", 0), ["no name"]);
        assert_eq!(addresses(ASKER, "a.v1.web.service.drover", 0), ["no name"]);
    }

    #[test]
    fn names_of_other_namespaces_are_not_there() {
        assert_eq!(addresses(STRANGER, "web.service.drover", 0), ["10.0.0.66"]);
        assert_eq!(
            addresses(STRANGER, "failing.service.drover", 0),
            ["no name"]
        );
        for name in ["secret", "web.other", "other.web", "secret.other"] {
            let name = format!("{name}.service.drover");
            assert_eq!(addresses(ASKER, &name, 0), ["no name"], "{name}");
        }
        assert_eq!(addresses(NOBODY, "web.service.drover", 0), ["no name"]);
    }

    #[test]
    fn name_without_passing_instance_is_there_and_leads_nowhere() {
        for name in [
            "failing.service.drover",
            "service.drover",
            "addr.drover",
            "drover",
        ] {
            assert_eq!(addresses(ASKER, name, 0), [""; 0], "{name}");
        }
        let nothing = Found::Records(Vec::new());
        assert_eq!(ask(ASKER, "web.service.drover", Wanted::Other, 0), nothing);
        for name in ["web.drover", "web.services.drover", "x"] {
            let expected = if name == "x" { "elsewhere" } else { "no name" };
            assert_eq!(addresses(ASKER, name, 0), [expected], "{name}");
        }
        assert_eq!(names().find(ASKER, &[], Wanted::Ipv4, 0), Found::Elsewhere);
    }

    #[test]
    fn ports_are_told_with_hosts_that_have_names() {
        let Found::Records(records) = ask(ASKER, "web.service.drover", Wanted::Service, 0) else {
            panic!("the service is there");
        };
        let hosts: Vec<(u16, String)> = records
            .into_iter()
            .filter_map(|record| match record {
                Record::Service { port, target } => Some((port, target)),
                Record::Ipv4(_) | Record::Ipv6(_) => None,
            })
            .collect();
        let six = "fd000000000000000000000000000001.addr.drover";
        let expected = [
            (80, "0a000001.addr.drover"),
            (81, "0a000002.addr.drover"),
            (82, "0a000002.addr.drover"),
            (80, six),
            (5432, "db.example.com"),
        ];
        assert_eq!(hosts, expected.map(|(port, host)| (port, host.to_owned())));
        assert_eq!(addresses(ASKER, "0a000002.addr.drover", 0), ["10.0.0.2"]);
        assert_eq!(addresses(ASKER, six, 0), [""; 0]);
        for bad in ["0a00000", "+a000001", "0a00000g", "a.0a000001"] {
            let name = format!("{bad}.addr.drover");
            assert_eq!(addresses(ASKER, &name, 0), ["no name"], "{bad}");
        }
    }
}
