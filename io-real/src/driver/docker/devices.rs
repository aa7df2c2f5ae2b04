//! The devices of a container. What a job names is resolved here, and the engine gets the paths of device nodes alone:
//! by itself it follows links, and gives all devices that are in a directory, at whatever it finds when it looks.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use bollard::models::DeviceMapping;
use drover_core::driver::admission::container_of;
use drover_core::driver::config::DockerConfig;
use drover_core::driver::docker::{Container, DockerPolicy};
use drover_core::model::device::DeviceNode;
use drover_core::model::task::Task;
use drover_core::op::Failure;

/// The most devices of one directory.
const MAX_NODES: usize = 256;

/// The most things in a directory, and in those below it.
const MAX_ENTRIES: usize = 4096;

/// How deep they may lie.
const MAX_DEPTH: usize = 8;

/// The devices of a container. Blocks.
///
/// # Errors
/// The agent does not allow one, or it is none.
pub(super) fn of(
    asked: &DockerConfig,
    reserved: &[DeviceNode],
    container: &Container,
) -> Result<Vec<DeviceMapping>, Failure> {
    let mut devices = Vec::new();
    for (host, inside, permissions) in &asked.devices {
        if container.raw_devices {
            devices.push(mapping(host, inside, permissions));
            continue;
        }
        let inside = inside.trim_end_matches('/');
        for Node { path, rest } in nodes(host, container)? {
            devices.push(mapping(&path, &format!("{inside}{rest}"), permissions));
        }
    }
    let reserved = reserved.iter();
    devices.extend(reserved.map(|it| mapping(&it.host_path, &it.task_path, &it.permissions)));
    Ok(devices)
}

