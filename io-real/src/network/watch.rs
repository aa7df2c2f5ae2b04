//! Noticing that somebody else changed the packet filter: `nft flush ruleset`, a firewall that is started again, a
//! container engine that adds chains of its own. The kernel notifies listeners of each change, so nothing is looked
//! at until something happened.
//!
//! It reports this agent's own changes too. That is no circle: the listener only checks whether something is missing,
//! and finds nothing.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::filter::{
    DEL_CHAIN, DEL_ELEMENT, DEL_RULE, DEL_SET, DEL_TABLE, IP, IPTABLES, NEW_CHAIN, kind,
};
use super::netlink::{Answer, Socket, attribute, text};

/// What takes rules away, or puts something in their way.
const CHANGES: [u16; 6] = [
    DEL_TABLE,
    DEL_CHAIN,
    DEL_RULE,
    DEL_SET,
    DEL_ELEMENT,
    NEW_CHAIN,
];

/// After so many packets somebody looks, though there are more.
const MOST: usize = 1024;

/// Watches on a thread of its own, until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    /// The thread sees that the other end of its pipe is gone.
    _end: OwnedFd,
}

impl Watch {
    /// Calls `on_loss` whenever something was taken from the table of this name, or from that of `iptables`, in the
    /// network namespace of the calling thread.
    pub(super) fn start(table: &str, on_loss: impl Fn() + Send + 'static) -> io::Result<Watch> {
        let changes = Socket::filter_changes()?;
        let (ended, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let tables = [table.to_owned(), IPTABLES.to_owned()];
        let follow = move || {
            if let Err(error) = follow(&changes, &ended, &tables, &on_loss) {
                tracing::error!(%error, "nobody sees any more if rules of networks are removed");
            }
        };
        let thread = thread::Builder::new().name("packet-filter".to_owned());
        thread.spawn(follow)?;
        Ok(Watch { _end: end })
    }
}

fn follow(
    changes: &Socket,
    ended: &OwnedFd,
    tables: &[String],
    on_loss: &dyn Fn(),
) -> io::Result<()> {
    loop {
        let end = PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::empty());
        let news = PollFd::from_borrowed_fd(changes.as_fd(), PollFlags::IN);
        let mut both = [end, news];
        match poll(&mut both, None) {
            Err(Errno::INTR) => continue,
            ready => ready?,
        };
        let [end, news] = both.map(|fd| !fd.revents().is_empty());
        if end {
            return Ok(());
        }
        if news && has_changed(changes, tables)? {
            on_loss();
        }
    }
}

/// Whether a change that was notified since is about one of these tables.
fn has_changed(changes: &Socket, tables: &[String]) -> io::Result<bool> {
    let mut has = false;
    for _ in 0..MOST {
        match changes.read_notifications() {
            Ok(Some(notifications)) => has |= notifications.iter().any(|one| is_about(one, tables)),
            Ok(None) => return Ok(has),
            // More was notified than the kernel could keep, and it is unknown what.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => has = true,
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn is_about(notification: &Answer, tables: &[String]) -> bool {
    let body = notification.body.as_slice();
    let table = body.get(4..).and_then(|body| attribute(body, 1)).map(text);
    let is_change = CHANGES.iter().any(|of| kind(*of) == notification.kind);
    let is_ours = |table| tables.contains(&table);
    is_change && body.first() == Some(&IP) && table.is_some_and(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::netlink::Attrs;

    #[test]
    fn only_lost_own_tables_are_rechecked() {
        let tables = ["drover".to_owned(), IPTABLES.to_owned()];
        let notification = |of, family, table: &str| Answer {
            kind: kind(of),
            body: Attrs::after(&[family, 0, 0, 0], &Attrs::new().text(1, table)),
        };
        assert!(is_about(&notification(DEL_TABLE, IP, "drover"), &tables));
        assert!(is_about(&notification(DEL_ELEMENT, IP, "drover"), &tables));
        assert!(is_about(&notification(NEW_CHAIN, IP, IPTABLES), &tables));
        assert!(!is_about(
            &notification(DEL_TABLE, IP, "drover.agent"),
            &tables
        ));
        assert!(!is_about(&notification(DEL_TABLE, 10, "drover"), &tables));
        assert!(!is_about(&notification(0, IP, "drover"), &tables));
        let nothing = Answer {
            kind: kind(DEL_TABLE),
            body: Vec::new(),
        };
        assert!(!is_about(&nothing, &tables));
    }
}
