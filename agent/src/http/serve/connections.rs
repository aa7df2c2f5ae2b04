//! The connections there are, whose they are, and what each is doing: who is admitted, who gives
//! way, and what takes too long.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::limits::{Limits, Share};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing: no byte of a request has come.
    Idle,
    /// A part of a request's head has come.
    Head,
    /// An ordinary request is being answered.
    Answering,
    /// The body of a request is being received.
    Receiving,
    /// A blocking query waits for a change.
    Blocking,
    /// The answer is as long as its reader wants.
    Streaming,
    /// The answer is complete, and not all of it has been sent.
    Sending,
    /// It is a websocket, for as long as both sides want.
    Websocket,
}

/// Why a connection is closed by the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// Another connection needs its capacity, or its client stopped reading.
    Now,
    /// The head of its request took too long.
    LateHead,
}

/// Why a connection or request is refused. Its text is meant for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Busy {
    what: &'static str,
    /// The client that has too many; `None`: all together have.
    client: Option<IpAddr>,
    most: usize,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Busy { what, client, most } = self;
        match client {
            Some(client) => write!(f, "this agent serves {client} not more than {most} {what}")?,
            None => write!(f, "this agent serves not more than {most} {what}")?,
        }
        f.write_str(" at the same time: end some of them, or try again later")
    }
}

/// One connection.
#[derive(Debug)]
struct Entry {
    client: IpAddr,
    phase: Phase,
    /// When that began.
    since: Instant,
    /// Since when the client has taken nothing of what is to be sent.
    unread_since: Option<Instant>,
    /// How many bytes of a body are held.
    body: usize,
    /// Ends with whoever holds the websocket that it has become.
    websocket: Option<oneshot::Receiver<()>>,
    close: oneshot::Sender<Close>,
}

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

/// The connection that a request came over. The default is none, and has no limits.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct Caller(Option<(Arc<Connections>, u64)>);

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) caller: Caller,
    /// Says when and why the connection is to be closed.
    pub(super) closed: oneshot::Receiver<Close>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some((all, id)) = &self.caller.0 {
            all.table().entries.remove(id);
        }
    }
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Connections> {
        let table = Mutex::default();
        Arc::new(Connections { limits, table })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection. Where there are too many, the oldest one without a request gives way.
    ///
    /// # Errors
    /// All of them are in use.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Result<Admitted, Busy> {
        let client = client_of(peer);
        let mut table = self.table();
        let all_connections = |_: &Entry| true;
        if let Err(busy) = table.check(
            client,
            self.limits.connections,
            CONNECTIONS,
            all_connections,
        ) && !table.close_oldest(|entry| {
            entry.is_unused() && busy.client.is_none_or(|client| entry.client == client)
        }) {
            return Err(busy);
        }
        let (close, closed) = oneshot::channel();
        let id = table.next;
        table.next += 1;
        let entry = Entry {
            client,
            phase: Phase::Idle,
            since: Instant::now(),
            unread_since: None,
            body: 0,
            websocket: None,
            close,
        };
        table.entries.insert(id, entry);
        let caller = Caller(Some((self.clone(), id)));
        Ok(Admitted { caller, closed })
    }

    /// Closes the oldest connection without a request, if there is one.
    pub(super) fn close_oldest_idle(&self) {
        self.table().close_oldest(Entry::is_unused);
    }

    /// Closes what is overdue at this time.
    pub(super) fn check(&self, now: Instant) {
        let limits = &self.limits;
        let overdue = |entry: &mut Entry| entry.overdue(limits, now);
        let mut table = self.table();
        let late: Vec<(u64, Close)> = (table.entries.iter_mut())
            .filter_map(|(id, entry)| Some((*id, overdue(entry)?)))
            .collect();
        for (id, why) in late {
            table.close(id, why);
        }
    }
}

/// What a refusal calls connections.
const CONNECTIONS: &str = "connections";

impl Table {
    /// Checks that there is capacity for one more of what `counts`.
    fn check(
        &self,
        client: IpAddr,
        share: Share,
        what: &'static str,
        counts: impl Fn(&Entry) -> bool,
    ) -> Result<(), Busy> {
        self.check_sum(client, share, 1, what, |entry| usize::from(counts(entry)))
    }

