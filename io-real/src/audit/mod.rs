//! What Drover made on this host: a survey, and the removal of what was found. `drover system
//! audit` (`/v1/agent/audit`) is the way in: GET lists, PUT removes what is leaked.
//!
//! Nothing is decided here. A survey says of each thing what it is called after and which agent
//! made it, as far as that can be proved ([`homes`]); whose it is, the core says
//! ([`drover_core::host`]), and only what it calls leaked is given to [`Auditor::remove`].
//!
//! | thing     | how it is known                                                                |
//! |-----------|--------------------------------------------------------------------------------|
//! | process   | a shim holds the record of its launch, which names it ([`shims`]); what descends from a shim; members of a launch's control group; a plugin that the agent remembers; the agent |
//! | cgroup    | a launch's name below our parent, with the mark of who made it (an extended attribute) |
//! | container | an engine's, with our labels or a name such as ours; it is proved to be ours by its launch's record |
//! | image     | a record of ours names it, or tags of it, as brought to an engine, and nobody else has to do with it |
//! | network   | the directory of an allocation's network, which holds its namespace; a link that is marked with an allocation's id; rules of our table of the packet filter that are missing or lead to no network |
//! | mount     | below the directory of the allocations                                          |
//! | directory | the agent's, the allocations' in it, and those in which artifacts are fetched   |
//! | socket    | beside the records of launches, and where plugins make theirs                   |
//!
//! - The host is surveyed, then the state is read, then the host is surveyed again. What is there
//!   both times and was not known between is nobody's, and stays so, because ids are never used
//!   again. Before something is removed it is proved once more: processes by pidfd and start time,
//!   shims by the record that they hold.
//! - Which agent made a thing is proved, or is `unknown` and left alone. An agent is gone when its
//!   directory has no state any more and nobody holds the `lock` that was in it; only root can see
//!   that, since every process of the host is inspected. Another mount namespace's paths mean
//!   nothing here. What an agent made that is only not running is its own.
//! - If a record of the state could not be read, what is not known may be its, and is `unknown`.
//! - Shims of ours are ended as launches are. Shims whose agent is gone are ended through their
//!   tasks, so that they clean up themselves.
//! - Directories, mounts and sockets are inspected in this agent's data directory alone: those of
//!   others are theirs. Of a program that a plugin's driver started nothing is known.
//! - Labels of containers may be copied: one without a record is removed by nobody but a person, who
//!   is told how. An engine that says nothing for some seconds is told of, and not waited for.

mod containers;
mod groups;
mod homes;
mod inside;
mod remove;
mod shims;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use drover_core::host::{Home, NamedAfter};

use crate::cgroup::Cgroups;
use crate::data_dir::{DataDir, Mark};
use crate::dirs::AllocDirs;
use crate::driver::docker::{FoundContainer, FoundImage, Inventory};
use crate::driver::raw_exec::RawExec;
use crate::network::Networks;
use crate::shim::{Process, ShimHome};
use homes::Homes;
use shims::Processes;

/// What a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A process.
    Process,
    /// A container of an engine, or an engine of whose containers nothing is known.
    Container,
    /// An image of an engine, or tags of one.
    Image,
    /// A control group.
    Cgroup,
    /// A network of an allocation's own, a link of one, or a rule that is not as it should be.
    Network,
    /// A mount.
    Mount,
    /// A directory.
    Directory,
    /// A socket.
    Socket,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Process => "process",
            Kind::Container => "container",
            Kind::Image => "image",
            Kind::Cgroup => "cgroup",
            Kind::Network => "network",
            Kind::Mount => "mount",
            Kind::Directory => "directory",
            Kind::Socket => "socket",
        }
    }
}

/// A thing that bears our mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    /// What it is.
    pub kind: Kind,
    /// A process's number, a group's or a container's name, an image's id or tag, a path.
    pub name: String,
    /// A process's program, as it calls itself, a container's image, or an image's names; else empty.
    pub program: String,
    /// What else there is to say of it; mostly nothing.
    pub remark: String,
    /// Who made it.
    pub home: Home,
    /// What it is called after.
    pub named_after: NamedAfter,
    /// Which process it is, whoever has its number later.
    process: Option<Process>,
    /// Of a shim, the main process of its task.
    shim_of: Option<Process>,
    /// Of a container, what its engine says.
    container: Option<FoundContainer>,
    /// Of an image, what is known of it.
    image: Option<FoundImage>,
}

