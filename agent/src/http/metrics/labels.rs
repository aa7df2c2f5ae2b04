//! Names and values that distinguish series of one metric, written once for all of their metrics.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::Kind;

/// Labels by name.
pub(super) type Map = BTreeMap<Cow<'static, str>, String>;

/// Labels, as gauges and as other metrics bear them. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Labels(Arc<Written>);

/// Labels, and the texts of Prometheus for them.
#[derive(Debug)]
struct Written {
    map: Map,
    /// Gauges have the host's name as well, if it is to be told.
    host: Option<String>,
    /// All of a gauge's labels, once somebody asked for them.
    with_host: OnceLock<Map>,
    /// `a="b",c="d"`: without braces, since buckets have one more.
    of_others: String,
    /// The same for gauges, if it is another.
    of_gauges: Option<String>,
}

impl Labels {
    /// These labels, and the host's name for gauges.
    pub(super) fn new(map: Map, host: Option<&str>) -> Labels {
        Labels(Arc::new(Written {
            of_others: text(&map, None),
            of_gauges: host.map(|host| text(&map, Some(host))),
            host: host.map(str::to_owned),
            with_host: OnceLock::new(),
            map,
        }))
    }

    /// These and one more.
    pub(super) fn with(&self, name: &'static str, value: &str) -> Labels {
        let mut map = self.0.map.clone();
        map.insert(name.into(), value.to_owned());
        Labels::new(map, self.0.host.as_deref())
    }

    /// The text, as metrics of this kind bear it.
    pub(super) fn text(&self, kind: Kind) -> &str {
        match (kind, &self.0.of_gauges) {
            (Kind::Gauge, Some(text)) => text,
            (Kind::Gauge, None) | (Kind::Counter, _) => &self.0.of_others,
        }
    }

    /// By name, as metrics of this kind bear them.
    pub(super) fn map(&self, kind: Kind) -> &Map {
        match (kind, &self.0.host) {
            (Kind::Gauge, Some(host)) => self.0.with_host.get_or_init(|| {
                let mut map = self.0.map.clone();
                map.insert(HOST.into(), host.clone());
                map
            }),
            (Kind::Gauge, None) | (Kind::Counter, _) => &self.0.map,
        }
    }
}

/// The label with the host's name.
const HOST: &str = "host";

/// The text of these labels in the order of their names, the host's among them.
fn text(map: &Map, host: Option<&str>) -> String {
    let mut pairs: Vec<(&str, &str)> = map
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    if let Some(host) = host {
        pairs.retain(|(name, _)| *name != HOST);
        pairs.push((HOST, host));
        pairs.sort_unstable();
    }
    let mut text = String::with_capacity(LENGTH);
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        escape(&mut text, value);
        text.push('"');
    }
    text
}

/// About how long the text of a task's labels is.
const LENGTH: usize = 192;

fn escape(text: &mut String, mut value: &str) {
    while let Some(at) = value.find(['\\', '"', '\n']) {
        let (plain, rest) = value.split_at(at);
        text.push_str(plain);
        let (special, rest) = rest.split_at(1);
        text.push_str(match special {
            "\n" => "\\n",
            "\"" => "\\\"",
            _ => "\\\\",
        });
        value = rest;
    }
    text.push_str(value);
}
