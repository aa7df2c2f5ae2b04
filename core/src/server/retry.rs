//! How long is waited before something is tried again. Each pause has a random part, so that nodes that lost
//! their servers together do not return together.

use crate::cluster::CallErrorKind;
use crate::cx::Cx;
use crate::time::{Instant, Span};

/// The pause after a registration, or a first heartbeat, that failed; and the most that is added to it.
const REGISTRATION: Span = Span::secs(15);
/// The same where no server is known: as soon as one is, it is asked.
const NO_SERVERS: Span = Span::secs(1);
/// Between two heartbeats that fail it is never less than this, and up to twice of it where the node may count as
/// lost already.
const SHORTEST: Span = Span::secs(1);
/// Nor more than this, unless the servers have been out of reach for longer.
const LONGEST: Span = Span::secs(30);
/// Up to how much less than the longest pause is taken, where that would be exceeded.
const LONGEST_JITTER: Span = Span::secs(5);

/// `span`, and any time up to as much again.
pub(super) fn up_to_twice(cx: &mut Cx<'_>, span: Span) -> Span {
    Span(span.0.saturating_add(cx.at_most(span).0))
}

/// When a registration that failed is tried again.
pub(super) fn registration(cx: &mut Cx<'_>, why: CallErrorKind) -> Instant {
    let pause = match why {
        CallErrorKind::NoServers => NO_SERVERS,
        CallErrorKind::NoLeader
        | CallErrorKind::UnknownNode
        | CallErrorKind::PermissionDenied
        | CallErrorKind::Other => REGISTRATION,
    };
    cx.now.at + up_to_twice(cx, pause)
}

/// When a heartbeat that failed is tried again; `until` is when the last one stops counting, by the clock of the
/// servers, which give some grace. None if the servers never heard one.
///
/// While there is time, a part of it is waited, so that not all nodes ask at once; then every second or two; and
/// after half a minute less and less often.
pub(super) fn heartbeat(cx: &mut Cx<'_>, why: CallErrorKind, until: Option<Instant>) -> Instant {
    let now = cx.now.at;
    let Some(until) = until else {
        return registration(cx, why);
    };
    match why {
        // A new leader gives every node minutes, and has much to do.
        CallErrorKind::NoServers | CallErrorKind::NoLeader => return registration(cx, why),
        CallErrorKind::UnknownNode | CallErrorKind::PermissionDenied | CallErrorKind::Other => {}
    }
    let (left, overdue) = (until - now, now - until);
    let most = match overdue > LONGEST {
        true => overdue,
        false => left,
    };
    let pause = cx.at_most(most);
    now + if pause < SHORTEST {
        up_to_twice(cx, SHORTEST)
    } else if pause > LONGEST {
        Span(LONGEST.0 - cx.at_most(LONGEST_JITTER).0)
    } else {
        pause
    }
}
