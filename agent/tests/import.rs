//! What `drover job import` writes is a job file: it is read and admitted, and has the layout of `drover fmt`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use drover::admission::{FileOptions, Refused, read_file};
use drover::jobspec::format::format;
use drover_core::model::job::Job;
use drover_import::{Source, import};

#[path = "../../import/tests/support/mod.rs"]
mod support;

use support::{Numbers, damaged};

const EXAMPLES: [&[&str]; 7] = [
    &["shop/compose.yml"],
    &["once/compose.yaml"],
    &["everything/compose.yml"],
    &["units/backup.service", "units/backup.timer"],
    &["units/api@one.service"],
    &["units/old.service"],
    &["quadlet/page.container"],
];

/// Where the examples of the crate are; what they name beside them is there, too.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/examples")
}

fn imported(files: &[&str]) -> String {
    let read = |file: &&str| {
        let path = folder().join(file);
        let directory = fs::canonicalize(path.parent().unwrap()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        (directory.to_str().unwrap().to_owned(), text)
    };
    let read: Vec<_> = files.iter().map(read).collect();
    let sources: Vec<Source<'_>> = files
        .iter()
        .zip(&read)
        .map(|(name, (directory, text))| Source {
            name,
            directory,
            text,
        })
        .collect();
    import(&sources).unwrap()
}

/// The job of a file that was imported, as the agent takes it.
fn admitted(text: &str) -> Job {
    let options = FileOptions {
        vars: match text.contains("variable \"DB_PASSWORD\"") {
            true => vec![("DB_PASSWORD".to_owned(), "secret".to_owned())],
            false => Vec::new(),
        },
        dir: Some(folder()),
        ..FileOptions::default()
    };
    admit(text, &options)
}

fn admit(text: &str, options: &FileOptions) -> Job {
    let read = read_file(text, "imported", options);
    let read = read.unwrap_or_else(|refused| fail(text, &refused));
    read.admit()
        .unwrap_or_else(|refused| fail(text, &refused))
        .job
}

fn fail(text: &str, refused: &Refused) -> ! {
    panic!("{}\n{text}", refused.0.join("\n"))
}

#[test]
fn imported_examples_are_admitted() {
    for files in EXAMPLES {
        admitted(&imported(files));
    }
}

#[test]
fn imported_examples_have_the_layout_of_fmt() {
    for files in EXAMPLES {
        let text = imported(files);
        assert_eq!(format(&text, files[0]).unwrap(), text, "{}", files[0]);
    }
}

/// What is quoted and escaped means what it meant.
#[test]
fn texts_come_through_quotes_and_heredocs() {
    let job = admitted(&imported(EXAMPLES[2]));
    let group = job
        .task_groups
        .iter()
        .find(|group| group.name == "app")
        .unwrap();
    let task = &group.tasks[0];
    assert_eq!(
        task.env["SCRIPT"],
        "first line\nsecond line with /var/log\n"
    );
    assert_eq!(task.env["with.dots"], "yes");
    let data = task.templates.iter().map(|it| it.embedded_tmpl.as_str());
    let data: Vec<&str> = data.collect();
    assert!(
        data.contains(&"level = {{ .Level }}\npercent = %{x}\n"),
        "{data:?}"
    );
    assert!(data.contains(&"A=1\n"), "{data:?}");
}

/// Whatever is wrong with a file, what is made of it can be read as a job file. It may name files that are not there.
#[test]
fn damaged_files_become_job_files() {
    let mut numbers = Numbers(27);
    let mut read = 0;
    for at in 0..2_000 {
        let example = EXAMPLES[at % EXAMPLES.len()];
        let path = folder().join(example[0]);
        let directory = fs::canonicalize(path.parent().unwrap()).unwrap();
        let text = damaged(&fs::read_to_string(&path).unwrap(), &mut numbers);
        let source = Source {
            name: example[0],
            directory: directory.to_str().unwrap(),
            text: &text,
        };
        let Ok(found) = import(&[source]) else {
            continue;
        };
        let found = found.replace(" file(", " basename(");
        let laid_out =
            format(&found, "damaged").unwrap_or_else(|errors| panic!("{errors}\n{found}"));
        assert_eq!(laid_out, found, "{text}");
        let options = FileOptions {
            vars: vec![("DB_PASSWORD".to_owned(), "secret".to_owned())],
            dir: Some(folder()),
            lenient: true,
            ..FileOptions::default()
        };
        admit(&found, &options);
        read += 1;
    }
    assert!(read > 100, "{read} were read");
}
