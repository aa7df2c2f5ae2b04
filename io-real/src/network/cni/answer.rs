//! What plugins answer: the network that they made, or why they did not.

use std::net::IpAddr;

use drover_core::model::network::{
    Dns, INTERFACE, Ipv4, MAX_DNS, PluginNetwork, is_server, is_word,
};
use serde::Deserialize;

/// The most letters of a plugin's own words.
const MAX_WORDS: usize = 500;

/// The longest name of an interface, in bytes: what the kernel takes.
const MAX_INTERFACE: usize = 15;

/// A network that was made, as far as we heed it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Made {
    interfaces: Vec<Interface>,
    ips: Vec<Ip>,
    // Before version 0.3.0.
    ip4: Option<OldIp>,
    ip6: Option<OldIp>,
    dns: Names,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Interface {
    name: String,
    /// The namespace that it is in; the host's if empty.
    sandbox: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ip {
    address: String,
    /// Which of the interfaces has it.
    interface: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OldIp {
    ip: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Names {
    nameservers: Vec<String>,
    domain: String,
    search: Vec<String>,
    options: Vec<String>,
}

/// What the last plugin's answer says of the network.
///
/// # Errors
/// It is not what the contract says.
pub fn network(answer: &serde_json::Value) -> Result<PluginNetwork, serde_json::Error> {
    let made = Made::deserialize(answer)?;
    let own = |ip: &Ip| match ip.interface {
        None => Some(None),
        Some(at) => {
            let interface = made.interfaces.get(at)?;
            (!interface.sandbox.is_empty()).then_some(Some(interface))
        }
    };
    let inside = made
        .ips
        .iter()
        .filter_map(|ip| Some((&ip.address, own(ip)?)));
    let older = [&made.ip4, &made.ip6].into_iter().flatten();
    let all = inside.chain(older.map(|old| (&old.ip, None)));
    let mut found = PluginNetwork::default();
    let mut name = None;
    for (text, interface) in all {
        match address(text) {
            Some(IpAddr::V4(ip)) if found.address.is_none() => {
                found.address = Some(Ipv4(ip.into()));
            }
            Some(IpAddr::V6(ip)) if found.address_ipv6.is_none() => found.address_ipv6 = Some(ip),
            Some(_) | None => continue,
        }
        name = name.or(interface);
    }
    let mut inside = made.interfaces.iter().filter(|it| !it.sandbox.is_empty());
    let name = name
        .or(inside.next())
        .map(|interface| interface.name.as_str());
    let name = name.filter(|name| is_interface(name)).unwrap_or(INTERFACE);
    found.interface = name.to_owned();
    found.dns = dns(made.dns);
    Ok(found)
}

/// An address, as plugins write it: with the number of bits that name its network.
fn address(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.parse().ok()
}

fn is_interface(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    !name.is_empty() && name.len() <= MAX_INTERFACE && name.bytes().all(plain)
}

/// What can stand in a file of a resolver.
fn dns(names: Names) -> Option<Dns> {
    let some = |texts: Vec<String>, fits: fn(&str) -> bool| -> Vec<String> {
        let fitting = texts.into_iter().filter(|text| fits(text));
        fitting.take(MAX_DNS).collect()
    };
    let mut searches = some(names.search, is_word);
    if searches.is_empty() {
        searches = some(vec![names.domain], is_word);
    }
    let dns = Dns {
        servers: some(names.nameservers, is_server),
        searches,
        options: some(names.options, is_word),
    };
    (dns != Dns::default()).then_some(dns)
}

/// What a plugin says that fails.
#[derive(Deserialize)]
struct Complaint {
    code: i64,
    msg: String,
    #[serde(default)]
    details: String,
}

/// Why a plugin failed, in its own words, if it says that by the contract.
pub fn complaint(answer: &[u8]) -> Option<String> {
    let error: Complaint = serde_json::from_slice(answer).ok()?;
    let (msg, details) = (plain(&error.msg), plain(&error.details));
    let words = match details.is_empty() {
        true => msg,
        false => format!("{msg}: {details}"),
    };
    Some(format!("{words} (code {})", error.code))
}

/// Words of a program's, in one line of a sane length.
pub(super) fn plain(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let letters = line.chars().filter(|letter| !letter.is_control());
    letters.take(MAX_WORDS).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn address_inside_is_found() {
        let made = network(&json!({
            "cniVersion": "1.0.0",
            "interfaces": [
                {"name": "cni0", "mac": "aa:bb:cc:dd:ee:ff"},
                {"name": "net1", "sandbox": "/x/ns"},
            ],
            "ips": [
                {"address": "10.0.0.1/24", "interface": 0},
                {"address": "fd00::9/64", "interface": 1},
                {"address": "10.0.0.9/24", "gateway": "10.0.0.1", "interface": 1},
                {"address": "10.0.0.10/24", "interface": 1},
                {"address": "10.0.0.11/24", "interface": 77},
            ],
            "dns": {"nameservers": ["10.0.0.53"], "domain": "a.example"},
        }));
        let made = made.unwrap();
        assert_eq!(made.interface, "net1");
        assert_eq!(
            made.reached_at().map(|it| it.to_string()),
            Some("10.0.0.9".to_owned())
        );
        assert_eq!(made.address_ipv6, "fd00::9".parse().ok());
        let dns = made.dns.unwrap();
        assert_eq!(
            (dns.servers, dns.searches),
            (vec!["10.0.0.53".to_owned()], vec!["a.example".to_owned()])
        );
        let old = network(&json!({"ip4": {"ip": "10.0.0.9/24"}})).unwrap();
        assert_eq!(old.address, Some(Ipv4(0x0a00_0009)));
        assert_eq!(old.interface, "eth0");
        assert_eq!(network(&json!({})).unwrap().reached_at(), None);
    }

    #[test]
    fn hostile_result_makes_no_lines_in_files() {
        let made = network(&json!({
            "interfaces": [{"name": "e\nth0", "sandbox": "x"}, {"name": "a".repeat(99), "sandbox": "x"}],
            "ips": [{"address": "10.0.0.9\n6.6.6.6 bank", "interface": 0}, {"address": "10.0.0.9/24", "interface": 0}],
            "dns": {
                "nameservers": ["1.1.1.1\nnameserver 6.6.6.6", "1.1.1.1"],
                "search": ["a\noptions x"],
                "options": vec!["ndots:2"; 1000],
            },
        }));
        let made = made.unwrap();
        assert_eq!(
            (made.interface.as_str(), made.address),
            ("eth0", Some(Ipv4(0x0a00_0009)))
        );
        let dns = made.dns.unwrap();
        assert_eq!(
            (dns.servers.len(), dns.searches.len(), dns.options.len()),
            (1, 0, MAX_DNS)
        );
    }

    #[test]
    fn nonsense_is_an_error() {
        for answer in [
            json!("text"),
            json!(null),
            json!({"ips": "10.0.0.9"}),
            json!({"ips": [{"address": 1}]}),
            json!({"ips": [{"address": "10.0.0.9/24", "interface": -1}]}),
            json!({"interfaces": [7]}),
        ] {
            assert!(network(&answer).is_err(), "{answer}");
        }
        assert_eq!(complaint(b"boom"), None);
        assert_eq!(complaint(b"{\"code\": 7}"), None);
        let long = json!({"code": 7, "msg": "\u{1b}[2J".repeat(1000)}).to_string();
        let reported = complaint(long.as_bytes()).unwrap();
        assert!(
            reported.len() < 600 && !reported.contains('\u{1b}'),
            "{reported}"
        );
    }
}
