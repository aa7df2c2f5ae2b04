//! Planted bugs are worth something only while they can be planted.

use std::path::Path;

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
fn a_planted_bug_needs_a_story_and_a_change() {
    let diff = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
    assert!(Patch::parse("bug", diff).is_err_and(|why| why.contains("does not say")));
    let unchanged = "A story.\n--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n one\n";
    assert!(Patch::parse("bug", unchanged).is_err_and(|why| why.contains("changes nothing")));
    assert!(Patch::parse("bug", &format!("A story.\n{diff}")).is_ok());
}

#[test]
fn a_planted_bug_finds_its_place_though_lines_moved() {
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
