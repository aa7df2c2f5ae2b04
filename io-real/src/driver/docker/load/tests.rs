//! What tags mean while an archive is loaded, and afterwards.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::super::fake;
use super::super::records::Brought;
use super::*;

fn images(tags: &[(&str, &str)]) -> Arc<Images> {
    let text = |text: &str| format!("sha256:{text}");
    Arc::new(Images {
        ids: tags.iter().map(|(_, id)| text(id)).collect(),
        tags: tags
            .iter()
            .map(|(tag, id)| ((*tag).to_owned(), text(id)))
            .collect(),
    })
}

#[tokio::test]
async fn tag_that_an_archive_may_have_taken_is_asked_for_again() {
    let (ask, mut asked) = unbounded_channel();
    let (engine, _dir) = fake::engine(move |request| {
        let answer = match request.contains("/taken") {
            true => {
                ask.send(()).unwrap();
                r#"{"Id":"sha256:evil","RepoTags":["taken:1"]}"#
            }
            false => r#"{"Id":"sha256:other","RepoTags":["other:1"]}"#,
        };
        (200, answer.to_owned())
    })
    .await;
    let loads = Loads::default();
    let before = images(&[("taken:1", "theirs"), ("other:1", "other")]);
    loads.before.send_replace(Some(before));
    let other = loads.resolve(&engine, "other:1").await;
    let other = other.map(|image| image.id);
    assert_eq!(other.as_deref(), Ok("sha256:other"), "nobody took it");
    let content = loads.resolve(&engine, "taken@sha256:00").await;
    assert!(content.is_ok(), "content is content");
    asked.recv().await.unwrap();
    let load_ends = async {
        asked.recv().await.unwrap();
        loads.before.send_replace(None);
    };
    let (found, ()) = tokio::join!(loads.resolve(&engine, "taken:1"), load_ends);
    let found = found.map(|image| image.id);
    assert_eq!(found.as_deref(), Ok("sha256:evil"));
    assert!(asked.try_recv().is_ok(), "not while it was loaded");
}

/// What an engine lists that has these images.
fn listed(images: &[(&str, &str)]) -> String {
    let one = |(tag, id): &(&str, &str)| {
        format!(
            r#"{{"Id":"sha256:{id}","ParentId":"","RepoTags":["{tag}"],"RepoDigests":[],"Created":0,"Size":0,
            "SharedSize":-1,"Labels":{{}},"Containers":-1}}"#
        )
    };
    let all: Vec<String> = images.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

/// An engine with these images, and the tags that it is asked to give.
async fn engine(images: &[(&str, &str)]) -> (Engine, TempDir, UnboundedReceiver<String>) {
    let (give, given) = unbounded_channel();
    let list = listed(images);
    let (engine, dir) = fake::engine(move |request| {
        if request.starts_with("POST") {
            give.send(request.to_owned()).unwrap();
            return (201, String::new());
        }
        (200, list.clone())
    })
    .await;
    (engine, dir, given)
}

/// The repositories whose tags an engine was asked to give.
fn repositories(mut given: UnboundedReceiver<String>) -> Vec<String> {
    let mut found = Vec::new();
    while let Ok(request) = given.try_recv() {
        let (_, asked) = request.split_once("repo=").unwrap();
        found.push(asked.split('&').next().unwrap().to_owned());
    }
    found
}

fn records() -> (Records, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let records = Records::new(File::open(dir.path()).unwrap().into()).unwrap();
    (records, dir)
}

#[tokio::test]
async fn tag_that_is_fetched_while_an_archive_is_loaded_is_known() {
    let (engine, _dir) = fake::engine(|_| {
        let answer = r#"{"Id":"sha256:new","RepoTags":["new:1"]}"#;
        (200, answer.to_owned())
    })
    .await;
    let loads = Loads::default();
    loads.before.send_replace(Some(images(&[("new:1", "old")])));
    loads.fetched("docker.io/library/new:1", "sha256:new");
    let found = loads.resolve(&engine, "new:1").await;
    assert_eq!(found.unwrap().id, "sha256:new");
}

#[tokio::test]
async fn archive_gives_back_only_what_it_named() {
    let before = images(&[("a:1", "a"), ("b:1", "b")]);
    let now = [("a:1", "evil"), ("b:1", "built"), ("c:1", "evil")];
    let (engine, _dir, given) = engine(&now).await;
    let (records, _records) = records();
    let named = ["a:1", "c:1"].map(str::to_owned).into();
    let done = put_back(&engine, &records, &before, &named).await;
    assert!(done.is_ok());
    assert_eq!(repositories(given), ["a"]);
    assert!(records.was_given("c:1", "sha256:evil").unwrap());
    assert!(!records.was_given("a:1", "sha256:evil").unwrap());
}

#[tokio::test]
async fn archive_without_names_restores_tags_it_changed() {
    let fetched = "0f".repeat(32);
    let before = images(&[("a:1", "a"), ("b:1", "b"), ("c:1", "c")]);
    let now = [("a:1", "evil"), ("b:1", "c"), ("c:1", fetched.as_str())];
    let (engine, _dir, given) = engine(&now).await;
    let (records, _records) = records();
    let id = format!("sha256:{fetched}");
    records.add_image(&id, Brought::default()).unwrap();
    let done = put_back(&engine, &records, &before, &BTreeSet::new()).await;
    assert!(done.is_ok());
    assert_eq!(repositories(given), ["a"]);
}

#[tokio::test]
async fn next_agent_gives_back_what_an_archive_took() {
    let (engine, _dir, given) = engine(&[("a:1", "evil"), ("b:1", "evil")]).await;
    let (records, _records) = records();
    let tags = &images(&[("a:1", "a")]).tags;
    records.note_tags(tags).unwrap();
    let loads = Loads::default();
    assert_eq!(loads.settle(&engine, &records).await, Ok(()));
    assert_eq!(loads.settle(&engine, &records).await, Ok(()));
    assert_eq!(repositories(given), ["a"], "once");
    assert_eq!(records.noted_tags().unwrap(), None);
    assert!(records.was_given("b:1", "sha256:evil").unwrap());
}

#[test]
fn name_is_the_same_however_its_registry_is_written() {
    for (name, expected) in [
        ("docker.io/library/a:1", "a:1"),
        ("index.docker.io/b/a:1", "b/a:1"),
        ("library/a:1", "a:1"),
        ("reg.example/library/a:1", "reg.example/library/a:1"),
    ] {
        assert_eq!(familiar(name), expected);
    }
}
