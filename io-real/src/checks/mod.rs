//! Checks of services: each question is asked once, of the service's own address, and answered in bounded time and
//! space. What an answer means, and when what is asked, the core decides. Programs of checks run in their tasks,
//! through the task's driver.

mod grpc;
mod http;
mod https;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::agent::Input;
use drover_core::effect::{CheckEffect, Probe, ProbeKind};
use drover_core::ids::AllocId;
use drover_core::input::{CheckInput, ProbeAnswer};
use drover_core::op::{Failure, Op};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::driver::Inbox;

/// How many services are asked at the same time; each is a socket. Who waits for a turn waits within its time.
const AT_A_TIME: usize = 512;

/// How many of them by work that blocks a thread.
const BLOCKING_AT_A_TIME: usize = 8;

/// How much of an answer is read, in bytes: what people see of it, and a little more.
const MAX_BODY: usize = 4 * 1024;

/// Whoever asks services. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Checks {
    inbox: Inbox,
    under_way: Arc<Mutex<BTreeMap<Op, AbortHandle>>>,
    turns: Arc<Semaphore>,
    blocking_turns: Arc<Semaphore>,
}

impl Checks {
    /// Answers to `inbox`.
    pub fn new(inbox: Inbox) -> Checks {
        Checks {
            inbox,
            under_way: Arc::default(),
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            blocking_turns: Arc::new(Semaphore::new(BLOCKING_AT_A_TIME)),
        }
    }

    /// Begins what is asked, without blocking. One answer follows, unless it is cancelled.
    pub fn carry_out(&self, effect: CheckEffect) {
        match effect {
            CheckEffect::Run {
                op, alloc, probe, ..
            } => {
                let mut under_way = self.under_way();
                // It cannot remove itself before it is there: the lock is held.
                let asking = tokio::spawn(self.clone().ask(op, alloc, probe));
                under_way.insert(op, asking.abort_handle());
            }
            CheckEffect::Cancel { op } => {
                if let Some(asking) = self.under_way().remove(&op) {
                    asking.abort();
                }
            }
        }
    }

    async fn ask(self, op: Op, alloc: AllocId, probe: Arc<Probe>) {
        let limit = Duration::from_nanos(u64::try_from(probe.timeout.0).unwrap_or(0));
        let result = match timeout(limit, self.answer(&probe, limit)).await {
            Ok(result) => result.map_err(Failure::recoverable),
            Err(_) => {
                let why = format!("no answer within {}", probe.timeout);
                Err(Failure::recoverable(why))
            }
        };
        self.under_way().remove(&op);
        let input = CheckInput { op, alloc, result };
        self.inbox.deliver(Input::Check(input));
    }

    async fn answer(&self, probe: &Probe, limit: Duration) -> Result<ProbeAnswer, String> {
        let _turn = self.turns.acquire().await.map_err(words)?;
        match &probe.how {
            ProbeKind::Http(request) => match &request.tls {
                None => http::ask(connect(probe).await?, probe, request).await,
                Some(tls) => {
                    let turn = self.blocking_turns.clone().acquire_owned().await;
                    let turn = turn.map_err(words)?;
                    let address = resolve(probe).await?;
                    https::ask(turn, address, probe, request, tls, limit).await
                }
            },
            ProbeKind::Tcp => {
                connect(probe).await?;
                Ok(ProbeAnswer::Connected)
            }
            ProbeKind::Grpc(service) => grpc::ask(connect(probe).await?, probe, service).await,
        }
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Op, AbortHandle>> {
        // Nothing that holds the lock can panic half way.
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

async fn resolve(probe: &Probe) -> Result<SocketAddr, String> {
    if let Ok(address) = probe.host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, probe.port));
    }
    let found = lookup_host((probe.host.as_str(), probe.port)).await;
    let mut found = found.map_err(|error| format!("{}: {error}", probe.host))?;
    found
        .next()
        .ok_or_else(|| format!("{} has no address", probe.host))
}

async fn connect(probe: &Probe) -> Result<TcpStream, String> {
    let address = resolve(probe).await?;
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| format!("{address}: {error}"))?;
    // Questions are small and shall leave at once.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// `HOST:PORT`, as it stands in a request.
fn authority(probe: &Probe) -> String {
    match probe.host.contains(':') {
        true => format!("[{}]:{}", probe.host, probe.port),
        false => format!("{}:{}", probe.host, probe.port),
    }
}

fn words(error: impl Display) -> String {
    error.to_string()
}