    /// Checks that `more` fit within the share.
    fn check_sum(
        &self,
        client: IpAddr,
        share: Share,
        more: usize,
        what: &'static str,
        amount: impl Fn(&Entry) -> usize,
    ) -> Result<(), Busy> {
        let (mut total, mut own) = (more, more);
        for entry in self.entries.values() {
            let amount = amount(entry);
            total = total.saturating_add(amount);
            if entry.client == client {
                own = own.saturating_add(amount);
            }
        }
        let (client, most) = if own > share.each {
            (Some(client), share.each)
        } else if total > share.total {
            (None, share.total)
        } else {
            return Ok(());
        };
        Err(Busy { what, client, most })
    }

    /// Closes the one that has been as it is for the longest time. Whether there was one.
    fn close_oldest(&mut self, may_go: impl Fn(&Entry) -> bool) -> bool {
        let candidates = self.entries.iter().filter(|(_, entry)| may_go(entry));
        let oldest = candidates.min_by_key(|(_, entry)| entry.since);
        let Some(id) = oldest.map(|(id, _)| *id) else {
            return false;
        };
        self.close(id, Close::Now);
        true
    }

    fn close(&mut self, id: u64, why: Close) {
        if let Some(entry) = self.entries.remove(&id) {
            // A connection that ended meanwhile does not hear it.
            let _ = entry.close.send(why);
        }
    }
}

impl Entry {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }

    /// Whether no request is lost when it is closed.
    fn is_unused(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Head)
    }

    fn overdue(&self, limits: &Limits, now: Instant) -> Option<Close> {
        let age = now.saturating_duration_since(self.since);
        let unread = self.unread_since;
        let unread = unread.map(|since| now.saturating_duration_since(since));
        match self.phase {
            Phase::Idle if age >= limits.idle => Some(Close::Now),
            Phase::Head if age >= limits.head => Some(Close::LateHead),
            Phase::Streaming | Phase::Websocket => None,
            Phase::Idle
            | Phase::Head
            | Phase::Answering
            | Phase::Receiving
            | Phase::Blocking
            | Phase::Sending => unread
                .is_some_and(|unread| unread >= limits.unread)
                .then_some(Close::Now),
        }
    }
}

impl Caller {
    /// Does something with its entry, unless it is closed.
    fn with<T>(&self, work: impl FnOnce(&Limits, &mut Table, u64) -> T) -> Option<T> {
        let (all, id) = self.0.as_ref()?;
        let mut table = all.table();
        let is_open = table.entries.contains_key(id);
        is_open.then(|| work(&all.limits, &mut table, *id))
    }

    fn update(&self, change: impl FnOnce(&mut Entry)) {
        self.with(|_, table, id| {
            if let Some(entry) = table.entries.get_mut(&id) {
                change(entry);
            }
        });
    }

    /// Changes from one phase to another, if it is in that one.
    fn turn(&self, from: Phase, to: Phase) {
        self.update(|entry| {
            if entry.phase == from {
                entry.enter(to);
            }
        });
    }

    /// Bytes have come.
    pub(super) fn received(&self) {
        self.turn(Phase::Idle, Phase::Head);
    }

    /// A request is there.
    pub(super) fn begin(&self) {
        self.update(|entry| entry.enter(Phase::Answering));
    }

    /// Its answer is complete.
    pub(super) fn answered(&self) {
        self.update(|entry| {
            if entry.phase != Phase::Websocket {
                entry.enter(Phase::Sending);
            }
        });
    }

    /// All that was to be sent has been.
    pub(super) fn flushed(&self) {
        self.turn(Phase::Sending, Phase::Idle);
    }

    /// No further request will come.
    pub(super) fn ended(&self) {
        self.update(|entry| entry.enter(Phase::Idle));
    }

    /// The client takes nothing at the moment, or does again.
    pub(super) fn is_unread(&self, unread: bool) {
        self.update(|entry| {
            let since = entry.unread_since.unwrap_or_else(Instant::now);
            entry.unread_since = unread.then_some(since);
        });
    }

