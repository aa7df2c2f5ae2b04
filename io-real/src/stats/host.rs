//! Measuring the machine when somebody looks.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use drover_core::stats::cpu::CoreTimes;
use drover_core::stats::host::{Host, cores_since};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::counters::{cores, host_memory, uptime};
use super::disks::Disks;
use super::read::{Buffer, open};
use super::{FRESH, RECENT, SHORT};
use crate::clock;

/// Measures the machine. Cheap to clone; the clones are the same sampler.
#[derive(Clone)]
pub struct HostSampler {
    disks: Disks,
    state: Arc<Mutex<State>>,
}

struct State {
    stat: Option<File>,
    memory: Option<File>,
    uptime: Option<File>,
    buffer: Buffer,
    before: Option<(Instant, Vec<(String, CoreTimes)>)>,
    latest: Option<(Instant, Arc<Host>)>,
}

impl HostSampler {
    /// Measures this machine, and these disks of it.
    pub fn new(disks: Disks) -> HostSampler {
        let state = State {
            stat: open(Path::new("/proc/stat")),
            memory: open(Path::new("/proc/meminfo")),
            uptime: open(Path::new("/proc/uptime")),
            buffer: Buffer::default(),
            before: None,
            latest: None,
        };
        HostSampler {
            disks,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// What the machine uses; not older than a second, and without its devices. The first look
    /// takes a tenth of a second, because percentages need two samples. Disks that do not answer
    /// are left out.
    pub async fn sample(&self, mhz: Option<f64>) -> Arc<Host> {
        let mut state = self.state.lock().await;
        let fresh = |(at, _): &&(Instant, Arc<Host>)| at.elapsed() < FRESH;
        if let Some((_, host)) = state.latest.as_ref().filter(fresh) {
            return host.clone();
        }
        let volumes = self.disks.sample().await;
        let recent = |(at, _): &(Instant, _)| at.elapsed() < RECENT;
        if !state.before.as_ref().is_some_and(recent) {
            let first = state.cores();
            state.before = Some((Instant::now(), first));
            sleep(SHORT).await;
        }
        let mut host = state.host();
        host.mhz_of_a_core = mhz;
        host.disks = volumes.mounted.to_vec();
        host.alloc_dir = volumes.alloc_dir;
        let host = Arc::new(host);
        state.latest = Some((Instant::now(), host.clone()));
        host
    }
}

impl State {
    fn cores(&mut self) -> Vec<(String, CoreTimes)> {
        cores(self.buffer.all(self.stat.as_ref()))
    }

    /// What the kernel counts; these files never block.
    fn host(&mut self) -> Host {
        let now = self.cores();
        let (_, before) = self.before.take().unwrap_or((Instant::now(), Vec::new()));
        let host = Host {
            cores: cores_since(&now, &before),
            memory: host_memory(self.buffer.all(self.memory.as_ref())),
            uptime: uptime(self.buffer.all(self.uptime.as_ref())),
            at: clock::now().wall,
            ..Host::default()
        };
        self.before = Some((Instant::now(), now));
        host
    }
}
