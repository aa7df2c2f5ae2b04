//! What is taken for a container of ours, by engines that answer correctly and by others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::fake;
use super::super::records::Shown;
use super::*;
use crate::data_dir::DataDir;
use crate::destroy::DestroyGuard;

const LAUNCH: LaunchId = LaunchId(7);

fn records() -> (Records, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let handle: OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
    (Records::new(handle).unwrap(), dir)
}

fn inventory(socket: PathBuf, records: &Records) -> Inventory {
    Inventory {
        socket,
        records: records.clone(),
        keeps_ended: false,
        keeps_images: false,
        images: None,
        limit: LIMIT,
    }
}

/// What is found of an engine that lists this.
async fn found(listed: Value) -> Found {
    let (records, _dir) = records();
    let (_engine, place) = fake::engine(move |_| (200, listed.to_string())).await;
    let inventory = inventory(place.path().join("sock"), &records);
    let search = tokio::task::spawn_blocking(move || inventory.find());
    search.await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn container_is_ours_only_with_a_record() {
    let name = format!("web-{}-{LAUNCH}", AllocId(1));
    let (records, _dir) = records();
    let ours = records.begin(LAUNCH, name.clone(), Shown::default(), Path::new(""));
    let token = ours.unwrap().token;
    let container = |id: &str, name: &str, labels: Value| json!({ "Id": id, "Names": [name], "Labels": labels });
    let launch = LAUNCH.to_string();
    let listed = json!([
        container(
            "1",
            &name,
            json!({ "drover.launch": launch, "drover.token": token })
        ),
        container(
            "2",
            "copied",
            json!({ "drover.launch": launch, "drover.token": "guessed" })
        ),
        container("3", &name, json!({})),
        container(
            "4",
            &format!("{name}-network"),
            json!({ "drover.network": token })
        ),
        container("5", "database", json!({ "com.example": "x" })),
        container("6", &format!("web-{}", AllocId(1)), json!({})),
        // Of an image that was made of the container.
        container(
            "7",
            "theirs",
            json!({ "drover.launch": launch, "drover.token": token })
        ),
        // The way into the network of a task whose image says that it is another's.
        container(
            "8",
            &format!("{name}-network"),
            json!({ "drover.launch": LaunchId(8).to_string(), "drover.network": token })
        ),
    ]);
    let (_engine, place) = fake::engine(move |_| (200, listed.to_string())).await;
    let inventory = inventory(place.path().join("sock"), &records);
    let looking = inventory.clone();
    let search = tokio::task::spawn_blocking(move || looking.find());
    let found = search.await.unwrap().unwrap().containers;
    let of = |is_proved| {
        let those = found.iter().filter(move |it| it.is_proved == is_proved);
        those.map(|it| it.id.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of(true), of(false)),
        (vec!["1", "4", "8"], vec!["2", "3", "7"])
    );
    assert!(found.iter().all(|it| it.launch == LAUNCH), "{found:?}");
    for name in ["copied", "theirs"] {
        let other = found.iter().find(|it| it.name == name).unwrap().clone();
        let inventory = inventory.clone();
        let removed = tokio::task::spawn_blocking(move || inventory.remove(&other));
        let why = removed.await.unwrap().unwrap_err().to_string();
        assert!(why.contains(&format!("rm -f -v {name}")), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_with_invalid_answer_is_reported() {
    for (listed, says) in [
        (json!({ "not": "a list" }), "invalid type"),
        (json!([{ "Id": 7 }]), "invalid type"),
    ] {
        let found = found(listed).await;
        assert!(found.containers.is_empty(), "{found:?}");
        let why = found.silent.into_values().next().unwrap();
        assert!(why.contains(says), "{why}");
    }
    // What it leaves out is nothing to look at.
    let found = found(json!([{}, { "Names": [] }, { "Names": ["/x"] }])).await;
    assert!(
        found.containers.is_empty() && found.silent.is_empty(),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_that_hangs_or_is_away_holds_nothing_up() {
    let (records, dir) = records();
    let socket = dir.path().join("sock");
    // Nobody misses one that was never there.
    let looking = inventory(socket.clone(), &records);
    let find_all = move || looking.find().unwrap();
    let found = tokio::task::spawn_blocking(find_all).await.unwrap();
    assert!(found.silent.is_empty(), "{found:?}");
    let own = dir.path().join("own");
    records
        .begin(LAUNCH, "web".to_owned(), Shown::default(), &own)
        .unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    let looking = inventory(socket.clone(), &records);
    let same = looking.clone();
    let (found, away) = tokio::join!(
        tokio::task::spawn_blocking(move || looking.find().unwrap()),
        tokio::task::spawn_blocking(move || same.out_of_reach().unwrap()),
    );
    let (found, away) = (found.unwrap(), away.unwrap());
    assert!(found.silent[&socket].contains("says nothing"), "{found:?}");
    assert!(found.silent.contains_key(&own), "{found:?}");
    assert_eq!(away.keys().collect::<Vec<_>>(), [&LAUNCH]);
}

#[tokio::test(flavor = "multi_thread")]
async fn container_whose_id_is_remembered_is_ours_by_any_name() {
    let (records, _dir) = records();
    let ours = records.begin(LAUNCH, "web".to_owned(), Shown::default(), Path::new(""));
    let token = ours.unwrap().token;
    records.made(LAUNCH, "1".to_owned()).unwrap();
    let labels = json!({ "drover.launch": LAUNCH.to_string(), "drover.token": token });
    let listed = json!([
        { "Id": "1", "Names": ["/renamed"], "Labels": labels },
        { "Id": "2", "Names": ["/web"], "Labels": labels },
    ]);
    let (_engine, place) = fake::engine(move |_| (200, listed.to_string())).await;
    let inventory = inventory(place.path().join("sock"), &records);
    let found = tokio::task::spawn_blocking(move || inventory.find().unwrap());
    let found = found.await.unwrap().containers;
    let proved: Vec<(&str, bool)> = found
        .iter()
        .map(|it| (it.id.as_str(), it.is_proved))
        .collect();
    assert_eq!(proved, [("1", true), ("2", false)]);
}

/// What is out of reach, and what is left, of an engine that lists this.
async fn missed(records: &Records, listed: Value) -> [BTreeMap<LaunchId, String>; 2] {
    let (_engine, place) = fake::engine(move |_| (200, listed.to_string())).await;
    let inventory = inventory(place.path().join("sock"), records);
    let search = tokio::task::spawn_blocking(move || {
        [inventory.out_of_reach().unwrap(), inventory.left().unwrap()]
    });
    search.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn record_that_names_no_engine_is_out_of_reach_unless_its_container_is_found() {
    let (records, _dir) = records();
    let ours = records.begin(LAUNCH, "web".to_owned(), Shown::default(), Path::new(""));
    let labels =
        json!({ "drover.launch": LAUNCH.to_string(), "drover.token": ours.unwrap().token });
    let [away, left] = missed(&records, json!([])).await;
    assert!(away[&LAUNCH].contains("did not note"), "{away:?}");
    assert_eq!(away, left);
    let listed = json!([{ "Id": "1", "Names": ["/web"], "Labels": labels }]);
    let [away, left] = missed(&records, listed).await;
    assert!(away.is_empty(), "{away:?}");
    assert!(left[&LAUNCH].contains("web is there"), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_engines_are_reported() {
    let (records, dir) = records();
    let socket = |number: u128| dir.path().join(format!("engine-{number}"));
    let many = u128::try_from(MOST).unwrap() + 2;
    for number in 1..=many {
        let (launch, engine) = (LaunchId(number), socket(number));
        let begun = records.begin(launch, "web".to_owned(), Shown::default(), &engine);
        begun.unwrap();
    }
    let inventory = inventory(dir.path().join("none"), &records);
    let away = tokio::task::spawn_blocking(move || inventory.out_of_reach().unwrap());
    let away = away.await.unwrap();
    assert_eq!(away.len(), MOST + 2, "{away:?}");
    let unasked = away.values().filter(|why| why.contains("no more than"));
    assert_eq!(unasked.count(), 2, "{away:?}");
}

/// The name of a parent of control groups, which goes with it.
struct GroupParent(String);

impl Drop for GroupParent {
    fn drop(&mut self) {
        for tree in ["cpuset", "", "cpu", "memory", "pids", "blkio", "unified"] {
            let _ = std::fs::remove_dir(format!("/sys/fs/cgroup/{tree}/{}", self.0));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_that_falls_silent_keeps_the_records_from_being_removed() {
    let answers = Arc::new(AtomicBool::new(true));
    let does_answer = answers.clone();
    let (_engine, place) = fake::engine(move |_| match does_answer.load(Ordering::SeqCst) {
        true => (200, "[]".to_owned()),
        false => (500, r#"{"message":"it is tired"}"#.to_owned()),
    })
    .await;
    let socket = place.path().join("sock");
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let records = Records::new(data.own("docker", None).unwrap()).unwrap();
    let begun = records.begin(LAUNCH, "web".to_owned(), Shown::default(), &socket);
    begun.unwrap();
    drop(data);
    let path = dir.path().to_owned();
    let resisted = tokio::task::spawn_blocking(move || {
        let parent = GroupParent(format!("drover-test-{}-silent", std::process::id()));
        let guard = DestroyGuard::open(&path, &parent.0, false, None).unwrap();
        assert!(guard.containers_out_of_reach().unwrap().is_empty());
        answers.store(false, Ordering::SeqCst);
        [
            guard.stop_tasks(Duration::ZERO).unwrap_err().to_string(),
            guard.remove().unwrap_err().to_string(),
        ]
    });
    for why in resisted.await.unwrap() {
        assert!(why.contains("it is tired"), "{why}");
    }
    assert!(records.read(LAUNCH).unwrap().is_some());
}
