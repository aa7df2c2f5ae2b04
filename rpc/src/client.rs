//! Calls to the cluster: one connection at a time, opened on demand and reused.
//!
//! A call uses the current connection. If that is lost or cannot be opened, the client fails over to the
//! next server ([`Servers`]), until the call has its reply or its deadline has passed. A request that may
//! have been carried out is sent again only if it is idempotent ([`Request::IDEMPOTENT`]); one that a server
//! cannot serve yet (no leader, just started) is always sent again. All other errors are the caller's.
//!
//! Servers call a node over the connection on which it registered, sent its last heartbeat or queries its
//! allocations. So all calls share one connection, and inbound calls are served for as long as it is open.
//! Failing over cuts inbound log and exec sessions. So the connection is kept through an election, and
//! through a single slow call; but not through a heartbeat without an answer ([`Client::call_or_leave`]): without one
//! in time the node counts as lost, and so does all that runs there. Calls under way stay on the connection that was
//! left, which closes after them; what waits there for news is asked elsewhere ([`Client::call_and_follow`]).

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_tls::TlsError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::connection::{Connection, Handler, Limits, open};
use crate::error::Error;
use crate::servers::{Choice, Servers};
use crate::types::Request;

/// After so many temporary errors or missed deadlines in a row the client fails over.
const MAX_FAILURES: u32 = 3;

/// Which failures of a server a call tolerates before it is left.
#[derive(Clone, Copy)]
struct RetryPolicy {
    /// A server that misses so many deadlines in a row is left. With none, a missed one says nothing of it, nor do
    /// its temporary errors.
    missed: Option<u32>,
    /// Whether one whose reply cannot be read is kept.
    unreadable: bool,
    /// Whether it is asked elsewhere when its server is left.
    follows: bool,
}

/// That of most calls.
const DEFAULT_RETRY: RetryPolicy = RetryPolicy {
    missed: Some(MAX_FAILURES),
    unreadable: false,
    follows: false,
};

/// Opens transports.
pub trait Connector: Send + Sync + 'static {
    /// The transport.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Connects to an address, as `10.0.0.1:4647`. The caller bounds the time. Socket options (`NODELAY`,
    /// keep-alive, user timeout) are the connector's.
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Io>> + Send;

    /// Is notified why a server is not used: there was no connection, or it is over. For a log; calls go on by
    /// themselves.
    fn failed(&self, error: &Error) {
        let _ = error;
    }
}

/// Calls servers, and serves their calls by a [`Handler`].
pub struct Client<C, H> {
    connector: C,
    handler: Arc<H>,
    limits: Limits,
    /// The origin of the times that `servers` sees.
    start: Instant,
    servers: Mutex<Servers>,
    current: Mutex<Option<Connection>>,
    /// Notifies waiting calls that a server was left.
    left: watch::Sender<()>,
    /// Held by whoever opens a connection; the others wait for it.
    connecting: tokio::sync::Mutex<()>,
    /// Deadlines missed in a row on the current connection.
    missed: AtomicU32,
}

impl<C: Connector, H: Handler> Client<C, H> {
    /// A client without a connection: the first call opens one.
    pub fn new(connector: C, handler: Arc<H>, servers: Servers, limits: Limits) -> Client<C, H> {
        Client {
            connector,
            handler,
            limits,
            start: Instant::now(),
            servers: Mutex::new(servers),
            current: Mutex::new(None),
            left: watch::Sender::new(()),
            connecting: tokio::sync::Mutex::new(()),
            missed: AtomicU32::new(0),
        }
    }

