//! RFC 5424, over a datagram socket of this machine, UDP, or TCP with a length before each line (RFC 6587).

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;

use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UdpSocket, UnixDatagram};

use super::{Common, Entry, Refused, in_time, labels, runs};
use crate::connect::{Connect, Connection, TcpToReader};
use crate::forward::settings::Address;

/// The severities of standard output and standard error: informational, error.
const SEVERITIES: (u8, u8) = (6, 3);
/// The longest name of an application, and of a host.
const NAMES: (usize, usize) = (48, 255);
/// What our elements of structured data are called; the number is the one for documentation.
const ELEMENT: &str = "drover@32473";

#[derive(Debug)]
pub(in crate::forward) struct Syslog {
    address: Address,
    facility: u8,
    /// What connections are made over.
    network: Arc<dyn Connect>,
    socket: Option<Socket>,
}

enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(Box<dyn Connection>),
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Socket::Unix(_) => "Unix",
            Socket::Udp(_) => "Udp",
            Socket::Tcp(_) => "Tcp",
        })
    }
}

impl Syslog {
    pub(super) fn new(address: Address, facility: u8) -> Syslog {
        Syslog::over(Arc::new(TcpToReader), address, facility)
    }

    fn over(network: Arc<dyn Connect>, address: Address, facility: u8) -> Syslog {
        Syslog {
            address,
            facility,
            network,
            socket: None,
        }
    }

    pub(super) async fn send(&mut self, common: &Common, lines: &[Entry]) -> Result<(), Refused> {
        let mut taken = 0;
        let sent = self.send_some(common, lines, &mut taken).await;
        sent.map_err(|why| {
            // Whatever is wrong with it, another one may do.
            self.socket = None;
            Refused::after(taken, why)
        })
    }

