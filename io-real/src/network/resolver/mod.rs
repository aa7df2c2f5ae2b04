//! A resolver at the bridge's address: tasks behind the bridge ask it for services by their names
//! ([`drover_core::agent::names`]), and for everything else too, which it passes on to the servers that the host asks.
//!
//! | | |
//! |---|---|
//! | [`ResolverListener`] | listens as soon as there is a bridge, before the first task behind it starts |
//! | [`Resolver`] | answers there, in the runtime of the agent, and ends with it |
//! | `serve` | takes questions from packets and connections, within bounds |
//! | `clients` | how much one client may ask |
//! | `table` | who has which name now: read when somebody asks, and not again for a moment |
//! | `upstream` | passes questions on |
//! | [`message`] | messages on the wire |
//!
//! It answers what comes through the bridge from an address behind it, and nothing else: its sockets are bound to the
//! bridge's address and to its link, and what the host itself sends there, which the kernel counts to that link too,
//! has another address. Nothing of it runs while nobody asks.

mod clients;
pub mod message;
mod serve;
mod table;
mod upstream;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use drover_core::model::network::{Ipv4, Subnet};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::table::Table;
use crate::agent_handle::AgentHandle;

/// Where resolvers listen.
const PORT: u16 = 53;
/// The most connections that wait until they are taken.
const WAITING: i32 = 64;

/// Where questions come in.
#[derive(Debug)]
struct Sockets {
    packets: UdpSocket,
    connections: TcpListener,
    subnet: Subnet,
}

/// Opens where questions come in.
#[derive(Debug)]
pub struct ResolverListener {
    /// The index of the bridge at which it is open.
    open: Mutex<Option<u32>>,
    /// How many networks were made behind it.
    made: Arc<AtomicU64>,
    to: mpsc::UnboundedSender<Sockets>,
}

/// Answers what comes in.
#[derive(Debug)]
pub struct Resolver {
    made: Arc<AtomicU64>,
    opened: mpsc::UnboundedReceiver<Sockets>,
}

/// A resolver that answers nothing yet, and what opens its sockets.
pub fn resolver() -> (ResolverListener, Resolver) {
    let (to, opened) = mpsc::unbounded_channel();
    let made = Arc::<AtomicU64>::default();
    let listener = ResolverListener {
        open: Mutex::default(),
        made: made.clone(),
        to,
    };
    (listener, Resolver { made, opened })
}

impl ResolverListener {
    /// Listens at the bridge of this name, index and subnet, unless it does. What comes before somebody answers waits.
    /// Whoever asks from a network that was made before this call is answered as who it is now.
    ///
    /// # Errors
    /// Somebody else listens there, or the machine says no.
    pub(super) fn open(&self, bridge: &str, index: u32, subnet: Subnet) -> io::Result<()> {
        self.made.fetch_add(1, Ordering::Release);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if *open == Some(index) {
            return Ok(());
        }
        let at = SocketAddrV4::new(address(subnet.gateway()), PORT);
        let sockets = socket(SocketType::DGRAM, at, bridge)
            .and_then(|packets| Ok((packets, socket(SocketType::STREAM, at, bridge)?)));
        let (packets, connections) = sockets.map_err(|error| cannot_listen(at, &error))?;
        let sockets = Sockets {
            packets: packets.into(),
            connections: connections.into(),
            subnet,
        };
        // Nobody takes them where the agent is stopping.
        if self.to.send(sockets).is_ok() {
            *open = Some(index);
        }
        Ok(())
    }
}

/// A socket that listens at an address, and hears only what comes through this link. It is bound to the link first, so
/// that one of an earlier link of this name is not in its way.
fn socket(kind: SocketType, at: SocketAddrV4, link: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, kind, flags, None)?;
    only_through(socket.as_fd(), link)?;
    if kind == SocketType::STREAM {
        // Connections of an agent before this one may not be quite over.
        set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &at)?;
    if kind == SocketType::STREAM {
        listen(&socket, WAITING)?;
    }
    Ok(socket)
}

fn cannot_listen(at: SocketAddrV4, error: &io::Error) -> io::Error {
    let why = format!(
        "the resolver of names cannot listen at {at}: {error}; keep other name servers of this host from listening \
         there (most have a setting such as bind-interfaces), or switch this one off: client {{ \
         bridge_network_resolver = false }}"
    );
    io::Error::new(error.kind(), why)
}

/// Has a socket hear only what comes through this link.
fn only_through(socket: BorrowedFd<'_>, link: &str) -> io::Result<()> {
    let length = libc::socklen_t::try_from(link.len()).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open, and the name is as long as is said.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            link.as_ptr().cast(),
            length,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Resolver {
    /// Answers until the agent is over.
    pub async fn answer(mut self, agent_handle: AgentHandle) {
        // What listened at a bridge that is gone ends when there is another one.
        let mut serving: Option<JoinSet<()>> = None;
        while let Some(sockets) = self.opened.recv().await {
            let table = Table::new(agent_handle.clone(), self.made.clone());
            match serve::begin(sockets, table) {
                Ok(now) => drop(serving.replace(now)),
                Err(error) => tracing::error!(%error, "nobody resolves names of services"),
            }
        }
    }
}

fn address(of: Ipv4) -> Ipv4Addr {
    Ipv4Addr::from(of.0)
}
