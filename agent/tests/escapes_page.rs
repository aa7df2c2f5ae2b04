//! The page of escapes (`docs/escapes.md`): each attack is there once, with a verdict that the page explains, and the
//! files and tests that it names are there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many attacks each section has.
const SECTIONS: [usize; 14] = [24, 11, 24, 17, 16, 16, 12, 19, 16, 10, 22, 24, 12, 15];

const VERDICTS: [&str; 7] = [
    "refused",
    "harmless",
    "bounded",
    "reported",
    "not offered",
    "operator's leave",
    "OPEN",
];

/// The sources of the program that tries to get out.
const PROGRAM: &str = "io-real/examples/escapes";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/escapes.md")).unwrap()
}

/// A line of one of the page's tables of attacks.
struct Row {
    id: String,
    verdict: String,
    /// Where it is decided; of what is open, what to do.
    decided: String,
    /// Which test shows it.
    shown: String,
}

fn rows(page: &str) -> Vec<Row> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
    let attacks = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    attacks.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_end_matches(" |").split(" | ").collect();
    let [id, _, _, verdict, decided, shown] = cells[..] else {
        panic!("six cells are needed: {line}");
    };
    Row {
        id: id.to_owned(),
        verdict: verdict.to_owned(),
        decided: decided.to_owned(),
        shown: shown.to_owned(),
    }
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Whether a quoted text is a path below the root of the sources.
fn is_path(text: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || "_./-".contains(it);
    text.contains('/') && !text.starts_with('/') && text.chars().all(plain)
}

/// Whether a quoted text may be the name of a test.
fn is_name(text: &str) -> bool {
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    text.contains('_') && text.chars().all(plain)
}

#[test]
fn each_attack_has_one_row_and_a_verdict() {
    let page = page();
    let rows = rows(&page);
    let sections = (1..).zip(SECTIONS);
    let expected = sections
        .flat_map(|(section, most)| (1..=most).map(move |number| format!("{section}.{number:02}")));
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, expected.collect::<Vec<_>>());

    let mut counts = BTreeMap::new();
    for row in &rows {
        let Row { id, verdict, .. } = row;
        assert!(VERDICTS.contains(&verdict.as_str()), "{id}: {verdict}");
        assert!(!row.decided.is_empty() && !row.shown.is_empty(), "{id}");
        let is_advice = row.decided.ends_with('.');
        assert!(verdict != "OPEN" || is_advice, "{id}: what shall be done?");
        *counts.entry(verdict.as_str()).or_insert(0) += 1;
    }
    for verdict in VERDICTS {
        let count: usize = counts.get(verdict).copied().unwrap_or_default();
        let line = format!("| {verdict} | {count} |");
        assert!(page.contains(&line), "the page does not say: {line}");
    }
}

#[test]
fn files_and_tests_that_rows_name_are_there() {
    let root = root();
    for row in rows(&page()) {
        for cell in [&row.decided, &row.shown] {
            for path in quoted(cell).filter(|text| is_path(text)) {
                assert!(root.join(path).exists(), "{}: {path}", row.id);
            }
        }
        let mut text = String::new();
        for item in quoted(&row.shown) {
            if is_path(item) {
                text = fs::read_to_string(root.join(item)).unwrap_or_default();
            } else if is_name(item) {
                let has = text.contains(&format!("fn {item}("));
                assert!(has, "{}: no test {item}", row.id);
            }
        }
    }
}

#[test]
fn rows_of_the_program_that_are_named_are_tried_by_it() {
    let mut program = String::new();
    for file in fs::read_dir(root().join(PROGRAM)).unwrap() {
        program += &fs::read_to_string(file.unwrap().path()).unwrap();
    }
    for row in rows(&page()) {
        for after in row.shown.split("escapes ").skip(1) {
            let is_of_id = |it: char| it.is_ascii_digit() || it == '.';
            let id: String = after.chars().take_while(|it| is_of_id(*it)).collect();
            let begins = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
            let quoted = format!("\"{id}");
            let is_tried = program.split(&quoted).skip(1).any(begins);
            assert!(is_tried, "{}: {id} is not tried", row.id);
        }
    }
}
