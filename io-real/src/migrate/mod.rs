//! Disks that go from node to node.
//!
//! A node gives away what an ended allocation left as a tar stream ([`snapshot`]), to whoever has a
//! token that it issued ([`token`]). The node that takes it over asks until the allocation is over
//! ([`Migration`]), reads the stream as an enemy's into a directory where nobody else looks
//! ([`receive`]), and renames what is whole into place. Who is killed in the middle begins again
//! from nothing.
//!
//! Of an allocation that servers of a cluster placed they are asked whether it is over, and where it was
//! ([`KnowAllocs`]). Their token is the same one: they know the secrets of all nodes.
//!
//! Over TLS ([`Nodes`]) a node that servers name must have the role of one, and one that people name the name by which
//! they did, or that role. A token goes to that address alone: redirections are not followed.
//!
//! An allocation that ended before it got its own disk has none to give: its node names the one from which that was to
//! come, and the token for it, in the headers of an answer of 404 ([`LIES_WITH`], [`ITS_TOKEN`]). To Nomad's nodes that
//! is an allocation without a disk.
//!
//! - On the wire it is Nomad's: a tar stream of `alloc/data` and each task's `local`, at
//!   `/v1/client/allocation/:id/snapshot`. Nomad needs no token where it has no ACLs; here it is
//!   always needed.
//! - The sender sends exactly as many bytes of a file as it announced, whatever a task does to it
//!   meanwhile.
//! - The receiver ([`crate::unpack`], which artifacts share) fills `<allocation>.arriving` beside
//!   the allocation's directory, where no task looks. It bounds bytes (a tenth of what is free
//!   stays free), entries, depth and silence.

mod nodes;
mod peer;
pub mod receive;
pub mod snapshot;
pub mod token;

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use drover_core::ids::{AllocId, TaskName};
use drover_core::input::HookOutput;
use drover_core::model::remote::{Remote, RemotePrevious};
use drover_core::op::{Failure, Op};
use tokio::sync::{mpsc, oneshot};

use self::nodes::NO_AUTHORITY;
pub use self::nodes::Nodes;
use self::peer::SnapshotAnswer;
pub use self::peer::{ITS_TOKEN, LIES_WITH};
use self::receive::Limits;
use crate::cancel::{Cancel, UnderWay};
use crate::cluster::{KnowAllocs, Place};
use crate::connect::Connect;
use crate::dirs::AllocDirs;
use crate::transfers::{Transfers, in_all};

/// Takes over from other nodes. Cheap to clone.
#[derive(Clone)]
pub struct Migration {
    dirs: AllocDirs,
    limits: Limits,
    under_way: Arc<UnderWay>,
    transfers: Transfers,
    /// Nodes that people named.
    named: Nodes,
    /// Nodes that servers named.
    of_cluster: Nodes,
    /// The servers of the cluster, if the node is in one.
    servers: Option<Arc<dyn KnowAllocs>>,
}

impl fmt::Debug for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Migration")
    }
}

impl Migration {
    /// Takes over into `dirs`, and says in `transfers` how far that is.
    pub fn new(dirs: AllocDirs, limits: Limits, transfers: Transfers) -> Migration {
        Migration {
            dirs,
            limits,
            under_way: Arc::default(),
            transfers,
            named: Nodes::default(),
            of_cluster: Nodes::default(),
            servers: None,
        }
    }

    /// The same in a cluster: `servers` know its allocations, and `nodes` reaches where those were.
    #[must_use]
    pub fn in_cluster(self, servers: Option<Arc<dyn KnowAllocs>>, nodes: Nodes) -> Migration {
        Migration {
            of_cluster: nodes,
            servers,
            ..self
        }
    }

    /// The same, which reaches the nodes that people name by `nodes`.
    #[must_use]
    pub fn from_named(self, nodes: Nodes) -> Migration {
        let named = nodes;
        Migration { named, ..self }
    }

    /// The same over another network.
    #[must_use]
    pub fn over(self, network: Arc<dyn Connect>) -> Migration {
        Migration {
            named: self.named.over(network.clone()),
            of_cluster: self.of_cluster.over(network),
            ..self
        }
    }

    /// Makes known that `op` is under way, so that it can be cancelled from now on.
    pub fn begin(&self, op: Op) {
        self.under_way.begin(op);
    }

    /// Ends `op` soon, if it is under way. Its answer still comes.
    pub fn cancel(&self, op: Op) {
        self.under_way.cancel(op);
    }

    /// Asks whether an allocation still runs. Must have begun. Whoever is asked keeps the question until something is
    /// newer than `index`.
    ///
    /// # Errors
    /// There is no answer, or none that makes sense, or it was cancelled.
    pub async fn ask(
        &self,
        op: Op,
        previous: &RemotePrevious,
        index: u64,
    ) -> Result<HookOutput, Failure> {
        let cancel = self.under_way.begin(op);
        let asked = async {
            if previous.of_servers {
                return self.servers()?.runs(previous.alloc, index).await;
            }
            let peer = self.named.peer(&previous.address)?;
            peer.ask(previous.alloc, previous.token.expose(), index)
                .await
        };
        let reported = tokio::select! {
            reported = asked => reported,
            () = cancel.cancelled() => Err(cancelled()),
        };
        self.under_way.ended(op);
        Ok(output(Some(reported?), String::new()))
    }

