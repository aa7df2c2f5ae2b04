//! Whose an allocation is, and what becomes of one of servers while they are out of reach.

use super::{Waiting, wall};
use crate::agent::View;
use crate::alloc::runner::AllocRunner;
use crate::store::record::AllocRecord;
use crate::time::{Now, SECOND, Span};

/// Who placed an allocation here, where the node has servers that could have.
pub(super) fn placed_by(view: View<'_>, record: &AllocRecord) -> &'static str {
    match (record.of_servers, view.server().is_some()) {
        (true, true) => "the servers of the cluster",
        (true, false) => "servers of a cluster, which the node does not have any more",
        (false, true) => "this node itself; its servers know nothing of it",
        (false, false) => "",
    }
}

impl View<'_> {
    /// The servers that an allocation of theirs does without, if they do not answer.
    pub(super) fn server_wait(self, now: Now, alloc: &AllocRunner) -> Option<Waiting> {
        let record = alloc.record();
        let server = self.server().filter(|_| record.of_servers)?;
        if !server.heartbeat().is_failing() {
            return None;
        }
        let silent = Span::secs((now.at - server.last_contact()).0.max(0) / SECOND);
        let why = server.last_error().map(|why| format!(": {why}"));
        let why = why.unwrap_or_default();
        let ends = record.finished || record.desired.is_terminal();
        let until = server.ends_without_contact(record.id).filter(|_| !ends);
        let then = match (ends, until) {
            (true, _) => "they hear what became of it",
            (false, None) => "it goes on meanwhile, and they hear what became of it",
            (false, Some(_)) => "it is stopped if none answers until then, as its group wants",
        };
        Some(Waiting {
            what: format!("the servers of the cluster, which do not answer for {silent}{why}"),
            until: until.map(|at| wall(now, at)),
            then: then.to_owned(),
        })
    }
}
