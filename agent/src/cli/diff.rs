//! What differs between two versions of a job, for people: a marker before each line (`+`, `-`, `+/-`), and
//! what is only context without one.

use crate::http::dto::{DiffType, FieldDiff, GroupDiff, JobDiff, ObjectDiff, TaskDiff};

/// A job's differences. Parts that are new or gone as a whole are shown inside only if `verbose`.
pub(super) fn job(diff: &JobDiff, verbose: bool) -> String {
    let mut lines = vec![format!("{}Job: \"{}\"", marker(diff.kind), diff.id)];
    if diff.kind == DiffType::Edited || verbose {
        lines.extend(inside(&diff.fields, &diff.objects, 0));
    }
    for group_diff in &diff.task_groups {
        lines.extend(group(group_diff, verbose));
    }
    lines.join("\n")
}

fn group(diff: &GroupDiff, verbose: bool) -> Vec<String> {
    let updates = diff.updates.iter();
    let updates: Vec<String> = updates
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let mut head = format!("{}Task Group: \"{}\"", marker(diff.kind), diff.name);
    if !updates.is_empty() {
        head.push_str(&format!(" ({})", updates.join(", ")));
    }
    let mut lines = vec![head];
    if diff.kind == DiffType::Edited || verbose {
        lines.extend(inside(&diff.fields, &diff.objects, 2));
    }
    for task_diff in &diff.tasks {
        lines.extend(task(task_diff, verbose));
    }
    lines
}

fn task(diff: &TaskDiff, verbose: bool) -> Vec<String> {
    let marker = match diff.kind {
        DiffType::None => "    ",
        kind => marker(kind),
    };
    let head = format!(
        "  {marker}Task: \"{}\"{}",
        diff.name,
        notes(&diff.annotations)
    );
    let mut lines = vec![head];
    let whole = matches!(diff.kind, DiffType::Added | DiffType::Deleted);
    if diff.kind != DiffType::None && (verbose || !whole) {
        lines.extend(inside(&diff.fields, &diff.objects, 4));
    }
    lines
}

/// Fields and blocks that stand at the same depth, their names below each other.
fn inside(fields: &[FieldDiff], objects: &[ObjectDiff], indent: usize) -> Vec<String> {
    let kinds = fields.iter().map(|field| field.kind);
    let kinds = kinds.chain(objects.iter().map(|object| object.kind));
    let markers = kinds.map(|kind| marker(kind).len()).max().unwrap_or(0);
    let names = fields.iter().map(|field| field.name.chars().count());
    let names = names.max().unwrap_or(0) + 1;
    let start = |kind| format!("{:indent$}{:markers$}", "", marker(kind));
    let mut lines: Vec<String> = Vec::new();
    for field in fields {
        let value = match field.kind {
            DiffType::Added => format!("{:?}", field.new),
            DiffType::Deleted | DiffType::None => format!("{:?}", field.old),
            DiffType::Edited => format!("{:?} => {:?}", field.old, field.new),
        };
        let (start, name) = (start(field.kind), format!("{}:", field.name));
        lines.push(format!(
            "{start}{name:names$} {value}{}",
            notes(&field.annotations)
        ));
    }
    for object in objects {
        let start = start(object.kind);
        lines.push(format!("{start}{} {{", object.name));
        let deeper = inside(&object.fields, &object.objects, indent + 2);
        if deeper.is_empty() {
            lines.push(String::new());
        }
        lines.extend(deeper);
        lines.push(format!("{:width$}}}", "", width = start.len()));
    }
    lines
}

fn marker(kind: DiffType) -> &'static str {
    match kind {
        DiffType::Added => "+ ",
        DiffType::Deleted => "- ",
        DiffType::Edited => "+/- ",
        DiffType::None => "",
    }
}

fn notes(annotations: &[String]) -> String {
    match annotations {
        [] => String::new(),
        words => format!(" ({})", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: DiffType, name: &str, old: &str, new: &str) -> FieldDiff {
        FieldDiff {
            kind,
            name: name.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
            annotations: Vec::new(),
        }
    }

    #[test]
    fn changed_job_is_shown_as_nomad_does() {
        let server = TaskDiff {
            kind: DiffType::Edited,
            name: "server".to_owned(),
            fields: vec![field(DiffType::Edited, "Env[GREETING]", "hello", "hola")],
            objects: vec![ObjectDiff {
                kind: DiffType::Edited,
                name: "Config".to_owned(),
                fields: vec![
                    field(DiffType::None, "command", "/bin/sh", "/bin/sh"),
                    field(DiffType::Added, "args[0]", "", "-c"),
                ],
                objects: Vec::new(),
            }],
            annotations: vec!["forces create/destroy update".to_owned()],
        };
        let init = TaskDiff {
            name: "init".to_owned(),
            ..TaskDiff::default()
        };
        let scaling = ObjectDiff {
            kind: DiffType::Edited,
            name: "Scaling".to_owned(),
            ..ObjectDiff::default()
        };
        let app = GroupDiff {
            kind: DiffType::Edited,
            name: "app".to_owned(),
            objects: vec![scaling],
            tasks: vec![init, server],
            updates: [("create/destroy update".to_owned(), 1)].into(),
            ..GroupDiff::default()
        };
        let diff = JobDiff {
            kind: DiffType::Edited,
            id: "web".to_owned(),
            task_groups: vec![app],
            ..JobDiff::default()
        };
        let expected = r#"+/- Job: "web"
+/- Task Group: "app" (1 create/destroy update)
  +/- Scaling {

      }
      Task: "init"
  +/- Task: "server" (forces create/destroy update)
    +/- Env[GREETING]: "hello" => "hola"
    +/- Config {
        command: "/bin/sh"
      + args[0]: "-c"
        }"#;
        assert_eq!(job(&diff, false), expected);
    }
}
