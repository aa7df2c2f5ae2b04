//! Planted bugs are worth something only while they can be planted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drover_sim_tests::hunt::patch::{Patch, all};

#[test]
fn every_planted_bug_applies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let bugs = match all(&root) {
        Ok(bugs) => bugs,
        Err(why) => panic!("{why}"),
    };
    assert!(bugs.len() >= 50, "only {} are left", bugs.len());
    let failures: Vec<String> = bugs
        .iter()
        .filter_map(|bug| bug.applied(&root).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn planted_bug_needs_description_and_change() {
    let diff = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
    assert!(Patch::parse("bug", diff).is_err_and(|why| why.contains("does not say")));
    let unchanged = "A story.\n--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n one\n";
    assert!(Patch::parse("bug", unchanged).is_err_and(|why| why.contains("changes nothing")));
    assert!(Patch::parse("bug", &format!("A story.\n{diff}")).is_ok());
}

#[test]
fn planted_bug_applies_to_moved_lines() {
    let folder = std::env::temp_dir().join(format!("drover-planted-{}", std::process::id()));
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("f"), "new\nnew\none\ntwo\nend\n"));
    assert!(written.is_ok(), "{written:?}");
    let text = "A story.\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
    let applied = Patch::parse("bug", text).and_then(|bug| bug.applied(&folder));
    let texts: Vec<String> = applied
        .into_iter()
        .flatten()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts, ["new\nnew\none\nthree\nend\n"]);
    let gone = "A story.\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-four\n+three\n";
    let refused = Patch::parse("bug", gone).and_then(|bug| bug.applied(&folder));
    assert!(refused.is_err_and(|why| why.contains("finds no place")));
    assert!(std::fs::remove_dir_all(&folder).is_ok());
}

/// A scenario that was renamed would be looked for in vain.
#[test]
fn planted_bug_names_a_scenario_that_exists() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known = known_names(here);
    let bugs = all(&here.join("..")).unwrap_or_default();
    let named = bugs.iter().filter_map(|bug| bug.scenario.as_ref());
    let unknown: Vec<&String> = named.filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// So would a test of another package.
#[test]
fn planted_bug_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let bugs = all(&root).unwrap_or_default();
    let tests: Vec<_> = bugs.iter().filter_map(|bug| bug.test.as_ref()).collect();
    assert!(!tests.is_empty());
    for test in tests {
        let package = root.join(test.package.trim_start_matches("drover-"));
        let files = match test.target.as_str() {
            "lib" => below(&package.join("src")),
            target => {
                let tests = package.join("tests");
                let mut files = below(&tests.join(target));
                files.push(tests.join(format!("{target}.rs")));
                files
            }
        };
        let name = test.name.rsplit("::").next().unwrap_or_default();
        let head = format!("fn {name}(");
        assert!(
            files.iter().any(|file| read(file).contains(&head)),
            "{test:?}"
        );
    }
}

/// What the table of history names, is there.
#[test]
fn history_names_existing_things() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known = known_names(here);
    let history = read(&here.join("HISTORY.md"));
    let names = history.split('`').skip(1).step_by(2);
    let words = names.filter(|name| name.contains('_') && !name.contains([' ', '…', '.', '-']));
    let unknown: Vec<&str> = words.filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Bugs as `bugs/NAME`, properties and scenarios by their names.
fn known_names(here: &Path) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for path in files(&here.join("bugs")) {
        let name = path
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned());
        known.insert(format!("bugs/{}", name.unwrap_or_default()));
    }
    for path in files(&here.join("tests")) {
        let text = read(&path);
        let functions = text.split("fn ").skip(1);
        known.extend(functions.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
    }
    for path in below(&here.join("../io-sim/src/check")) {
        let text = read(&path);
        known.extend(text.split('"').skip(1).map(str::to_owned));
    }
    known
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// All files below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let inside = |path: PathBuf| match path.is_dir() {
        true => below(&path),
        false => vec![path],
    };
    files(folder).into_iter().flat_map(inside).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
