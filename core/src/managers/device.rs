//! The device manager: what plugins report, for as long as the agent lives.
//!
//! Each plugin has a stream of fingerprints. A report replaces the one before, once it was
//! validated ([`crate::device::group`]). What cannot be believed costs the plugin its devices until it
//! reports something better, and no other plugin anything. Devices that an allocation holds stay
//! its own whatever becomes of the plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Changed;
use crate::cx::Cx;
use crate::device::choose::Offer;
use crate::device::group::{Group, groups_of};
use crate::device::reported::ReportedGroup;
use crate::effect::{Effect, NodeEffect};
use crate::input::DeviceReport;
use crate::managers::stream::{SILENT, Stream};
use crate::model::device::GroupId;
use crate::model::node::NodeEvent;
use crate::op::Op;
use crate::operations::Purpose;
use crate::time::Instant;

/// What is known of one plugin of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Plugin {
    stream: Stream,
    #[serde(with = "crate::pairs")]
    groups: BTreeMap<GroupId, Group>,
    /// Why it does not work, if it does not.
    last_error: Option<String>,
    /// Whether there is nothing to be asked for on this machine.
    disabled: bool,
    /// Whether it said what it has, or failed to, at least once.
    has_reported: bool,
}

impl Plugin {
    /// Its devices.
    pub fn groups(&self) -> &BTreeMap<GroupId, Group> {
        &self.groups
    }

    /// Why it does not work, if it does not.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Whether it said that there is nothing for it on this machine.
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// The stream of its news.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
}

/// Every plugin of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Devices {
    plugins: BTreeMap<Arc<str>, Plugin>,
}

impl Devices {
    /// The plugins of these names, of which nothing is known yet.
    pub fn new(names: &[Arc<str>]) -> Devices {
        let plugins = names.iter().map(|name| (name.clone(), Plugin::default()));
        Devices {
            plugins: plugins.collect(),
        }
    }

    /// From now on a plugin of this name is listened to. `false` if one is already.
    pub fn add(&mut self, name: &str) -> bool {
        let known = self.plugins.contains_key(name);
        if !known {
            self.plugins.insert(name.into(), Plugin::default());
        }
        !known
    }

    /// Every plugin, by name.
    pub fn plugins(&self) -> impl Iterator<Item = (&Arc<str>, &Plugin)> {
        self.plugins.iter()
    }

    /// Every group with the plugin that announced it; of two plugins with one group the first by
    /// name.
    pub fn offers(&self) -> Vec<Offer<'_>> {
        let mut offers: BTreeMap<&GroupId, Offer<'_>> = BTreeMap::new();
        for (name, plugin) in &self.plugins {
            for (id, group) in &plugin.groups {
                offers.entry(id).or_insert((name, id, group));
            }
        }
        offers.into_values().collect()
    }

    /// Takes a report of a plugin. Returns what people should know, and whether its devices changed.
    pub fn on_report(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        op: Op,
        report: DeviceReport,
    ) -> Changed {
        let others = self.others(name);
        let Some(plugin) = self
            .plugins
            .get_mut(name)
            .filter(|plugin| plugin.stream.is(op))
        else {
            cx.count_stale();
            return Changed::default();
        };
        match report {
            DeviceReport::Devices(reported) => plugin.on_devices(cx, name, &reported, &others),
            DeviceReport::Disabled(why) => {
                plugin.disabled = true;
                plugin.stream.note_report(cx);
                plugin.loses_devices(cx, name, why)
            }
            DeviceReport::Ended(why) => plugin.ended(cx, name, why),
        }
    }

    /// The groups that other plugins announce, with whose they are.
    fn others(&self, name: &str) -> BTreeMap<GroupId, Arc<str>> {
        let others = self.plugins.iter().filter(|(other, _)| &***other != name);
        others
            .flat_map(|(other, plugin)| {
                let of = move |id: &GroupId| (id.clone(), other.clone());
                plugin.groups.keys().map(of)
            })
            .collect()
    }

    /// The stream of this number was opened, and nothing was heard.
    pub fn on_overdue(&mut self, cx: &mut Cx<'_>, name: &str, op: Op) -> Changed {
        let asked = self.plugins.get_mut(name);
        match asked.filter(|one| one.stream.is(op)) {
            Some(one) => one.ended(cx, name, SILENT.to_owned()),
            None => Changed::default(),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        for (name, plugin) in &mut self.plugins {
            if plugin.stream.is_due(cx.now.at) && !plugin.disabled {
                let op = plugin.stream.open(cx, Purpose::Devices(name.clone()));
                let plugin = name.clone();
                cx.send(Effect::Node(NodeEffect::WatchDevices { op, plugin }));
            }
        }
    }

    /// Whether there is a plugin that neither said nor failed to say what it has.
    pub fn awaits_first_report(&self) -> bool {
        self.plugins.values().any(|plugin| !plugin.has_reported)
    }

    /// Until when first report are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = Op> {
        let plugins = self.plugins.values();
        plugins.filter_map(|plugin| plugin.stream.awaited())
    }

    /// When [`Devices::handle_timeout`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let working = self.plugins.values().filter(|plugin| !plugin.disabled);
        working
            .filter_map(|plugin| plugin.stream.rests_until())
            .min()
    }
}

impl Plugin {
    fn on_devices(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        reported: &[ReportedGroup],
        others: &BTreeMap<GroupId, Arc<str>>,
    ) -> Changed {
        let groups = groups_of(reported).and_then(|groups| {
            let taken = groups.keys().find_map(|id| Some((id, others.get(id)?)));
            match taken {
                Some((id, other)) => Err(format!("group {id} is plugin {other:?}'s")),
                None => Ok(groups),
            }
        });
        let groups = match groups {
            Ok(groups) => groups,
            Err(why) => {
                let changed = self.loses_devices(cx, name, format!("cannot be believed: {why}"));
                self.stream.ended(cx);
                return changed;
            }
        };
        self.stream.note_report(cx);
        self.has_reported = true;
        let recovered = self.last_error.take().is_some();
        let node = recovered || self.groups != groups;
        self.groups = groups;
        let event = recovered.then(|| event(cx, name, "works again"));
        Changed {
            events: event.into_iter().collect(),
            node,
        }
    }

    /// Its stream is over. If it worked until now its devices stay, because it is asked again at
    /// once.
    fn ended(&mut self, cx: &mut Cx<'_>, name: &str, why: String) -> Changed {
        self.stream.ended(cx);
        if self.stream.rests_until() == Some(cx.now.at) {
            return Changed::default();
        }
        self.loses_devices(cx, name, why)
    }

    fn loses_devices(&mut self, cx: &Cx<'_>, name: &str, why: String) -> Changed {
        let report = self.last_error.as_ref() != Some(&why);
        let node = report || !self.groups.is_empty();
        self.groups.clear();
        self.has_reported = true;
        let events = report.then(|| event(cx, name, &why)).into_iter().collect();
        self.last_error = Some(why);
        Changed { events, node }
    }
}

fn event(cx: &Cx<'_>, name: &str, what: &str) -> NodeEvent {
    NodeEvent {
        time: cx.now.wall,
        subsystem: "Device".to_owned(),
        message: format!("Plugin \"{name}\" {what}"),
        details: [("plugin".to_owned(), name.to_owned())].into(),
    }
}
