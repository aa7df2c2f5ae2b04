//! Removing an agent's data directory, with everything on the host that agents made from it.
//!
//! No agent may run there: the lock of the directory is held until it is gone. What agents made is
//! found and removed as [`crate::audit`] does; all of it belongs to this directory, since nobody is
//! left who could know of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drover_core::host::{Home, NamedAfter};
use drover_core::ids::LaunchId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::audit::{Auditor, Kind, Thing};
use crate::cgroup::Cgroups;
use crate::data_dir::{DataDir, DataDirError};
use crate::dirs::{AllocDirs, enter, remove_tree};
use crate::driver::docker::{Inventory, Records};
use crate::driver::external::{Collectors, unfinished};
use crate::driver::raw_exec::RawExec;
use crate::driver::{Inbox, Orphans};
use crate::network::{NETWORKS, Networks};
use crate::shim::{Live, Recovered, ShimHome};
use crate::volumes::VOLUMES;

/// What agents make in their directory. The last ones tell that it is one, so they are removed last:
/// what fails in the middle can be done again.
const OURS: [&str; 28] = [
    "alloc",
    VOLUMES,
    NETWORKS,
    "run",
    "bin",
    "recording",
    "artifacts",
    "identity",
    "notify",
    "log-forward",
    "keyring",
    "secret-id",
    "secret-id.new",
    "plugins",
    "plugin-state",
    "plugin-tasks",
    "plugin-logs",
    "docker",
    "docker-mounts",
    "sockets",
    "api.sock",
    ".api.sock.new",
    "restore.new",
    "restore",
    "last-commit.new",
    "last-commit",
    "state",
    "lock",
];

/// Where states and keyrings lie that an operator moved away, as the agent's own messages advise.
const ASIDE: [&str; 2] = ["state.", "keyring."];

/// The signal that asks a task to end.
const TERM: i32 = 15;

/// Why a data directory is not removed.
#[derive(Debug)]
pub enum DestroyError {
    /// It is no data directory.
    NotOne(PathBuf),
    /// There is something in it that no agent made.
    Foreign(PathBuf, Vec<String>),
    /// There are volumes in it, with what jobs keep: these directories.
    Volumes(PathBuf, Vec<String>),
    /// It cannot be used, or an agent runs there.
    DataDir(DataDirError),
    /// The disk or the kernel refuses; with what it refuses.
    Io(String, io::Error),
    /// Some of what agents made on this host resists; each with the reason. The directory is there.
    Resists(Vec<String>),
}

impl fmt::Display for DestroyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DestroyError::NotOne(path) => write!(
                f,
                "{} is no data directory of an agent: it has no \"lock\" and no \"state\"; \
                 nothing was removed",
                path.display()
            ),
            DestroyError::Foreign(path, names) => write!(
                f,
                "{} has something that no agent made: {}; move it elsewhere first. Nothing was \
                 removed",
                path.display(),
                names.join(", ")
            ),
            DestroyError::Volumes(path, names) => write!(
                f,
                "{} has host volumes with what jobs keep: {}; move them elsewhere, delete them with \
                 \"drover volume delete\" while an agent runs, or remove them with -volumes. Nothing \
                 was removed",
                path.display(),
                names.join(", ")
            ),
            DestroyError::DataDir(DataDirError::Held(path)) => write!(
                f,
                "an agent runs in {}; stop it first. Nothing was removed",
                path.display()
            ),
            DestroyError::DataDir(error) => error.fmt(f),
            DestroyError::Io(what, error) => write!(f, "cannot {what}: {error}"),
            DestroyError::Resists(all) => {
                write!(
                    f,
                    "cannot remove all, so the directory stays: {}",
                    all.join("; ")
                )
            }
        }
    }
}

impl std::error::Error for DestroyError {}

fn cannot(what: impl Into<String>) -> impl FnOnce(io::Error) -> DestroyError {
    let what = what.into();
    move |error| DestroyError::Io(what, error)
}

