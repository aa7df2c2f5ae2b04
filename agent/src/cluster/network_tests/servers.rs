//! Servers on a simulated network: each speaks the real wire, all know what the one model knows, and each has troubles
//! of its own.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use drover_core::cluster::{Answer, Call, CallError};
use drover_core::effect::ServerEffect;
use drover_io_real::driver::Inbox;
use drover_io_sim::servers::{Flaws, NAMES};
use drover_io_sim::{Dice, Fleet};
use drover_rpc::msgpack::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;
use turmoil::net::{TcpListener, TcpStream};

use super::forms::{Arrived, Intended, reply};
use super::wire::peer::Peer;
use super::wire::server::{Does, answer};

/// How much at once, and how often, a server reads that is slow.
const SLOW: (usize, Duration) = (16, Duration::from_millis(40));

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    /// It reads slowly what nodes send.
    pub(super) reads_slowly: bool,
    /// It does not hear of its peers since they were at this index.
    pub(super) alone_since: Option<u64>,
}

/// Where the agent of a node is connected to what carries out its calls.
pub(super) struct End {
    pub(super) effects: mpsc::UnboundedSender<ServerEffect>,
    pub(super) inputs: mpsc::UnboundedReceiver<drover_core::agent::Input>,
}

type Answered = Result<Answer, CallError>;

/// What all hosts of the network see.
pub(super) struct Shared {
    pub(super) fleet: Fleet,
    pub(super) intended: Intended,
    pub(super) ends: Vec<Option<End>>,
    pub(super) troubles: [Trouble; 3],
    /// Whether servers have a leader.
    pub(super) has_leader: bool,
    /// How often what was called, in vain or not.
    pub(super) calls: BTreeMap<String, u64>,
    waiting: BTreeMap<u64, oneshot::Sender<Answered>>,
    calls_ever: u64,
    dice: Dice,
}

pub(super) type World = Arc<Mutex<Shared>>;

pub(super) fn lock(world: &World) -> MutexGuard<'_, Shared> {
    world.lock().unwrap()
}

impl Shared {
    pub(super) fn new(seed: u64, nodes: usize) -> World {
        Arc::new(Mutex::new(Shared {
            fleet: Fleet::over_wire(seed, nodes),
            intended: Intended::default(),
            ends: (0..nodes).map(|_| None).collect(),
            troubles: [Trouble::default(); 3],
            has_leader: true,
            calls: BTreeMap::new(),
            waiting: BTreeMap::new(),
            calls_ever: 0,
            dice: Dice::new(seed),
        }))
    }

    /// What servers say to calls that waited is on its way.
    pub(super) fn hand_on(&mut self) {
        for (number, answered) in self.fleet.answers() {
            if let Some(waits) = self.waiting.remove(&number) {
                // Whoever called may be gone.
                let _ = waits.send(answered);
            }
        }
    }

    /// What a server does; none if it waits until it hears of its peers again.
    fn does(&mut self, server: usize, node: usize, method: &str, body: &Value) -> Option<Does> {
        let Some(arrived) = self.intended.receive(node, method, body) else {
            return Some(Does::Error("rpc: can't find method"));
        };
        let alone = self.troubles[server].alone_since;
        if !arrived.stale && (alone.is_some() || !self.has_leader) {
            return Some(Does::Error("rpc error: No cluster leader"));
        }
        let mut flaws = self.flaws(server, arrived.stale);
        if let Some(index) = alone {
            if matches!(arrived.call, Call::WatchAllocs { index: known, .. } if known >= index) {
                return None;
            }
            flaws.behind = self.fleet.servers().index() - index;
        }
        Some(self.answer(node, arrived, flaws))
    }

    fn flaws(&mut self, server: usize, stale: bool) -> Flaws {
        let behind = [0, 0, 0, 0, 0, 1, 2, 20];
        let behind = self.dice.one_of(&behind, "behind", NAMES[server]);
        Flaws {
            behind: behind.filter(|_| stale).unwrap_or(0),
            doubles: self.dice.below(8, "doubles", NAMES[server]) == 0,
            names: NAMES.len(),
        }
    }

    fn answer(&mut self, node: usize, arrived: Arrived, flaws: Flaws) -> Does {
        self.calls_ever += 1;
        let number = self.calls_ever;
        let Arrived {
            credentials, call, ..
        } = arrived;
        let answered = self.fleet.call(node, number, &credentials, call, flaws);
        let does = match answered {
            Some(answered) => reply(node, &answered),
            None => {
                let (waits, answered) = oneshot::channel();
                self.waiting.insert(number, waits);
                Does::Later(Box::pin(async move {
                    match answered.await {
                        Ok(answered) => reply(node, &answered),
                        Err(_) => Does::Nothing,
                    }
                }))
            }
        };
        self.hand_on();
        does
    }
}

/// What a server does with a call, at once or when it can.
fn does(world: &World, (server, node): (usize, usize), method: &str, body: Value) -> Does {
    if let Some(does) = lock(world).does(server, node, method, &body) {
        return does;
    }
    let (world, method) = (world.clone(), method.to_owned());
    Does::Later(Box::pin(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Some(does) = lock(&world).does(server, node, &method, &body) {
                return does;
            }
        }
    }))
}

/// A server.
pub(super) async fn serve(world: World, number: usize) -> turmoil::Result {
    let listener = TcpListener::bind("0.0.0.0:4647").await?;
    loop {
        let (stream, from) = listener.accept().await?;
        let from = turmoil::reverse_lookup(from.ip()).ok_or("a node")?;
        let node: usize = from.trim_start_matches("node-").parse()?;
        let stream = Reader {
            stream,
            world: world.clone(),
            number,
            pause: None,
        };
        let (_, incoming, _) = Peer::start(stream);
        let world = world.clone();
        tokio::spawn(answer(incoming, move |method, body| {
            *lock(&world).calls.entry(method.to_owned()).or_default() += 1;
            does(&world, (number, node), method, body)
        }));
    }
}

/// What carries out the calls of a node's agent, as long as that lives.
pub(super) async fn node(
    world: World,
    index: usize,
    cluster: impl Fn(mpsc::UnboundedSender<drover_core::agent::Input>) -> super::super::Cluster,
) -> turmoil::Result {
    use drover_io_real::cluster::CallServers;
    let (to, inputs) = mpsc::unbounded_channel();
    let (effects, mut asked) = mpsc::unbounded_channel();
    lock(&world).ends[index] = Some(End { effects, inputs });
    let (cluster, inbox) = (cluster(to.clone()), Inbox::new(to));
    while let Some(effect) = asked.recv().await {
        cluster.carry_out(effect, &inbox);
    }
    Ok(())
}

/// A connection from which a server that is slow reads little at once.
struct Reader {
    stream: TcpStream,
    world: World,
    number: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !lock(&self.world).troubles[self.number].reads_slowly {
            self.pause = None;
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let pause = self
            .pause
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(SLOW.1)));
        ready!(pause.as_mut().poll(cx));
        let mut few = [0; SLOW.0];
        let mut few = ReadBuf::new(&mut few[..SLOW.0.min(buf.remaining())]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut few))?;
        buf.put_slice(few.filled());
        self.pause = None;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Reader {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
