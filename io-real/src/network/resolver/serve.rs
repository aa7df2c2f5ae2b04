//! Taking questions and answering them.
//!
//! What is too much is dropped or closed without a word: a client without an answer asks again later, or asks another
//! server. So is what is no question.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use drover_core::agent::names::{Found, Names};
use drover_core::model::network::{Ipv4, Subnet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Sockets;
use super::clients::{Bounds, Clients};
use super::message::{Code, Over, Query};
use super::table::Table;
use super::upstream::{Upstream, framed};

/// What one client may ask, in packets and connections together.
const QUESTIONS: Bounds = Bounds {
    each_second: 200,
    at_once: 400,
    under_way: 32,
    of_all: 256,
};
/// What connections one client may have.
const CONNECTIONS: Bounds = Bounds {
    each_second: 20,
    at_once: 40,
    under_way: 8,
    of_all: 64,
};
/// The most questions of one connection, and how long each of its steps may take.
const MOST_IN_CONNECTION: usize = 100;
const STEP: Duration = Duration::from_secs(10);
/// Longer than any question.
const LONGEST: usize = 4096;
/// The pause after an error of a socket that is not one packet's or one connection's.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers, at one bridge.
#[derive(Debug)]
struct Server {
    subnet: Subnet,
    table: Table,
    upstream: Upstream,
    questions: Arc<Clients>,
    connections: Arc<Clients>,
    turn: AtomicUsize,
}

/// Begins to answer; it ends when what comes back is dropped.
pub(super) fn begin(sockets: Sockets, table: Table) -> io::Result<JoinSet<()>> {
    let packets = Arc::new(UdpSocket::from_std(sockets.packets)?);
    let connections = TcpListener::from_std(sockets.connections)?;
    let server = Arc::new(Server {
        subnet: sockets.subnet,
        table,
        upstream: Upstream::new(sockets.subnet.gateway()),
        questions: Clients::new(QUESTIONS),
        connections: Clients::new(CONNECTIONS),
        turn: AtomicUsize::default(),
    });
    let mut serving = JoinSet::new();
    serving.spawn(server.clone().take_packets(packets));
    serving.spawn(server.take_connections(connections));
    Ok(serving)
}

impl Server {
    async fn take_packets(self: Arc<Server>, socket: Arc<UdpSocket>) {
        let mut packet = vec![0; LONGEST];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut packet).await else {
                sleep(PAUSE).await;
                continue;
            };
            let Some(asker) = self.asker(from) else {
                continue;
            };
            let Some(held) = self.questions.begin(asker, Instant::now()) else {
                continue;
            };
            let Some(query) = packet.get(..length).and_then(Query::read) else {
                continue;
            };
            let (server, socket) = (self.clone(), socket.clone());
            tokio::spawn(async move {
                if let Some(answer) = server.answer(&query, asker, Over::Udp).await {
                    // Whoever asked may be gone.
                    let _ = socket.send_to(&answer, from).await;
                }
                drop(held);
            });
        }
    }

    async fn take_connections(self: Arc<Server>, listener: TcpListener) {
        loop {
            let Ok((connection, from)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let Some(asker) = self.asker(from) else {
                continue;
            };
            let Some(held) = self.connections.begin(asker, Instant::now()) else {
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                // However it ends, the connection is closed.
                let _ = server.converse(connection, asker).await;
                drop(held);
            });
        }
    }

    /// Answers what comes in a connection; none if that ended before its time.
    async fn converse(&self, mut connection: TcpStream, asker: Ipv4Addr) -> Option<()> {
        for _ in 0..MOST_IN_CONNECTION {
            let question = timeout(STEP, received(&mut connection)).await.ok()??;
            let query = Query::read(&question)?;
            let _held = self.questions.begin(asker, Instant::now())?;
            let answer = framed(&self.answer(&query, asker, Over::Tcp).await?);
            let sent = timeout(STEP, connection.write_all(&answer)).await;
            sent.ok()?.ok()?;
        }
        Some(())
    }

    /// Whoever sent something, if it is behind the bridge.
    fn asker(&self, from: SocketAddr) -> Option<Ipv4Addr> {
        let SocketAddr::V4(from) = from else {
            return None;
        };
        let address = Ipv4(u32::from(*from.ip()));
        let behind = self.subnet.holds(address) && address != self.subnet.gateway();
        behind.then_some(*from.ip())
    }

    /// The answer to a question; none if nobody is to hear anything.
    async fn answer(&self, query: &Query, asker: Ipv4Addr, over: Over) -> Option<Vec<u8>> {
        let (max_length, labels) = (query.max_length(over), query.labels());
        let without = |code| Some(query.answer(code, &[], max_length));
        if !query.is_usual() {
            return without(Code::Refused);
        }
        if !Names::are_ours(&labels) {
            return match self.upstream.ask(query, over).await {
                Some(answer) => Some(query.passed_on(answer, max_length)),
                None => without(Code::Failed),
            };
        }
        let asker = Ipv4(asker.into());
        let names = self.table.names().await?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        match names.find(asker, &labels, query.wanted(), turn) {
            Found::Records(records) => Some(query.answer(Code::Answered, &records, max_length)),
            Found::NoName => without(Code::NoName),
            Found::Elsewhere => without(Code::Refused),
        }
    }
}

/// The next message of a connection, if it may be a question.
async fn received(connection: &mut TcpStream) -> Option<Vec<u8>> {
    let length = usize::from(connection.read_u16().await.ok()?);
    if length > LONGEST {
        return None;
    }
    let mut message = vec![0; length];
    connection.read_exact(&mut message).await.ok()?;
    Some(message)
}
