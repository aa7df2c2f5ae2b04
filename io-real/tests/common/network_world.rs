//! Networks of allocations in a network namespace of the test's own, without an agent.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use drover_core::effect::TaskNetwork;
use drover_core::ids::AllocId;
use drover_core::model::network::NetworkMode;
use drover_core::store::record::AssignedPort;
use drover_core::work::BuildNetwork;
use drover_io_real::network::{Bridge, Networks, fault_of_bridge};
use rustix::mount::{UnmountFlags, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

pub const TIMEOUT: Duration = Duration::from_secs(60);

pub struct World {
    pub networks: Networks,
    pub bridge: Bridge,
    pub dir: TempDir,
}

impl World {
    /// Puts this thread into a network of its own, if it can.
    pub fn new() -> Option<World> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root makes networks");
            return None;
        }
        // SAFETY: it is this thread's network alone; no descriptors become unshared.
        if let Err(error) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
            eprintln!("skipped: {error}");
            return None;
        }
        let bridge = Bridge::default();
        if let Some(fault) = fault_of_bridge(&bridge) {
            eprintln!("skipped: {fault}");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        Some(World {
            networks: networks_in(dir.path(), &bridge),
            bridge,
            dir,
        })
    }

    /// Those of another agent in the same network, with a directory of its own.
    pub fn another(&self, name: &str) -> Networks {
        let path = self.dir.path().join(name);
        fs::create_dir_all(&path).unwrap();
        networks_in(&path, &self.bridge)
    }

    /// What is asked for the allocation of this number: the port of the host leads to it.
    pub fn wanted(&self, number: u16) -> (AllocId, BuildNetwork) {
        let port = AssignedPort {
            label: "http".to_owned(),
            value: 20_000 + number,
            to: 80,
            host_ip: "127.0.0.1".to_owned(),
            ..AssignedPort::default()
        };
        let work = BuildNetwork {
            mode: NetworkMode::Bridge,
            hostname: format!("n{number}"),
            dns: None,
            address: Some(self.bridge.subnet.address(number.into())),
            ports: vec![port],
            args: [].into(),
        };
        (AllocId(u128::from(number) << 100 | 7), work)
    }

    /// The interfaces that a task of an allocation sees.
    pub fn seen(&self, alloc: AllocId) -> BTreeSet<String> {
        let own = TaskNetwork {
            own: true,
            ..TaskNetwork::default()
        };
        let entrance = self.networks.entrance(alloc, Some(&own)).unwrap().unwrap();
        let table = entrance.run(|| fs::read_to_string("/proc/thread-self/net/dev"));
        let table = table.unwrap();
        let lines = table.lines().skip(2);
        lines
            .filter_map(|line| Some(line.split(':').next()?.trim().to_owned()))
            .filter(|name| ["lo", "eth0"].contains(&name.as_str()))
            .collect()
    }
}

pub fn networks_in(path: &Path, bridge: &Bridge) -> Networks {
    let dir = File::open(path).unwrap().into();
    Networks::new(dir, path.to_owned(), bridge.clone())
}

impl Drop for World {
    fn drop(&mut self) {
        let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
        let points = table.lines().filter_map(|line| line.split(' ').nth(4));
        for point in points.filter(|point| point.starts_with(self.dir.path().to_str().unwrap())) {
            let _ = unmount(point, UnmountFlags::DETACH);
        }
    }
}

/// What a program prints, if it works.
pub fn says(words: &[&str]) -> Option<String> {
    let done = Command::new(words[0]).args(&words[1..]).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    done.status.success().then_some(text)
}

/// Waits until something is so.
#[track_caller]
pub fn until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < until, "it never was so");
        std::thread::yield_now();
    }
}
