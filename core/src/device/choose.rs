//! Which devices a task gets.
//!
//! A request is answered by one group: the one whose attributes the job likes best, of those that
//! fulfil its conditions and have enough devices that work and that nobody holds. Groups that are
//! liked equally are taken by name, and of a group the devices by id, so that the same request
//! gets the same answer.

use std::collections::{BTreeMap, BTreeSet};

use super::attribute::Attribute;
use super::group::{Device, Group};
use crate::constraint::{Operator, compare_texts};
use crate::model::device::{AssignedDevices, DeviceRequest, GroupId};
use crate::model::job::Constraint;
use crate::model::placement::{DeviceLack, PlacementFailure};

/// Devices that somebody holds: by group, the ids.
pub type Held = BTreeMap<GroupId, BTreeSet<String>>;

/// A group that may be chosen from, with the plugin that announced it.
pub type Offer<'a> = (&'a str, &'a GroupId, &'a Group);

/// Chooses devices for a task, and notes in `held` that they are taken.
///
/// # Errors
/// Says what there is not enough of.
pub fn choose(
    task: &str,
    request: &DeviceRequest,
    offers: &[Offer<'_>],
    held: &mut Held,
) -> Result<AssignedDevices, PlacementFailure> {
    let count = usize::try_from(request.count).unwrap_or(usize::MAX);
    let named = (offers.iter()).filter(|(_, id, _)| id.answers_to(&request.name));
    let fits = named
        .clone()
        .filter(|(_, id, group)| (request.constraints.iter()).all(|c| satisfied(c, id, group)));
    let free = |offer: &Offer<'_>| -> Vec<String> {
        let taken = held.get(offer.1);
        let is_free = |(id, device): &(&String, &Device)| {
            device.healthy && !taken.is_some_and(|taken| taken.contains(*id))
        };
        let ids = offer.2.devices.iter().filter(is_free);
        ids.map(|(id, _)| id.clone()).take(count).collect()
    };
    let enough =
        (fits.clone().map(|offer| (offer, free(offer)))).filter(|(_, ids)| ids.len() == count);
    // Of equals `min` takes the first.
    let best =
        enough.min_by_key(|((_, id, group), _)| core::cmp::Reverse(liking(request, id, group)));
    let Some(((plugin, group, _), ids)) = best else {
        return Err(PlacementFailure::Devices {
            count: request.count,
            device: request.name.clone(),
            task: task.to_owned(),
            why: match (named.count(), fits.count()) {
                (0, _) => DeviceLack::Missing,
                (_, 0) => DeviceLack::Constraints,
                (_, _) => DeviceLack::Taken,
            },
        });
    };
    held.entry((*group).clone())
        .or_default()
        .extend(ids.iter().cloned());
    Ok(AssignedDevices {
        task: task.to_owned(),
        plugin: (*plugin).to_owned(),
        group: (*group).clone(),
        ids,
    })
}

/// How much a job likes a group.
fn liking(request: &DeviceRequest, id: &GroupId, group: &Group) -> i64 {
    let liked = request.affinities.iter().filter(|preference| {
        let constraint = Constraint {
            target: preference.target.clone(),
            value: preference.value.clone(),
            operand: preference.operand.clone(),
        };
        satisfied(&constraint, id, group)
    });
    liked.fold(0_i64, |sum, preference| {
        sum.saturating_add(preference.weight)
    })
}

/// Whether a group fulfils a condition. Unknown operators are refused before.
fn satisfied(constraint: &Constraint, id: &GroupId, group: &Group) -> bool {
    let Some(operator) = Operator::parse(&constraint.operand) else {
        return false;
    };
    let left = resolve(&constraint.target, id, group);
    let right = resolve(&constraint.value, id, group);
    match operator {
        Operator::IsSet => left.is_some(),
        Operator::IsNotSet => left.is_none(),
        Operator::DistinctHosts | Operator::DistinctProperty => true,
        Operator::NotEqual => match (left, right) {
            (Some(left), Some(right)) => {
                left.compare(&right).is_none_or(core::cmp::Ordering::is_ne)
            }
            (None, None) => false,
            (None, Some(_)) | (Some(_), None) => true,
        },
        Operator::Equal
        | Operator::Less
        | Operator::AtMost
        | Operator::Greater
        | Operator::AtLeast
        | Operator::Version
        | Operator::Semver
        | Operator::Regexp
        | Operator::SetContainsAll
        | Operator::SetContainsAny => match (left, right) {
            (Some(left), Some(right)) => holds(operator, &left, &right),
            (None, _) | (_, None) => false,
        },
    }
}

