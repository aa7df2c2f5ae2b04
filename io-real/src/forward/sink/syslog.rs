//! RFC 5424, over a datagram socket of this machine, UDP, or TCP with a length before each line (RFC 6587).

use std::fmt::Write as _;
use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket, UnixDatagram};

use super::{Common, Entry, Refused, in_time, labels, runs};
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
    socket: Option<Socket>,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Syslog {
    pub(super) fn new(address: Address, facility: u8) -> Syslog {
        Syslog {
            address,
            facility,
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
        if matches!(&self.socket, Some(Socket::Tcp(stream)) if is_closed(stream)) {
            self.socket = None;
        }
        if self.socket.is_none() {
            self.socket = Some(in_time(connect(&self.address)).await?);
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

async fn connect(address: &Address) -> io::Result<Socket> {
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
        Address::Tcp(address) => Socket::Tcp(TcpStream::connect(address).await?),
    })
}

/// Whether the other side closed the connection. It has nothing to say, so whatever it says is dropped.
fn is_closed(stream: &TcpStream) -> bool {
    let mut words = [0; 512];
    loop {
        match stream.try_read(&mut words) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
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
mod tests {
    use super::super::examples::{common, entry};
    use super::*;

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

    #[test]
    fn names_have_no_spaces_and_an_end() {
        assert_eq!(name("a b\u{e9}\"]", 10), "a_b___");
        assert_eq!(name("", 10), "-");
        assert_eq!(name("abcdef", 3), "abc");
    }
}
