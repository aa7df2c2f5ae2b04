//! A server's end of a connection, as Go's yamux keeps it: streams are acknowledged at once, windows are
//! granted as data is read, and a stream of its own that is not acknowledged within 75 s ends the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drover_rpc::msgpack::{Scanner, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::{Semaphore, mpsc};

use super::frames::{ACK, DATA, FIN, Frame, GO_AWAY, PING, RST, SYN, WINDOW};

/// How long a stream may go without an acknowledgement.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(75);

/// How often it pings.
const PING_EVERY: Duration = Duration::from_secs(30);

/// How long an answer to a ping may take; a later one ends the session.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

const FIRST_WINDOW: usize = 256 << 10;

enum Command {
    Send(Frame),
    Open(PeerStreamEnd),
    /// The timer of this stream has run out.
    OpenTimeout(u32),
    Close,
}

struct PeerStreamEnd {
    id: u32,
    data: mpsc::UnboundedSender<Vec<u8>>,
    window: Arc<Semaphore>,
    acknowledged: Arc<AtomicBool>,
    reset: Arc<AtomicBool>,
}

/// A handle of the server's end.
#[derive(Clone)]
pub(crate) struct Peer {
    commands: mpsc::UnboundedSender<Command>,
    next: Arc<std::sync::atomic::AtomicU32>,
}

/// A stream at the server's end.
pub(crate) struct PeerStream {
    pub(crate) id: u32,
    commands: mpsc::UnboundedSender<Command>,
    data: mpsc::UnboundedReceiver<Vec<u8>>,
    buffer: Vec<u8>,
    window: Arc<Semaphore>,
    reset: Arc<AtomicBool>,
    /// Whether what is read is granted anew: not by a reader that is slow.
    pub(crate) grants: bool,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerEnd {
    /// The other end has gone.
    Gone,
    /// A stream was not acknowledged in time.
    NotAcknowledged(u32),
    /// A ping was not answered in time.
    PingTimeout,
    /// Asked for.
    Closed,
}

impl Peer {
    /// Serves a connection that was accepted. Streams that the node opens come by the receiver; the task
    /// ends when the session does.
    pub(crate) fn start<T>(
        mut io: T,
    ) -> (
        Peer,
        mpsc::UnboundedReceiver<PeerStream>,
        tokio::task::JoinHandle<PeerEnd>,
    )
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (opened, incoming) = mpsc::unbounded_channel();
        let peer = Peer {
            commands: commands.clone(),
            next: Arc::new(2.into()),
        };
        let task = tokio::spawn(async move {
            let mut preamble = [0];
            if io.read_exact(&mut preamble).await.is_err() {
                return PeerEnd::Gone;
            }
            assert_eq!(preamble, [6], "the first byte of a connection");
            session(io, commands, inbox, opened).await
        });
        (peer, incoming, task)
    }

    /// Opens a stream.
    pub(crate) fn open(&self) -> PeerStream {
        let id = self.next.fetch_add(2, Ordering::Relaxed);
        let (stream, end) = stream(id, &self.commands);
        drop(self.commands.send(Command::Open(end)));
        stream
    }

    /// Says "go away", and goes.
    pub(crate) fn close(&self) {
        drop(self.commands.send(Command::Close));
    }

    /// Sends any frame.
    pub(crate) fn send(&self, frame: Frame) {
        drop(self.commands.send(Command::Send(frame)));
    }
}

fn stream(id: u32, commands: &mpsc::UnboundedSender<Command>) -> (PeerStream, PeerStreamEnd) {
    let (data, receiver) = mpsc::unbounded_channel();
    let window = Arc::new(Semaphore::new(FIRST_WINDOW));
    let reset = Arc::new(AtomicBool::new(false));
    let end = PeerStreamEnd {
        id,
        data,
        window: window.clone(),
        acknowledged: Arc::default(),
        reset: reset.clone(),
    };
    let stream = PeerStream {
        id,
        commands: commands.clone(),
        data: receiver,
        buffer: Vec::new(),
        window,
        reset,
        grants: true,
    };
    (stream, end)
}

