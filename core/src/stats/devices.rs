//! What plugins measured of their devices.
//!
//! A report replaces the one before, once it was validated; what cannot be true is refused whole,
//! and the report before it is gone too, because it is not true any more. A task's devices are
//! looked up by what it holds, so a look costs its own devices, however many the machine has.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::device::group::{MAX_DEVICES, MAX_GROUPS, MAX_NAME, MAX_TEXT};
use crate::device::said_stats::{SaidInstance, SaidObject, SaidStats, SaidValue};
use crate::model::device::{AssignedDevices, GroupId};
use crate::text::quote;

/// How many values may be said of one device.
pub const MAX_VALUES: usize = 1024;
/// How deep they may be nested.
pub const MAX_DEPTH: usize = 8;

/// What was measured of the devices of a group, by their ids.
pub type Instances = BTreeMap<Arc<str>, Arc<SaidInstance>>;

/// Devices of one group, with what was measured of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUsage {
    /// Which group.
    pub group: Arc<GroupId>,
    /// Its devices.
    pub instances: Instances,
}

/// Devices, each group once, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage(Vec<GroupUsage>);

impl DeviceUsage {
    /// The groups, by name.
    pub fn groups(&self) -> &[GroupUsage] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in the devices of somebody else. A group that both have stays one group.
    pub fn merge(&mut self, other: &DeviceUsage) {
        for theirs in &other.0 {
            let instances = theirs.instances.iter();
            let instances = instances.map(|(id, it)| (id.clone(), it.clone()));
            self.group(&theirs.group).extend(instances);
        }
    }

    /// The devices of a group, which is there from now on.
    fn group(&mut self, id: &Arc<GroupId>) -> &mut Instances {
        let at = self.0.partition_point(|known| known.group < *id);
        if self.0.get(at).is_none_or(|known| known.group != *id) {
            let (group, instances) = (id.clone(), Instances::new());
            self.0.insert(at, GroupUsage { group, instances });
        }
        &mut self.0[at].instances
    }
}

/// The latest of each plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceTable {
    plugins: BTreeMap<Arc<str>, BTreeMap<Arc<GroupId>, Instances>>,
}

impl DeviceTable {
    /// Takes what a plugin measured, whole.
    ///
    /// # Errors
    /// The first thing that cannot be so. Nothing is known of its devices then.
    pub fn say(&mut self, plugin: &str, said: Vec<SaidStats>) -> Result<(), String> {
        self.plugins.remove(plugin);
        let groups = looked_at(said)?;
        self.plugins.insert(plugin.into(), groups);
        Ok(())
    }

    /// Forgets what a plugin measured: it says nothing any more.
    pub fn lose(&mut self, plugin: &str) {
        self.plugins.remove(plugin);
    }

    /// What was measured of devices that are held.
    pub fn of<'a>(&self, held: impl IntoIterator<Item = &'a AssignedDevices>) -> DeviceUsage {
        let mut found = DeviceUsage::default();
        for held in held {
            let groups = self.plugins.get(held.plugin.as_str());
            let Some((id, known)) = groups.and_then(|groups| groups.get_key_value(&held.group))
            else {
                continue;
            };
            let instances = found.group(id);
            let measured = held
                .ids
                .iter()
                .filter_map(|id| known.get_key_value(id.as_str()));
            instances.extend(measured.map(|(id, it)| (id.clone(), it.clone())));
        }
        found
    }

    /// What was measured of all devices.
    pub fn all(&self) -> DeviceUsage {
        let mut all = DeviceUsage::default();
        for (id, known) in self.plugins.values().flatten() {
            let instances = all.group(id);
            instances.extend(known.iter().map(|(id, it)| (id.clone(), it.clone())));
        }
        all
    }
}

fn looked_at(said: Vec<SaidStats>) -> Result<BTreeMap<Arc<GroupId>, Instances>, String> {
    let devices: usize = said.iter().map(|group| group.instances.len()).sum();
    if said.len() > MAX_GROUPS || devices > MAX_DEVICES {
        return Err(format!(
            "measures {} groups and {devices} devices; {MAX_GROUPS} and {MAX_DEVICES} are the most",
            said.len()
        ));
    }
    let mut groups = BTreeMap::new();
    for said in said {
        let id = GroupId {
            vendor: said.vendor,
            kind: said.kind,
            name: said.name,
        };
        let name = quote(&id.to_string());
        for part in [&id.vendor, &id.kind, &id.name] {
            named(part).map_err(|why| format!("a part of the group's name {name} {why}"))?;
        }
        let mut instances = Instances::new();
        for (device, it) in said.instances {
            named(&device)
                .and_then(|()| instance(&it))
                .map_err(|why| format!("group {name}: device {}: {why}", quote(&device)))?;
            instances.insert(device.into(), Arc::new(it));
        }
        if groups.insert(Arc::new(id), instances).is_some() {
            return Err(format!("group {name} is there twice"));
        }
    }
    Ok(groups)
}

fn instance(said: &SaidInstance) -> Result<(), String> {
    if let Some(summary) = &said.summary {
        value(summary).map_err(|why| format!("its summary {why}"))?;
    }
    let mut left = MAX_VALUES;
    let stats = said.stats.as_ref();
    stats.map_or(Ok(()), |stats| object(stats, MAX_DEPTH, &mut left))
}

fn object(said: &SaidObject, depth: usize, left: &mut usize) -> Result<(), String> {
    let Some(below) = depth.checked_sub(1) else {
        return Err(format!("values more than {MAX_DEPTH} deep"));
    };
    for (name, it) in &said.attributes {
        *left = (left.checked_sub(1)).ok_or(format!("more than {MAX_VALUES} values"))?;
        let looked = named(name).and_then(|()| value(it));
        looked.map_err(|why| format!("{} {why}", quote(name)))?;
    }
    for (name, it) in &said.nested {
        *left = (left.checked_sub(1)).ok_or(format!("more than {MAX_VALUES} values"))?;
        named(name).map_err(|why| format!("{} {why}", quote(name)))?;
        object(it, below, left)?;
    }
    Ok(())
}