fn holds(operator: Operator, left: &Attribute, right: &Attribute) -> bool {
    let ordered = |wanted: fn(core::cmp::Ordering) -> bool| left.compare(right).is_some_and(wanted);
    match operator {
        Operator::Equal => ordered(core::cmp::Ordering::is_eq),
        Operator::Less => ordered(core::cmp::Ordering::is_lt),
        Operator::AtMost => ordered(core::cmp::Ordering::is_le),
        Operator::Greater => ordered(core::cmp::Ordering::is_gt),
        Operator::AtLeast => ordered(core::cmp::Ordering::is_ge),
        Operator::Version
        | Operator::Semver
        | Operator::Regexp
        | Operator::SetContainsAll
        | Operator::SetContainsAny
        | Operator::NotEqual
        | Operator::IsSet
        | Operator::IsNotSet
        | Operator::DistinctHosts
        | Operator::DistinctProperty => {
            compare_texts(operator, &left.to_string(), &right.to_string())
        }
    }
}

/// What one side of a condition stands for.
fn resolve(target: &str, id: &GroupId, group: &Group) -> Option<Attribute> {
    let Some(name) = target
        .strip_prefix("${")
        .and_then(|name| name.strip_suffix('}'))
    else {
        return Some(Attribute::parse(target));
    };
    let text = match name {
        "device.model" => id.name.clone(),
        "device.vendor" => id.vendor.clone(),
        "device.type" => id.kind.clone(),
        "device.ids" => group.devices.keys().cloned().collect::<Vec<_>>().join(","),
        name => {
            return group
                .attributes
                .get(name.strip_prefix("device.attr.")?)
                .cloned();
        }
    };
    Some(Attribute {
        fact: super::attribute::Fact::Text(text),
        unit: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::device::Preference;

    fn id(name: &str) -> GroupId {
        GroupId {
            vendor: "acme".to_owned(),
            kind: "gpu".to_owned(),
            name: name.to_owned(),
        }
    }

    fn group(memory: &str, devices: &[(&str, bool)]) -> Group {
        let device = |(id, healthy): &(&str, bool)| {
            let device = Device {
                healthy: *healthy,
                ..Device::default()
            };
            ((*id).to_owned(), device)
        };
        Group {
            devices: devices.iter().map(device).collect(),
            attributes: [("memory".to_owned(), Attribute::parse(memory))].into(),
        }
    }

    fn lacks(failure: &PlacementFailure, lack: DeviceLack) -> bool {
        matches!(failure, PlacementFailure::Devices { why, .. } if *why == lack)
    }

    fn request(count: u64) -> DeviceRequest {
        DeviceRequest {
            name: "gpu".to_owned(),
            count,
            ..DeviceRequest::default()
        }
    }

    #[test]
    fn held_or_unhealthy_device_is_not_assigned() {
        let (small, ids) = (
            group("4 GiB", &[("a", true), ("b", false), ("c", true)]),
            id("s"),
        );
        let offers = [("plugin", &ids, &small)];
        let mut held = Held::new();
        let first = choose("t", &request(1), &offers, &mut held);
        assert_eq!(first.map(|given| given.ids), Ok(vec!["a".to_owned()]));
        let two = choose("t", &request(2), &offers, &mut held);
        assert!(two.is_err_and(|why| lacks(&why, DeviceLack::Taken)));
        let second = choose("t", &request(1), &offers, &mut held);
        assert_eq!(second.map(|given| given.ids), Ok(vec!["c".to_owned()]));
        assert!(choose("t", &request(1), &offers, &mut held).is_err());
    }

    #[test]
    fn device_constraints_and_affinities_use_attributes() {
        let (small, large) = (
            group("4 GiB", &[("a", true)]),
            group("8 GiB", &[("b", true)]),
        );
        let (s, l) = (id("s"), id("z"));
        let offers = [("p", &s, &small), ("p", &l, &large)];
        let condition = |operand: &str, value: &str| Constraint {
            target: "${device.attr.memory}".to_owned(),
            operand: operand.to_owned(),
            value: value.to_owned(),
        };
        let chosen = |request: &DeviceRequest| {
            choose("t", request, &offers, &mut Held::new()).map(|given| given.group.name)
        };
        let mut wants = request(1);
        assert_eq!(chosen(&wants), Ok("s".to_owned()), "the first by name");
        wants.affinities.push(Preference {
            target: "${device.attr.memory}".to_owned(),
            operand: ">".to_owned(),
            value: "5000 MB".to_owned(),
            weight: 10,
        });
        assert_eq!(chosen(&wants), Ok("z".to_owned()), "the liked one");
        wants.affinities[0].operand = "<".to_owned();
        assert_eq!(chosen(&wants), Ok("s".to_owned()), "the liked one");
        wants.affinities[0].weight = -10;
        assert_eq!(chosen(&wants), Ok("z".to_owned()), "not the disliked one");
        wants.affinities[0].operand = ">".to_owned();
        assert_eq!(chosen(&wants), Ok("s".to_owned()), "not the disliked one");
        wants.affinities.clear();
        wants.constraints.push(condition("<", "5 GiB"));
        assert_eq!(
            chosen(&wants),
            Ok("s".to_owned()),
            "the only one that may be"
        );
        wants.constraints.push(condition(">=", "5 GiB"));
        assert!(chosen(&wants).is_err_and(|why| lacks(&why, DeviceLack::Constraints)));
    }
}
