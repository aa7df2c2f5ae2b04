//! Recordings of earlier versions are read and played, though names have changed since.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::path::Path;

use drover_core::agent::Agent;
use drover_io_sim::replay::{Player, Recording};

/// Plays a recording to its end, every line of which is read.
fn played(name: &str) -> Agent {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/earlier");
    let recording = Recording::open(&dir.join(name)).unwrap();
    assert_eq!(recording.damages(), []);
    let mut player = Player::new(&recording);
    player.go_to(recording.len());
    assert_eq!(player.at(), recording.len());
    player.agent().unwrap().clone()
}

#[test]
fn recording_with_earlier_names_is_played_whole() {
    let agent = played("rolling-update.rec");
    let running = agent.view().jobs().count();
    assert_eq!(running, 1, "the recording is of one job");
}

#[test]
fn earlier_request_to_collect_garbage_is_played() {
    let agent = played("garbage-collected.rec");
    let left = agent.view().allocs().count();
    assert_eq!(left, 0, "the only allocation was garbage-collected");
}