    /// Checks the capacity for one more in this phase, and enters it.
    fn enter(
        &self,
        phase: Phase,
        what: &'static str,
        share: fn(&Limits) -> Share,
    ) -> Result<(), Busy> {
        let entered = self.with(|limits, table, id| {
            let Some(client) = table.entries.get(&id).map(|entry| entry.client) else {
                return Ok(());
            };
            let counts = |entry: &Entry| entry.phase == phase;
            if let Err(busy) = table.check(client, share(limits), what, counts) {
                let stalled = Instant::now().checked_sub(limits.unread);
                let gives_way = |entry: &Entry| {
                    let stalls = entry.unread_since.zip(stalled);
                    counts(entry)
                        && stalls.is_some_and(|(since, limit)| since <= limit)
                        && busy.client.is_none_or(|client| entry.client == client)
                };
                if !table.close_oldest(gives_way) {
                    return Err(busy);
                }
            }
            if let Some(entry) = table.entries.get_mut(&id) {
                entry.enter(phase);
            }
            Ok(())
        });
        entered.unwrap_or(Ok(()))
    }

    /// Counts a blocking query until what is returned is dropped.
    ///
    /// # Errors
    /// There are too many.
    pub(in crate::http) fn block(&self) -> Result<Waits, Busy> {
        self.enter(Phase::Blocking, "blocking queries", |limits| {
            limits.blocking_queries
        })?;
        Ok(Waits(self.clone()))
    }

    /// Counts its answer as a stream, to its end. A stream that nobody reads gives way.
    ///
    /// # Errors
    /// There are too many.
    pub(in crate::http) fn stream(&self) -> Result<(), Busy> {
        self.enter(Phase::Streaming, "streams of logs or files", |limits| {
            limits.streams
        })
    }

    /// The connection becomes a websocket, until what is returned is dropped.
    ///
    /// # Errors
    /// There are too many.
    pub(in crate::http) fn upgrade(&self) -> Result<Upgraded, Busy> {
        self.enter(Phase::Websocket, "websockets", |limits| limits.websockets)?;
        let (upgraded, over) = oneshot::channel();
        self.update(|entry| entry.websocket = Some(over));
        Ok(Upgraded(upgraded))
    }

    /// What ends with the websocket, if the connection has become one.
    pub(super) fn websocket(&self) -> Option<oneshot::Receiver<()>> {
        let own = |_: &Limits, table: &mut Table, id: u64| {
            let entry = table.entries.get_mut(&id)?;
            entry.websocket.take()
        };
        self.with(own).flatten()
    }

    /// Counts a body until what is returned is dropped.
    ///
    /// # Errors
    /// There are too many.
    pub(in crate::http) fn receive(&self) -> Result<Receiving, Busy> {
        self.enter(Phase::Receiving, "request bodies", |limits| limits.bodies)?;
        Ok(Receiving(self.clone()))
    }
}

/// A websocket.
#[derive(Debug)]
pub(in crate::http) struct Upgraded(#[expect(dead_code, reason = "dropped")] oneshot::Sender<()>);

/// A blocking query.
#[derive(Debug)]
pub(in crate::http) struct Waits(Caller);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.turn(Phase::Blocking, Phase::Answering);
    }
}

/// A body that is being received.
#[derive(Debug)]
pub(in crate::http) struct Receiving(Caller);

impl Receiving {
    /// Counts these further bytes.
    ///
    /// # Errors
    /// There are too many.
    pub(in crate::http) fn grow(&self, bytes: usize) -> Result<(), Busy> {
        let grown = self.0.with(|limits, table, id| {
            let Some(client) = table.entries.get(&id).map(|entry| entry.client) else {
                return Ok(());
            };
            let (share, what) = (limits.body_bytes, "bytes of request bodies");
            table.check_sum(client, share, bytes, what, |entry| entry.body)?;
            if let Some(entry) = table.entries.get_mut(&id) {
                entry.body += bytes;
            }
            Ok(())
        });
        grown.unwrap_or(Ok(()))
    }

    /// The limits of this body's time: of silence, and of the whole.
    pub(in crate::http) fn times(&self) -> (std::time::Duration, std::time::Duration) {
        let own = self
            .0
            .with(|limits, _, _| (limits.body_silence, limits.body));
        own.unwrap_or_else(|| {
            let limits = Limits::default();
            (limits.body_silence, limits.body)
        })
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.update(|entry| entry.body = 0);
        self.0.turn(Phase::Receiving, Phase::Answering);
    }
}

/// Whose connections are counted together: one address, and in IPv6 one network of a host.
fn client_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => {
            let network = u128::from(v6) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
    }
}