async fn session<T>(
    io: T,
    commands: mpsc::UnboundedSender<Command>,
    mut inbox: mpsc::UnboundedReceiver<Command>,
    opened: mpsc::UnboundedSender<PeerStream>,
) -> PeerEnd
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut reader, mut writer) = tokio::io::split(io);
    let (frames, mut arrived) = mpsc::unbounded_channel();
    let reading = tokio::spawn(async move {
        while let Ok(Some(frame)) = Frame::read(&mut reader).await {
            if frames.send(frame).is_err() {
                break;
            }
        }
    });
    let mut streams: HashMap<u32, PeerStreamEnd> = HashMap::new();
    let mut pings = tokio::time::interval(PING_EVERY);
    let mut pong_due = None;
    let end = loop {
        let frame = tokio::select! {
            command = inbox.recv() => match command {
                Some(Command::Send(frame)) => frame,
                Some(Command::Open(end)) => open(end, &mut streams, &commands),
                Some(Command::OpenTimeout(id)) => match streams.get(&id) {
                    Some(end) if !end.acknowledged.load(Ordering::Relaxed) => {
                        break PeerEnd::NotAcknowledged(id);
                    }
                    _ => continue,
                },
                Some(Command::Close) => {
                    drop(writer.write_all(&Frame::new(GO_AWAY, 0, 0, 0).bytes()).await);
                    break PeerEnd::Closed;
                }
                None => break PeerEnd::Closed,
            },
            frame = arrived.recv() => match frame {
                // A code says that the node found an error: Go's end closes.
                Some(frame) if frame.kind == GO_AWAY && frame.length != 0 => break PeerEnd::Gone,
                Some(frame) if frame.kind == PING && frame.flags & ACK != 0 => {
                    pong_due = None;
                    continue;
                }
                Some(frame) => match take(frame, &mut streams, &opened, &commands) {
                    Some(answer) => answer,
                    None => continue,
                },
                None => break PeerEnd::Gone,
            },
            _ = pings.tick() => {
                pong_due = Some(tokio::time::Instant::now() + PING_TIMEOUT);
                Frame::new(PING, SYN, 0, 7)
            }
            () = until(pong_due) => break PeerEnd::PingTimeout,
        };
        if write(&mut writer, &frame).await.is_err() {
            break PeerEnd::Gone;
        }
    };
    reading.abort();
    drop(writer.shutdown().await);
    end
}

async fn until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn write<T: AsyncWrite>(writer: &mut WriteHalf<T>, frame: &Frame) -> std::io::Result<()> {
    writer.write_all(&frame.bytes()).await?;
    writer.flush().await
}

fn open(
    end: PeerStreamEnd,
    streams: &mut HashMap<u32, PeerStreamEnd>,
    commands: &mpsc::UnboundedSender<Command>,
) -> Frame {
    let (id, commands) = (end.id, commands.clone());
    streams.insert(id, end);
    tokio::spawn(async move {
        tokio::time::sleep(OPEN_TIMEOUT).await;
        drop(commands.send(Command::OpenTimeout(id)));
    });
    Frame::new(WINDOW, SYN, id, 0)
}

/// Takes a frame of the node. Returns what is to be sent at once.
fn take(
    frame: Frame,
    streams: &mut HashMap<u32, PeerStreamEnd>,
    opened: &mpsc::UnboundedSender<PeerStream>,
    commands: &mpsc::UnboundedSender<Command>,
) -> Option<Frame> {
    if frame.kind == PING {
        return (frame.flags & SYN != 0).then(|| Frame::new(PING, ACK, 0, frame.length));
    }
    if frame.kind == GO_AWAY {
        return None;
    }
    let answer = (frame.flags & SYN != 0).then(|| {
        let (stream, end) = stream(frame.stream, commands);
        streams.insert(frame.stream, end);
        drop(opened.send(stream));
        Frame::new(WINDOW, ACK, frame.stream, 0)
    });
    let Some(end) = streams.get(&frame.stream) else {
        return answer;
    };
    if frame.flags & (ACK | FIN | RST) != 0 {
        end.acknowledged.store(true, Ordering::Relaxed);
    }
    match frame.kind {
        WINDOW => end.window.add_permits(frame.length as usize),
        DATA if !frame.body.is_empty() => drop(end.data.send(frame.body)),
        _ => {}
    }
    end.reset.store(frame.flags & RST != 0, Ordering::Relaxed);
    if frame.flags & (FIN | RST) != 0 {
        streams.remove(&frame.stream);
    }
    answer
}

impl PeerStream {
    /// Sends bytes, as the window allows.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(4096) {
            let permits = self.window.acquire_many(chunk.len() as u32).await;
            permits.expect("never closed").forget();
            drop(
                self.commands
                    .send(Command::Send(Frame::data(self.id, chunk))),
            );
        }
    }

    /// Sends an object.
    pub(crate) async fn object<T: Serialize>(&mut self, object: &T) {
        self.send(&encode(object).expect("it can be written")).await;
    }

    /// Says that nothing more comes.
    pub(crate) fn finish(&self) {
        drop(
            self.commands
                .send(Command::Send(Frame::new(WINDOW, FIN, self.id, 0))),
        );
    }

    /// Whether the node reset it.
    pub(crate) fn is_reset(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }

    /// The next byte.
    pub(crate) async fn byte(&mut self) -> Option<u8> {
        while self.buffer.is_empty() {
            self.fill().await?;
        }
        Some(self.buffer.remove(0))
    }

    /// The next object; `None`: the node sends no more.
    pub(crate) async fn bytes(&mut self) -> Option<Vec<u8>> {
        let mut scanner = Scanner::new(256 << 20);
        loop {
            if let Some(end) = scanner.scan(&self.buffer).expect("the node sends objects") {
                let rest = self.buffer.split_off(end);
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            self.fill().await?;
        }
    }

    /// The next object, as its type.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        Some(decode(&self.bytes().await?).expect("of that type"))
    }

    async fn fill(&mut self) -> Option<()> {
        let data = self.data.recv().await?;
        if self.grants {
            let granted = Frame::new(WINDOW, 0, self.id, data.len() as u32);
            drop(self.commands.send(Command::Send(granted)));
        }
        self.buffer.extend(data);
        Some(())
    }
}
