//! Networks of allocations of their own: what the hook `network` makes, what tasks start in, and what is left of it.
//!
//! A network is a directory that bears the allocation's id, in the agent's own `networks`:
//!
//! | | |
//! |---|---|
//! | `ns` | a file onto which the network namespace is mounted, and which so holds it, also while no agent lives |
//! | `address` | its address behind the bridge, for whoever removes it and knows no more |
//! | `join-…` | a pipe, while something joins it |
//! | `hosts`, `resolv.conf` | what tasks with a root of their own see in their `/etc` |
//!
//! **A contract for drivers**: if a start's [`TaskNetwork`](drover_core::effect::TaskNetwork) says that it is the
//! allocation's own, the task starts in the namespace at [`Networks::path`]`/ns`, or, by a descriptor, in what
//! [`Networks::entrance`] opens, and with the host name that is said there. The namespace is whole before a start is
//! asked for, and stays until nothing of the allocation is alive. What the agent does not start itself joins by
//! [`Networks::join_pipe`].
//!
//! Behind the node's bridge a network has the address that the core chose and saved, so that making it again makes
//! the same; its link bears the allocation's id too. After a crash at any step it is made on from there. Everything
//! is made without any program: by requests to the kernel ([`netlink`]).
//!
//! It ends by letting go of the namespace: the kernel then takes the links away, behind everybody's back, since
//! that takes it some 15 ms.
//!
//! The bridge is one agent's ([`claim`]), and rules that somebody else removes are put back at once ([`watch`]).

mod bridge;
mod claim;
mod expression;
mod files;
mod filter;
mod join;
mod link;
mod namespace;
mod netlink;
mod rules;
mod watch;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::effect::TaskNetwork;
use drover_core::ids::AllocId;
use drover_core::model::network::{Ipv4, NetworkMode};
use drover_core::store::record::AssignedPort;
use drover_core::work::BuildNetwork;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

pub use bridge::{Bridge, fault_of_bridge, fault_of_namespaces};
pub(crate) use files::{HOSTS, RESOLV};
pub use join::JoinPipe;
pub use namespace::Entrance;
pub use rules::WrongRule;

use claim::Claim;
use filter::{Forward, Published};

/// The directory of networks in the agent's own.
pub const NETWORKS: &str = "networks";
/// The file that holds a namespace.
const NAMESPACE: &str = "ns";
/// The file that says the address behind the bridge.
const ADDRESS: &str = "address";
/// The file that says which bridge was made.
const BRIDGE: &str = "bridge";

/// The networks of the allocations of one agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Networks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: OwnedFd,
    path: PathBuf,
    bridge: Bridge,
    host: Mutex<Host>,
}

/// What all networks behind the bridge share. What of the host they share is changed by whoever holds this.
#[derive(Debug, Default)]
struct Host {
    /// That the bridge is this agent's, from when it is needed.
    claim: Option<Claim>,
    published: Published,
}

impl Networks {
    /// Those in this directory, which `dir` is open at, behind this bridge.
    pub fn new(dir: OwnedFd, path: PathBuf, bridge: Bridge) -> Networks {
        let host = Mutex::default();
        Networks(Arc::new(Inner {
            dir,
            path,
            bridge,
            host,
        }))
    }