    /// Fetches what an allocation left. Must have begun.
    ///
    /// # Errors
    /// It did not come whole, or it is nothing that is taken in, or it was cancelled. Nothing of it
    /// is left then.
    pub async fn fetch(
        &self,
        op: Op,
        alloc: AllocId,
        previous: &RemotePrevious,
        tasks: Vec<TaskName>,
    ) -> Result<HookOutput, Failure> {
        let cancel = self.under_way.begin(op);
        let result = self.fetched(alloc, previous, tasks, &cancel).await;
        self.under_way.ended(op);
        result
    }

    async fn fetched(
        &self,
        alloc: AllocId,
        previous: &RemotePrevious,
        tasks: Vec<TaskName>,
        cancel: &Cancel,
    ) -> Result<HookOutput, Failure> {
        let began = Instant::now();
        let opened = async {
            let address = match self.place_of(previous).await? {
                Place::At(address) => address,
                Place::Nowhere(why) => return Ok(Err(why)),
            };
            let nodes = match previous.of_servers {
                true => &self.of_cluster,
                false => &self.named,
            };
            let peer = nodes.peer(&address)?;
            let token = previous.token.expose();
            let answer = peer.snapshot(previous.alloc, token).await?;
            Ok::<_, Failure>(Ok((address, answer)))
        };
        let opened = tokio::select! {
            opened = opened => opened?,
            () = cancel.cancelled() => return Err(cancelled()),
        };
        let (address, mut stream) = match opened {
            Ok((address, SnapshotAnswer::Yes(stream))) => (address, stream),
            Ok((_, SnapshotAnswer::Further(alloc, token))) => {
                let further = RemotePrevious {
                    alloc,
                    token,
                    of_servers: true,
                    ..RemotePrevious::default()
                };
                return Ok(HookOutput {
                    lies_with: Some(Box::new(further)),
                    ..output(Some(Remote::Unknown), NEVER_GOT_IT.to_owned())
                });
            }
            Ok((_, SnapshotAnswer::No)) => {
                let why = without_token(previous).unwrap_or_default();
                return Ok(output(Some(Remote::Unknown), why.to_owned()));
            }
            Err(why) => return Ok(output(Some(Remote::Unknown), why.to_owned())),
        };
        let mut coming = self.transfers.begin(alloc);
        let (chunks, from) = mpsc::channel(CHUNKS);
        let (dirs, limits) = (self.dirs.clone(), self.limits);
        let reader = move || receive::receive(&dirs, alloc, &tasks, limits, from);
        let mut reader = on_its_own(reader)?;
        let read = tokio::select! {
            () = stream.pour(chunks, &mut coming) => reader.await,
            read = &mut reader => read,
            // The stream is dropped, so the reader comes to its end soon; nothing of it may be left
            // that writes when the directory is removed.
            () = cancel.cancelled() => {
                drop(stream);
                let _ = reader.await;
                return Err(cancelled());
            }
        };
        let bytes = read.map_err(|_| Failure::recoverable("the transfer died"))??;
        let words = describe(previous.alloc, &address, bytes, began.elapsed());
        Ok(output(None, words))
    }

    /// Where the disk of an allocation is asked for.
    async fn place_of(&self, previous: &RemotePrevious) -> Result<Place, Failure> {
        if !previous.of_servers {
            return Ok(Place::At(previous.address.to_string()));
        }
        let place = self.servers()?.place_of(previous.alloc).await?;
        Ok(match place {
            Place::At(address) if !self.of_cluster.may_speak_to(&address) => {
                Place::Nowhere(NO_AUTHORITY)
            }
            place => place,
        })
    }

    fn servers(&self) -> Result<&dyn KnowAllocs, Failure> {
        self.servers
            .as_deref()
            .ok_or_else(|| Failure::recoverable(NO_SERVERS))
    }
}

/// Runs `work` on a thread of its own. A transfer may take hours, and as long as that it would keep
/// one of the few threads that everybody's short work shares.
fn on_its_own<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<oneshot::Receiver<T>, Failure> {
    let (done, result) = oneshot::channel();
    let run = move || drop(done.send(work()));
    let thread = thread::Builder::new().name("disk-transfer".to_owned());
    let started = thread.spawn(run);
    started.map_err(|error| Failure::recoverable(format!("no thread: {error}")))?;
    Ok(result)
}

/// Why a node does not give a disk away, if there was nothing to show it. Nomad's nodes do where nobody needs a token.
fn without_token(previous: &RemotePrevious) -> Option<&'static str> {
    let is_missing = previous.of_servers && previous.token.expose().is_empty();
    is_missing.then_some("the servers issued no token for it, and its node wants one")
}

/// Why a node does not give away a disk that lies with yet another allocation.
const NEVER_GOT_IT: &str = "it ended before it got that disk itself";

/// Why nothing can be asked of allocations that servers placed.
const NO_SERVERS: &str = "this agent has no servers that could be asked (client { servers })";

/// How many pieces of a stream wait for the disk.
const CHUNKS: usize = 16;

fn cancelled() -> Failure {
    Failure::recoverable("it was cancelled")
}

fn output(remote: Option<Remote>, message: String) -> HookOutput {
    HookOutput {
        remote,
        message,
        ..HookOutput::default()
    }
}

fn describe(alloc: AllocId, address: &str, bytes: u64, time: Duration) -> String {
    let id = alloc.short();
    let came = in_all(bytes, time);
    format!("Migrated the disk of allocation {id} at {address}: {came}")
}
