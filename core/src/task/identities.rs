//! Identities of a task: its tokens are made before each start, and made anew when half of their
//! time is over.
//!
//! When they were made is remembered, so that the agent's next life goes on where this one ends; what
//! they are is never known here. A new token is told to the task in the way that the identity
//! wants, once it is remembered that it was made: a restart is not forgotten, a signal is sent at
//! most once.
//!
//! The hook `identity` asks for tokens before each start. While the task runs, each token is asked
//! for again when half of its time is over. The record has the time of each last token, from which
//! the next life of the agent goes on counting; within one life the boot clock counts. A restart
//! for a new token is a restart as an operator asks for; a signal leaves after the save.
//! `io-real/src/identity/` makes the tokens, and says where they go.
//!
//! The tokens of what servers placed are signed by the servers. A start waits for them as long as that takes: what
//! failed is asked for again, within a second first, and then less and less often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::hooks::{self, TaskHook};
use super::runner::{Phase, TaskRunner};
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::model::authority::Authority;
use crate::model::event::{EventType, TaskEvent};
use crate::model::identity::RenewMode;
use crate::op::{Failure, Op};
use crate::task::hooks::identity::{issuing, wanted};
use crate::time::{Instant, Span};
use crate::work::Issuing;

/// The longest pause after a renewal that failed. Short-lived tokens have a shorter one.
const RENEW_AGAIN: Span = Span::secs(30);

/// The first and the longest pause before servers are asked again for the tokens of a start.
const SIGN_AGAIN: (Span, Span) = (Span::secs(1), Span::secs(15));
/// How long servers may take to sign; an eighth of the time that a token is good, if that is less, so that a renewal
/// that is never answered is made again in time.
const SIGN_TIMEOUT: Span = Span::secs(30);

/// What is known of a task's identities in this life of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identities {
    /// When which of them gets a new token; none if this agent has not looked yet.
    due: Option<BTreeMap<String, Instant>>,
    /// New tokens that are being made while the task runs.
    renewal: Option<Renewal>,
    /// Those of which a new version of the job wants other tokens than those that are being made for a start.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    outdated: BTreeSet<String>,
    /// When servers are asked again for the tokens of a start, if they did not sign them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<Again>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Again {
    at: Instant,
    pause: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Renewal {
    op: Op,
    names: BTreeSet<String>,
}

impl Identities {
    fn next(&self) -> Option<Instant> {
        self.due.iter().flatten().map(|(_, at)| *at).min()
    }
}

impl TaskRunner {
    /// The tokens for a start are made. It is remembered with the launch.
    pub(crate) fn identities_issued(&mut self, cx: &Cx<'_>) {
        let (now, wall) = (cx.now.at, cx.now.wall);
        let renewed = self.renewed();
        let due = renewed
            .iter()
            .map(|(name, after)| (name.clone(), now + *after));
        let outdated = core::mem::take(&mut self.identities.outdated);
        let due = due.filter(|(name, _)| !outdated.contains(name));
        let issued = renewed.keys().map(|name| (name.clone(), wall));
        let issued = issued.filter(|(name, _)| !outdated.contains(name));
        self.identities.due = outdated.is_empty().then(|| due.collect());
        self.identities.again = None;
        self.edit().identities = issued.collect();
    }

    /// A new version of the job wants other tokens of these: they are made as soon as the task runs, as
    /// those are of which nobody knows when they were made.
    pub(crate) fn identities_are_outdated(&mut self, cx: &mut Cx<'_>, names: BTreeSet<String>) {
        let issued = &mut self.edit().identities;
        issued.retain(|name, _| !names.contains(name));
        self.save(cx);
        self.forget_identities(cx);
        self.identities.outdated = names;
    }

