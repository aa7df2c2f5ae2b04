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

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::hooks;
use super::runner::{Phase, TaskRunner};
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::model::event::{EventType, TaskEvent};
use crate::model::identity::RenewMode;
use crate::op::{Failure, Op};
use crate::task::hooks::identity::{issuing, wanted};
use crate::time::{Instant, Span};

/// The longest pause after a renewal that failed. Short-lived tokens have a shorter one.
const RENEW_AGAIN: Span = Span::secs(30);

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
        let idle = self.identities.renewal.is_none();
        let renews = idle && matches!(self.phase, Phase::Running) && self.kill.is_none();
        self.identities.next().filter(|_| renews)
    }

    /// Does what is due.
    pub(super) fn identities_are_due(&mut self, cx: &mut Cx<'_>) {
        if self.identities_deadline().is_some_and(|at| at <= cx.now.at) {
            self.renew(cx);
        }
    }

    fn renew(&mut self, cx: &mut Cx<'_>) {
        let due = self.identities.due.iter().flatten();
        let due = due.filter(|(_, at)| **at <= cx.now.at);
        let names: BTreeSet<String> = due.map(|(name, _)| name.clone()).collect();
        let start = match issuing(&self.spec, |name| names.contains(name)) {
            Ok(Some(work)) => self.hook_work(cx, &hooks::identity::Identity, work),
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
        for name in names {
            let quarter = after
                .get(name)
                .map_or(RENEW_AGAIN, |after| Span(after.0 / 4));
            let pause = cx.jittered(quarter.min(RENEW_AGAIN));
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
