//! How much one agent serves at a time, and for how long it waits for its clients.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use crate::config::limits::ConnectionsPerClient;

/// The most of something: for all clients together, and for one client address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// For all together.
    pub(crate) total: usize,
    /// For one address.
    pub(crate) each: usize,
}

/// The bounds of connections and requests.
///
/// What may last long (blocking queries, streams, bodies) fits into the connections with some to
/// spare, so that ordinary requests are always answered.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open connections.
    pub(crate) connections: Share,
    /// Blocking queries that wait.
    pub(crate) blocking_queries: Share,
    /// Answers whose pace the reader sets: logs, files, snapshots.
    pub(crate) streams: Share,
    /// Websockets: exec sessions and what else is connected to a task.
    pub(crate) websockets: Share,
    /// Request bodies that are being received.
    pub(crate) bodies: Share,
    /// Bytes of those bodies.
    pub(crate) body_bytes: Share,
    /// How long a connection may be without a request.
    pub(crate) idle: Duration,
    /// How long the head of a request may take from its first byte.
    pub(crate) head: Duration,
    /// How long nothing may come of a body.
    pub(crate) body_silence: Duration,
    /// How long a whole body may take.
    pub(crate) body: Duration,
    /// How long a client may take nothing of its answer, unless that is a stream.
    pub(crate) unread: Duration,
    /// How often connections are checked for what is overdue.
    pub(crate) check: Duration,
}

/// Open files of a process that does not know its limit.
const FILES: u64 = 4096;
/// How many files the process may open for each of the connections; with fewer, there are fewer of everything.
const FILES_OF_CONNECTION: usize = 4;
/// With fewer connections for one client, what lasts long would leave none for ordinary requests.
const LEAST_EACH: usize = 16;
const MIB: usize = 1 << 20;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: Share::of(1024, 512),
            blocking_queries: Share::of(512, 256),
            streams: Share::of(256, 128),
            websockets: Share::of(128, 64),
            bodies: Share::of(64, 32),
            body_bytes: Share::of(64 * MIB, 32 * MIB),
            idle: Duration::from_secs(60),
            head: Duration::from_secs(10),
            body_silence: Duration::from_secs(10),
            body: Duration::from_secs(300),
            unread: Duration::from_secs(30),
            check: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// The limits of this process, by the number of files that it may open, with so many connections for one
    /// client address.
    pub fn of_this_process(connections: Option<ConnectionsPerClient>) -> Limits {
        let files = getrlimit(Resource::Nofile).current;
        let limits = Limits::default().for_each_client(connections);
        limits.within(files.unwrap_or(FILES))
    }

    /// The same with so many connections for one client address, and of all else in proportion.
    fn for_each_client(mut self, connections: Option<ConnectionsPerClient>) -> Limits {
        let full = self.connections.each;
        for share in self.counted() {
            share.each = match connections {
                None => share.each,
                Some(ConnectionsPerClient::All) => share.total,
                Some(ConnectionsPerClient::AtMost(most)) => {
                    let each = share.each.saturating_mul(most.max(LEAST_EACH)) / full;
                    each.max(1)
                }
            };
            share.total = share.total.max(share.each);
        }
        self
    }

    /// The same for a process that may open so many files: most of them are for its tasks.
    fn within(mut self, files: u64) -> Limits {
        let full = self.connections.total.saturating_mul(FILES_OF_CONNECTION);
        let files = usize::try_from(files).unwrap_or(usize::MAX).min(full);
        for share in self.counted() {
            share.total = (share.total.saturating_mul(files) / full).max(2);
            share.each = (share.each.saturating_mul(files) / full).max(1);
        }
        self
    }

    /// What depends on how many connections there may be.
    fn counted(&mut self) -> [&mut Share; 5] {
        [
            &mut self.connections,
            &mut self.blocking_queries,
            &mut self.streams,
            &mut self.websockets,
            &mut self.bodies,
        ]
    }
}

impl Share {
    /// So many for all, and so many for each.
    pub(crate) const fn of(total: usize, each: usize) -> Share {
        Share { total, each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether what lasts long leaves connections for others.
    fn check(limits: &Limits, files: u64) {
        let long = [
            limits.blocking_queries,
            limits.streams,
            limits.websockets,
            limits.bodies,
        ];
        let sum = |part: fn(&Share) -> usize| long.iter().map(part).sum::<usize>();
        let connections = limits.connections;
        assert!(sum(|share| share.total) < connections.total, "{limits:?}");
        assert!(sum(|share| share.each) < connections.each, "{limits:?}");
        assert!(connections.total as u64 <= files / 4, "{limits:?}");
    }

    #[test]
    fn long_requests_leave_connections_for_others() {
        for files in [256, 1024, 1_000_000] {
            check(&Limits::default().within(files), files);
        }
    }

    #[test]
    fn connections_of_one_client_change_all_else_in_proportion() {
        use ConnectionsPerClient::{All, AtMost};
        for (wanted, each, total) in [
            (None, 512, 1024),
            (Some(AtMost(100)), 100, 1024),
            (Some(AtMost(1)), 16, 1024),
            (Some(AtMost(4096)), 4096, 4096),
            (Some(All), 1024, 1024),
        ] {
            let limits = Limits::default().for_each_client(wanted).within(16_384);
            assert_eq!(limits.connections, Share::of(total, each), "{wanted:?}");
            check(&limits, 16_384);
        }
        // As many as the files allow.
        let many = Limits::default().for_each_client(Some(AtMost(1 << 20)));
        assert_eq!(many.within(16_384).connections, Share::of(4096, 4096));
    }
}
