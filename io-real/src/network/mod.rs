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
//! | `cni`, `cni-input` | what plugins made of it ([`cni`]), and what they read |
//!
//! **A contract for drivers**: if a start's [`TaskNetwork`](drover_core::effect::TaskNetwork) says that it is the
//! allocation's own, the task starts in the namespace at [`Networks::path`]`/ns`, or, by a descriptor, in what
//! [`Networks::entrance`] opens, and with the host name that is set there. The namespace is whole before a start is
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
//! Other networks are made by plugins of the machine, in a namespace that is made here too ([`cni`]).
//!
//! The bridge is one agent's ([`claim`]), and rules that somebody else removes are put back at once ([`watch`]). Where that
//! is wanted, services are found by name at the bridge's address ([`resolver`]).

mod bridge;
mod claim;
pub mod cni;
mod connections;
mod expression;
mod files;
mod filter;
mod join;
mod link;
mod namespace;
mod netlink;
pub mod resolver;
mod rules;
mod watch;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use drover_core::effect::TaskNetwork;
use drover_core::ids::AllocId;
use drover_core::model::network::{Ipv4, NetworkMode, PluginNetwork};
use drover_core::store::record::AssignedPort;
use drover_core::work::BuildNetwork;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

pub use bridge::{Bridge, fault_of_bridge, fault_of_namespaces};
pub use cni::CniPlugins;
pub(crate) use files::{HOSTS, RESOLV};
pub use join::JoinPipe;
pub use namespace::Entrance;
pub use rules::WrongRule;

use claim::Claim;
use filter::{Forward, Published};
use resolver::ResolverListener;

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
    /// Where tasks behind the bridge ask for names, if they do.
    resolver_listener: OnceLock<ResolverListener>,
    /// Where plugins of CNI are, if that was said.
    plugins: OnceLock<CniPlugins>,
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
            resolver_listener: OnceLock::new(),
            plugins: OnceLock::new(),
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

    /// The same, whose tasks behind the bridge ask for names at its address, from the next network that is made.
    #[must_use]
    pub fn with_resolver(self, resolver_listener: ResolverListener) -> Networks {
        // The first one stays.
        let _ = self.0.resolver_listener.set(resolver_listener);
        self
    }

    /// The same, for which plugins of CNI are looked for here.
    #[must_use]
    pub fn with_plugins(self, plugins: CniPlugins) -> Networks {
        // The first ones stay.
        let _ = self.0.plugins.set(plugins);
        self
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

    /// Makes a network, or what is missing of it. What plugins say of it, if they make it.
    ///
    /// # Errors
    /// What the job says cannot be, or the machine or a plugin says no. What was made stays, and is found the next time.
    pub fn build(&self, alloc: AllocId, work: &BuildNetwork) -> io::Result<Option<PluginNetwork>> {
        files::check(&work.hostname, work.dns.as_ref())?;
        let name = alloc.to_string();
        match mkdirat(&self.0.dir, name.as_str(), Mode::from_raw_mode(0o711)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let dir = open_dir(&self.0.dir, &name)?;
        if let NetworkMode::Cni(name) = &work.mode {
            let made = self.build_by_plugins(alloc, &dir, (name, work));
            return made.map(Some);
        }
        let behind = matches!(work.mode, NetworkMode::Bridge);
        let (mut host, mut needed) = files::resolv_of_host(behind);
        if behind && self.0.resolver_listener.get().is_some() {
            host = files::asking_first(self.0.bridge.subnet.gateway().into(), &host);
            needed = true;
        }
        match &work.dns {
            Some(dns) => files::write(dir.as_fd(), RESOLV, &files::resolv(dns, &host))?,
            None if needed => files::write(dir.as_fd(), RESOLV, &host)?,
            None => {}
        }
        if !work.mode.is_own() {
            return Ok(None);
        }
        let hosts = files::hosts(&work.hostname, work.address.map(IpAddr::from));
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
                self.connect(&mut host, alloc, namespace.as_fd(), (address, forwards))?;
                Ok(None)
            }
            (NetworkMode::Bridge, None) => Err(io::Error::other(
                "the allocation has no address behind the bridge",
            )),
            (NetworkMode::None | NetworkMode::Host | NetworkMode::Cni(_), _) => Ok(None),
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
        self.open_resolver()?;
        match bridge.publish(address, &forwards) {
            // Somebody removed the table in between: it is made again, with all that is published.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bridge.restore(&host.published).map(drop)
            }
            published => published,
        }
    }

    /// Sees to it that somebody answers who asks at the bridge's address, if that is wanted and there is a bridge.
    fn open_resolver(&self) -> io::Result<()> {
        let Some(resolver_listener) = self.0.resolver_listener.get() else {
            return Ok(());
        };
        let bridge = &self.0.bridge;
        match bridge.index()? {
            Some(index) => resolver_listener.open(&bridge.name, index, bridge.subnet),
            None => Ok(()),
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
                self.answer_again()
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

    /// Names are answered from here on, if networks were found behind the bridge.
    fn answer_again(&self) -> io::Result<()> {
        let is_ours = self.host().claim.is_some();
        if is_ours {
            self.open_resolver()
        } else {
            Ok(())
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

    /// Has plugins take back what they made, lets go of a namespace, and removes the directory in which it is held.
    fn remove_dir(&self, name: &str) -> io::Result<()> {
        let dir = match open_dir(&self.0.dir, name) {
            Err(Errno::NOENT) => return Ok(()),
            dir => dir?,
        };
        let taken_back = cni::take_back(&dir, &self.0.path, name);
        taken_back.inspect_err(|error| {
            tracing::warn!(alloc = name, %error, "a network stays, and is removed later");
        })?;
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

    /// Removes what is left of this agent's allocations that nobody knows, with what leads to them. What plugins made is
    /// removed on a thread of its own: nobody waits for them.
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
        let is_made = |alloc: &AllocId| {
            let dir = self.open(*alloc);
            dir.is_ok_and(|dir| cni::is_made_by_plugins(&dir))
        };
        let (by_plugins, unknown): (Vec<_>, Vec<_>) = unknown.into_iter().partition(is_made);
        if !by_plugins.is_empty() {
            let networks = self.clone();
            let thread = thread::Builder::new().name("networks".to_owned());
            // What fails is told, and stays to be found by the next agent, or by who asks what is left.
            let remove = move || {
                for alloc in by_plugins {
                    let _ = networks.remove(alloc, None);
                }
            };
            thread.spawn(remove)?;
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
