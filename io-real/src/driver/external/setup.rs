//! From what the core says of a start to what a driver's plugin is told.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use drover_core::driver::spec::{Spec, Strictness, decode};
use drover_core::effect::TaskConfig;
use drover_core::ids::LaunchId;
use drover_core::input::TaskKey;
use drover_core::model::device::DeviceNode;
use drover_core::op::Failure;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use crate::dirs::AllocDirs;
use crate::plugin::driver::{
    AllocatedCpuResources, AllocatedMemoryResources, AllocatedTaskResources, Device,
    LinuxResources, Mount, Resources, TaskSetup,
};
use crate::plugin::msgpack;

/// More log files of one stream are not made.
const MAX_LOGS: u32 = 10_000;

/// A task as its driver is told of it. Makes its log files.
pub(super) fn task(
    spec: &Spec,
    dirs: &AllocDirs,
    root: &Path,
    task: &TaskKey,
    launch: LaunchId,
    config: &TaskConfig,
) -> Result<TaskSetup, Failure> {
    let decoded = decode(spec, &config.config, Strictness::Resolved).map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::fatal(texts.join("; "))
    })?;
    let alloc_dir = root.join(task.alloc.to_string());
    let log = |stream: &str| -> Result<String, Failure> {
        if config.logs.disabled {
            return Ok("/dev/null".to_owned());
        }
        let name = log_file(dirs, task, stream)
            .map_err(|error| Failure::recoverable(format!("cannot make a log file: {error}")))?;
        Ok(text(&alloc_dir.join("alloc/logs").join(name)))
    };
    Ok(TaskSetup {
        id: id(launch),
        name: task.task.to_string(),
        msgpack_driver_config: msgpack::encode(&decoded)?,
        env: config.env.clone(),
        resources: Some(resources(config)),
        user: config.user.clone(),
        stdout_path: log("stdout")?,
        stderr_path: log("stderr")?,
        alloc_dir: text(&alloc_dir),
        task_group_name: config.group.clone(),
        job_name: config.job.clone(),
        job_id: config.job.clone(),
        device_env: config.device_env.clone(),
        mounts: config.reserved.mounts.iter().map(mount).collect(),
        devices: config.reserved.nodes.iter().map(node).collect(),
        alloc_id: task.alloc.to_string(),
        ..TaskSetup::default()
    })
}

fn mount(mount: &drover_core::model::device::Mount) -> Mount {
    Mount {
        task_path: mount.task_path.clone(),
        host_path: mount.host_path.clone(),
        readonly: mount.read_only,
        ..Mount::default()
    }
}

fn node(node: &DeviceNode) -> Device {
    Device {
        task_path: node.task_path.clone(),
        host_path: node.host_path.clone(),
        cgroup_permissions: node.permissions.clone(),
    }
}

/// The id of a task at its driver: that of its launch, so that it can be asked for by name.
pub(super) fn id(launch: LaunchId) -> String {
    launch.to_string()
}

fn resources(config: &TaskConfig) -> Resources {
    const MIB: u64 = 1 << 20;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (own, most) = match config.memory_reserved {
        0 => (config.memory_limit, 0),
        reserved => (reserved, config.memory_limit),
    };
    let allocated = AllocatedTaskResources {
        cpu: Some(AllocatedCpuResources {
            cpu_shares: number(config.cpu_shares),
        }),
        memory: Some(AllocatedMemoryResources {
            memory_mb: number(own / MIB),
            memory_max_mb: number(most / MIB),
        }),
        networks: Vec::new(),
    };
    let linux = LinuxResources {
        cpu_shares: number(config.cpu_shares),
        memory_limit_bytes: number(config.memory_limit),
        ..LinuxResources::default()
    };
    Resources {
        allocated_resources: Some(allocated),
        linux_resources: Some(linux),
        ports: Vec::new(),
    }
}

/// Makes the next log file of a stream: drivers open what is there and write from its beginning.
fn log_file(dirs: &AllocDirs, task: &TaskKey, stream: &str) -> io::Result<String> {
    let dir = dirs.open(task.alloc, "alloc/logs")?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
    for number in 0..MAX_LOGS {
        let name = format!("{}.{stream}.{number}", task.task);
        let mode = Mode::from_raw_mode(0o644);
        match openat(dir.as_fd(), &name, flags | OFlags::CLOEXEC, mode) {
            Ok(_) => return Ok(name),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("there are too many already"))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
