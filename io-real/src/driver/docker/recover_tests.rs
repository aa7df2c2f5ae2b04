//! What is reported of launches whose start was interrupted.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, request};
use drover_core::ids::AllocId;
use serde_json::json;
use tokio::sync::mpsc;

use super::super::records::Shown;
use super::super::{Docker, DockerSettings, Pins, Records, fake};
use super::*;
use crate::data_dir::DataDir;
use crate::dirs::AllocDirs;
use crate::driver::{Driver, Inbox};

const LAUNCH: LaunchId = LaunchId(7);
const NAME: &str = "web-1";
const ID: &str = "0f0f";

/// Another boot of the machine.
const EARLIER: &str = "00000000-0000-4000-8000-000000000000";

/// What is found of a launch whose container has this state, and whether something was removed. `made` is what is
/// remembered of it.
async fn recovered(made: Option<&str>, state: Option<&'static str>) -> (Found, bool) {
    recovered_after(made, state, 3, false).await
}

/// The same of one that ended with this code, as the engine says, and after the machine started anew or not.
async fn recovered_after(
    made: Option<&str>,
    state: Option<&'static str>,
    code: i64,
    is_new_boot: bool,
) -> (Found, bool) {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let own = |name: &str| data.own(name, None).unwrap();
    let records = Records::new(own("docker")).unwrap();
    let ours = records.begin(LAUNCH, NAME.to_owned(), Shown::default(), "".as_ref());
    let ours = ours.unwrap();
    if let Some(id) = made {
        records.made(LAUNCH, id.to_owned()).unwrap();
    }
    if is_new_boot {
        let file = dir.path().join("docker").join(LAUNCH.to_string());
        let mut bytes = std::fs::read(&file).unwrap();
        let boot = crate::facts::boot_id().unwrap();
        let is_there = |part: &[u8]| part == boot.as_bytes();
        let at = bytes.windows(boot.len()).position(is_there).unwrap();
        bytes[at..at + boot.len()].copy_from_slice(EARLIER.as_bytes());
        std::fs::write(&file, bytes).unwrap();
    }
    let removed = Arc::new(Mutex::new(false));
    let is_removed = removed.clone();
    let (_engine, place) = fake::engine(move |asked| {
        if asked.contains("/events") {
            // It says nothing of itself, and stays.
            loop {
                thread::park();
            }
        }
        let mut removed = is_removed.lock().unwrap();
        let is_it = [NAME, ID].iter().any(|it| asked.contains(&format!("/containers/{it}/json")));
        match state.filter(|_| !*removed) {
            Some(state) if is_it => {
                let labels = json!({ "drover.token": ours.token });
                let found = json!({ "Id": ID, "Name": format!("/{NAME}"), "Config": { "Labels": labels },
                                    "State": { "Status": state, "Running": false, "ExitCode": code } });
                (200, found.to_string())
            }
            Some(_) if asked.starts_with("DELETE") && asked.contains(ID) => {
                *removed = true;
                (204, String::new())
            }
            _ if asked.contains("/containers/json") => (200, "[]".to_owned()),
            _ => (404, r#"{"message":"no such container"}"#.to_owned()),
        }
    })
    .await;
    let (inbox, mut reported) = mpsc::unbounded_channel();
    let driver = Docker::new(
        DockerSettings {
            socket: place.path().join("sock"),
            ..DockerSettings::default()
        },
        records,
        Pins::new(own("docker-mounts"), dir.path().join("docker-mounts")).unwrap(),
        (AllocDirs::new(data.allocs()), data.alloc_root().to_owned()),
        (None, PathBuf::new()),
        None,
        Inbox::new(inbox),
    );
    let task = TaskKey {
        alloc: AllocId(1),
        task: "web".into(),
    };
    let logs = LogConfig {
        disabled: true,
        ..LogConfig::default()
    };
    let asked = request::Recover {
        op: Op(1),
        launch: LAUNCH,
        logs,
    };
    driver.carry_out(task, DriverEffect::Recover(asked));
    let answer = reported.recv().await.unwrap();
    let Input::Driver(_, DriverInput::Recovered { found, .. }) = answer else {
        panic!("{answer:?}");
    };
    (found, *removed.lock().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_whose_container_was_not_made_never_started() {
    assert_eq!(recovered(None, None).await, (Found::NeverStarted, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_whose_container_was_made_and_not_started_never_started() {
    for made in [None, Some(ID)] {
        let found = recovered(made, Some("created")).await;
        assert_eq!(found, (Found::NeverStarted, true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_whose_container_somebody_removed_may_have_run() {
    let (found, _) = recovered(Some(ID), None).await;
    assert!(matches!(found, Found::Gone(_)), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_with_exited_container_reports_its_exit() {
    let (found, removed) = recovered(Some(ID), Some("exited")).await;
    assert!(
        matches!(&found, Found::Exited(result) if result.code == Some(3)),
        "{found:?}"
    );
    assert!(!removed);
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_lost_at_reboot_is_reported_as_such() {
    let ended = Some("exited");
    let found = recovered_after(Some(ID), ended, 255, true).await;
    assert_eq!(found, (Found::Rebooted, false));
    // It ended before that, or the machine runs on.
    for (code, is_new_boot) in [(3, true), (255, false)] {
        let (found, _) = recovered_after(Some(ID), ended, code, is_new_boot).await;
        let reported =
            matches!(&found, Found::Exited(result) if result.code == i32::try_from(code).ok());
        assert!(reported, "{code}, {is_new_boot}: {found:?}");
    }
}
