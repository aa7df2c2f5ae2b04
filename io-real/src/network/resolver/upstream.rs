//! Passing questions on to the servers that the host asks.
//!
//! Each question goes out from a port of its own, which the kernel draws, and under a number that nobody guesses. What
//! comes back is believed if it comes from the server that was asked and is about the same question.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use drover_core::model::network::Ipv4;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::message::{Over, Query, is_failure};
use super::{PORT, address};
use crate::connect::{Connect, Tcp};
use crate::facts;
use crate::network::files;

/// How long one server may take, and all of them together.
const EACH: Duration = Duration::from_secs(2);
const ALL: Duration = Duration::from_secs(5);
/// The host's files are read again after this, when somebody asks.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// The most servers that are asked, as in every resolver.
const MOST_SERVERS: usize = 3;
/// Longer than any packet that is asked for.
const LONGEST: usize = 4096;

/// The servers that the host asks.
#[derive(Debug)]
pub(super) struct Upstream {
    /// The bridge's own address, at which nobody else answers.
    own: IpAddr,
    known: Mutex<Option<(Instant, Vec<IpAddr>)>>,
}

impl Upstream {
    pub(super) fn new(own: Ipv4) -> Upstream {
        Upstream {
            own: address(own).into(),
            known: Mutex::default(),
        }
    }

    /// The answer of the first server that has one; none if nobody has in time. How many questions are under way is
    /// bounded by who takes them.
    pub(super) async fn ask(&self, query: &Query, over: Over) -> Option<Vec<u8>> {
        let mut failed = None;
        let asked = async {
            for server in self.servers().await {
                let server = SocketAddr::new(server, PORT);
                let answer = match over {
                    Over::Udp => timeout(EACH, by_packet(query, server)).await,
                    Over::Tcp => timeout(EACH, by_connection(query, server)).await,
                };
                match answer {
                    Ok(Ok(answer)) if is_failure(&answer) => failed = Some(answer),
                    Ok(Ok(answer)) => return Some(answer),
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            None
        };
        let answer = timeout(ALL, asked).await.ok().flatten();
        answer.or(failed)
    }

    async fn servers(&self) -> Vec<IpAddr> {
        let mut known = self.known.lock().await;
        if let Some((at, servers)) = &*known
            && at.elapsed() < KNOWN_FOR
        {
            return servers.clone();
        }
        let mut servers = spawn_blocking(files::servers_of_host)
            .await
            .unwrap_or_default();
        servers.retain(|server| *server != self.own);
        servers.truncate(MOST_SERVERS);
        *known = Some((Instant::now(), servers.clone()));
        servers
    }
}

async fn by_packet(query: &Query, server: SocketAddr) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    // What others send is not heard.
    socket.connect(server).await?;
    let id = number();
    socket.send(&query.to_pass_on(id)).await?;
    let mut answer = vec![0; LONGEST];
    loop {
        let length = socket.recv(&mut answer).await?;
        let got = answer.get(..length).unwrap_or_default();
        if query.is_answered_by(got, id) {
            return Ok(got.to_vec());
        }
    }
}

async fn by_connection(query: &Query, server: SocketAddr) -> io::Result<Vec<u8>> {
    let mut connection = Tcp.connect(&server.to_string()).await?;
    let id = number();
    connection.write_all(&framed(&query.to_pass_on(id))).await?;
    let length = connection.read_u16().await?;
    let mut answer = vec![0; length.into()];
    connection.read_exact(&mut answer).await?;
    match query.is_answered_by(&answer, id) {
        true => Ok(answer),
        false => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// A message as connections carry it.
pub(super) fn framed(message: &[u8]) -> Vec<u8> {
    // No message is longer.
    let length = u16::try_from(message.len()).unwrap_or_default();
    [&length.to_be_bytes()[..], message].concat()
}

fn number() -> u16 {
    let [first, second, ..] = facts::random().to_ne_bytes();
    u16::from_ne_bytes([first, second])
}