/// A data directory that is to be removed, and that no agent can use meanwhile.
pub struct DestroyGuard {
    data: DataDir,
    handle: OwnedFd,
    home: ShimHome,
    collectors: Collectors,
    auditor: Auditor,
    networks: Networks,
    containers: Option<Inventory>,
}

/// What is left of a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// Nothing.
    Whole,
    /// The empty directory: it is a mount point.
    Emptied,
}

impl DestroyGuard {
    /// Takes hold of the data directory at `path`; its tasks have their groups below the control
    /// group `cgroup_parent`. What jobs keep in host volumes is removed only `with_volumes`. Earlier agents did not
    /// note whose their containers are: those are looked for at the socket `engine`, or at the usual one.
    ///
    /// # Errors
    /// See [`DestroyError`]. Nothing was removed then.
    pub fn open(
        path: &Path,
        cgroup_parent: &str,
        with_volumes: bool,
        engine: Option<PathBuf>,
    ) -> Result<DestroyGuard, DestroyError> {
        check(path)?;
        if !with_volumes {
            check_volumes(path)?;
        }
        let data = DataDir::open(path).map_err(DestroyError::DataDir)?;
        let cannot_open = || cannot("inspect this host");
        let handle = data.handle().map_err(cannot_open())?;
        let mark = data.mark().map_err(cannot_open())?;
        let cgroups = Cgroups::detect(cgroup_parent).map_err(cannot_open())?;
        let cgroups = cgroups.map(|groups| groups.marked(mark.to_string()));
        let home = ShimHome::open(data.path()).map_err(cannot_open())?;
        let dirs = AllocDirs::new(data.allocs());
        let collectors =
            Collectors::open(&home, data.path(), dirs.clone()).map_err(cannot_open())?;
        // Nobody waits for what a driver reports.
        let inbox = Inbox::new(mpsc::unbounded_channel().0);
        let raw_exec = RawExec::new(home.clone(), dirs, cgroups.clone(), None, inbox);
        let own = data.own(NETWORKS, None).map_err(cannot_open())?;
        let networks = Networks::recorded(own, data.path().join(NETWORKS)).map_err(cannot_open())?;
        let auditor = Auditor::new(
            &data,
            home.clone(),
            cgroups,
            raw_exec,
            networks.clone(),
            true,
        )
        .map_err(cannot_open())?;
        let containers = match enter(handle.as_fd(), "docker") {
            Err(Errno::NOENT) => None,
            dir => {
                let dir = dir.map_err(io::Error::from).map_err(cannot_open())?;
                let records = Records::new(dir).map_err(cannot_open())?;
                Some(Inventory::of_records(records, engine))
            }
        };
        let auditor = match containers.clone() {
            Some(containers) => auditor.with_containers(containers),
            None => auditor,
        };
        Ok(DestroyGuard {
            data,
            handle,
            home,
            collectors,
            auditor,
            networks,
            containers,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.data.path()
    }

    /// The processes of tasks that run, and of shims, and containers that run.
    ///
    /// # Errors
    /// The host cannot be looked at.
    pub fn running(&self) -> Result<Vec<Thing>, DestroyError> {
        let mut things = self.survey()?;
        things.retain(is_task);
        Ok(things)
    }

    /// The launches that a driver's plugin started and that are not known to have ended: only that
    /// plugin can end them.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn plugin_tasks(&self) -> Result<Vec<String>, DestroyError> {
        self.launches("plugin-tasks", unfinished)
    }

    /// The launches that may have a container of an engine that cannot be asked now, with why.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn containers_out_of_reach(&self) -> Result<BTreeMap<LaunchId, String>, DestroyError> {
        match &self.containers {
            None => Ok(BTreeMap::new()),
            Some(containers) => containers.out_of_reach().map_err(cannot("read docker")),
        }
    }

