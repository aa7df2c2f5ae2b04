use serde_json::{Value, json};

use super::*;
use crate::admission;

fn read(value: Value) -> Job {
    admission::canonical(admission::job_of(value).unwrap())
}

fn web(change: impl FnOnce(&mut Value)) -> Job {
    let mut value = json!({
        "ID": "web", "Datacenters": ["dc1"], "Meta": { "owner": "a" },
        "TaskGroups": [{ "Name": "g", "Count": 1, "Tasks": [
            { "Name": "t", "Driver": "mock_driver", "Config": { "run_for": "1h", "args": ["a", "b"] },
              "Env": { "A": "1", "B": "2" },
              "Templates": [{ "DestPath": "local/x", "EmbeddedTmpl": "one" }] },
            { "Name": "u", "Driver": "mock_driver" },
        ] }],
    });
    change(&mut value);
    read(value)
}

/// All that differs, a line each.
fn shown(diff: &JobDiff) -> Vec<String> {
    let mut lines = Vec::new();
    inside(&mut lines, "job", &diff.fields, &diff.objects);
    for group in &diff.task_groups {
        inside(&mut lines, &group.name, &group.fields, &group.objects);
        for task in &group.tasks {
            inside(&mut lines, &task.name, &task.fields, &task.objects);
        }
    }
    lines
}

fn inside(lines: &mut Vec<String>, at: &str, fields: &[FieldDiff], objects: &[ObjectDiff]) {
    for field in fields.iter().filter(|field| field.kind != DiffType::None) {
        lines.push(format!(
            "{at} {:?} {}: {}>{}",
            field.kind, field.name, field.old, field.new
        ));
    }
    for object in objects {
        let at = format!("{at}.{}", object.name);
        inside(lines, &at, &object.fields, &object.objects);
    }
}

use super::super::dto::{FieldDiff, ObjectDiff};

#[test]
fn same_job_differs_in_nothing() {
    let diff = job(Some(&web(|_| {})), &web(|_| {}));
    assert_eq!(diff.kind, DiffType::None);
    assert_eq!(shown(&diff), Vec::<String>::new());
    assert_eq!(diff.task_groups[0].tasks.len(), 2);
}

#[test]
fn changes_are_named_with_their_place() {
    let new = web(|job| {
        job["Meta"] = json!({ "team": "b" });
        job["Datacenters"] = json!(["dc1", "dc2"]);
        job["TaskGroups"][0]["Count"] = json!(3);
        let task = &mut job["TaskGroups"][0]["Tasks"][0];
        task["Env"] = json!({ "A": "9", "B": "2" });
        task["Config"]["args"] = json!(["a"]);
        task["Templates"][0]["EmbeddedTmpl"] = json!("two");
    });
    let diff = job(Some(&web(|_| {})), &new);
    assert_eq!(
        shown(&diff),
        [
            "job Deleted Meta[owner]: a>",
            "job Added Meta[team]: >b",
            "job.Datacenters Added Datacenters: >dc2",
            "g Edited Count: 1>3",
            "t Edited Env[A]: 1>9",
            "t.Config Deleted args[1]: b>",
            "t.Template Edited EmbeddedTmpl: one>two",
        ]
    );
    assert_eq!(diff.task_groups[0].tasks[1].kind, DiffType::None);
}

#[test]
fn new_job_is_added_with_all_its_parts() {
    let diff = job(None, &web(|_| {}));
    assert_eq!(diff.kind, DiffType::Added);
    let group = &diff.task_groups[0];
    assert_eq!(
        (group.kind, group.tasks[0].kind),
        (DiffType::Added, DiffType::Added)
    );
    let value = serde_json::to_value(&diff).unwrap();
    assert_eq!(value["TaskGroups"][0]["Updates"], Value::Null);
}

#[test]
fn task_is_replaced_only_for_what_its_program_sees() {
    let old = web(|_| {});
    let new = web(|job| {
        let tasks = &mut job["TaskGroups"][0]["Tasks"];
        tasks[0]["KillTimeout"] = json!(1_000_000_000);
        tasks[1]["Env"] = json!({ "A": "1" });
    });
    let mut diff = job(Some(&old), &new);
    annotate(&mut diff, Some(&old), &new, &DryRun::default());
    let words = |at: usize| diff.task_groups[0].tasks[at].annotations.clone();
    assert_eq!(words(0), ["forces in-place update"]);
    assert_eq!(words(1), ["forces create/destroy update"]);
}
