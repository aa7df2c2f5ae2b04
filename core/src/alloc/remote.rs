//! An allocation on another node that an allocation of this one replaces: its end is awaited, and
//! its disk fetched.
//!
//! A job that ran elsewhere comes with a list of what each copy replaces there ([`Takeover`](crate::model::remote::Handed)). The record
//! of the slot's disk keeps it ([`Elsewhere`](crate::store::disk::Elsewhere)), through all allocations of the slot, until two hooks
//! (`hooks/await_remote.rs`, `hooks/fetch_disk.rs`) of one of them have dealt with it:
//!
//! - **The end.** The other node is asked until the allocation there is over: one long question at
//!   a time, at least a second between two, 30 s or a little more after one that failed. The node
//!   may be away, slow, or wrong. Its answer is awaited for as long as it takes, because two live
//!   copies are worse than none; `alloc status` shows for whom and why.
//! - **The disk** is fetched then. It is tried five times; after that the allocation starts with an
//!   empty disk, as in Nomad, and an event says so. An archive that does harm fails the allocation.
//!
//! An allocation that servers placed here may replace one that they placed on another node. It is the same, but for
//! whom is asked: servers say what became of it and where it was ([`RemotePrevious::of_servers`]), and the migrate
//! token that they issued opens its disk. An allocation that they do not know any more is over.
//! One that ended before it got its own disk does not have it. Its node says then from which allocation it was to
//! come, and with which token, and all begins anew with that one; it may have been on this very node
//! (`agent/cluster/disks.rs`). This goes on five times at most ([`MAX_LINKS`](crate::store::disk::MAX_LINKS)).
//!
//! Only a purge forgets it before that, when the last allocation is gone. A version of the job that does not want
//! the disk drops it when it starts.
//!
//! While a job waits so, it cannot be handed over to a third node, which would not know of the
//! first. Neither can it while its latest allocation waits for the one before it, because the third
//! node would ask for the end of the latest only.

use serde::{Deserialize, Serialize};

use super::runner::AllocRunner;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::model::remote::RemotePrevious;
use crate::time::{Instant, Span};

/// How often fetching a disk is tried.
pub const DISK_TRIES: u32 = 5;
/// The pause after a question that could not be answered, or a disk that did not come; a little
/// more each time, so that not everybody asks at once.
const RETRY_DELAY: Span = Span::secs(30);
/// The shortest pause between two questions. The answer to one is usually a long time coming.
const BETWEEN: Span = Span::secs(1);

/// Where asking another node stands. It begins anew with each life of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Asking {
    /// The index of the last answer.
    pub(super) index: u64,
    /// No question before then.
    pub(super) not_before: Option<Instant>,
    /// How often fetching the disk failed.
    pub(super) failures: u32,
    /// Why there is no answer yet, in words.
    pub(super) last_error: Option<String>,
}

impl Asking {
    /// Whether it is time to ask, or to fetch.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| at <= now)
    }

    /// A question leaves.
    pub(super) fn asked(&mut self, now: Instant) {
        self.not_before = Some(now + BETWEEN);
    }

    /// It still runs.
    pub(super) fn runs(&mut self, index: u64) {
        self.index = index;
        self.last_error = None;
    }

    /// No answer, or no disk, this time.
    pub(super) fn failed(&mut self, cx: &mut Cx<'_>, why: String) {
        self.not_before = Some(cx.now.at + cx.jittered(RETRY_DELAY));
        // The other node may have begun anew, with smaller numbers.
        self.index = 0;
        self.last_error = Some(why);
    }

    /// The next thing can be asked at once.
    pub(super) fn over(&mut self) {
        *self = Asking::default();
    }

    /// There is nothing to ask for.
    pub(super) fn not_needed(&mut self) -> HookStart {
        self.over();
        HookStart::Done
    }

    /// When the next question may leave.
    pub(super) fn next(&self) -> Option<Instant> {
        self.not_before
    }

    /// What is being done, in words, and why it takes so long.
    pub(super) fn words(&self, doing: String) -> String {
        match &self.last_error {
            Some(why) => format!("{doing}; the last attempt failed: {why}"),
            None => doing,
        }
    }
}

/// The previous allocation on another node, if this one is to await it and to fetch its disk.
pub(super) fn previous<'a>(alloc: &AllocRunner, cx: &'a Cx<'_>) -> Option<&'a RemotePrevious> {
    let disk = cx.shared.disks.get(&alloc.record().slot())?;
    disk.elsewhere_of(alloc.record().id)
}

/// The previous allocation was to get the disk from `further`, and did not: is that one asked instead? Only of those
/// that servers placed, who say what became of it and where it was.
pub(super) fn asks_further(alloc: &AllocRunner, cx: &mut Cx<'_>, further: &RemotePrevious) -> bool {
    let is_of_servers = previous(alloc, cx).is_some_and(|it| it.of_servers);
    let is_other = further.of_servers && further.alloc != alloc.record().id;
    let mut is_asked = false;
    if is_of_servers && is_other {
        // What became of it and where it was, servers say and nobody else.
        let further = RemotePrevious {
            alloc: further.alloc,
            token: further.token.clone(),
            of_servers: true,
            ..RemotePrevious::default()
        };
        alloc.edit_disk(cx, |disk| is_asked = disk.lies_with(further));
    }
    is_asked
}

/// Why nothing is known of it, in words.
pub(super) fn unknown(previous: &RemotePrevious) -> &'static str {
    match previous.of_servers {
        true => "the servers know nothing of it",
        false => "its node knows nothing of it",
    }
}

/// Whether what was on a disk elsewhere shall be on this one.
pub(super) fn fetches_disk(alloc: &AllocRunner) -> bool {
    let group = alloc.job().group(alloc.record().group.as_str());
    let disk = group.and_then(|group| group.ephemeral_disk);
    disk.is_some_and(|disk| disk.migrate)
}

/// It goes on without what the other node has.
pub(super) fn go_on_without(
    alloc: &mut AllocRunner,
    asking: &mut Asking,
    cx: &mut Cx<'_>,
    why: &str,
) {
    asking.over();
    let Some(previous) = previous(alloc, cx).cloned() else {
        return;
    };
    alloc.edit_disk(cx, |disk| disk.elsewhere = None);
    if fetches_disk(alloc) {
        let of = name(&previous);
        let words = format!("Did not migrate the disk of {of}: {why}. The disk begins empty");
        alloc.notify_tasks(cx, &words);
    }
}

/// An allocation of another node, as people are told of it.
pub(super) fn name(remote: &RemotePrevious) -> String {
    let (id, address) = (remote.alloc.short(), &remote.address);
    match remote.of_servers {
        true => format!("allocation {id} on another node of the cluster"),
        false => format!("allocation {id} at {address}"),
    }
}
