//! What becomes of the examples. Each result lies beside its example; `DROVER_BLESS=1` writes them anew. That they are
//! valid job files, in the layout of `drover fmt`, is tested where these are (`agent/tests/import.rs`).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use drover_import::{Source, import};

/// Each example: its files, and where the result lies.
const EXAMPLES: [(&[&str], &str); 7] = [
    (&["shop/compose.yml"], "shop/shop.nomad.hcl"),
    (&["once/compose.yaml"], "once/once.nomad.hcl"),
    (
        &["everything/compose.yml"],
        "everything/everything.nomad.hcl",
    ),
    (
        &["units/backup.service", "units/backup.timer"],
        "units/backup.nomad.hcl",
    ),
    (&["units/api@one.service"], "units/api.nomad.hcl"),
    (&["units/old.service"], "units/old.nomad.hcl"),
    (&["quadlet/page.container"], "quadlet/page.nomad.hcl"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples")
}

/// The job file of some files, as if they lay in a directory below `/srv`.
fn job_file(files: &[&str]) -> String {
    let texts: Vec<_> = files
        .iter()
        .map(|file| std::fs::read_to_string(folder().join(file)).unwrap())
        .collect();
    let directory = format!("/srv/{}", files[0].split('/').next().unwrap());
    let sources: Vec<_> = files
        .iter()
        .zip(&texts)
        .map(|(name, text)| Source {
            name: name.rsplit('/').next().unwrap(),
            directory: &directory,
            text,
        })
        .collect();
    import(&sources).unwrap()
}

#[test]
fn examples_become_what_lies_beside_them() {
    for (files, result) in EXAMPLES {
        let path = folder().join(result);
        let found = job_file(files);
        if std::env::var_os("DROVER_BLESS").is_some() {
            std::fs::write(&path, &found).unwrap();
        }
        let wanted = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found, wanted, "{result}");
    }
}