/// Whether a container may have the devices that its task names, as far as they are there: others may come, and are
/// looked for when the task starts. Blocks.
///
/// # Errors
/// The agent does not allow one, or it is none.
pub fn admit_devices(policy: &DockerPolicy, task: &Task) -> Result<(), String> {
    let Some(asked) = container_of(task) else {
        return Ok(());
    };
    let container = policy.devices_of(&asked);
    match of(&asked, &[], &container) {
        Err(failure) if !failure.recoverable => Err(failure.message),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn mapping(host: &str, inside: &str, permissions: &str) -> DeviceMapping {
    DeviceMapping {
        path_on_host: Some(host.to_owned()),
        path_in_container: Some(inside.to_owned()),
        cgroup_permissions: Some(permissions.to_owned()),
    }
}

/// A device of the host.
struct Node {
    path: String,
    /// Where it is below what the job names: empty, or with a slash at the front.
    rest: String,
}

/// What a job names: the device that it leads to, or those in the directory.
fn nodes(host: &str, container: &Container) -> Result<Vec<Node>, Failure> {
    let unusable =
        |error: std::io::Error| Failure::recoverable(format!("devices: {host:?}: {error}"));
    let real = fs::canonicalize(host).map_err(unusable)?;
    let kind = fs::symlink_metadata(&real).map_err(unusable)?.file_type();
    // Where to is nobody's business who may hand in jobs: the agent looks as root.
    if !real.starts_with("/dev/") || real == Path::new("/dev") {
        return Err(Failure::fatal(format!(
            "devices: the agent does not allow {host:?}, which leads out of /dev \
             (allow_privileged of plugin \"docker\")"
        )));
    }
    if kind.is_dir() {
        return Walk::new(host, container).all(&real);
    }
    if !is_device(kind) {
        let why = format!("devices: {host:?} is no device: {}", real.display());
        return Err(Failure::fatal(why));
    }
    let path = allowed(host, &real, container)?;
    let rest = String::new();
    Ok(vec![Node { path, rest }])
}

fn is_device(kind: fs::FileType) -> bool {
    kind.is_char_device() || kind.is_block_device()
}

/// The path of a device that the container may have.
fn allowed(host: &str, real: &Path, container: &Container) -> Result<String, Failure> {
    let path = real
        .to_str()
        .filter(|path| container.may_have(path))
        .map(str::to_owned);
    path.ok_or_else(|| {
        let through = match Path::new(host) == real {
            true => String::new(),
            false => format!(", by {host:?}"),
        };
        Failure::fatal(format!(
            "devices: the agent does not allow {}{through} (allow_devices of plugin \"docker\"; allowed: {})",
            real.display(),
            container.allowed_devices.join(", ")
        ))
    })
}

/// Finding the devices of a directory: what is a link there, or no device, is left out.
struct Walk<'a> {
    host: &'a str,
    container: &'a Container,
    found: Vec<Node>,
    entries: usize,
}

impl<'a> Walk<'a> {
    fn new(host: &'a str, container: &'a Container) -> Walk<'a> {
        let (found, entries) = (Vec::new(), 0);
        Walk {
            host,
            container,
            found,
            entries,
        }
    }

    fn all(mut self, real: &Path) -> Result<Vec<Node>, Failure> {
        self.directory(real, String::new(), 0)?;
        match self.found.is_empty() {
            // Some may come, as one that is named may.
            true => Err(Failure::recoverable(format!(
                "devices: there is no device in {:?}",
                self.host
            ))),
            false => Ok(self.found),
        }
    }

    fn directory(&mut self, at: &Path, rest: String, depth: usize) -> Result<(), Failure> {
        let host = self.host;
        let unusable =
            |error: std::io::Error| Failure::recoverable(format!("devices: {host:?}: {error}"));
        if depth > MAX_DEPTH {
            return Err(self.too_much("deeper", MAX_DEPTH));
        }
        let mut paths = Vec::new();
        for entry in fs::read_dir(at).map_err(unusable)? {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(self.too_much("more in it", MAX_ENTRIES));
            }
            paths.push(entry.map_err(unusable)?.path());
        }
        paths.sort();
        for path in paths {
            self.entry(path, &rest, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: PathBuf, rest: &str, depth: usize) -> Result<(), Failure> {
        let Ok(found) = fs::symlink_metadata(&path) else {
            // It went meanwhile, as devices do.
            return Ok(());
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = format!("{rest}/{name}");
        if found.is_dir() {
            return self.directory(&path, rest, depth + 1);
        }
        if !is_device(found.file_type()) {
            return Ok(());
        }
        if self.found.len() >= MAX_NODES {
            return Err(self.too_much("more devices in it", MAX_NODES));
        }
        let path = allowed(self.host, &path, self.container)?;
        self.found.push(Node { path, rest });
        Ok(())
    }

    fn too_much(&self, what: &str, limit: usize) -> Failure {
        let host = self.host;
        Failure::fatal(format!(
            "devices: {host:?} has {what} than {limit}; name the devices one by one"
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn found(host: &str, patterns: &[&str]) -> Result<Vec<String>, String> {
        let container = Container {
            allowed_devices: patterns.iter().map(|it| (*it).to_owned()).collect(),
            ..Container::default()
        };
        let nodes = nodes(host, &container).map_err(|failure| failure.message)?;
        Ok(nodes
            .into_iter()
            .map(|node| node.path + "," + &node.rest)
            .collect())
    }

    #[test]
    fn link_is_what_it_leads_to() {
        assert_eq!(found("/dev/null", &["/dev/null"]).unwrap(), ["/dev/null,"]);
        let why = found("/dev/null", &["/dev/zero"]).unwrap_err();
        assert!(
            why.contains("/dev/null") && why.contains("allow_devices"),
            "{why}"
        );
        // Out of /dev, and not by its text.
        let why = found("/dev/fd", &["/dev/*"]).unwrap_err();
        assert!(
            why.contains("out of /dev") && !why.contains("/proc"),
            "{why}"
        );
        assert!(found("/dev/there-is-no-such-device", &["/dev/*"]).is_err());
    }

    #[test]
    fn directory_is_its_devices() {
        let why = found("/dev/pts", &["/dev/null"]);
        // There may be none but this, which is a device, too.
        assert!(why.is_err(), "{why:?}");
        let all = found("/dev/pts", &["/dev/pts/*"]).unwrap();
        assert!(all.iter().any(|it| it == "/dev/pts/ptmx,/ptmx"), "{all:?}");
        // Files and directories, but no devices.
        assert!(found("/dev/shm", &["/dev/*"]).is_err());
        // There may be some when the task starts.
        let none = nodes("/dev/shm", &Container::default()).err().unwrap();
        assert!(none.recoverable, "{}", none.message);
    }
}