impl Thing {
    fn new(kind: Kind, name: impl Into<String>, home: Home, named_after: NamedAfter) -> Thing {
        Thing {
            kind,
            name: name.into(),
            program: String::new(),
            remark: String::new(),
            home,
            named_after,
            process: None,
            shim_of: None,
            container: None,
            image: None,
        }
    }

    /// Whether it is a container that is proved to be ours; and whether it runs.
    pub(crate) fn own_container(&self) -> Option<bool> {
        let container = self.container.as_ref();
        container.filter(|it| it.is_proved).map(|it| it.runs)
    }

    /// Whether another survey found the same thing.
    pub fn is_same(&self, other: &Thing) -> bool {
        let is_same =
            (self.kind, &self.name, self.process) == (other.kind, &other.name, other.process);
        // An image that somebody begins to use, or to think of, is another case.
        is_same && self.container_id() == other.container_id() && self.image == other.image
    }

    /// Of a container, what tells it from another engine's with the same name.
    fn container_id(&self) -> Option<&str> {
        self.container.as_ref().map(FoundContainer::id)
    }

    /// In which order things are listed and removed: what holds others first.
    fn order(&self) -> (Kind, bool, &str) {
        (self.kind, self.shim_of.is_none(), &self.name)
    }
}

/// Looks at this host. Cheap to clone.
#[derive(Clone)]
pub struct Auditor(Arc<Inner>);

struct Inner {
    mark: Mark,
    data: OwnedFd,
    home: ShimHome,
    cgroups: Option<Cgroups>,
    dirs: AllocDirs,
    raw_exec: RawExec,
    networks: Networks,
    containers: OnceLock<Inventory>,
    whole: bool,
}

impl std::fmt::Debug for Auditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Auditor").field(&self.0.mark.path).finish()
    }
}

impl Auditor {
    /// For the agent that holds `data_dir`; `whole` says whether it could read all of its state.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn new(
        data_dir: &DataDir,
        home: ShimHome,
        cgroups: Option<Cgroups>,
        raw_exec: RawExec,
        networks: Networks,
        whole: bool,
    ) -> io::Result<Auditor> {
        Ok(Auditor(Arc::new(Inner {
            mark: data_dir.mark()?,
            data: data_dir.handle()?,
            dirs: AllocDirs::new(data_dir.allocs()),
            home,
            cgroups,
            raw_exec,
            networks,
            containers: OnceLock::new(),
            whole,
        })))
    }

    /// The same, which looks at containers, too.
    #[must_use]
    pub fn with_containers(self, containers: Inventory) -> Auditor {
        let _ = self.0.containers.set(containers);
        self
    }

    /// Whether the agent could read all of its state.
    pub fn knows_all(&self) -> bool {
        self.0.whole
    }

    /// Everything that bears our mark now. Blocks: it reads of every process of the host.
    ///
    /// # Errors
    /// The host cannot be looked at as a whole.
    pub fn survey(&self) -> io::Result<Vec<Thing>> {
        let inner = &self.0;
        let processes = Processes::read()?;
        let homes = Homes::new(&inner.mark, &processes);
        let shims = shims::find(&processes, &inner.home, &homes);
        let mut things = shims::things(&processes, &shims, |launch| {
            inner.raw_exec.beside(launch).unwrap_or(launch)
        });
        if let Some(cgroups) = &inner.cgroups {
            let found = groups::find(cgroups, &homes, &shims)?;
            things.extend(groups::things(&found, &processes));
        }
        things.extend(inside::things(inner, &processes)?);
        if let Some(containers) = inner.containers.get() {
            things.extend(containers::things(containers, &homes)?);
        }
        // The same process may be found in several ways; the first of them knows more.
        let mut seen = BTreeSet::new();
        things.retain(|thing| {
            let id = thing.container_id().map(str::to_owned);
            seen.insert((thing.kind, thing.name.clone(), id))
        });
        things.sort_by(|one, other| one.order().cmp(&other.order()));
        Ok(things)
    }
}
