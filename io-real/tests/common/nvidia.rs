//! GPUs that are made up, reported by a library that is loaded as the real one is.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use drover_core::agent::Input;
use drover_core::device::reported::ReportedGroup;
use drover_core::device::reported_stats::ReportedStats;
use drover_core::input::{DeviceReport, HookOutput, NodeInput};
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::op::{Failure, Op};
use drover_core::stats::devices::DeviceUsage;
use drover_io_real::device::nvidia::{NAME, Nvidia, NvidiaSettings};
use drover_io_real::device::{DevicePlugin, DeviceStream};
use drover_io_real::driver::Inbox;
use drover_io_real::gate::Gate;
use drover_io_real::plugins::{DevicePlugins, Plugins};
use drover_io_real::sampler::Sampler;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A copy of the library, with its own file of what there is.
pub struct Standin {
    dir: TempDir,
}

impl Standin {
    /// With these GPUs; see the library.
    pub fn new(has: &str) -> Standin {
        let dir = TempDir::new().unwrap();
        let standin = Standin { dir };
        let test = std::env::current_exe().unwrap();
        let built = test.parent().unwrap().parent().unwrap().join("examples");
        fs::copy(built.join("libnvml_standin.so"), standin.library()).unwrap();
        standin.now(has);
        standin
    }

    pub fn library(&self) -> PathBuf {
        self.dir.path().join("libnvidia-ml.so.1")
    }

    /// From now on there are these GPUs.
    pub fn now(&self, has: &str) {
        let new = self.dir.path().join("new");
        fs::write(&new, has).unwrap();
        let conf = self.dir.path().join("libnvidia-ml.so.1.conf");
        fs::rename(new, conf).unwrap();
    }

    /// It is looked at often.
    pub fn settings(&self) -> NvidiaSettings {
        NvidiaSettings {
            library: Some(self.library().into_os_string()),
            period: Duration::from_millis(5),
            ..NvidiaSettings::default()
        }
    }
}

/// Who knows GPUs, and who listens to it.
pub struct Gpus {
    pub nvidia: Arc<Nvidia>,
    pub sampler: Sampler,
    inbox: Inbox,
    reported: UnboundedReceiver<Input>,
    ops: u64,
}

impl Gpus {
    pub fn new(settings: NvidiaSettings) -> Gpus {
        let (inbox, reported) = unbounded_channel();
        let nvidia = Arc::new(Nvidia::new(settings));
        let plugins = DevicePlugins::new(vec![nvidia.clone()], Plugins::none());
        Gpus {
            nvidia,
            sampler: Sampler::new([], Gate::default()).listening_to(plugins),
            inbox: Inbox::new(inbox),
            reported,
            ops: 0,
        }
    }

    /// Listens to it from now on.
    pub fn watch(&mut self) {
        self.ops += 1;
        let stream = DeviceStream::new(Op(self.ops), NAME, self.inbox.clone());
        self.nvidia.watch(stream);
    }

    /// The next that it says to who listens now.
    pub async fn receive(&mut self) -> DeviceReport {
        loop {
            let reported = self.reported.recv().await.unwrap();
            let Input::Node(NodeInput::Devices { op, plugin, report }) = reported else {
                panic!("{reported:?}");
            };
            assert_eq!(plugin, NAME);
            if op == Op(self.ops) {
                return report;
            }
        }
    }

    /// The devices that it tells of next.
    pub async fn devices(&mut self) -> Vec<ReportedGroup> {
        match self.receive().await {
            DeviceReport::Devices(groups) => groups,
            other => panic!("{other:?}"),
        }
    }

    /// Why it says no more.
    pub async fn ended(&mut self) -> String {
        match self.receive().await {
            DeviceReport::Ended(why) => why,
            other => panic!("{other:?}"),
        }
    }

    /// What a task gets for these GPUs of a model.
    pub async fn reserve(&self, model: &str, ids: &[&str]) -> Result<HookOutput, Failure> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        self.nvidia.reserve(&group(model), &ids).await
    }

    /// What a look at these shows.
    pub async fn measured(&self, held: &[AssignedDevices]) -> DeviceUsage {
        self.sampler.refresh_devices(held).await;
        self.sampler.board().devices.of(held)
    }
}

/// Devices of a model, as a task holds them.
pub fn held(model: &str, ids: &[&str]) -> AssignedDevices {
    AssignedDevices {
        task: "t".to_owned(),
        plugin: NAME.to_owned(),
        group: group(model),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    }
}

fn group(model: &str) -> GroupId {
    GroupId {
        vendor: "nvidia".to_owned(),
        kind: "gpu".to_owned(),
        name: model.to_owned(),
    }
}

/// Each device with whether it works.
pub fn health(groups: &[ReportedGroup]) -> Vec<(&str, &str, bool)> {
    let of = |group: &'_ ReportedGroup| group.devices.len();
    assert!(groups.iter().all(|group| of(group) > 0));
    let devices = groups.iter().flat_map(|group| {
        let name = group.name.as_str();
        let devices = group.devices.iter();
        devices.map(move |device| (name, device.id.as_str(), device.healthy))
    });
    devices.collect()
}

/// What was measured, without when.
pub fn shown(usage: &DeviceUsage) -> String {
    let groups = usage.groups().iter().map(|group| ReportedStats {
        vendor: group.group.vendor.clone(),
        kind: group.group.kind.clone(),
        name: group.group.name.clone(),
        instances: (group.instances.iter())
            .map(|(id, it)| {
                let mut it = it.as_ref().clone();
                assert!(it.time.take().is_some());
                (id.to_string(), it)
            })
            .collect(),
    });
    serde_json::to_string_pretty(&groups.collect::<Vec<_>>()).unwrap()
}
