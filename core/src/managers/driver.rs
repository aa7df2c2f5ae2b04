//! The driver manager: the health and attributes of each driver, both ways, for as long as the
//! agent lives.
//!
//! A driver that never reports anything delays nothing; one whose stream of fingerprints ends is
//! asked again, and is not healthy meanwhile unless it worked until then. Each report is compared
//! with what is stored, and stored.
//!
//! The drivers of this program report their health once, at the start; plugins report theirs all
//! the time.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::device::attribute::Attribute;
use crate::device::group::{MAX_ATTRIBUTES, MAX_NAME, MAX_TEXT};
use crate::device::reported::ReportedAttribute;
use crate::effect::{Effect, NodeEffect};
use crate::input::{DriverFingerprint, DriverHealth, DriverReport};
use crate::managers::Changed;
use crate::managers::stream::{SILENT, Stream};
use crate::model::node::{DriverInfo, NodeEvent};
use crate::op::Op;
use crate::operations::Purpose;
use crate::text::quote;
use crate::time::{Instant, Timestamp};

/// What is known of one driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Driver {
    stream: Stream,
    /// None until it said something, or failed to.
    info: Option<DriverInfo>,
    attributes: BTreeMap<String, String>,
    /// When either last became something else.
    changed: Timestamp,
}

/// Every driver that is listened to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Drivers {
    drivers: BTreeMap<Arc<str>, Driver>,
}

impl Drivers {
    /// The drivers of these names, of which nothing is known yet.
    pub fn new(names: &[Arc<str>]) -> Drivers {
        let drivers = names.iter().map(|name| (name.clone(), Driver::default()));
        Drivers {
            drivers: drivers.collect(),
        }
    }

    /// From now on a driver of this name is listened to. `false` if one is already.
    pub fn add(&mut self, name: &str) -> bool {
        let known = self.drivers.contains_key(name);
        if !known {
            self.drivers.insert(name.into(), Driver::default());
        }
        !known
    }

    /// Every driver, by name.
    pub fn drivers(&self) -> impl Iterator<Item = (&Arc<str>, &Driver)> {
        self.drivers.iter()
    }

    /// The driver of this name.
    pub fn get(&self, name: &str) -> Option<&Driver> {
        self.drivers.get(name)
    }

    /// What is known of each.
    pub fn known(
        &self,
    ) -> impl Iterator<Item = (&Arc<str>, &DriverInfo, &BTreeMap<String, String>)> {
        let known = self.drivers.iter();
        known.filter_map(|(name, driver)| Some((name, driver.info.as_ref()?, &driver.attributes)))
    }

    /// Whether news with this number are of a stream that is listened to.
    pub fn listens_to(&self, name: &str, op: Op) -> bool {
        let driver = self.drivers.get(name);
        driver.is_some_and(|driver| driver.stream.is(op))
    }

    /// Takes a report of a driver.
    pub fn on_report(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        op: Op,
        report: DriverReport,
    ) -> Changed {
        let others: Vec<Arc<str>> = (self.drivers.keys())
            .filter(|other| ***other != *name)
            .cloned()
            .collect();
        let Some(driver) = self
            .drivers
            .get_mut(name)
            .filter(|driver| driver.stream.is(op))
        else {
            cx.count_stale();
            return Changed::default();
        };
        match report {
            DriverReport::Fingerprint(reported) => {
                driver.stream.note_report(cx);
                let (info, attributes) = believed(&others, reported);
                driver.becomes(cx, name, info, attributes)
            }
            DriverReport::Failed(why) => {
                driver.stream.note_report(cx);
                driver.fails(cx, name, &why)
            }
            DriverReport::Ended(why) => driver.ended(cx, name, &why),
        }
    }

    /// The stream of this number was opened, and nothing was heard.
    pub fn on_overdue(&mut self, cx: &mut Cx<'_>, name: &str, op: Op) -> Changed {
        let asked = self.drivers.get_mut(name);
        match asked.filter(|one| one.stream.is(op)) {
            Some(one) => one.ended(cx, name, SILENT),
            None => Changed::default(),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        for (name, driver) in &mut self.drivers {
            if driver.stream.is_due(cx.now.at) {
                let op = driver.stream.open(cx, Purpose::Driver(name.clone()));
                let driver = name.clone();
                cx.send(Effect::Node(NodeEffect::WatchDriver { op, driver }));
            }
        }
    }

    /// Whether there is one that neither said nor failed to say how it is.
    pub fn awaits_first_report(&self) -> bool {
        self.drivers.values().any(|driver| driver.info.is_none())
    }

    /// Until when first report are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = Op> {
        let drivers = self.drivers.values();
        drivers.filter_map(|driver| driver.stream.awaited())
    }