    /// Replaces the list of servers by the one in a reply to a registration or heartbeat.
    pub fn update_servers<'a>(&self, advertised: impl IntoIterator<Item = &'a String>) {
        locked(&self.servers).update(advertised);
    }

    /// The address of the server to which there is an open connection.
    pub fn server(&self) -> Option<String> {
        self.open_connection()
            .map(|connection| connection.server().to_owned())
    }

    /// Calls a server and waits for its reply, `wait` at most.
    ///
    /// # Errors
    /// If a server replies with an error that is not temporary, or none replies in time.
    pub async fn call<R: Request>(&self, request: &R, wait: Duration) -> Result<R::Reply, Error> {
        self.call_with(request, wait, DEFAULT_RETRY).await
    }

    /// The same where a reply that cannot be read says nothing of the server, but of what was asked for.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_and_stay<R: Request>(
        &self,
        request: &R,
        wait: Duration,
    ) -> Result<R::Reply, Error> {
        let policy = RetryPolicy {
            unreadable: true,
            ..DEFAULT_RETRY
        };
        self.call_with(request, wait, policy).await
    }

    /// The same for a question that servers hold back until there is news, and that is harmless to ask twice. One that was
    /// left because it does not answer others may not have the news: it is asked anew where the others go.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_and_follow<R: Request>(
        &self,
        request: &R,
        wait: Duration,
    ) -> Result<R::Reply, Error> {
        let follows = R::IDEMPOTENT;
        self.call_with(
            request,
            wait,
            RetryPolicy {
                follows,
                ..DEFAULT_RETRY
            },
        )
        .await
    }

    /// The same for what cannot wait: a server that misses the deadline is left at once, also if it took the call.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_or_leave<R: Request>(
        &self,
        request: &R,
        wait: Duration,
    ) -> Result<R::Reply, Error> {
        let missed = Some(1);
        self.call_with(
            request,
            wait,
            RetryPolicy {
                missed,
                ..DEFAULT_RETRY
            },
        )
        .await
    }

    /// The same for what others ask, of whom nobody knows how often, and which servers: what comes of it says nothing
    /// of this one, which the node's own calls leave or keep.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_for_others<R: Request>(
        &self,
        request: &R,
        wait: Duration,
    ) -> Result<R::Reply, Error> {
        let policy = RetryPolicy {
            missed: None,
            unreadable: true,
            follows: false,
        };
        self.call_with(request, wait, policy).await
    }

    async fn call_with<R: Request>(
        &self,
        request: &R,
        wait: Duration,
        policy: RetryPolicy,
    ) -> Result<R::Reply, Error> {
        let deadline = Instant::now() + wait;
        let mut last = None;
        let mut temporary = 0;
        loop {
            let Ok(connection) = timeout_at(deadline, self.connection(&mut last)).await else {
                let last = last.map(Box::new);
                return Err(Error::Unavailable {
                    method: R::METHOD,
                    after: wait,
                    last,
                });
            };
            let connection = connection?;
            let left = deadline.saturating_duration_since(Instant::now());
            let called = connection.call(request, left);
            let called = match policy.follows {
                false => Some(called.await),
                true => self.unless_left(&connection, called).await,
            };
            let error = match called {
                Some(Ok(reply)) => {
                    self.replied(&connection);
                    return Ok(reply);
                }
                Some(Err(error)) => error,
                None => continue,
            };
            if !self.may_retry(&connection, &error, R::IDEMPOTENT, policy) {
                return Err(error);
            }
            if let Error::Server { .. } = error {
                temporary += 1;
                if temporary % MAX_FAILURES == 0 && policy.missed.is_some() {
                    self.fail_over(&connection);
                }
                let retry = Instant::now() + locked(&self.servers).retry_delay();
                if timeout_at(deadline, sleep_until(retry)).await.is_err() {
                    return Err(error);
                }
            }
            last = Some(error);
        }
    }

    /// What comes of a call; nothing as soon as its connection is left.
    async fn unless_left<T>(
        &self,
        connection: &Connection,
        called: impl Future<Output = T>,
    ) -> Option<T> {
        let mut left = self.left.subscribe();
        let is_left =
            async { while self.is_current(connection) && left.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            result = called => Some(result),
            () = is_left => None,
        }
    }

    fn is_current(&self, connection: &Connection) -> bool {
        self.if_current(connection).is_some()
    }

    /// The current connection, if it is this one. Nobody exchanges it for as long as that is held.
    fn if_current(&self, connection: &Connection) -> Option<MutexGuard<'_, Option<Connection>>> {
        let current = locked(&self.current);
        let is_this = (current.as_ref()).is_some_and(|current| current.is_same(connection));
        is_this.then_some(current)
    }

    /// Draws the conclusions of a failed call, and says whether to call again.
    fn may_retry(
        &self,
        connection: &Connection,
        error: &Error,
        idempotent: bool,
        policy: RetryPolicy,
    ) -> bool {
        match error {
            Error::Server { error, .. } => {
                self.replied(connection);
                error.kind.is_temporary()
            }
            Error::DeadlineExceeded { acknowledged, .. } => {
                let too_many = |most| self.missed.fetch_add(1, Ordering::Relaxed) + 1 >= most;
                if !acknowledged || policy.missed.is_some_and(too_many) {
                    self.fail_over(connection);
                }
                false
            }
            Error::InvalidReply { .. } if policy.unreadable => false,
            Error::InvalidReply { .. } => {
                self.fail_over(connection);
                false
            }
            Error::ConnectionLost { sent, .. } => {
                self.connector.failed(error);
                self.fail_over(connection);
                idempotent || !sent
            }
            Error::Tls { reason, .. } => {
                self.connector.failed(error);
                self.fail_over(connection);
                // Of one that was closed without a word nobody knows what the server has seen.
                idempotent || *reason != TlsError::ClosedUnheard
            }
            Error::Unreachable { .. }
            | Error::Unavailable { .. }
            | Error::InvalidRequest { .. }
            | Error::NoServers => false,
        }
    }

    /// The server has replied.
    fn replied(&self, connection: &Connection) {
        self.missed.store(0, Ordering::Relaxed);
        locked(&self.servers).succeeded(connection.server());
    }

    fn open_connection(&self) -> Option<Connection> {
        let current = locked(&self.current);
        current
            .as_ref()
            .filter(|connection| connection.close_reason().is_none())
            .cloned()
    }

    /// The current connection, or a new one. Failures on the way are left in `last`.
    async fn connection(&self, last: &mut Option<Error>) -> Result<Connection, Error> {
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let _connecting = self.connecting.lock().await;
        loop {
            // Another call may have opened one meanwhile.
            if let Some(connection) = self.open_connection() {
                return Ok(connection);
            }
            let choice = locked(&self.servers).choose(self.start.elapsed());
            match choice {
                Choice::Use(address) => {
                    let mut attempt = self.attempt(&address);
                    match self.connect(address).await {
                        Ok(connection) => {
                            attempt.succeeded = true;
                            return Ok(connection);
                        }
                        Err(error) => {
                            self.connector.failed(&error);
                            *last = Some(error);
                        }
                    }
                }
                Choice::Wait(until) => sleep_until(self.start + until).await,
                Choice::Empty => return Err(Error::NoServers),
            }
        }
    }

    fn attempt<'a>(&'a self, address: &str) -> Attempt<'a> {
        Attempt {
            servers: &self.servers,
            address: address.to_owned(),
            start: self.start,
            succeeded: false,
        }
    }

    async fn connect(&self, address: String) -> Result<Connection, Error> {
        let time = self.limits.connect_timeout;
        let unreachable = |reason| Error::Unreachable {
            server: address.clone(),
            reason,
        };
        let io = match timeout(time, self.connector.connect(&address)).await {
            Ok(Ok(io)) => io,
            Ok(Err(error)) => {
                return Err(match TlsError::within(&error) {
                    Some(reason) => Error::Tls {
                        server: address,
                        reason: reason.clone(),
                    },
                    None => unreachable(error.to_string()),
                });
            }
            Err(_) => return Err(unreachable(format!("no connection within {time:?}"))),
        };
        let (connection, driver) = open(io, address, self.handler.clone(), self.limits);
        tokio::spawn(driver);
        *locked(&self.current) = Some(connection.clone());
        self.missed.store(0, Ordering::Relaxed);
        Ok(connection)
    }

    /// Has further calls use another server. Calls that are under way stay on the old connection, which
    /// closes after them.
    fn fail_over(&self, connection: &Connection) {
        // Another call may have failed over before.
        if let Some(mut current) = self.if_current(connection) {
            *current = None;
            self.left.send_replace(());
            locked(&self.servers).failed(connection.server(), self.start.elapsed());
        }
    }
}

/// An attempt to connect. A server is not tried next if it failed, nor if whoever waited for it had no more time.
struct Attempt<'a> {
    servers: &'a Mutex<Servers>,
    address: String,
    start: Instant,
    succeeded: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.succeeded {
            locked(self.servers).failed(&self.address, self.start.elapsed());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
