//! CNI plugins are programs of others: what they do when they are asked for their version.
//!
//! Alone in its file, since a program that was just written cannot be run while a process that
//! another test begins still has it open.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod machines;

use std::fs;
use std::time::Duration;

use drover_io_real::fingerprint::{PROBES, Settings};
use machines::Machine;

#[test]
fn misbehaving_cni_plugin_loses_own_version_only() {
    let machine = Machine::empty();
    let bin = "opt/cni/bin";
    machine.program(
        &format!("{bin}/good"),
        "#!/bin/sh\necho CNI good plugin v1.0.0\n",
    );
    machine.program(
        &format!("{bin}/hangs"),
        "#!/bin/sh\necho CNI hangs plugin v1.0.0\necho $$ > \"${0%/*}/../../../pid\"\nexec sleep 1000\n",
    );
    machine.program(
        &format!("{bin}/floods"),
        "#!/bin/sh\nwhile :; do echo flood; done\n",
    );
    machine.program(
        &format!("{bin}/leaves"),
        "#!/bin/sh\nsleep 1000 &\necho $! > \"${0%/*}/../../../left\"\necho CNI leaves plugin v2.0.0\n",
    );
    machine.program(&format!("{bin}/noshell"), "#!/nonexistent\n");
    machine.program(
        &format!("{bin}/lies"),
        "#!/bin/sh\necho CNI lies plugin vX\n",
    );
    fs::create_dir_all(machine.path(&format!("{bin}/dir/x"))).unwrap();
    let settings = Settings {
        plugin_timeout: Duration::from_secs(5),
        ..Settings::default()
    };
    let probe = PROBES
        .iter()
        .find(|probe| probe.name == "plugins_cni")
        .unwrap();
    let found = probe.query(&machine.context(settings)).unwrap();
    let names: Vec<_> = found.attributes.iter().collect();
    assert_eq!(
        found.attributes["plugins.cni.version.good"], "v1.0.0",
        "{names:?}"
    );
    assert_eq!(found.attributes["plugins.cni.version.leaves"], "v2.0.0");
    assert_eq!(names.len(), 2, "{names:?}");
    for file in ["pid", "left"] {
        let pid = fs::read_to_string(machine.path(file)).unwrap();
        assert!(is_over(pid.trim()), "{file}: {pid} is alive");
    }
}

/// Whether a process is gone, or dead and waits to be fetched by whom it was left to.
fn is_over(pid: &str) -> bool {
    let Ok(pid) = pid.parse() else { return false };
    let Some(pid) = rustix::process::Pid::from_raw(pid) else {
        return false;
    };
    let Ok(pidfd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
        return true;
    };
    // It was killed; the kernel may need a moment.
    let mut fds = [rustix::event::PollFd::new(
        &pidfd,
        rustix::event::PollFlags::IN,
    )];
    let timeout = rustix::event::Timespec {
        tv_sec: 30,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
