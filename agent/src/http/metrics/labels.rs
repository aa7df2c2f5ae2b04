//! Names and values that tell series of one metric apart, written once for all of their metrics.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Kind;

/// Labels by name.
pub(super) type Map = BTreeMap<Cow<'static, str>, String>;

/// Labels, as gauges and as other metrics bear them. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Labels(Arc<[Written; 2]>);

/// Labels, and the text of Prometheus for them.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) map: Map,
    /// `a="b",c="d"`: without braces, since buckets have one more.
    pub(super) text: String,
}

impl Labels {
    /// These labels. Gauges have the host's name as well, if it is to be told.
    pub(super) fn new(map: Map, host: Option<&str>) -> Labels {
        let mut of_gauges = map.clone();
        if let Some(host) = host {
            of_gauges.insert("host".into(), host.to_owned());
        }
        Labels(Arc::new([of_gauges, map].map(Written::of)))
    }

    /// These and one more.
    pub(super) fn with(&self, name: &'static str, value: &str) -> Labels {
        let more = self.0.each_ref().map(|written| {
            let mut map = written.map.clone();
            map.insert(name.into(), value.to_owned());
            Written::of(map)
        });
        Labels(Arc::new(more))
    }

    /// As metrics of this kind bear them.
    pub(super) fn of(&self, kind: Kind) -> &Written {
        let [of_gauges, of_others] = &*self.0;
        match kind {
            Kind::Gauge => of_gauges,
            Kind::Counter => of_others,
        }
    }
}

impl Written {
    fn of(map: Map) -> Written {
        let mut text = String::new();
        for (name, value) in &map {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(name);
            text.push_str("=\"");
            escape(&mut text, value);
            text.push('"');
        }
        Written { map, text }
    }
}

fn escape(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            letter => text.push(letter),
        }
    }
}
