//! Devices that are declared in the agent's configuration: what needs no plugin, such as an FPGA
//! with a device node, or a sound card.
//!
//! A declared device works as long as all its device nodes and mounts are there. That is looked
//! at whenever something comes or goes in the directories that they are in.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drover_core::device::attribute::{Attribute, Fact};
use drover_core::device::reported::{ReportedAttribute, ReportedDevice, ReportedGroup};
use drover_core::input::HookOutput;
use drover_core::model::device::{DeviceNode, GroupId, Mount};
use drover_core::op::Failure;
use futures::future::BoxFuture;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{DevicePlugin, DeviceStream};
use crate::one_task::OneTask;

/// The name of this plugin.
pub const NAME: &str = "declared";

/// A device, as the configuration declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// The group that it is of.
    pub group: GroupId,
    /// Its name in the group.
    pub id: String,
    /// Its device nodes, which tasks see under the same names.
    pub nodes: Vec<String>,
    /// Directories and files that its users need, read-only and under the same names.
    pub mounts: Vec<String>,
    /// Variables for its users.
    pub env: BTreeMap<String, String>,
    /// What is true of it, such as `memory = "4 GiB"`; the first device of a group counts.
    pub attributes: BTreeMap<String, String>,
}

/// All declared devices.
pub struct DeclaredDevices {
    devices: Arc<Vec<Declared>>,
    watch: OneTask,
}

impl DeclaredDevices {
    /// These devices.
    pub fn new(devices: Vec<Declared>) -> DeclaredDevices {
        DeclaredDevices {
            devices: Arc::new(devices),
            watch: OneTask::default(),
        }
    }
}

impl DevicePlugin for DeclaredDevices {
    fn name(&self) -> &str {
        NAME
    }

    fn watch(&self, report: DeviceStream) {
        let devices = self.devices.clone();
        self.watch.begin(async move {
            let why = match watch_nodes(&devices, &report).await {
                Ok(never) => match never {},
                Err(error) => format!("cannot watch the device nodes: {error}"),
            };
            report.ended(why);
        });
    }

    fn reserve<'a>(
        &'a self,
        group: &'a GroupId,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<HookOutput, Failure>> {
        Box::pin(async move {
            let mut given = HookOutput::default();
            for id in ids {
                let mut of_group = self.devices.iter().filter(|one| one.group == *group);
                let device = of_group.find(|one| one.id == *id);
                let device =
                    device.ok_or_else(|| Failure::recoverable(format!("no device {id:?}")))?;
                if let Some(missing) = missing(device) {
                    return Err(Failure::recoverable(missing));
                }
                give(device, &mut given);
            }
            Ok(given)
        })
    }
}

/// How often it is looked where the kernel does not tell.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// What nobody can construct.
enum Never {}

/// Tells of the devices whenever something of them comes or goes.
async fn watch_nodes(devices: &[Declared], report: &DeviceStream) -> io::Result<Never> {
    let mut last = None;
    let mut report_changes = || {
        let groups = reported(devices);
        if last.as_ref() != Some(&groups) {
            report.report(groups.clone());
            last = Some(groups);
        }
    };
    // Tasks of the same user may have taken all watches that there are.
    let events = loop {
        match watched(devices) {
            Ok(events) => break events,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENOSPC)) => {
                report_changes();
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Err(error) => return Err(error),
        }
    };
    // SAFETY: the descriptor is owned by the registration, which never replaces it.
    let events = unsafe { AsyncFd::register_with_interest(events, Interest::READABLE) }?;
    loop {
        report_changes();
        let mut ready = events.readable().await?;
        drain(events.get_ref())?;
        ready.clear_ready();
    }
}

/// The directories in which something of a device may come or go.
fn watched(devices: &[Declared]) -> io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let paths = devices
        .iter()
        .flat_map(|device| device.nodes.iter().chain(&device.mounts));
    let dirs: BTreeSet<PathBuf> = paths
        .filter_map(|path| Some(Path::new(path).parent()?.to_owned()))
        .collect();
    let flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::ONLYDIR;
    for dir in dirs {
        match inotify::add_watch(&events, &dir, flags) {
            // What is not there has no devices; if it comes, they are seen at the next start.
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(events)
}

fn drain(events: &OwnedFd) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    loop {
        match rustix::io::read(events, &mut buffer) {
            Ok(([], _)) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn reported(devices: &[Declared]) -> Vec<ReportedGroup> {
    let mut groups: Vec<ReportedGroup> = Vec::new();
    for device in devices {
        let missing = missing(device);
        let reported = ReportedDevice {
            id: device.id.clone(),
            healthy: missing.is_none(),
            description: missing.unwrap_or_default(),
            pci_bus_id: None,
        };
        let known = groups.iter_mut().find(|group| {
            let id = &device.group;
            (&group.vendor, &group.kind, &group.name) == (&id.vendor, &id.kind, &id.name)
        });
        match known {
            Some(group) => group.devices.push(reported),
            None => groups.push(ReportedGroup {
                vendor: device.group.vendor.clone(),
                kind: device.group.kind.clone(),
                name: device.group.name.clone(),
                devices: vec![reported],
                attributes: (device.attributes.iter())
                    .map(|(name, text)| (name.clone(), attribute(text)))
                    .collect(),
            }),
        }
    }
    groups
}

fn attribute(text: &str) -> ReportedAttribute {
    let Attribute { fact, unit } = Attribute::parse(text);
    let mut reported = ReportedAttribute {
        unit,
        ..ReportedAttribute::default()
    };
    match fact {
        Fact::Int(number) => reported.int = Some(number),
        Fact::Float(number) => reported.float = Some(number),
        Fact::Text(text) => reported.string = Some(text),
        Fact::Bool(yes) => reported.bool = Some(yes),
    }
    reported
}

/// What of a device is not there.
fn missing(device: &Declared) -> Option<String> {
    let mut paths = device.nodes.iter().chain(&device.mounts);
    let missing = paths.find(|path| std::fs::symlink_metadata(path).is_err())?;
    Some(format!("{missing} is not there"))
}

fn give(device: &Declared, given: &mut HookOutput) {
    let node = |path: &String| DeviceNode {
        task_path: path.clone(),
        host_path: path.clone(),
        permissions: "rwm".to_owned(),
    };
    let mount = |path: &String| Mount {
        task_path: path.clone(),
        host_path: path.clone(),
        read_only: true,
        ..Mount::default()
    };
    given.nodes.extend(device.nodes.iter().map(node));
    given.mounts.extend(device.mounts.iter().map(mount));
    given.env.extend(device.env.clone());
}