    /// When [`Drivers::handle_timeout`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let drivers = self.drivers.values();
        drivers
            .filter_map(|driver| driver.stream.rests_until())
            .min()
    }
}

impl Driver {
    /// The stream of its news.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// How it is; none until it said something, or failed to.
    pub fn info(&self) -> Option<&DriverInfo> {
        self.info.as_ref()
    }

    /// When that was last something else; of an agent's life, for each asks anew.
    pub fn changed(&self) -> Timestamp {
        self.changed
    }

    /// Its stream is over. If it worked until now it is asked again at once, and nothing is wrong.
    fn ended(&mut self, cx: &mut Cx<'_>, name: &str, why: &str) -> Changed {
        self.stream.ended(cx);
        if self.stream.rests_until() == Some(cx.now.at) {
            return Changed::default();
        }
        self.fails(cx, name, why)
    }

    fn fails(&mut self, cx: &Cx<'_>, name: &str, why: &str) -> Changed {
        let info = DriverInfo {
            detected: false,
            healthy: false,
            description: format!("failed to fingerprint driver: {why}"),
        };
        self.becomes(cx, name, info, BTreeMap::new())
    }

    fn becomes(
        &mut self,
        cx: &Cx<'_>,
        name: &str,
        info: DriverInfo,
        attributes: BTreeMap<String, String>,
    ) -> Changed {
        let node = self.info.as_ref() != Some(&info) || self.attributes != attributes;
        let differs = (self.info.as_ref()).is_some_and(|before| {
            before.healthy != info.healthy || before.description != info.description
        });
        let event = (differs && !info.description.is_empty()).then(|| NodeEvent {
            time: cx.now.wall,
            subsystem: "Driver".to_owned(),
            message: info.description.clone(),
            details: [("driver".to_owned(), name.to_owned())].into(),
        });
        if node {
            self.changed = cx.now.wall;
        }
        self.info = Some(info);
        self.attributes = attributes;
        Changed {
            events: event.into_iter().collect(),
            node,
        }
    }
}

/// A driver may speak of itself, and of nobody else: `driver.…`, where not every plugin of
/// Nomad uses its own name behind the dot, but nothing that is another driver's. What it says
/// otherwise costs it that, and is told.
fn believed(
    others: &[Arc<str>],
    reported: DriverFingerprint,
) -> (DriverInfo, BTreeMap<String, String>) {
    let mut refused = None;
    let mut attributes = BTreeMap::new();
    for (key, value) in reported.attributes {
        match attribute(others, &key, &value) {
            Ok(_) if attributes.len() >= MAX_ATTRIBUTES => {
                refused.get_or_insert(format!("more than {MAX_ATTRIBUTES} attributes"));
            }
            Ok(text) => drop(attributes.insert(key, text)),
            Err(why) => drop(refused.get_or_insert(why)),
        }
    }
    let mut description: String = reported.description.chars().take(MAX_TEXT).collect();
    if let Some(refused) = refused {
        description = format!("{description} (not believed: {refused})");
    }
    let detected = reported.health != DriverHealth::Undetected;
    if !detected {
        attributes.clear();
    }
    let info = DriverInfo {
        detected,
        healthy: reported.health == DriverHealth::Healthy,
        description,
    };
    (info, attributes)
}

fn attribute(others: &[Arc<str>], key: &str, value: &ReportedAttribute) -> Result<String, String> {
    let of_driver = key.strip_prefix("driver.");
    let of_other = |rest: &str| {
        let mut others = others.iter();
        others.any(|other| rest == &**other || rest.starts_with(&format!("{other}.")))
    };
    let own = of_driver.is_some_and(|rest| !rest.is_empty() && !of_other(rest));
    if !own || key.len() > MAX_NAME || key.chars().any(char::is_control) {
        let key: String = key.chars().take(MAX_NAME).collect();
        return Err(format!("attribute {} is not its own", quote(&key)));
    }
    let text = value.string.as_deref().unwrap_or_default();
    if text.len() > MAX_TEXT {
        return Err(format!("attribute {} is too long", quote(key)));
    }
    match Attribute::of(value) {
        Ok(value) => Ok(value.to_string()),
        Err(why) => Err(format!("attribute {} {why}", quote(key))),
    }
}
