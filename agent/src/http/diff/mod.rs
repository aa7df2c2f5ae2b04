//! What differs between two versions of a job, in the shape that Nomad's programs read. It is made of the JSON
//! of the API, so that it knows each field that a job has.

mod blocks;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use drover_core::model::eval::GroupChanges;
use drover_core::model::job::Job;
use drover_core::scheduler::DryRun;
use drover_core::scheduler::reconcile::replaces_task;
use serde_json::{Map, Value};

use self::blocks::{Difference, Fields, kind_of};
use super::dto::{DiffType, GroupDiff, JobDiff, TaskDiff};

/// What of a job its author does not write, or what is compared elsewhere.
const NOT_OF_THE_AUTHOR: [&str; 17] = [
    "CreateIndex",
    "DispatchIdempotencyToken",
    "ID",
    "JobModifyIndex",
    "ModifyIndex",
    "Payload",
    "Reschedule",
    "Stable",
    "Status",
    "StatusDescription",
    "SubmitTime",
    "TaskGroups",
    "Update",
    "Version",
    "VersionTag",
    "Migrate",
    "NomadTokenID",
];

/// What differs between two versions of a job; the older may not be there.
pub(super) fn job(old: Option<&Job>, new: &Job) -> JobDiff {
    let (before, after) = (old.map(fields_of).unwrap_or_default(), fields_of(new));
    let Difference { fields, objects } = Difference::of(&before, &after, &NOT_OF_THE_AUTHOR, false);
    let none = Vec::new();
    let before = old.map_or(&none, |old| &old.task_groups);
    let names = names_of(before, &new.task_groups, |group| &group.name);
    let task_groups: Vec<GroupDiff> = names
        .into_iter()
        .map(|name| {
            let old = before.iter().find(|group| group.name == name);
            group(&name, old, new.group(&name))
        })
        .collect();
    let changed = task_groups.iter().any(|one| one.kind != DiffType::None);
    JobDiff {
        kind: match old {
            None => DiffType::Added,
            Some(_) if changed || !fields.is_empty() || !objects.is_empty() => DiffType::Edited,
            Some(_) => DiffType::None,
        },
        id: new.id.clone(),
        fields,
        objects,
        task_groups,
    }
}

fn group(
    name: &str,
    old: Option<&drover_core::model::group::TaskGroup>,
    new: Option<&drover_core::model::group::TaskGroup>,
) -> GroupDiff {
    let (before, after) = (
        old.map(fields_of).unwrap_or_default(),
        new.map(fields_of).unwrap_or_default(),
    );
    let Difference { fields, objects } = Difference::of(&before, &after, &["Name", "Tasks"], false);
    let none = Vec::new();
    let before = old.map_or(&none, |group| &group.tasks);
    let after = new.map_or(&none, |group| &group.tasks);
    let named = |tasks: &[drover_core::model::task::Task], name: &str| {
        tasks.iter().find(|task| task.name == name).map(fields_of)
    };
    let tasks: Vec<TaskDiff> = names_of(before, after, |task| &task.name)
        .into_iter()
        .map(|name| task(&name, named(before, &name), named(after, &name)))
        .collect();
    let changed = tasks.iter().any(|one| one.kind != DiffType::None);
    let same = !changed && fields.is_empty() && objects.is_empty();
    GroupDiff {
        kind: kind(old.is_some(), new.is_some(), same),
        name: name.to_owned(),
        fields,
        objects,
        tasks,
        ..GroupDiff::default()
    }
}

fn task(name: &str, old: Option<Fields>, new: Option<Fields>) -> TaskDiff {
    let (was, is) = (old.is_some(), new.is_some());
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let Difference { fields, objects } = Difference::of(&old, &new, &["Name"], false);
    TaskDiff {
        kind: kind(was, is, fields.is_empty() && objects.is_empty()),
        name: name.to_owned(),
        fields,
        objects,
        annotations: Vec::new(),
    }
}

fn kind(was: bool, is: bool, same: bool) -> DiffType {
    match was && is && same {
        true => DiffType::None,
        false => kind_of(was, is),
    }
}

fn fields_of<T: serde::Serialize>(value: &T) -> Fields {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

fn names_of<'a, T>(old: &'a [T], new: &'a [T], name: fn(&T) -> &String) -> BTreeSet<String> {
    old.iter().chain(new).map(name).cloned().collect()
}

/// Says in a diff what the changes lead to.
pub(super) fn annotate(diff: &mut JobDiff, old: Option<&Job>, new: &Job, dry_run: &DryRun) {
    for group in &mut diff.task_groups {
        let changes = dry_run.groups.get(&group.name).copied().unwrap_or_default();
        let updates = updates(changes);
        let named = updates.into_iter().filter(|(_, count)| *count > 0);
        group.updates = named
            .map(|(name, count)| (name.to_owned(), u64::from(count)))
            .collect();
        annotate_count(group);
        let of = |job: Option<&Job>| job.and_then(|job| job.group(&group.name)).cloned();
        let (before, after) = (of(old), of(Some(new)));
        for task in &mut group.tasks {
            let named = |group: &Option<drover_core::model::group::TaskGroup>| {
                let tasks = group.iter().flat_map(|group| &group.tasks);
                tasks.clone().find(|one| one.name == task.name).cloned()
            };
            let words = match (task.kind, named(&before), named(&after)) {
                (DiffType::None, ..) => continue,
                (DiffType::Added, ..) if group.kind == DiffType::Added => "forces create",
                (DiffType::Deleted, ..) if group.kind == DiffType::Deleted => "forces destroy",
                (_, Some(before), Some(after)) if !replaces_task(&before, &after) => {
                    "forces in-place update"
                }
                _ => "forces create/destroy update",
            };
            task.annotations.push(words.to_owned());
        }
    }
}

/// What Nomad calls the changes of a group.
fn updates(changes: GroupChanges) -> [(&'static str, u32); 7] {
    [
        ("canary", changes.canary),
        ("create", changes.place),
        ("create/destroy update", changes.destructive),
        ("destroy", changes.stop),
        ("ignore", changes.ignore),
        ("in-place update", changes.in_place),
        ("reschedule later", changes.reschedule_later),
    ]
}

fn annotate_count(group: &mut GroupDiff) {
    let mut fields = group.fields.iter_mut();
    let Some(count) = fields.find(|field| field.name == "Count") else {
        return;
    };
    let number = |text: &str| text.parse::<i64>().unwrap_or(0);
    let words = match number(&count.new) > number(&count.old) {
        true => "forces create",
        false => "forces destroy",
    };
    count.annotations.push(words.to_owned());
}
