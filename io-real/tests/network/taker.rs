//! The node that takes a disk over: the agent's own code over the simulated network, asked again as
//! the core asks.

use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use drover_core::ids::{AllocId, TaskName};
use drover_core::input::HookOutput;
use drover_core::model::remote::{Remote, RemotePrevious};
use drover_core::op::{Failure, Op};
use drover_io_real::cluster::KnowAllocs;
use drover_io_real::connect::{Connect, Connecting, Connection};
use drover_io_real::dirs::AllocDirs;
use drover_io_real::migrate::receive::Limits;
use drover_io_real::migrate::{Migration, Nodes};
use drover_io_real::transfers::Transfers;
use tempfile::TempDir;
use tokio::time::sleep;

use super::giver::{PORT, PREVIOUS, TASK, TOKEN, now};

/// The allocation that gets the disk.
const ALLOC: AllocId = AllocId(0xb);
/// The pause after what did not work.
const PAUSE: Duration = Duration::from_secs(30);

/// TCP over the simulated network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulated;

impl Connect for Simulated {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let stream = turmoil::net::TcpStream::connect(authority).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

fn simulated() -> Nodes {
    Nodes::new(Arc::new(Simulated), None)
}

/// One answer, and the second of the world in which it came.
pub(crate) type Answered<T> = (u64, Result<T, Failure>);

/// A node with an allocation that waits for its disk.
pub(crate) struct Taker {
    migration: Migration,
    transfers: Transfers,
    previous: RemotePrevious,
    ops: u64,
    dir: TempDir,
}

impl Taker {
    pub(crate) fn new() -> Taker {
        Taker::within(Limits::default())
    }

    /// One that takes no larger disks than this.
    pub(crate) fn within(limits: Limits) -> Taker {
        let dir = TempDir::new().expect("a directory");
        let dirs = AllocDirs::new(Arc::new(File::open(dir.path()).expect("opened").into()));
        dirs.build_alloc(ALLOC).expect("an allocation");
        dirs.build_task(ALLOC, TASK, None).expect("a task");
        let transfers = Transfers::default();
        let migration = Migration::new(dirs, limits, transfers.clone());
        Taker {
            transfers,
            migration: migration.over(Arc::new(Simulated)),
            previous: RemotePrevious {
                alloc: PREVIOUS,
                address: format!("http://giver:{PORT}").into(),
                token: TOKEN.into(),
                ended: false,
                of_servers: false,
            },
            ops: 0,
            dir,
        }
    }

    /// The same where servers placed the allocation that has the disk, and issued this token.
    pub(crate) fn in_cluster(self, servers: Arc<dyn KnowAllocs>, token: &str) -> Taker {
        Taker {
            migration: self.migration.in_cluster(Some(servers), simulated()),
            previous: RemotePrevious {
                alloc: PREVIOUS,
                token: token.into(),
                of_servers: true,
                ..RemotePrevious::default()
            },
            ..self
        }
    }

    /// The other node's allocation is asked about until it is over.
    pub(crate) async fn ask_until_it_ended(&mut self) -> Vec<Answered<Remote>> {
        let (mut answers, mut index) = (Vec::new(), 0);
        loop {
            let answer = self.ask(index).await;
            answers.push((now().as_secs(), answer.clone()));
            match answer {
                Ok(Remote::Runs { index: known }) => index = known,
                Ok(Remote::Ended | Remote::Unknown) => return answers,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// One question.
    pub(crate) async fn ask(&mut self, index: u64) -> Result<Remote, Failure> {
        let op = self.begin();
        let output = self.migration.ask(op, &self.previous, index).await?;
        Ok(output
            .remote
            .expect("an answer says what the other node says"))
    }

    /// Fetches the disk until it is here; what failed before that is returned.
    pub(crate) async fn fetch_until_it_is_here(&mut self) -> Vec<Failure> {
        let mut failures = Vec::new();
        while let Err(failure) = self.fetch().await {
            assert!(failure.recoverable, "{failure:?}");
            assert_eq!(self.taken(), None, "part of a disk after {failure:?}");
            assert_eq!(self.leftovers(), Vec::<String>::new(), "after {failure:?}");
            failures.push(failure);
            sleep(PAUSE).await;
        }
        failures
    }

    /// One try.
    pub(crate) async fn fetch(&mut self) -> Result<(), Failure> {
        self.fetch_saying().await.map(drop)
    }

    /// The same, and what is said of it.
    pub(crate) async fn fetch_saying(&mut self) -> Result<HookOutput, Failure> {
        let op = self.begin();
        let tasks = vec![TaskName::from(TASK)];
        self.migration.fetch(op, ALLOC, &self.previous, tasks).await
    }

    /// The same, cancelled after a while.
    pub(crate) async fn fetch_for(&mut self, time: Duration) -> Result<(), Failure> {
        let migration = self.migration.clone();
        let op = Op(self.ops + 1);
        tokio::spawn(async move {
            sleep(time).await;
            migration.cancel(op);
        });
        self.fetch().await
    }

    fn begin(&mut self) -> Op {
        self.ops += 1;
        self.migration.begin(Op(self.ops));
        Op(self.ops)
    }

    /// What the task has of the other one's disk.
    pub(crate) fn taken(&self) -> Option<Vec<u8>> {
        let table = self.dir.path().join(format!("{ALLOC}/{TASK}/local/table"));
        match fs::read(table) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Nothing was taken over, and nothing is left of the try.
    pub(crate) fn assert_untouched(&self) {
        assert_eq!(self.taken(), None);
        assert_eq!(self.leftovers(), Vec::<String>::new());
        assert_eq!(self.transfers.of(ALLOC), None);
    }

    /// What lies beside the allocation's directory.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        names.filter(|name| *name != ALLOC.to_string()).collect()
    }
}
