//! Devices of the host: which of them a job may name.
//!
//! Here a name is looked at; what it leads to is seen by who makes the container, which asks
//! [`Container::may_have`] for each device that it finds there.

use super::{Container, DockerPolicy};
use crate::driver::config::DockerConfig;
use crate::text::{glob_match, quote};

/// Devices that people use, and by which nobody gets hold of the machine. GPUs that a job reserves come by its blocks
/// `device`.
const USUAL: [&str; 15] = [
    "/dev/net/tun",
    "/dev/fuse",
    "/dev/kvm",
    "/dev/dri/*",
    "/dev/snd/*",
    "/dev/video*",
    "/dev/ttyUSB*",
    "/dev/ttyACM*",
    "/dev/kfd",
    "/dev/accel/*",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// The patterns of an agent that is told none.
pub(super) fn usual() -> Vec<String> {
    USUAL.map(str::to_owned).into()
}

impl DockerPolicy {
    /// Whether names and permissions of devices are such that it can be looked what they are.
    pub(super) fn devices(&self, asked: &DockerConfig) -> Result<(), String> {
        for (host, _, permissions) in &asked.devices {
            if permissions.is_empty() || permissions.contains(|it| !matches!(it, 'r' | 'w' | 'm')) {
                let given = quote(permissions);
                return Err(format!(
                    "devices: cgroup_permissions may be r, w and m, not {given}"
                ));
            }
            if !self.allow_privileged && !is_below_dev(host) {
                return Err(format!(
                    "devices: host_path must be a path below /dev without empty parts, . and .., not {} \
                     (others take allow_privileged of plugin \"docker\")",
                    quote(host)
                ));
            }
        }
        Ok(())
    }
}

impl Container {
    /// Whether it may have the device at this path, which has no links on the way.
    pub fn may_have(&self, device: &str) -> bool {
        let patterns = &self.allowed_devices;
        self.raw_devices || patterns.iter().any(|it| glob_match(it, device))
    }
}

/// Whether a path says by its text alone that it is below `/dev`. Slashes at its end say nothing.
fn is_below_dev(path: &str) -> bool {
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    let path = path.trim_end_matches('/');
    path.strip_prefix("/dev/")
        .is_some_and(|rest| rest.split('/').all(plain))
}
