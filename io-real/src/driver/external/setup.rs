//! From the core's start request to the plugin's.

use std::path::{Path, PathBuf};

use drover_core::driver::spec::{Spec, Strictness, decode};
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::device::DeviceNode;
use drover_core::op::Failure;

use crate::plugin::driver::{
    AllocatedCpuResources, AllocatedMemoryResources, AllocatedTaskResources, Device,
    LinuxResources, Mount, Resources, TaskSetup,
};
use crate::plugin::msgpack;

/// A task as its driver is told of it, with the pipes that its output goes to.
pub(super) fn task(
    spec: &Spec,
    root: &Path,
    task: &TaskKey,
    launch: LaunchId,
    config: &TaskConfig,
    pipes: [PathBuf; 2],
) -> Result<TaskSetup, Failure> {
    let decoded = decode(spec, &config.config, Strictness::Resolved).map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::fatal(texts.join("; "))
    })?;
    let alloc_dir = root.join(task.alloc.to_string());
    let [stdout_path, stderr_path] = pipes.map(|pipe| match config.logs.disabled {
        true => "/dev/null".to_owned(),
        false => text(&pipe),
    });
    Ok(TaskSetup {
        id: id(launch),
        name: task.task.to_string(),
        msgpack_driver_config: msgpack::encode(&decoded)?,
        env: config.env.clone(),
        resources: Some(resources(config)),
        user: config.user.clone(),
        stdout_path,
        stderr_path,
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
        propagation_mode: mount.propagation_mode.clone(),
        selinux_label: mount.selinux_label.clone(),
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

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
