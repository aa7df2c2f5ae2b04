//! The driver `exec`: runs a program as `raw_exec` does, under a shim of its own, but kept apart from the host.
//!
//! Everything about a launch's life is `raw_exec`'s; what is added is how a program is started, which the core
//! says by the [`Profile`] in what it asks for: namespaces, a root of its own ([`root`]), a user, few
//! capabilities, and filters for system calls ([`filter`]). The shim makes of it what it says
//! (`io-real/shim/src/isolate.rs`).

mod calls;
mod detached;
mod filter;
mod root;
mod terminal;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use drover_core::driver::capabilities::Capabilities;
use drover_core::driver::isolation::{EXEC, Profile, Sharing, account};
use drover_core::effect::{DriverEffect, TaskConfig};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::node::DriverInfo;
use drover_core::model::task::Task;
use rustix::process::geteuid;
use rustix::thread::ThreadNameSpaceType;

pub use root::{CHROOT, HostPart, usual_parts};
pub(super) use terminal::open_multiplexer;

use super::Driver;
use super::denied::DeniedIds;
use super::raw_exec::{RAW_EXEC, RawExec};
use crate::dirs::AllocDirs;
use crate::network::Networks;
use crate::shim::{Entrance, Isolation, Mount};
use crate::stats::StatsSource;
use crate::user::{self, User};

/// What the agent's configuration says of isolated tasks, beside what the core decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecSettings {
    /// What of the host their roots have.
    pub parts: Vec<HostPart>,
    /// As whom no task runs.
    pub denied: DeniedIds,
    /// As whom no task of `raw_exec` runs.
    pub denied_raw: DeniedIds,
}

impl Default for ExecSettings {
    fn default() -> ExecSettings {
        ExecSettings {
            parts: usual_parts(),
            denied: DeniedIds::default(),
            denied_raw: DeniedIds::default(),
        }
    }
}

impl ExecSettings {
    /// Whether a task may run as its user, as far as this machine knows that user: one who is not there yet may come,
    /// and is looked for when the task starts. Blocks.
    ///
    /// # Errors
    /// None may run as that user, in words.
    pub fn admit(&self, task: &Task) -> Result<(), String> {
        let driver = task.driver.as_str();
        if !matches!(driver, EXEC | RAW_EXEC) {
            return Ok(());
        }
        match account(task) {
            "" => self.admit_user(driver, None),
            name => match user::find(name) {
                Ok(user) => self.admit_user(driver, Some(&user)),
                Err(_) => Ok(()),
            },
        }
    }

    /// Admits tasks of a driver that run as this user; as the agent's own if it is none.
    pub(super) fn admit_user(&self, driver: &str, user: Option<&User>) -> Result<(), String> {
        let denied = match driver {
            EXEC => &self.denied,
            _ => &self.denied_raw,
        };
        if denied.is_empty() {
            return Ok(());
        }
        match user {
            Some(user) => denied.admit(user, driver),
            None => {
                let own = user::own().map_err(|error| error.to_string())?;
                denied.admit(&own, driver)
            }
        }
    }
}

/// The driver. Cheap to clone.
#[derive(Clone)]
pub struct Exec(RawExec);

impl Exec {
    /// A driver whose launches live beside those of `raw_exec`.
    pub fn beside(raw_exec: &RawExec) -> Exec {
        Exec(raw_exec.clone())
    }

    /// Why it cannot work here, if it cannot.
    fn obstacle(&self) -> Option<String> {
        if !geteuid().is_root() {
            return Some("Driver must run as root".to_owned());
        }
        if !self.0.has_cgroups() {
            return Some("Driver needs control groups, and there are none".to_owned());
        }
        let error = root::probe().err()?;
        Some(format!(
            "Driver needs mounts as Linux has them from 5.12 on, and the right to make them: {error}"
        ))
    }
}

impl Driver for Exec {
    fn name(&self) -> &str {
        EXEC
    }

    fn fingerprint(&self) -> DriverInfo {
        match self.obstacle() {
            None => super::healthy(),
            Some(description) => DriverInfo {
                detected: false,
                healthy: false,
                description,
            },
        }
    }

    fn carry_out(&self, task: TaskKey, effect: DriverEffect) {
        self.0.carry_out(task, effect);
    }

    fn stats_source(&self, launch: LaunchId) -> Option<StatsSource> {
        self.0.stats_source(launch)
    }

    fn forget(&self, launch: LaunchId) {
        self.0.forget(launch);
    }
}

/// What a shim is told of a task's isolation.
pub(super) struct Isolated {
    profile: Profile,
    is_root: bool,
    filters: Vec<Vec<u8>>,
    entrance: Way,
}

enum Way {
    Make(Vec<Mount>),
    Enter(OwnedFd),
}

impl Isolated {
    /// Namespaces of a task's own.
    ///
    /// # Errors
    /// Its root cannot be made.
    pub(super) fn make(
        settings: &ExecSettings,
        (dirs, networks): (&AllocDirs, Option<&Networks>),
        task: &TaskKey,
        config: &TaskConfig,
        profile: Profile,
        uid: u32,
    ) -> io::Result<Isolated> {
        let network = networks.filter(|_| config.network.is_some());
        let network = network
            .map(|networks| networks.open(task.alloc))
            .transpose()?;
        let mounts = root::mounts(
            &settings.parts,
            dirs,
            network.as_ref(),
            task,
            config,
            &profile,
        )?;
        Isolated::new(profile, uid, Way::Make(mounts))
    }

    /// The namespaces that another launch has; `holder` is the pidfd of the process that holds them.
    ///
    /// # Errors
    /// There are no filters for this machine.
    pub(super) fn enter(holder: OwnedFd, profile: Profile, uid: u32) -> io::Result<Isolated> {
        Isolated::new(profile, uid, Way::Enter(holder))
    }

    fn new(profile: Profile, uid: u32, entrance: Way) -> io::Result<Isolated> {
        let filters = match profile.seccomp {
            true => filter::filters(profile.capabilities)?,
            false => Vec::new(),
        };
        Ok(Isolated {
            profile,
            is_root: uid == 0,
            filters,
            entrance,
        })
    }

    /// As the shim wants to hear of it.
    pub(super) fn as_spec(&self) -> Isolation<'_> {
        let profile = &self.profile;
        let Capabilities(bounding) = profile.capabilities;
        let Capabilities(effective) = match self.is_root {
            true => profile.capabilities,
            false => profile.added,
        };
        Isolation {
            namespaces: namespaces(profile),
            entrance: match &self.entrance {
                Way::Make(mounts) => Entrance::Make(mounts),
                Way::Enter(holder) => Entrance::Enter(holder.as_fd()),
            },
            no_new_privileges: profile.no_new_privileges,
            bounding,
            effective,
            filters: &self.filters,
        }
    }
}

fn namespaces(profile: &Profile) -> u32 {
    let mut own = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::CONTROL_GROUP
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
    if profile.pid == Sharing::Private {
        own |= ThreadNameSpaceType::PROCESS_ID;
    }
    if profile.ipc == Sharing::Private {
        own |= ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION;
    }
    own.bits()
}