    /// Asks for tokens.
    pub(crate) fn issue(&self, cx: &mut Cx<'_>, work: Arc<Issuing>) -> HookStart {
        let hook = &hooks::identity::Identity;
        let limit = match work.authority {
            Authority::Node => hook.timeout(&cx.config.timeouts),
            Authority::Servers => {
                let ttls = work.identities.iter().map(|one| one.ttl);
                let eighths = ttls.filter(|ttl| ttl.0 > 0).map(|ttl| Span(ttl.0 / 8));
                eighths.min().unwrap_or(SIGN_TIMEOUT).min(SIGN_TIMEOUT)
            }
        };
        self.hook_work_within(cx, hook, work, limit)
    }

    /// Whether the next thing that its start needs is signed by servers.
    pub(crate) fn awaits_signing(&self) -> bool {
        let is_of_servers = self.spec.authority == Authority::Servers;
        is_of_servers && self.prestart_hook() == Some(hooks::identity::Identity::NAME)
    }

    /// Whether servers did not sign the tokens of this start, and are not to be asked again yet.
    pub(crate) fn signs_later(&self, cx: &Cx<'_>) -> bool {
        self.identities.again.is_some_and(|it| cx.now.at < it.at)
    }

    /// Servers did not sign the tokens of a start: they are asked again after a while, for as long as that takes.
    /// `false` if it is something else that failed, or for good.
    pub(super) fn signs_again(&mut self, cx: &mut Cx<'_>, op: Op, failure: &Failure) -> bool {
        let is_signing = self.awaits_signing();
        let Phase::Preparing(pipeline) = &mut self.phase else {
            return false;
        };
        let may = failure.recoverable && self.kill.is_none();
        if !is_signing || !may || !pipeline.again(op) {
            return false;
        }
        cx.shared.operations.end(op);
        let (first, longest) = SIGN_AGAIN;
        let before = self.identities.again;
        let pause = before.map_or(first, |it| Span(it.pause.0 * 2).min(longest));
        let at = cx.now.at + cx.jittered(pause);
        self.identities.again = Some(Again { at, pause });
        if before.is_none() {
            let message = format!(
                "The servers have not signed its identities, and are asked again: {}",
                failure.message
            );
            self.event(cx, EventType::HookFailed, &message);
        }
        true
    }

    /// None that are being made while the task runs are awaited any more.
    pub(crate) fn end_renewal(&mut self, cx: &mut Cx<'_>) {
        let again = self.identities.again;
        self.forget_identities(cx);
        self.identities.again = again;
    }

    /// Nothing is known of its tokens any more, and none that are being made are awaited.
    pub(crate) fn forget_identities(&mut self, cx: &mut Cx<'_>) {
        if let Some(renewal) = core::mem::take(&mut self.identities).renewal {
            cx.shared.operations.end(renewal.op);
        }
    }

    /// Which identities get new tokens, and how long after the last one.
    fn renewed(&self) -> BTreeMap<String, Span> {
        let renewed = wanted(self.spec.task())
            .filter_map(|one| Some((one.name().to_owned(), one.renewal()?)));
        renewed.collect()
    }

    /// Of a task that runs: an agent that did not start it finds out what is due when.
    pub(super) fn check_identities(&mut self, cx: &Cx<'_>) {
        if self.identities.due.is_some() || wanted(self.spec.task()).next().is_none() {
            return;
        }
        let issued = &self.record.identities;
        let left = |(name, after): (String, Span)| {
            let left = issued.get(&name).map_or(Span::ZERO, |issued| {
                (*issued + after - cx.now.wall).clamp(Span::ZERO, after)
            });
            (name, cx.now.at + left)
        };
        self.identities.due = Some(self.renewed().into_iter().map(left).collect());
    }

    /// When there is something to do by itself.
    pub(super) fn identities_deadline(&self) -> Option<Instant> {
        let again = self.identities.again.map(|it| it.at);
        match &self.phase {
            Phase::Running if self.renews() => self.identities.next(),
            Phase::Preparing(pipeline) => again.filter(|_| pipeline.awaited().is_none()),
            Phase::Waiting
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => None,
        }
    }