    /// The images that agents brought to engines, and that go with the directory: what they are called.
    ///
    /// # Errors
    /// The host cannot be looked at.
    pub fn images(&self) -> Result<Vec<String>, DestroyError> {
        let things = self.survey()?.into_iter();
        let images = things.filter(|thing| thing.kind == Kind::Image);
        let called = |thing: Thing| match thing.program.is_empty() {
            true => thing.name,
            false => thing.program,
        };
        Ok(images.map(called).collect())
    }

    /// The engines that may have images that agents brought and cannot be asked now, with why.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn images_out_of_reach(&self) -> Result<Vec<String>, DestroyError> {
        match &self.containers {
            None => Ok(Vec::new()),
            Some(containers) => containers
                .images_out_of_reach()
                .map_err(cannot("read docker")),
        }
    }

    /// Fails if there are containers of ours, or may be. Without the records nobody would know whose they are.
    fn refuse_containers(
        &self,
        which: impl FnOnce(&Inventory) -> io::Result<BTreeMap<LaunchId, String>>,
    ) -> Result<(), DestroyError> {
        let Some(containers) = &self.containers else {
            return Ok(());
        };
        let left = which(containers).map_err(cannot("read docker"))?;
        let left = left.into_iter();
        let left: Vec<String> = left
            .map(|(launch, why)| format!("launch {launch} may have a container ({why})"))
            .collect();
        match left.is_empty() {
            true => Ok(()),
            false => Err(DestroyError::Resists(left)),
        }
    }

    fn launches(
        &self,
        name: &str,
        read: impl FnOnce(OwnedFd) -> io::Result<Vec<String>>,
    ) -> Result<Vec<String>, DestroyError> {
        match enter(self.handle.as_fd(), name) {
            Err(Errno::NOENT) => Ok(Vec::new()),
            dir => dir
                .map_err(io::Error::from)
                .and_then(read)
                .map_err(cannot(format!("read {name}"))),
        }
    }

    /// Ends all tasks: asks them with SIGTERM, and kills what is left after `grace`. Blocks.
    ///
    /// # Errors
    /// Something resists.
    pub fn stop_tasks(&self, grace: Duration) -> Result<(), DestroyError> {
        // It may be long since it was looked at.
        self.refuse_containers(Inventory::out_of_reach)?;
        let names = self.home.list().map_err(cannot("list launches"))?;
        let asked: Vec<Live> = names
            .iter()
            .filter_map(|name| self.ask_to_end(name))
            .collect();
        let until = Instant::now() + grace;
        asked.iter().for_each(|live| wait(live, until));
        drop(asked);
        let left = self.collectors.end_unknown(&[].into(), Orphans::End);
        left.map_err(cannot("end what collects the output of tasks"))?;
        // Each shim ends with all of its task; what it has not taken along is found with it.
        for _ in 0..2 {
            self.remove_things(|it| matches!(it.kind, Kind::Process | Kind::Container))?;
        }
        Ok(())
    }

    fn ask_to_end(&self, launch: &str) -> Option<Live> {
        if !self.home.may_run(launch).unwrap_or(true) {
            return None;
        }
        // Whoever does not hear it is killed.
        match self.home.recover(launch) {
            Ok(Recovered::Running(live)) => live.signal(TERM).ok().map(|()| live),
            Ok(_) | Err(_) => None,
        }
    }

    /// Removes everything. Blocks.
    ///
    /// # Errors
    /// Tasks run, or something resists. What could be removed is; it can be tried again.
    pub fn remove(self) -> Result<Removed, DestroyError> {
        let running = self.running()?;
        if !running.is_empty() {
            let names = running.iter();
            let names = names.map(|it| format!("{} {} runs", it.kind.name(), it.name));
            return Err(DestroyError::Resists(names.collect()));
        }
        self.refuse_containers(Inventory::out_of_reach)?;
        // An engine may have been silent that is not any more.
        self.remove_things(|it| it.own_container() != Some(true))?;
        self.refuse_containers(Inventory::left)?;
        let networks = self.networks.remove_host_part();
        networks.map_err(cannot("remove the bridge of networks"))?;
        let mut names = names(self.path())?;
        names.sort_by_key(|name| OURS.iter().position(|ours| name == ours));
        for name in names {
            let name = name.to_string_lossy();
            let removed = remove_tree(self.handle.as_fd(), &name);
            removed.map_err(cannot(format!("remove {}", self.path().display())))?;
        }
        match fs::remove_dir(self.path()) {
            Ok(()) => Ok(Removed::Whole),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(Removed::Emptied),
            Err(error) => Err(cannot(format!("remove {}", self.path().display()))(error)),
        }
    }

    fn survey(&self) -> Result<Vec<Thing>, DestroyError> {
        let found = self.auditor.survey();
        let mut things = found.map_err(cannot("inspect this host"))?;
        things.retain(|thing| thing.home == Home::Ours && is_made(thing));
        Ok(things)
    }

    /// Removes what agents made on this host and `which` wants.
    fn remove_things(&self, which: impl Fn(&Thing) -> bool) -> Result<(), DestroyError> {
        let mut failed = Vec::new();
        for thing in self.survey()?.iter().filter(|thing| which(thing)) {
            if let Err(error) = self.auditor.remove(thing) {
                failed.push(format!("{} {}: {error}", thing.kind.name(), thing.name));
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(DestroyError::Resists(failed)),
        }
    }
}

