//! Requests to the kernel over a netlink socket, of routes and of the packet filter alike: what a message is made
//! of, and how it is answered.
//!
//! By hand: `rtnetlink` is asynchronous and starts processes for namespaces, the crate `nftables` runs the program
//! `nft`, and both protocols are this little. What the kernel answers is bounded and read without trust.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size_force, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv,
    send, socket_with,
};

/// How long the kernel may take. It answers at once, but for what waits for packets to pass.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most answers of a dump that are read.
const MOST: usize = 64 * 1024;
/// How often a dump is begun again because something changed meanwhile.
const TRIES: usize = 16;
/// What can be sent at once without asking for more room.
const MAX_MESSAGE: usize = 64 * 1024;
/// The packet filter's group for whoever wants to hear of its changes, as a bit.
const FILTER_CHANGES: u32 = 1 << 6;

const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// A request.
pub(super) const REQUEST: u16 = 0x1;
/// It wants an answer in any case.
pub(super) const ACK: u16 = 0x4;
/// All that there are are wanted.
pub(super) const DUMP: u16 = 0x300;
/// What is there already is an error.
pub(super) const EXCLUSIVE: u16 = 0x200;
/// What is not there is made.
pub(super) const CREATE: u16 = 0x400;
/// It goes to the end of a list.
pub(super) const APPEND: u16 = 0x800;

/// Of a dump: something changed while it was made, and it may lack what is there.
const INTERRUPTED: u16 = 0x10;

const NESTED: u16 = 0x8000;

/// Attributes in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Attrs(Vec<u8>);

impl Attrs {
    pub(super) fn new() -> Attrs {
        Attrs::default()
    }

