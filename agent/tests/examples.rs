//! The examples that the documentation names: each can be run as it is.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::Lone;

/// The files of `examples/` whose names end so.
fn examples(ending: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let all = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    all.filter(|path| name(path).ends_with(ending)).collect()
}

#[test]
fn every_example_is_valid() {
    let lone = Lone::new();
    let all = examples(".nomad.hcl");
    assert!(all.len() > 10, "{all:?}");
    for file in all {
        let file = file.to_str().unwrap();
        let output = lone.run(&["job", "validate", file]).ok();
        assert!(
            output.ends_with("Job validation successful"),
            "{file}: {output}"
        );
    }
}

#[test]
fn example_of_compose_is_imported_as_a_job() {
    let lone = Lone::new();
    let all = examples(".compose.yml");
    assert!(!all.is_empty());
    for file in all {
        let job = lone.world.file("imported.nomad.hcl", "");
        fs::remove_file(&job).unwrap();
        let (file, job) = (file.to_str().unwrap(), job.to_str().unwrap());
        lone.run(&["job", "import", file, "-o", job]).ok();
        let output = lone.run(&["job", "validate", job]).ok();
        assert!(
            output.ends_with("Job validation successful"),
            "{file}: {output}"
        );
    }
}