    /// Whether it runs, and no new tokens are being made.
    fn renews(&self) -> bool {
        let idle = self.identities.renewal.is_none();
        idle && matches!(self.phase, Phase::Running) && self.kill.is_none()
    }

    /// Does what is due; what a start waits for, its hook asks for again.
    pub(super) fn identities_are_due(&mut self, cx: &mut Cx<'_>) {
        let next = self.identities.next().filter(|_| self.renews());
        if next.is_some_and(|at| at <= cx.now.at) {
            self.renew(cx);
        }
    }

    fn renew(&mut self, cx: &mut Cx<'_>) {
        let due = self.identities.due.iter().flatten();
        let due = due.filter(|(_, at)| **at <= cx.now.at);
        let names: BTreeSet<String> = due.map(|(name, _)| name.clone()).collect();
        let start = match issuing(&self.spec, |name| names.contains(name)) {
            Ok(Some(work)) => self.issue(cx, work),
            // It stands in the job no more, or never could be made.
            Ok(None) | Err(_) => {
                if let Some(due) = &mut self.identities.due {
                    due.retain(|name, _| !names.contains(name));
                }
                return;
            }
        };
        if let HookStart::Working(op) = start {
            self.identities.renewal = Some(Renewal { op, names });
        }
    }

    /// The answer to a renewal. `false` if that is not what was answered.
    pub(super) fn identities_renewed(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: &Result<HookOutput, Failure>,
    ) -> bool {
        let is_it = |renewal: &mut Renewal| renewal.op == op;
        let Some(renewal) = self.identities.renewal.take_if(is_it) else {
            return false;
        };
        if let Err(failure) = result {
            self.renewal_failed(cx, &renewal.names, &failure.message);
            return true;
        }
        let after = self.renewed();
        let (now, wall) = (cx.now.at, cx.now.wall);
        for name in &renewal.names {
            let due = self.identities.due.as_mut().zip(after.get(name));
            if let Some((due, after)) = due {
                due.insert(name.clone(), now + *after);
            }
            self.edit().identities.insert(name.clone(), wall);
        }
        self.save(cx);
        // Whoever is about to end finds a new one when it starts again.
        if matches!(self.phase, Phase::Running) && self.kill.is_none() {
            self.notify_new_tokens(cx, &renewal.names);
        }
        true
    }

    fn notify_new_tokens(&mut self, cx: &mut Cx<'_>, names: &BTreeSet<String>) {
        let renewed = wanted(self.spec.task());
        let renewed = renewed.filter(|one| names.contains(one.name()));
        let mut restart = None;
        let mut signals = BTreeSet::new();
        for identity in renewed {
            match identity.change_mode {
                RenewMode::Noop => {}
                RenewMode::Restart => restart = Some(identity.name().to_owned()),
                RenewMode::Signal => drop(signals.insert(identity.change_signal.clone())),
            }
        }
        if let Some(name) = restart {
            self.restart(cx, &format!("Identity[{name}]: new token"));
            return;
        }
        for signal in signals {
            self.signal_of_change(cx, &signal, "New Identity token");
        }
    }

    /// The old tokens are good for as long again: it is tried again meanwhile.
    fn renewal_failed(&mut self, cx: &mut Cx<'_>, names: &BTreeSet<String>, why: &str) {
        let after = self.renewed();
        let due = self.identities.due.get_or_insert_default();
        let part = match self.spec.authority {
            Authority::Node => 4,
            // They may have taken their time to fail.
            Authority::Servers => 8,
        };
        for name in names {
            let after = after.get(name).copied();
            let pause = after.map_or(RENEW_AGAIN, |after| Span(after.0 / part));
            let pause = cx.jittered(pause.min(RENEW_AGAIN));
            due.insert(name.clone(), cx.now.at + pause);
        }
        let list: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("No new token for identity {}: {why}", list.join(", "));
        let last = self.record.state.events.last();
        if last.is_none_or(|last| last.display_message != message) {
            self.push(
                cx,
                TaskEvent::new(EventType::HookFailed, cx.now.wall, &message),
            );
        }
    }
}
