//! What probes find out about the machine that the tests run on, and asking them.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod machines;

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};

use drover_core::fingerprint::Fingerprint;
use drover_io_real::fingerprint::{
    Context, InterfaceAddress, Kernel, Name, PROBES, Prober, Settings, Volume,
};
use drover_io_real::gate::Gate;
use machines::Machine;

fn query(name: &str) -> Fingerprint {
    let settings = Settings {
        alloc_dir: std::env::temp_dir().join("not/made/yet"),
        ..Settings::default()
    };
    let context = Context::of_this_machine(settings).unwrap();
    let probe = PROBES.iter().find(|probe| probe.name == name).unwrap();
    probe.query(&context).unwrap()
}

fn reported(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn cpu_count_matches_nproc() {
    let found = query("cpu");
    assert_eq!(
        found.attributes["cpu.reservablecores"],
        reported("nproc", &[])
    );
    let processors = found.resources.processors.unwrap();
    assert_eq!(
        found.attributes["cpu.numcores"],
        processors.cores.len().to_string()
    );
    assert!(processors.usable_compute > 0);
    assert_eq!(
        query("arch").attributes["cpu.arch"],
        match reported("uname", &["-m"]).as_str() {
            "x86_64" => "amd64".to_owned(),
            "aarch64" => "arm64".to_owned(),
            other => other.to_owned(),
        }
    );
}

#[test]
fn memory_matches_kernel() {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let words: Vec<&str> = meminfo.split_ascii_whitespace().take(3).collect();
    assert_eq!((words[0], words[2]), ("MemTotal:", "kB"));
    let bytes = words[1].parse::<u64>().unwrap() * 1024;
    let found = query("memory");
    assert_eq!(found.attributes["memory.totalbytes"], bytes.to_string());
    assert_eq!(found.resources.memory_mb, Some(bytes / 1024 / 1024));
}

#[test]
fn host_names_match_uname() {
    let found = query("host");
    assert_eq!(
        found.attributes["unique.hostname"],
        reported("uname", &["-n"])
    );
    assert_eq!(
        found.attributes["kernel.version"],
        reported("uname", &["-r"])
    );
    assert_eq!(found.attributes["kernel.arch"], reported("uname", &["-m"]));
    assert_eq!(found.attributes["kernel.name"], "linux");
}

#[test]
fn volume_is_of_nearest_existing_directory() {
    let dir = std::env::temp_dir();
    let dir = dir.to_str().unwrap();
    let df = reported("df", &["-P", "-B1", dir]);
    let words: Vec<&str> = df
        .lines()
        .nth(1)
        .unwrap()
        .split_ascii_whitespace()
        .collect();
    let found = query("storage");
    assert_eq!(found.attributes["unique.storage.bytestotal"], words[1]);
    assert!(found.attributes.contains_key("unique.storage.volume"));
}

#[test]
fn interface_addresses_match_kernel() {
    let found = query("network");
    let defaults = found
        .resources
        .networks
        .iter()
        .filter(|network| network.is_default);
    assert!(defaults.count() <= 1);
    for network in &found.resources.networks {
        assert!(Path::new("/sys/class/net").join(&network.device).exists());
    }
    if let Some(lo) = found
        .resources
        .networks
        .iter()
        .find(|network| network.device == "lo")
    {
        assert_eq!(
            (lo.addresses[0].ip.as_str(), lo.addresses[0].prefix),
            ("127.0.0.1", 8)
        );
    }
    if let Some(ip) = found.attributes.get("unique.network.ip-address") {
        // Only an address of this machine can be listened at.
        std::net::TcpListener::bind(format!("{ip}:0")).unwrap();
    }
}

#[tokio::test]
async fn prober_returns_probe_result() {
    let context = Context::of_this_machine(Settings::default()).unwrap();
    let prober = Prober::new(context, Gate::default());
    for probe in PROBES.iter().filter(|probe| !probe.off_unless_enabled) {
        let found = prober.ask(probe.name).await.unwrap();
        if probe.name == "host" {
            assert_eq!(found, query("host"));
        }
    }
    let failure = prober.ask("nonsense").await.unwrap_err();
    assert!(failure.message.contains("nonsense") && !failure.recoverable);
}

/// A kernel that does not answer until it is let.
#[derive(Default)]
struct Slow {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: u32,
    answers: bool,
}

impl Slow {
    fn answer(&self) {
        self.state.lock().unwrap().answers = true;
        self.changed.notify_all();
    }

    fn until_asked(&self) {
        let state = self.state.lock().unwrap();
        drop(
            self.changed
                .wait_while(state, |state| state.asked == 0)
                .unwrap(),
        );
    }
}

impl Kernel for Slow {
    fn name(&self) -> Name {
        let mut state = self.state.lock().unwrap();
        state.asked += 1;
        self.changed.notify_all();
        drop(
            self.changed
                .wait_while(state, |state| !state.answers)
                .unwrap(),
        );
        Name {
            machine: "x86_64".to_owned(),
            ..Name::default()
        }
    }

    fn landlock(&self) -> Option<u32> {
        panic!("this kernel has a mistake");
    }

    fn addresses(&self) -> io::Result<Vec<InterfaceAddress>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn volume(&self, _: &Path) -> io::Result<Option<Volume>> {
        Err(io::Error::other("the disk is gone"))
    }
}

fn slow() -> (Machine, Arc<Slow>, Prober) {
    let machine = Machine::empty();
    let kernel = Arc::new(Slow::default());
    let context = Context {
        kernel: Arc::clone(&kernel) as Arc<dyn Kernel>,
        ..machine.context(Settings::default())
    };
    (machine, kernel, Prober::new(context, Gate::default()))
}

#[tokio::test]
async fn hanging_probe_delays_no_other() {
    let (_machine, kernel, prober) = slow();
    let other = prober.clone();
    let hung = tokio::spawn(async move { other.ask("arch").await });
    let asked = Arc::clone(&kernel);
    tokio::task::spawn_blocking(move || asked.until_asked())
        .await
        .unwrap();

    let failure = prober.ask("arch").await.unwrap_err();
    assert!(
        failure.recoverable && failure.message.contains("still runs"),
        "{failure:?}"
    );
    assert_eq!(kernel.state.lock().unwrap().asked, 1);
    assert_eq!(prober.ask("memory").await.unwrap(), Fingerprint::default());

    kernel.answer();
    assert_eq!(hung.await.unwrap().unwrap().attributes["cpu.arch"], "amd64");
    assert!(prober.ask("arch").await.is_ok());
}

#[tokio::test]
async fn abandoned_probe_can_run_again() {
    let (_machine, kernel, prober) = slow();
    let other = prober.clone();
    let hung = tokio::spawn(async move { other.ask("arch").await });
    let asked = Arc::clone(&kernel);
    tokio::task::spawn_blocking(move || asked.until_asked())
        .await
        .unwrap();
    hung.abort();
    assert!(hung.await.unwrap_err().is_cancelled());
    assert!(prober.ask("arch").await.is_err());
    kernel.answer();
    while prober.ask("arch").await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn probe_error_has_reason_and_is_recoverable() {
    let (_machine, _kernel, prober) = slow();
    for (name, reason) in [
        ("landlock", "broke off"),
        ("network", "permission denied"),
        ("storage", "the disk is gone"),
    ] {
        for _ in 0..2 {
            let failure = prober.ask(name).await.unwrap_err();
            assert!(failure.recoverable, "{failure:?}");
            assert!(failure.message.contains(reason), "{failure:?}");
        }
    }
}