/// Whether a thing is something of a task.
fn is_task(thing: &Thing) -> bool {
    let is_process = thing.kind == Kind::Process;
    let has_launch = matches!(thing.named_after, NamedAfter::Launch(_));
    thing.own_container().unwrap_or(is_process && has_launch)
}

/// Whether a thing is more than a name in the directory: that is removed with the directory.
fn is_made(thing: &Thing) -> bool {
    if thing.kind == Kind::Container {
        // Without proof it is left to people.
        return thing.own_container().is_some();
    }
    match (thing.kind, &thing.named_after) {
        (Kind::Process, NamedAfter::Launch(_) | NamedAfter::Plugin(_))
        | (Kind::Cgroup, NamedAfter::Launch(_))
        | (Kind::Image, _)
        | (Kind::Network | Kind::Mount | Kind::Directory, NamedAfter::Alloc(_)) => true,
        (
            Kind::Process
            | Kind::Container
            | Kind::Cgroup
            | Kind::Network
            | Kind::Mount
            | Kind::Directory
            | Kind::Socket,
            _,
        ) => false,
    }
}

/// Fails unless this is a data directory and nothing else.
fn check(path: &Path) -> Result<(), DestroyError> {
    let names = names(path)?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if !(has("lock") && (has("state") || has("last-commit"))) {
        return Err(DestroyError::NotOne(path.to_owned()));
    }
    let ours = |name: &OsString| {
        let text = name.to_str().unwrap_or_default();
        OURS.contains(&text) || ASIDE.iter().any(|aside| text.starts_with(aside))
    };
    let foreign = names.iter().filter(|name| !ours(name));
    let foreign: Vec<String> = foreign
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    match foreign.is_empty() {
        true => Ok(()),
        false => Err(DestroyError::Foreign(path.to_owned(), foreign)),
    }
}

/// Fails if there are volumes in a data directory.
fn check_volumes(path: &Path) -> Result<(), DestroyError> {
    let dir = path.join(VOLUMES);
    if !dir.exists() {
        return Ok(());
    }
    let names = names(&dir)?;
    let names: Vec<String> = names
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(DestroyError::Volumes(dir, names)),
    }
}

fn names(path: &Path) -> Result<Vec<OsString>, DestroyError> {
    let failed = || cannot(format!("read {}", path.display()));
    let entries = fs::read_dir(path).map_err(failed())?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    names.collect::<io::Result<_>>().map_err(failed())
}

/// Waits for the end of a shim, until then.
fn wait(live: &Live, until: Instant) {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut [PollFd::new(live, PollFlags::IN)], Some(&time)) {
            Err(Errno::INTR) => {}
            // Who cannot be waited for is killed.
            Ok(_) | Err(_) => return,
        }
    }
}
