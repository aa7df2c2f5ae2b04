//! Recordings of earlier versions are read and played, though names have changed since.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::path::Path;

use drover_io_sim::replay::{Player, Recording};

#[test]
fn recording_with_earlier_names_is_played_whole() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/earlier");
    let recording = Recording::open(&dir.join("rolling-update.rec")).unwrap();
    assert_eq!(recording.damages(), [], "every line is read");
    let mut player = Player::new(&recording);
    player.go_to(recording.len());
    assert_eq!(player.at(), recording.len());
    let agent = player.agent().unwrap();
    let running = agent.view().jobs().count();
    assert_eq!(running, 1, "the recording is of one job");
}