    async fn send_some(
        &mut self,
        common: &Common,
        lines: &[Entry],
        taken: &mut usize,
    ) -> Result<(), String> {
        if let Some(Socket::Tcp(stream)) = &mut self.socket
            && is_closed(stream)
        {
            self.socket = None;
        }
        if self.socket.is_none() {
            self.socket = Some(in_time(connect(&*self.network, &self.address)).await?);
        }
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        for lines in runs(lines) {
            let Some(first) = lines.first() else { continue };
            let same = Same::of(self.facility, common, first);
            match socket {
                Socket::Tcp(stream) => {
                    let mut bytes = Vec::new();
                    for line in lines {
                        let line = same.message(line);
                        bytes.extend_from_slice(format!("{} ", line.len()).as_bytes());
                        bytes.extend_from_slice(line.as_bytes());
                    }
                    in_time(stream.write_all(&bytes)).await?;
                    *taken += lines.len();
                }
                Socket::Unix(socket) => {
                    for line in lines {
                        in_time(socket.send(same.message(line).as_bytes())).await?;
                        *taken += 1;
                    }
                }
                Socket::Udp(socket) => {
                    for line in lines {
                        in_time(socket.send(same.message(line).as_bytes())).await?;
                        *taken += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

async fn connect(network: &dyn Connect, address: &Address) -> io::Result<Socket> {
    Ok(match address {
        Address::Unix(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            Socket::Unix(socket)
        }
        Address::Udp(address) => {
            let to = tokio::net::lookup_host(address).await?.next();
            let to = to.ok_or(io::ErrorKind::AddrNotAvailable)?;
            let any = match to.is_ipv4() {
                true => "0.0.0.0:0",
                false => "[::]:0",
            };
            let socket = UdpSocket::bind(any).await?;
            socket.connect(to).await?;
            Socket::Udp(socket)
        }
        Address::Tcp(address) => Socket::Tcp(network.connect(address).await?),
    })
}

/// Whether the other side closed the connection. It has nothing to say, so whatever it says is dropped.
fn is_closed(stream: &mut dyn Connection) -> bool {
    let mut words = [0; 512];
    loop {
        match stream.read(&mut words).now_or_never() {
            Some(Ok(0) | Err(_)) => return true,
            Some(Ok(_)) => {}
            None => return false,
        }
    }
}

/// What is the same for all lines of a stream: what stands before the time, and between it and the text.
struct Same {
    before: String,
    after: String,
}

impl Same {
    fn of(facility: u8, common: &Common, line: &Entry) -> Same {
        let source = &line.source;
        let severity = match line.is_error {
            true => SEVERITIES.1,
            false => SEVERITIES.0,
        };
        let priority = u16::from(facility) * 8 + u16::from(severity);
        let app = name(source.task.as_str(), NAMES.0);
        let host = name(&common.node, NAMES.1);
        let mut after = format!(" {host} {app} - - [{ELEMENT}");
        for (label, value) in labels(common, source, line.is_error) {
            // A name of a parameter has no more than 32 characters.
            let _ = write!(after, " {}=\"{}\"", name(label, 32), parameter(&value));
        }
        after.push_str("] ");
        Same {
            before: format!("<{priority}>1 "),
            after,
        }
    }

    /// A line as a message.
    fn message(&self, line: &Entry) -> String {
        let capacity = self.after.len() + line.text.len() + 64;
        let mut text = String::with_capacity(capacity);
        text.push_str(&self.before);
        text.push_str(&time(line));
        text.push_str(&self.after);
        push_visible(&mut text, &line.text);
        text
    }
}

/// With microseconds, which are the most that there may be.
fn time(line: &Entry) -> String {
    let micros = line.time.0.div_euclid(1_000);
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
    format!("{time:.6}")
}

/// A name of visible ASCII characters, of which there are so many at most.
fn name(text: &str, most: usize) -> String {
    let fits = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '=' | ']' | '"');
    let letters = text.chars().map(|it| if fits(it) { it } else { '_' });
    let name: String = letters.take(most).collect();
    if name.is_empty() {
        "-".to_owned()
    } else {
        name
    }
}

fn parameter(value: &str) -> String {
    let mut text = String::new();
    for letter in value.chars() {
        if matches!(letter, '"' | '\\' | ']') {
            text.push('\\');
        }
        text.push(if letter.is_control() { ' ' } else { letter });
    }
    text
}

/// Adds a text in which control characters are written as `#033`, as syslog daemons show them.
fn push_visible(text: &mut String, line: &str) {
    let is_plain = |byte: u8| !byte.is_ascii_control() || byte == b'\t';
    if line.bytes().all(is_plain) {
        return text.push_str(line);
    }
    for letter in line.chars() {
        if letter.is_ascii_control() && letter != '\t' {
            let _ = write!(text, "#{:03o}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test may panic")]
mod tests {
    use std::slice;
    use std::sync::Mutex;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::super::examples::{common, entry};
    use super::*;
    use crate::connect::Connecting;

    #[test]
    fn line_is_a_message_of_rfc_5424() {
        let line = entry("a \u{1b}[31mred\tone]\0", true, 123_456_789);
        assert_eq!(
            Same::of(16, &common(), &line).message(&line),
            "<131>1 2026-11-21T04:43:17.123456Z node-7 main - - [drover@32473 alloc=\"web.g[0\\]\" \
             alloc_id=\"00000000-0000-0000-0000-000000000007\" env=\"prod\" group=\"g\" job=\"web\" \
             namespace=\"default\" node=\"node-7\" stream=\"stderr\" task=\"main\"] \
             a #033[31mred\tone]#000"
        );
    }

    /// TCP over a simulated network.
    #[derive(Debug)]
    struct Simulated;

    impl Connect for Simulated {
        fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
            Box::pin(async move {
                let stream = turmoil::net::TcpStream::connect(authority).await?;
                Ok(Box::new(stream) as Box<dyn Connection>)
            })
        }
    }

    /// What comes, of all connections.
    async fn collect(received: Arc<Mutex<String>>) -> turmoil::Result {
        let listener = turmoil::net::TcpListener::bind(("0.0.0.0", 514)).await?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            let received = received.clone();
            tokio::spawn(async move {
                let mut bytes = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                    let text = String::from_utf8_lossy(&bytes[..count]);
                    received.lock().expect("a lock").push_str(&text);
                }
            });
        }
    }

    #[test]
    fn line_after_death_of_server_goes_over_another_connection() {
        let received = Arc::new(Mutex::new(String::new()));
        let mut sim = turmoil::Builder::new()
            .simulation_duration(Duration::from_secs(600))
            .build();
        let of_server = received.clone();
        sim.host("logs", move || collect(of_server.clone()));
        sim.client("node", async {
            let address = Address::Tcp("logs:514".to_owned());
            let mut syslog = Syslog::over(Arc::new(Simulated), address, 16);
            for number in 0..120 {
                let line = entry(&format!("line {number}."), false, 0);
                while syslog
                    .send(&common(), slice::from_ref(&line))
                    .await
                    .is_err()
                {
                    sleep(Duration::from_secs(1)).await;
                }
                sleep(Duration::from_secs(1)).await;
            }
            Ok(())
        });
        let until = |sim: &mut turmoil::Sim<'_>, second| {
            while sim.elapsed() < Duration::from_secs(second) {
                sim.step().expect("a step");
            }
        };
        until(&mut sim, 10);
        sim.crash("logs");
        until(&mut sim, 40);
        sim.bounce("logs");
        sim.run().expect("the node ends");
        let received = received.lock().expect("a lock");
        assert!(received.contains("line 0."), "{received}");
        assert!(received.contains("line 119."), "{received}");
    }

    #[test]
    fn names_have_no_spaces_and_an_end() {
        assert_eq!(name("a b\u{e9}\"]", 10), "a_b___");
        assert_eq!(name("", 10), "-");
        assert_eq!(name("abcdef", 3), "abc");
    }
}
