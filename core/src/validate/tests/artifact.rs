use super::*;
use crate::model::artifact::Artifact;

/// What is told of a task with this artifact.
fn found(change: impl Fn(&mut Artifact)) -> Vec<String> {
    let mut artifact = Artifact {
        getter_source: "https://example.com/x.tgz".to_owned(),
        relative_dest: "local/".to_owned(),
        ..Artifact::default()
    };
    change(&mut artifact);
    task_with(|task| task.artifacts = vec![artifact.clone()])
}

#[test]
fn artifact_needs_source_and_destination() {
    assert_eq!(found(|_| {}), Vec::<String>::new());
    for (source, many) in [("", 1), (" ", 1), ("https://x/\n", 1), ("${meta.url}", 0)] {
        let found = found(|artifact| artifact.getter_source = source.to_owned());
        assert_eq!(found.len(), many, "{source:?}: {found:?}");
    }
    for (place, many) in [
        ("local/x", 0),
        ("../alloc/data", 0),
        ("${NOMAD_TASK_DIR}/../../..", 0),
        ("../other/local", 1),
        ("../..", 1),
        ("local/\0", 1),
    ] {
        let found = found(|artifact| artifact.relative_dest = place.to_owned());
        assert_eq!(found.len(), many, "{place:?}: {found:?}");
    }
}

#[test]
fn known_artifact_options_are_validated() {
    let option = |name: &str, value: &str| {
        found(|artifact| {
            let options = &mut artifact.getter_options;
            options.insert(name.to_owned(), value.to_owned());
        })
    };
    assert_eq!(option("checksum", "md5:12").len(), 1);
    assert_eq!(option("checksum", "${meta.sum}").len(), 0);
    assert_eq!(option("sshkey", "x").len(), 1);
    assert_eq!(option("", "x").len(), 1);
    assert_eq!(option("ref", "a\nb").len(), 1);
    assert_eq!(option("x", &"y".repeat(20_000)).len(), 1);
    let many = found(|artifact| {
        let headers = (0..65).map(|nth| (format!("x-{nth}"), String::new()));
        artifact.getter_headers = headers.collect();
    });
    assert_eq!(many.len(), 1, "{many:?}");
}

#[test]
fn number_of_artifacts_is_bounded() {
    let found = task_with(|task| task.artifacts = vec![Artifact::default(); 101]);
    assert_eq!(found.len(), 1, "{found:?}");
}
