//! What of the host a container sees: its directories, and what its job and its devices mount.
//!
//! What lies below a task's own directory, where tasks may have put links, is opened here without following any, and
//! the engine gets a path of the agent's own ([`super::pins`]), which must live until the container runs.

use std::io;
use std::path::{Path, PathBuf};

use bollard::models::{
    Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountTmpfsOptions, MountType,
    MountVolumeOptions, MountVolumeOptionsDriverConfig,
};
use drover_core::driver::config::{DockerConfig, MountKind};
use drover_core::driver::docker::volume_parts;
use drover_core::driver::isolation::DIRS;
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::op::Failure;
use drover_core::paths::task_path::TaskPath;

use super::pins::{Pin, Pins};
use crate::dirs::AllocDirs;
use crate::network::{HOSTS, RESOLV};

/// Where the directories of allocations are.
pub(super) struct Dirs<'a> {
    pub(super) dirs: &'a AllocDirs,
    pub(super) root: &'a Path,
    pub(super) pins: &'a Pins,
    pub(super) launch: LaunchId,
    pub(super) selinux_label: &'a str,
    /// The directory of the network that was made for its allocation.
    pub(super) network: Option<PathBuf>,
}

/// What is mounted, and what must stay open until that is done.
#[derive(Default)]
pub(super) struct Mounted {
    pub(super) mounts: Vec<Mount>,
    /// Those that the engine wants to hear of in its older way.
    pub(super) binds: Vec<String>,
    pub(super) held: Vec<Pin>,
}

impl Mounted {
    /// Everything that a container sees of the host. Blocks.
    ///
    /// # Errors
    /// Something is not there or may not be mounted.
    pub(super) fn of(
        dirs: &Dirs<'_>,
        task: &TaskKey,
        asked: &DockerConfig,
        config: &TaskConfig,
    ) -> Result<Mounted, Failure> {
        let mut mounted = Mounted::default();
        mounted.own(dirs, task);
        mounted.names(dirs);
        for volume in &asked.volumes {
            mounted.volume(dirs, task, asked, volume)?;
        }
        for mount in &asked.mounts {
            mounted.mount(dirs, task, mount)?;
        }
        for mount in &config.reserved.mounts {
            let propagation = match mount.propagation_mode.as_str() {
                "host-to-task" => "rslave",
                "bidirectional" => "rshared",
                _ => "rprivate",
            };
            let one = bind(
                &mount.host_path,
                &mount.task_path,
                mount.read_only,
                Some(propagation),
            );
            mounted.mounts.push(one);
        }
        Ok(mounted)
    }

    /// What its allocation shares, its own files and its secrets. No task can have put a link in their place.
    fn own(&mut self, dirs: &Dirs<'_>, task: &TaskKey) {
        let root = dirs.root.join(task.alloc.to_string());
        let own = root.join(task.task.as_str());
        let sources = [root.join("alloc"), own.join("local"), own.join("secrets")];
        for (source, target) in sources.iter().zip(DIRS) {
            self.host(dirs, &source.to_string_lossy(), target, false, None);
        }
    }

    /// How names are resolved, as it is said for its allocation. No task reaches these files.
    fn names(&mut self, dirs: &Dirs<'_>) {
        for name in [HOSTS, RESOLV] {
            let file = dirs.network.as_ref().map(|network| network.join(name));
            if let Some(file) = file.filter(|file| file.exists()) {
                let target = format!("/etc/{name}");
                self.host(dirs, &file.to_string_lossy(), &target, true, None);
            }
        }
    }

    /// Something of the host, with the label of SELinux if there is one, which only the older way has.
    fn host(
        &mut self,
        dirs: &Dirs<'_>,
        source: &str,
        target: &str,
        readonly: bool,
        propagation: Option<&str>,
    ) {
        if dirs.selinux_label.is_empty() {
            self.mounts
                .push(bind(source, target, readonly, propagation));
        } else {
            let way = if readonly { "ro" } else { "rw" };
            let propagation = propagation.map(|it| format!(",{it}")).unwrap_or_default();
            let label = dirs.selinux_label;
            self.binds
                .push(format!("{source}:{target}:{way},{label}{propagation}"));
        }
    }

    fn volume(
        &mut self,
        dirs: &Dirs<'_>,
        task: &TaskKey,
        asked: &DockerConfig,
        text: &str,
    ) -> Result<(), Failure> {
        let (source, target, mode) = volume_parts(text).map_err(Failure::fatal)?;
        // A name, or a path of the host, which the engine makes if it is not there.
        if asked.volume_driver.is_some() || source.starts_with('/') {
            self.binds.push(text.to_owned());
            return Ok(());
        }
        let mut readonly = false;
        let mut propagation = None;
        for word in mode.split(',').filter(|word| !word.is_empty()) {
            match word {
                "ro" => readonly = true,
                "rw" | "z" | "Z" | "delegated" | "cached" | "consistent" => {}
                "private" | "rprivate" | "slave" | "rslave" | "shared" | "rshared" => {
                    propagation = Some(word);
                }
                other => {
                    return Err(Failure::fatal(format!(
                        "volumes: {other:?} in {text:?} is not known"
                    )));
                }
            }
        }
        self.task_path(dirs, task, source, target, readonly, propagation)
            .map_err(|failure| prefixed("volumes", failure))
    }