    /// Those in this directory, behind the bridge that an agent made for them.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn recorded(dir: OwnedFd, path: PathBuf) -> io::Result<Networks> {
        let bridge = match files::read(dir.as_fd(), BRIDGE)? {
            Some(text) => Bridge::read(&text),
            None => None,
        };
        Ok(Networks::new(dir, path, bridge.unwrap_or_default()))
    }

    /// The directory of an allocation's network, for programs that want paths.
    pub fn path(&self, alloc: AllocId) -> PathBuf {
        self.0.path.join(alloc.to_string())
    }

    /// The same, open.
    ///
    /// # Errors
    /// There is none.
    pub fn open(&self, alloc: AllocId) -> io::Result<OwnedFd> {
        Ok(open_dir(&self.0.dir, &alloc.to_string())?)
    }

    /// Where a task of an allocation starts; none if that is the host's network.
    ///
    /// # Errors
    /// The network is not there.
    pub fn entrance(
        &self,
        alloc: AllocId,
        network: Option<&TaskNetwork>,
    ) -> io::Result<Option<Entrance>> {
        let Some(network) = network.filter(|network| network.own) else {
            return Ok(None);
        };
        let held = match self.open(alloc) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            dir => namespace::held(dir?.as_fd(), NAMESPACE)?,
        };
        let namespace = held.ok_or_else(|| {
            let why = "the network of the allocation is gone; stop it, and it is made again";
            io::Error::new(io::ErrorKind::NotFound, why)
        })?;
        Ok(Some(Entrance {
            namespace,
            hostname: network.hostname.clone(),
        }))
    }

    /// Makes a network, or what is missing of it.
    ///
    /// # Errors
    /// What the job says cannot be, or the machine says no. What was made stays, and is found the next time.
    pub fn build(&self, alloc: AllocId, work: &BuildNetwork) -> io::Result<()> {
        files::check(&work.hostname, work.dns.as_ref())?;
        let name = alloc.to_string();
        match mkdirat(&self.0.dir, name.as_str(), Mode::from_raw_mode(0o711)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let dir = open_dir(&self.0.dir, &name)?;
        let behind = matches!(work.mode, NetworkMode::Bridge);
        let (host, needed) = files::resolv_of_host(behind);
        match &work.dns {
            Some(dns) => files::write(dir.as_fd(), RESOLV, &files::resolv(dns, &host))?,
            None if needed => files::write(dir.as_fd(), RESOLV, &host)?,
            None => {}
        }
        if !work.mode.is_own() {
            return Ok(());
        }
        let hosts = files::hosts(&work.hostname, work.address);
        files::write(dir.as_fd(), HOSTS, &hosts)?;
        let namespace = match namespace::held(dir.as_fd(), NAMESPACE)? {
            Some(namespace) => namespace,
            None => make_namespace(&dir)?,
        };
        match (&work.mode, work.address) {
            (NetworkMode::Bridge, Some(address)) => {
                let forwards = bridge::forwards(address, &work.ports)?;
                let mut host = self.host();
                if let Some(why) = self.claim(&mut host)? {
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
                }
                files::write(self.0.dir.as_fd(), BRIDGE, &self.0.bridge.to_string())?;
                files::write(dir.as_fd(), ADDRESS, &address.0.to_string())?;
                self.connect(&mut host, alloc, namespace.as_fd(), (address, forwards))
            }
            (NetworkMode::Bridge, None) => Err(io::Error::other(
                "the allocation has no address behind the bridge",
            )),
            (NetworkMode::None | NetworkMode::Host, _) => Ok(()),
            (NetworkMode::Cni(name), _) => {
                let why = format!("networks of mode cni/{name} are not supported by this version");
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }

    /// Links a namespace to the bridge and has the ports lead there.
    fn connect(
        &self,
        host: &mut Host,
        alloc: AllocId,
        namespace: BorrowedFd<'_>,
        (address, forwards): (Ipv4, Vec<Forward>),
    ) -> io::Result<()> {
        let (bridge, agent) = (&self.0.bridge, self.agent()?);
        host.published.insert(address, forwards.clone());
        bridge.connect((alloc, &agent), namespace, address, &host.published)?;
        match bridge.publish(address, &forwards) {
            // Somebody removed the table in between: it is made again, with all that is published.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bridge.restore(&host.published).map(drop)
            }
            published => published,
        }
    }

    /// Removes a network with all that leads to it. That there is none is success.
    ///
    /// # Errors
    /// The machine says no. What is left is found the next time.
    pub fn remove(&self, alloc: AllocId, address: Option<Ipv4>) -> io::Result<()> {
        let address = match address {
            Some(address) => Some(address),
            None => self.address(alloc)?,
        };
        if let Some(address) = address {
            let mut host = self.host();
            host.published.remove(&address);
            match self.claim(&mut host)? {
                None => self.0.bridge.unpublish(address)?,
                Some(why) => tracing::warn!(%alloc, why, "rules of a network are left alone"),
            }
        }
        self.remove_dir(&alloc.to_string())
    }

    /// Begins with the networks that an earlier agent made here: of these allocations, with their addresses and ports.
    /// Rules of theirs that are missing are put back, now and whenever somebody else removes them.
    ///
    /// # Errors
    /// The bridge is another agent's, or the machine says no.
    pub fn resume(
        &self,
        known: impl IntoIterator<Item = (AllocId, Ipv4, Vec<AssignedPort>)>,
    ) -> io::Result<()> {
        let mut host = self.host();
        for (alloc, address, ports) in known {
            // After a restart of the machine it is made anew. What cannot be published never was.
            if self.is_held(alloc)
                && let Ok(forwards) = bridge::forwards(address, &ports)
            {
                host.published.insert(address, forwards);
            }
        }
        let claimed = match host.published.is_empty() {
            true => None,
            false => self.claim(&mut host)?,
        };
        drop(host);
        match claimed.or_else(|| self.fault()) {
            Some(why) => Err(io::Error::new(io::ErrorKind::ResourceBusy, why)),
            None => {
                self.put_back();
                Ok(())
            }
        }
    }

    /// Puts back what somebody else removed of the rules.
    pub(super) fn put_back(&self) {
        let host = self.host();
        if host.claim.is_none() || host.published.is_empty() {
            return;
        }
        let bridge = self.0.bridge.name.as_str();
        match self.0.bridge.restore(&host.published) {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(
                    bridge,
                    "rules of networks were missing, and are there again"
                );
            }
            Err(error) => tracing::error!(bridge, %error, "cannot put back rules of networks"),
        }
    }

    fn host(&self) -> MutexGuard<'_, Host> {
        self.0.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a namespace for an allocation.
    fn is_held(&self, alloc: AllocId) -> bool {
        let held = self
            .open(alloc)
            .and_then(|dir| namespace::held(dir.as_fd(), NAMESPACE));
        held.is_ok_and(|held| held.is_some())
    }

    /// The address that a network was made with.
    fn address(&self, alloc: AllocId) -> io::Result<Option<Ipv4>> {
        let dir = match self.open(alloc) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            dir => dir?,
        };
        let text = files::read(dir.as_fd(), ADDRESS)?;
        Ok(text.and_then(|text| text.trim().parse().ok()).map(Ipv4))
    }

    /// The host's links to allocations, with whose they are by their marks.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn links(&self) -> io::Result<Vec<(String, AllocId)>> {
        let ports = bridge::ports()?.into_iter();
        Ok(ports.map(|port| (port.name, port.alloc)).collect())
    }

    /// Lets go of a namespace, and removes the directory in which it is held.
    fn remove_dir(&self, name: &str) -> io::Result<()> {
        let dir = match open_dir(&self.0.dir, name) {
            Err(Errno::NOENT) => return Ok(()),
            dir => dir?,
        };
        namespace::let_go(dir.as_fd(), NAMESPACE)?;
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                unlinkat(&dir, entry.file_name(), AtFlags::empty())?;
            }
        }
        unlinkat(&self.0.dir, name, AtFlags::REMOVEDIR)?;
        Ok(())
    }

    /// The allocations of which there is something.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn owners(&self) -> io::Result<BTreeSet<AllocId>> {
        let dir = open_dir(&self.0.dir, ".")?;
        let mut owners = BTreeSet::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            owners.extend(
                entry
                    .file_name()
                    .to_str()
                    .ok()
                    .and_then(|name| name.parse::<AllocId>().ok()),
            );
        }
        Ok(owners)
    }

    /// Removes what is left of this agent's allocations that nobody knows, with what leads to them.
    ///
    /// # Errors
    /// The machine says no.
    pub fn remove_unknown(&self, known: impl Fn(AllocId) -> bool) -> io::Result<()> {
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.owners()?.into_iter().partition(|alloc| known(*alloc));
        let mut in_use = BTreeSet::new();
        for alloc in known {
            in_use.extend(self.address(alloc)?);
        }
        for alloc in unknown {
            match self.address(alloc)? {
                Some(address) if in_use.contains(&address) => {
                    self.remove_dir(&alloc.to_string())?
                }
                address => self.remove(alloc, address)?,
            }
        }
        Ok(())
    }

    /// Removes everything of the host that is shared by all networks, if no agent uses it: the bridge, and the rules.
    ///
    /// # Errors
    /// The machine says no.
    pub fn remove_host_part(&self) -> io::Result<()> {
        if files::read(self.0.dir.as_fd(), BRIDGE)?.is_none() {
            return Ok(());
        }
        match self.claim(&mut self.host())? {
            Some(_) => Ok(()),
            None => self.0.bridge.remove_unused(),
        }
    }

    /// Where networks are.
    pub fn root(&self) -> &Path {
        &self.0.path
    }
}

/// A namespace in which there is only its loopback, held by a file.
fn make_namespace(dir: &OwnedFd) -> io::Result<OwnedFd> {
    namespace::on_a_thread(|| {
        namespace::enter_new()?;
        bridge::switch_loopback_on()?;
        namespace::hold(dir.as_fd(), NAMESPACE)?;
        namespace::own()
    })
}

fn open_dir(at: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}
