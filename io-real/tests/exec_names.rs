//! The driver `exec`: how tasks resolve names where systemd does that for the host. Each test has a view of the host's
//! files of its own. Without root, or without control groups, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod common;

use std::ffi::CStr;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use common::driver::{World, sh};
use drover_core::driver::config::ExecConfig;
use drover_core::driver::isolation::ExecPolicy;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives this thread, and what it starts, a `/run` of its own in which there is nothing. It ends with them.
fn leave_run() -> bool {
    // SAFETY: it is this thread's view of files alone; no descriptors become unshared.
    let left = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    let nothing = Path::new("none");
    let kept = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let made = left
        .and_then(|()| mount_change("/", kept))
        .and_then(|()| mount(nothing, "/run", "tmpfs", MountFlags::empty(), None::<&CStr>));
    if let Err(error) = made {
        eprintln!("skipped: no mounts can be made: {error}");
    }
    made.is_ok()
}

#[test]
fn systemd_resolver_files_are_visible_without_its_sockets() {
    if !leave_run() {
        return;
    }
    let dir = Path::new("/run/systemd/resolve");
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("stub-resolv.conf"), "nameserver 127.0.0.53\n").unwrap();
    let _asked = UnixListener::bind(dir.join("io.systemd.Resolve")).unwrap();
    let Some(mut world) = World::isolated("names") else {
        return;
    };
    let mut task = sh("cd /run/systemd/resolve && ls && cat stub-resolv.conf");
    let profile = ExecPolicy::default().profile(&ExecConfig::default());
    task.profile = Some(profile.unwrap());
    task.user = "nobody".to_owned();
    let exit = world.run(1, task);
    assert_eq!(exit.code, Some(0), "{exit:?}");
    assert_eq!(world.stdout(), "stub-resolv.conf\nnameserver 127.0.0.53\n");
    world.destroy(1).unwrap();
    world.assert_gone(1);
}