    fn mount(
        &mut self,
        dirs: &Dirs<'_>,
        task: &TaskKey,
        mount: &drover_core::driver::config::DockerMount,
    ) -> Result<(), Failure> {
        let target = &mount.target;
        let one = match &mount.kind {
            MountKind::Bind {
                source,
                propagation,
            } if source.starts_with('/') => {
                bind(source, target, mount.readonly, propagation.as_deref())
            }
            MountKind::Bind {
                source,
                propagation,
            } => {
                let way = propagation.as_deref();
                let done = self.task_path(dirs, task, source, target, mount.readonly, way);
                return done.map_err(|failure| prefixed("mount", failure));
            }
            MountKind::Tmpfs { size, mode } => Mount {
                typ: Some(MountType::TMPFS),
                tmpfs_options: Some(MountTmpfsOptions {
                    size_bytes: i64::try_from(*size).ok().filter(|size| *size > 0),
                    mode: Some(i64::from(*mode)).filter(|mode| *mode > 0),
                    ..MountTmpfsOptions::default()
                }),
                ..plain(target, mount.readonly)
            },
            MountKind::Volume {
                name,
                no_copy,
                labels,
                driver,
            } => Mount {
                typ: Some(MountType::VOLUME),
                source: Some(name.clone()).filter(|name| !name.is_empty()),
                volume_options: Some(MountVolumeOptions {
                    no_copy: Some(*no_copy),
                    labels: Some(labels.clone().into_iter().collect()),
                    driver_config: driver.as_ref().map(|(name, options)| {
                        MountVolumeOptionsDriverConfig {
                            name: Some(name.clone()).filter(|name| !name.is_empty()),
                            options: Some(options.clone().into_iter().collect()),
                        }
                    }),
                    ..MountVolumeOptions::default()
                }),
                ..plain(target, mount.readonly)
            },
        };
        self.mounts.push(one);
        Ok(())
    }

    /// Something below the directory of the task or what its allocation shares.
    fn task_path(
        &mut self,
        dirs: &Dirs<'_>,
        task: &TaskKey,
        source: &str,
        target: &str,
        readonly: bool,
        propagation: Option<&str>,
    ) -> Result<(), Failure> {
        let path = TaskPath::of(source, "", task.task.as_str()).map_err(Failure::fatal)?;
        let files = dirs.dirs.files(task.alloc, task.task.as_str());
        let handle = files.and_then(|files| files.handle(&path));
        let handle = handle.map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => Failure::fatal(format!("{source:?}: a link is on the way")),
            _ => Failure::recoverable(format!("{source:?}: {error}")),
        })?;
        let pin = dirs.pins.pin(dirs.launch, self.held.len(), &handle);
        let pin = pin.map_err(|error| {
            Failure::recoverable(format!(
                "{source:?} cannot be mounted for the engine: {error}"
            ))
        })?;
        self.host(
            dirs,
            &pin.path().to_string_lossy(),
            target,
            readonly,
            propagation,
        );
        self.held.push(pin);
        Ok(())
    }
}

fn prefixed(field: &str, failure: Failure) -> Failure {
    Failure {
        message: format!("{field}: {}", failure.message),
        ..failure
    }
}

fn plain(target: &str, readonly: bool) -> Mount {
    Mount {
        target: Some(target.to_owned()),
        read_only: Some(readonly),
        ..Mount::default()
    }
}

pub(super) fn bind(source: &str, target: &str, readonly: bool, propagation: Option<&str>) -> Mount {
    use MountBindOptionsPropagationEnum as Propagation;
    let propagation = match propagation {
        Some("private") => Some(Propagation::PRIVATE),
        Some("slave") => Some(Propagation::SLAVE),
        Some("rslave") => Some(Propagation::RSLAVE),
        Some("shared") => Some(Propagation::SHARED),
        Some("rshared") => Some(Propagation::RSHARED),
        Some("rprivate") => Some(Propagation::RPRIVATE),
        Some(_) | None => None,
    };
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_owned()),
        bind_options: propagation.map(|propagation| MountBindOptions {
            propagation: Some(propagation),
            ..MountBindOptions::default()
        }),
        ..plain(target, readonly)
    }
}

/// Opens the archive of an image that lies in a task's `local`.
///
/// # Errors
/// It is not there, or is no plain file.
pub(super) fn archive(
    dirs: &AllocDirs,
    task: &TaskKey,
    load: &str,
) -> Result<std::fs::File, Failure> {
    let name = task.task.as_str();
    let path = TaskPath::in_local(load, name)
        .or_else(|_| TaskPath::of(load, "", name))
        .map_err(|why| Failure::fatal(format!("load: {why}")))?;
    let files = dirs.files(task.alloc, name);
    let file = files.and_then(|files| files.open_plain(&path));
    let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such file below local");
    file.and_then(|file| file.ok_or_else(missing))
        .map_err(|error| Failure::fatal(format!("load: {load:?}: {error}")))
}
