//! How much one agent serves at a time, and for how long it waits for its clients.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};

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
pub(crate) struct Limits {
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

/// Open files that the numbers below are meant for; with fewer, there are fewer of everything.
const FILES: u64 = 4096;
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
    /// The limits of a process that may open as many files as this one.
    pub(crate) fn of_this_process() -> Limits {
        let files = getrlimit(Resource::Nofile).current;
        Limits::default().within(files.unwrap_or(FILES))
    }

    /// The same for a process that may open so many files: most of them are for its tasks.
    fn within(mut self, files: u64) -> Limits {
        let files = usize::try_from(files.min(FILES)).unwrap_or(0);
        let full = usize::try_from(FILES).unwrap_or(usize::MAX);
        let shares = [
            &mut self.connections,
            &mut self.blocking_queries,
            &mut self.streams,
            &mut self.websockets,
            &mut self.bodies,
        ];
        for share in shares {
            share.total = (share.total * files / full).max(2);
            share.each = (share.each * files / full).max(1);
        }
        self
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

    #[test]
    fn long_requests_leave_connections_for_others() {
        for files in [256, 1024, 1_000_000] {
            let limits = Limits::default().within(files);
            let long = [
                limits.blocking_queries,
                limits.streams,
                limits.websockets,
                limits.bodies,
            ];
            let sum = |part: fn(&Share) -> usize| long.iter().map(part).sum::<usize>();
            assert!(
                sum(|share| share.total) < limits.connections.total,
                "{files}"
            );
            assert!(sum(|share| share.each) < limits.connections.each, "{files}");
            assert!(limits.connections.total as u64 <= files / 4);
        }
    }
}
