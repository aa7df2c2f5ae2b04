//! Whose the bridge is. Two agents behind one bridge would give away the same addresses and change each other's rules,
//! so one of them has it, and nobody else makes or removes anything there:
//!
//! - while it lives, by a table of the packet filter without rules, such as `ip drover.agent`. It belongs to the socket
//!   that made it: the kernel lets nobody else change it, and takes it away with the socket, however the agent ends.
//!   Kernels before Linux 5.12 know no such tables, and there nobody is kept off;
//! - while it is down and its tasks go on, by their links to the bridge, whose marks say who made them.
//!
//! It is taken when the first network is made, or found again: an agent without any keeps nobody off.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::fstat;

use super::filter::{DEL_TABLE, GET_TABLE, NEW_TABLE, message};
use super::netlink::{Attrs, CREATE, Socket, attribute};
use super::watch::Watch;
use super::{Host, Networks};

/// A table's owner, in what the kernel tells of it.
const OWNER: u16 = 7;
/// A table is to belong to the socket that makes it.
const OWNED: u32 = 2;

/// That the bridge is this agent's, for as long as this lives.
#[derive(Debug)]
pub(super) struct Claim {
    _lock: Option<Socket>,
    _watch: Option<Watch>,
}

impl Networks {
    /// Takes the bridge, if it is not taken. Why it is another agent's, if it is.
    pub(super) fn claim(&self, host: &mut Host) -> io::Result<Option<String>> {
        if host.claim.is_some() {
            return Ok(None);
        }
        let bridge = &self.0.bridge.name;
        let lock = match lock(bridge)? {
            Locked::Ours(socket) => Some(socket),
            Locked::Unknown => None,
            Locked::Others => return Ok(Some(self.taken())),
        };
        if let Some(link) = self.stranger()? {
            return Ok(Some(self.used(&link)));
        }
        let networks = Arc::downgrade(&self.0);
        let check_rules = move || {
            if let Some(inner) = networks.upgrade() {
                Networks(inner).put_back();
            }
        };
        let watch = Watch::start(bridge, check_rules).inspect_err(
            |error| tracing::warn!(%error, bridge, "nobody sees if rules of networks are removed"),
        );
        host.claim = Some(Claim {
            _lock: lock,
            _watch: watch.ok(),
        });
        Ok(None)
    }

    /// Why this agent makes no networks behind the bridge though the machine lets it: another one does.
    pub fn fault(&self) -> Option<String> {
        let mut host = self.host();
        if host.claim.is_some() {
            return None;
        }
        // It may have failed when networks were found again, whose rules nobody watches then.
        if !host.published.is_empty() && matches!(self.claim(&mut host), Ok(None)) {
            drop(host);
            self.put_back();
            if let Err(error) = self.answer_again() {
                tracing::error!(%error, "nobody resolves names of services");
            }
            return None;
        }
        // What cannot be found out here is told by whoever makes a network.
        match is_locked(&self.0.bridge.name) {
            Ok(true) => Some(self.taken()),
            Ok(false) | Err(_) => self.stranger().ok()?.map(|link| self.used(&link)),
        }
    }

    /// What this agent's links are marked with: the directory of its networks, which no other one has.
    pub(super) fn agent(&self) -> io::Result<String> {
        let stat = fstat(self.0.dir.as_fd())?;
        Ok(format!("{}:{}", stat.st_dev, stat.st_ino))
    }

    /// A link behind the bridge that another agent made, if there is one.
    fn stranger(&self) -> io::Result<Option<String>> {
        let (owners, agent) = (self.owners()?, self.agent()?);
        let mut ports = self.0.bridge.ports()?.into_iter();
        let link = ports.find(|port| port.agent != agent && !owners.contains(&port.alloc));
        Ok(link.map(|port| port.name))
    }

    fn taken(&self) -> String {
        let bridge = &self.0.bridge.name;
        format!("another agent on this host uses the bridge {bridge}; {ADVICE}")
    }

    fn used(&self, link: &str) -> String {
        let bridge = &self.0.bridge.name;
        format!(
            "the bridge {bridge} leads to networks of another agent ({link}), whose tasks may run; {ADVICE}"
        )
    }
}

/// What to do about it.
const ADVICE: &str = "give this agent a bridge and addresses of its own: client { bridge_network_name, \
                      bridge_network_subnet }";

/// Who holds the lock of a bridge.
enum Locked {
    /// This socket, from now on.
    Ours(Socket),
    /// Another agent.
    Others,
    /// This kernel has no such locks.
    Unknown,
}

fn table(bridge: &str) -> Attrs {
    // No name of a bridge has a dot.
    Attrs::new().text(1, &format!("{bridge}.agent"))
}

fn lock(bridge: &str) -> io::Result<Locked> {
    let mut socket = Socket::filter()?;
    let make = |flags| message(NEW_TABLE, CREATE, &table(bridge).be32(2, flags));
    // One that belongs to nobody, from a file of saved rules, is replaced.
    let remove = message(DEL_TABLE, 0, &table(bridge));
    let Err(error) = socket.ask_together(&[make(0), remove, make(OWNED)]) else {
        return Ok(Locked::Ours(socket));
    };
    match error.raw_os_error() {
        Some(libc::EPERM) if is_locked(bridge)? => Ok(Locked::Others),
        Some(libc::EOPNOTSUPP | libc::EINVAL) => Ok(Locked::Unknown),
        _ => Err(error),
    }
}

fn is_locked(bridge: &str) -> io::Result<bool> {
    let found = Socket::filter()?.get(message(GET_TABLE, 0, &table(bridge)))?;
    let owner = found.and_then(|it| attribute(it.body.get(4..)?, OWNER).map(<[u8]>::to_vec));
    Ok(owner.is_some())
}