    pub(super) fn bytes(mut self, kind: u16, value: &[u8]) -> Attrs {
        // More than fits into one would be cut; what calls this has bounds of its own.
        let length = u16::try_from(value.len().saturating_add(4)).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// A number as this machine writes it.
    pub(super) fn u32(self, kind: u16, value: u32) -> Attrs {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// A number as networks write it.
    pub(super) fn be32(self, kind: u16, value: u32) -> Attrs {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// A text with NUL at its end.
    pub(super) fn text(self, kind: u16, value: &str) -> Attrs {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    pub(super) fn nest(self, kind: u16, inner: &Attrs) -> Attrs {
        self.bytes(kind | NESTED, &inner.0)
    }

    /// What is attributes already.
    pub(super) fn raw(bytes: Vec<u8>) -> Attrs {
        Attrs(bytes)
    }

    /// What is inside something else, before its attributes.
    pub(super) fn after(header: &[u8], attrs: &Attrs) -> Vec<u8> {
        let mut bytes = header.to_vec();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(&attrs.0);
        bytes
    }
}

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Message {
    pub(super) fn new(kind: u16, flags: u16, header: &[u8], attrs: &Attrs) -> Message {
        Message {
            kind,
            flags: flags | REQUEST,
            body: Attrs::after(header, attrs),
        }
    }

    fn write(&self, number: u32, into: &mut Vec<u8>) {
        let length = u32::try_from(self.body.len().saturating_add(HEADER)).unwrap_or(u32::MAX);
        into.extend(length.to_ne_bytes());
        into.extend(self.kind.to_ne_bytes());
        into.extend(self.flags.to_ne_bytes());
        into.extend(number.to_ne_bytes());
        into.extend(0_u32.to_ne_bytes());
        into.extend(&self.body);
        into.resize(into.len().next_multiple_of(4), 0);
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) kind: u16,
    pub(super) body: Vec<u8>,
}

/// A socket. It belongs to the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    last: u32,
}

impl Socket {
    /// For links, addresses and routes.
    pub(super) fn route() -> io::Result<Socket> {
        // Its number is 0, which stands for the usual one.
        Socket::open(None)
    }

    /// For the packet filter.
    pub(super) fn filter() -> io::Result<Socket> {
        Socket::open(Some(netlink::NETFILTER))
    }

    /// Where each change of the packet filter is told, whoever makes it.
    pub(super) fn filter_changes() -> io::Result<Socket> {
        let socket = Socket::filter()?;
        bind(
            &socket.fd,
            &netlink::SocketAddrNetlink::new(0, FILTER_CHANGES),
        )?;
        Ok(socket)
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Socket> {
        let flags = SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(TIMEOUT))?;
        Ok(Socket { fd, last: 0 })
    }

    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Asks for one thing to be done.
    pub(super) fn ask(&mut self, mut message: Message) -> io::Result<()> {
        message.flags |= ACK;
        let number = self.number();
        let mut bytes = Vec::new();
        message.write(number, &mut bytes);
        send(&self.fd, &bytes, SendFlags::empty())?;
        self.await_acks(number, number)
    }

    /// Asks for all of these to be done, or nothing; only the packet filter knows that. The first and the last say
    /// what belongs together and are not answered.
    pub(super) fn ask_together(&mut self, messages: &[Message]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let begin = self.number();
        let frame = |kind: u16| {
            let header = [0, 0, 0, NFTABLES];
            Message::new(kind, 0, &header, &Attrs::new())
        };
        frame(BATCH_BEGIN).write(begin, &mut bytes);
        for message in messages {
            let mut message = message.clone();
            message.flags |= ACK;
            let number = self.number();
            message.write(number, &mut bytes);
        }
        let last = self.last;
        let end = self.number();
        frame(BATCH_END).write(end, &mut bytes);
        if bytes.len() > MAX_MESSAGE {
            set_socket_send_buffer_size_force(&self.fd, bytes.len())?;
        }
        send(&self.fd, &bytes, SendFlags::empty())?;
        self.await_acks(begin, last)
    }

    /// Waits for the answer to the last of these; the first error among them counts.
    fn await_acks(&mut self, first: u32, last: u32) -> io::Result<()> {
        let mut failed = None;
        loop {
            let packet = self.receive()?;
            for Part {
                kind, number, body, ..
            } in messages(&packet)
            {
                if kind != ERROR || !(first..=last).contains(&number) {
                    continue;
                }
                match code(body) {
                    0 => {}
                    code => {
                        failed.get_or_insert(code);
                    }
                }
                // All of it was given up where what opens it is what is answered.
                let over = number == last || (first != last && number == first);
                if over {
                    return failed.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)));
                }
            }
        }
    }

    /// One thing, if it is there.
    pub(super) fn get(&mut self, mut message: Message) -> io::Result<Option<Answer>> {
        message.flags |= ACK;
        let number = self.number();
        let mut bytes = Vec::new();
        message.write(number, &mut bytes);
        send(&self.fd, &bytes, SendFlags::empty())?;
        let mut found = None;
        loop {
            let packet = self.receive()?;
            for part in messages(&packet).filter(|part| part.number == number) {
                match part.kind {
                    ERROR => match code(part.body) {
                        0 => return Ok(found),
                        libc::ENODEV | libc::ENOENT => return Ok(None),
                        code => return Err(io::Error::from_raw_os_error(code)),
                    },
                    _ => found = Some(part.answer()),
                }
            }
        }
    }

    /// All that there is of something, as it was at one moment, unless it changes all the time.
    pub(super) fn list(&mut self, message: Message) -> io::Result<Vec<Answer>> {
        let mut tries = 1;
        loop {
            let (found, is_whole) = self.try_list(message.clone())?;
            if is_whole || tries == TRIES {
                return Ok(found);
            }
            tries += 1;
        }
    }