fn value(said: &SaidValue) -> Result<(), String> {
    let floats = [said.float_numerator, said.float_denominator];
    if floats.into_iter().flatten().any(|float| !float.is_finite()) {
        return Err("is no number".to_owned());
    }
    let texts = [
        Some(&said.unit),
        Some(&said.description),
        said.string.as_ref(),
    ];
    if texts
        .into_iter()
        .flatten()
        .any(|text| text.len() > MAX_TEXT)
    {
        return Err(format!("has a text of more than {MAX_TEXT} bytes"));
    }
    Ok(())
}

fn named(name: &str) -> Result<(), String> {
    match name {
        "" => Err("is empty".to_owned()),
        name if name.len() > MAX_NAME => Err(format!("has more than {MAX_NAME} bytes")),
        name if name.chars().any(char::is_control) => Err("has a control character".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::float::Float;

    fn said(name: &str, ids: &[&str]) -> SaidStats {
        let instance = |id: &&str| ((*id).to_owned(), SaidInstance::default());
        SaidStats {
            vendor: "acme".to_owned(),
            kind: "gpu".to_owned(),
            name: name.to_owned(),
            instances: ids.iter().map(instance).collect(),
        }
    }

    fn held(task: &str, name: &str, ids: &[&str]) -> AssignedDevices {
        AssignedDevices {
            task: task.to_owned(),
            plugin: "acme".to_owned(),
            group: GroupId {
                vendor: "acme".to_owned(),
                kind: "gpu".to_owned(),
                name: name.to_owned(),
            },
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    fn names(usage: &DeviceUsage) -> Vec<(String, Vec<String>)> {
        let ids = |it: &GroupUsage| it.instances.keys().map(ToString::to_string).collect();
        let groups = usage.groups().iter();
        groups.map(|it| (it.group.name.clone(), ids(it))).collect()
    }

    fn pair(name: &str, ids: &[&str]) -> (String, Vec<String>) {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        (name.to_owned(), ids)
    }

    #[test]
    fn a_group_of_two_tasks_is_one_group() {
        let mut table = DeviceTable::default();
        let all = vec![said("small", &["x"]), said("big", &["a", "b", "c"])];
        assert_eq!(table.say("acme", all), Ok(()));
        let held = [
            held("one", "big", &["c"]),
            held("one", "small", &["x"]),
            held("two", "big", &["a", "never seen"]),
            held("two", "unknown", &["a"]),
        ];
        let expected = vec![pair("big", &["a", "c"]), pair("small", &["x"])];
        assert_eq!(names(&table.of(&held)), expected);
        let mut merged = table.of(&held[..2]);
        merged.merge(&table.of(&held[2..]));
        assert_eq!(names(&merged), expected);
    }

    #[test]
    fn what_a_plugin_says_replaces_what_it_said() {
        let mut table = DeviceTable::default();
        assert_eq!(table.say("acme", vec![said("big", &["a"])]), Ok(()));
        assert_eq!(table.say("acme", vec![said("small", &["x"])]), Ok(()));
        assert_eq!(names(&table.all()), [pair("small", &["x"])]);
        assert!(table.say("acme", vec![said("", &[])]).is_err());
        assert!(table.all().is_empty());
    }

    #[test]
    fn what_cannot_be_so_is_refused_and_says_where() {
        let with = |it: SaidInstance| {
            let mut group = said("big", &[]);
            group.instances.insert("a".to_owned(), it);
            vec![group]
        };
        let nan = SaidValue {
            float_numerator: Some(Float::new(f64::NAN)),
            ..SaidValue::default()
        };
        let of = |stats: SaidObject| SaidInstance {
            stats: Some(stats),
            ..SaidInstance::default()
        };
        let deep = (0..MAX_DEPTH).fold(SaidObject::default(), |inner, _| SaidObject {
            nested: BTreeMap::from([("in".to_owned(), inner)]),
            ..SaidObject::default()
        });
        let values = (0..=MAX_VALUES).map(|n| (n.to_string(), SaidValue::default()));
        let wide = SaidObject {
            attributes: values.collect(),
            ..SaidObject::default()
        };
        let summary = SaidInstance {
            summary: Some(nan),
            ..SaidInstance::default()
        };
        for (said, expected) in [
            (with(summary), "device \"a\": its summary is no number"),
            (with(of(deep)), "more than 8 deep"),
            (with(of(wide)), "more than 1024 values"),
            (vec![said("big", &["a\n"])], "control character"),
            (vec![said("big", &[]), said("big", &[])], "is there twice"),
            (vec![said("big", &[]); MAX_GROUPS + 1], "are the most"),
        ] {
            let why = DeviceTable::default().say("acme", said).err();
            let why = why.unwrap_or_default();
            assert!(why.contains(expected), "{why} has not {expected}");
        }
    }

    #[test]
    fn of_a_plugin_that_is_lost_nothing_is_known() {
        let mut table = DeviceTable::default();
        assert_eq!(table.say("acme", vec![said("a", &["1"])]), Ok(()));
        assert_eq!(table.say("other", vec![said("a", &["1"])]), Ok(()));
        table.lose("acme");
        let held = held("main", "a", &["1"]);
        assert_eq!(names(&table.of([&held])), []);
        let of_other = AssignedDevices {
            plugin: "other".to_owned(),
            ..held
        };
        assert_eq!(names(&table.of([&of_other])).len(), 1);
    }
}
