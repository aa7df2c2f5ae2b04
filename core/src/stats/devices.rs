//! What plugins measured of their devices.
//!
//! A report replaces the one before, once it was validated; what cannot be true is refused whole,
//! and the report before it is gone too, because it is not true any more. A task's devices are
//! looked up by what it holds, so a look costs its own devices, however many the machine has.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::device::group::{MAX_DEVICES, MAX_GROUPS, MAX_NAME, MAX_TEXT};
use crate::device::reported_stats::{
    ReportedInstance, ReportedObject, ReportedStats, ReportedValue,
};
use crate::model::device::{AssignedDevices, GroupId};
use crate::text::quote;

/// How many values may be said of one device.
pub const MAX_VALUES: usize = 1024;
/// How deep they may be nested.
pub const MAX_DEPTH: usize = 8;

/// What was measured of the devices of a group, by their ids.
pub type Instances = BTreeMap<Arc<str>, Arc<ReportedInstance>>;

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
    pub fn report(&mut self, plugin: &str, reported: Vec<ReportedStats>) -> Result<(), String> {
        self.plugins.remove(plugin);
        let groups = looked_at(reported)?;
        self.plugins.insert(plugin.into(), groups);
        Ok(())
    }

    /// Forgets what a plugin measured: it sends nothing any more.
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

fn looked_at(reported: Vec<ReportedStats>) -> Result<BTreeMap<Arc<GroupId>, Instances>, String> {
    let devices: usize = reported.iter().map(|group| group.instances.len()).sum();
    if reported.len() > MAX_GROUPS || devices > MAX_DEVICES {
        return Err(format!(
            "measures {} groups and {devices} devices; {MAX_GROUPS} and {MAX_DEVICES} are the most",
            reported.len()
        ));
    }
    let mut groups = BTreeMap::new();
    for reported in reported {
        let id = GroupId {
            vendor: reported.vendor,
            kind: reported.kind,
            name: reported.name,
        };
        let name = quote(&id.to_string());
        for part in [&id.vendor, &id.kind, &id.name] {
            named(part).map_err(|why| format!("a part of the group's name {name} {why}"))?;
        }
        let mut instances = Instances::new();
        for (device, it) in reported.instances {
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

fn instance(reported: &ReportedInstance) -> Result<(), String> {
    if let Some(summary) = &reported.summary {
        value(summary).map_err(|why| format!("its summary {why}"))?;
    }
    let mut left = MAX_VALUES;
    let stats = reported.stats.as_ref();
    stats.map_or(Ok(()), |stats| object(stats, MAX_DEPTH, &mut left))
}

fn object(reported: &ReportedObject, depth: usize, left: &mut usize) -> Result<(), String> {
    let Some(below) = depth.checked_sub(1) else {
        return Err(format!("values more than {MAX_DEPTH} deep"));
    };
    for (name, it) in &reported.attributes {
        *left = (left.checked_sub(1)).ok_or(format!("more than {MAX_VALUES} values"))?;
        let checked = named(name).and_then(|()| value(it));
        checked.map_err(|why| format!("{} {why}", quote(name)))?;
    }
    for (name, it) in &reported.nested {
        *left = (left.checked_sub(1)).ok_or(format!("more than {MAX_VALUES} values"))?;
        named(name).map_err(|why| format!("{} {why}", quote(name)))?;
        object(it, below, left)?;
    }
    Ok(())
}

fn value(reported: &ReportedValue) -> Result<(), String> {
    let floats = [reported.float_numerator, reported.float_denominator];
    if floats.into_iter().flatten().any(|float| !float.is_finite()) {
        return Err("is not a number".to_owned());
    }
    let texts = [
        Some(&reported.unit),
        Some(&reported.description),
        reported.string.as_ref(),
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

    fn reported(name: &str, ids: &[&str]) -> ReportedStats {
        let instance = |id: &&str| ((*id).to_owned(), ReportedInstance::default());
        ReportedStats {
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
    fn device_group_of_two_tasks_is_listed_once() {
        let mut table = DeviceTable::default();
        let all = vec![reported("small", &["x"]), reported("big", &["a", "b", "c"])];
        assert_eq!(table.report("acme", all), Ok(()));
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
    fn plugin_stats_replace_earlier_ones() {
        let mut table = DeviceTable::default();
        assert_eq!(table.report("acme", vec![reported("big", &["a"])]), Ok(()));
        assert_eq!(
            table.report("acme", vec![reported("small", &["x"])]),
            Ok(())
        );
        assert_eq!(names(&table.all()), [pair("small", &["x"])]);
        assert!(table.report("acme", vec![reported("", &[])]).is_err());
        assert!(table.all().is_empty());
    }

    #[test]
    fn invalid_report_is_refused_with_position() {
        let with = |it: ReportedInstance| {
            let mut group = reported("big", &[]);
            group.instances.insert("a".to_owned(), it);
            vec![group]
        };
        let nan = ReportedValue {
            float_numerator: Some(Float::new(f64::NAN)),
            ..ReportedValue::default()
        };
        let of = |stats: ReportedObject| ReportedInstance {
            stats: Some(stats),
            ..ReportedInstance::default()
        };
        let deep = (0..MAX_DEPTH).fold(ReportedObject::default(), |inner, _| ReportedObject {
            nested: BTreeMap::from([("in".to_owned(), inner)]),
            ..ReportedObject::default()
        });
        let values = (0..=MAX_VALUES).map(|n| (n.to_string(), ReportedValue::default()));
        let wide = ReportedObject {
            attributes: values.collect(),
            ..ReportedObject::default()
        };
        let summary = ReportedInstance {
            summary: Some(nan),
            ..ReportedInstance::default()
        };
        for (reported, expected) in [
            (with(summary), "device \"a\": its summary is not a number"),
            (with(of(deep)), "more than 8 deep"),
            (with(of(wide)), "more than 1024 values"),
            (vec![reported("big", &["a\n"])], "control character"),
            (
                vec![reported("big", &[]), reported("big", &[])],
                "is there twice",
            ),
            (vec![reported("big", &[]); MAX_GROUPS + 1], "are the most"),
        ] {
            let why = DeviceTable::default().report("acme", reported).err();
            let why = why.unwrap_or_default();
            assert!(why.contains(expected), "{why} has not {expected}");
        }
    }

    #[test]
    fn lost_plugin_has_no_stats() {
        let mut table = DeviceTable::default();
        assert_eq!(table.report("acme", vec![reported("a", &["1"])]), Ok(()));
        assert_eq!(table.report("other", vec![reported("a", &["1"])]), Ok(()));
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