    /// The same, and whether nothing changed meanwhile.
    fn try_list(&mut self, message: Message) -> io::Result<(Vec<Answer>, bool)> {
        let number = self.number();
        let mut bytes = Vec::new();
        let message = Message {
            flags: message.flags | DUMP,
            ..message
        };
        message.write(number, &mut bytes);
        send(&self.fd, &bytes, SendFlags::empty())?;
        let mut found = Vec::new();
        let mut is_whole = true;
        loop {
            let packet = self.receive()?;
            for part in messages(&packet).filter(|part| part.number == number) {
                is_whole &= part.flags & INTERRUPTED == 0;
                match part.kind {
                    DONE => return Ok((found, is_whole)),
                    ERROR if code(part.body) == 0 => return Ok((found, is_whole)),
                    ERROR => return Err(io::Error::from_raw_os_error(code(part.body))),
                    _ if found.len() < MOST => found.push(part.answer()),
                    _ => {}
                }
            }
        }
    }

    /// What is notified without a request, if anything is; does not wait.
    pub(super) fn read_notifications(&self) -> io::Result<Option<Vec<Answer>>> {
        match self.packet(RecvFlags::DONTWAIT) {
            Ok(packet) => Ok(Some(messages(&packet).map(|part| part.answer()).collect())),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn receive(&self) -> io::Result<Vec<u8>> {
        self.packet(RecvFlags::empty())
            .map_err(|errno| match errno {
                Errno::AGAIN => {
                    io::Error::new(io::ErrorKind::TimedOut, "the kernel does not answer")
                }
                errno => errno.into(),
            })
    }

    fn packet(&self, flags: RecvFlags) -> Result<Vec<u8>, Errno> {
        let mut buffer = vec![0; 64 * 1024];
        let (length, _) = retry_on_intr(|| recv(&self.fd, &mut *buffer, flags))?;
        buffer.truncate(length);
        Ok(buffer)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What the packet filter's messages are told by.
pub(super) const NFTABLES: u8 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

fn code(body: &[u8]) -> i32 {
    u32_at(body, 0).map_or(0, |code| code.cast_signed().saturating_neg())
}

/// A message of a packet.
struct Part<'a> {
    kind: u16,
    flags: u16,
    number: u32,
    body: &'a [u8],
}

impl Part<'_> {
    fn answer(&self) -> Answer {
        Answer {
            kind: self.kind,
            body: self.body.to_vec(),
        }
    }
}

/// The messages of a packet. What does not fit ends it.
fn messages(packet: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = packet;
    core::iter::from_fn(move || {
        let length = usize::try_from(u32_at(rest, 0)?).ok()?;
        let (kind, flags) = (u16_at(rest, 4)?, u16_at(rest, 6)?);
        let number = u32_at(rest, 8)?;
        let body = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Part {
            kind,
            flags,
            number,
            body,
        })
    })
}

/// The attributes of a message after its header: kind and value.
pub(super) fn attributes(body: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = body;
    core::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & !NESTED;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// One of them.
pub(super) fn attribute(body: &[u8], kind: u16) -> Option<&[u8]> {
    let mut all = attributes(body);
    all.find(|(known, _)| *known == kind)
        .map(|(_, value)| value)
}

/// A text up to its NUL.
pub(super) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0);
    let text = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_do_not_fit_end_a_packet() {
        let message = Message::new(20, 0, &[1, 0, 0, 0], &Attrs::new().text(3, "lo"));
        let mut packet = Vec::new();
        message.write(7, &mut packet);
        let whole = packet.clone();
        packet.extend([200, 0, 0, 0, 3, 0]);
        let found: Vec<_> = messages(&packet)
            .map(|part| (part.kind, part.number))
            .collect();
        assert_eq!(found, [(20, 7)]);
        for cut in 0..whole.len() - 1 {
            assert_eq!(messages(&whole[..cut]).count(), 0, "{cut}");
        }
        let Some(Part { body, .. }) = messages(&whole).next() else {
            panic!("it is a message");
        };
        assert_eq!(attribute(&body[4..], 3).map(text), Some("lo".to_owned()));
        for cut in 0..body.len() {
            let _ = attributes(&body[..cut]).count();
        }
    }
}
