//! Requests and replies.

use std::collections::BTreeMap;

use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AllocId, JobKey, RequestId};
use drover_core::input::{Input, LocalInput, OperatorInput};
use drover_core::model::dispatch::Dispatch;
use drover_core::model::job::Job;
use drover_core::model::variable::VariableKey;

use super::disks::saved_disk;
use super::lives::{saved_alloc, saved_job};
use super::variables::saved_variable;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Replies {
    /// What this life of the agent was asked.
    asked: BTreeMap<RequestId, Input>,
    given: BTreeMap<RequestId, Reply>,
    /// The index that was told last, and the highest that was acknowledged.
    told: u64,
    acknowledged: u64,
    /// Jobs that somebody asked to forget.
    purged: Vec<JobKey>,
}

impl Replies {
    pub(super) fn agent_died(&mut self) {
        self.asked.clear();
        self.told = 0;
    }

    pub(super) fn asked(&mut self, request: RequestId, input: Option<&Input>) {
        if let Some(Input::Local(_, LocalInput::Deregister { job, purge: true })) = input {
            self.purged.push(job.clone());
        }
        self.asked
            .extend(input.map(|input| (request, input.clone())));
    }

    pub(super) fn of(&self, request: RequestId) -> Option<&Reply> {
        self.given.get(&request)
    }

    pub(super) fn told(&mut self, index: u64) -> u64 {
        core::mem::replace(&mut self.told, index)
    }

    /// Whether this life was asked to clean up.
    pub(super) fn collects(&self) -> bool {
        let collect = |asked: &Input| matches!(asked, Input::Local(_, LocalInput::Collect));
        self.asked.values().any(collect)
    }

    /// Whether somebody asked to forget the job, or all garbage.
    fn may_forget(&self, key: &JobKey) -> bool {
        self.purged.contains(key) || self.collects()
    }

    /// Whether this life was asked to clean away this allocation.
    pub(super) fn collects_one(&self, id: AllocId) -> bool {
        let collect = |asked: &Input| match asked {
            Input::Operator(_, OperatorInput::Collect { alloc }) => *alloc == id,
            _ => false,
        };
        self.asked.values().any(collect)
    }

    /// Whether this life was asked to forget the job.
    pub(super) fn purges(&self, key: &JobKey) -> bool {
        let purge = |asked: &Input| match asked {
            Input::Local(_, LocalInput::Deregister { job, purge }) => *purge && job == key,
            _ => false,
        };
        self.asked.values().any(purge)
    }

    /// Whether this life was asked to stop the job.
    pub(super) fn stops(&self, key: &JobKey) -> bool {
        let stop = |asked: &Input| match asked {
            Input::Local(_, LocalInput::Deregister { job, .. }) => job == key,
            _ => false,
        };
        self.asked.values().any(stop)
    }

    /// Whether this life was asked to delete the variable.
    fn deletes(&self, of: &VariableKey) -> bool {
        let delete = |asked: &Input| match asked {
            Input::Local(_, LocalInput::DeleteVariable { key, .. }) => key == of,
            _ => false,
        };
        self.asked.values().any(delete)
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}

impl Checker {
    pub(super) fn reply_effect(
        &mut self,
        world: &World,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        let before = self.replies.given.insert(request, reply.clone());
        self.disks.answered(world, request, reply);
        self.holds(Property::OneReplyToOneRequest, before.is_none(), || {
            format!("{request:?}")
        })?;
        self.a_refusal_says_why(request, reply)?;
        let asked = self.replies.asked.get(&request).cloned();
        self.holds(Property::AReplyAnswersARequest, asked.is_some(), || {
            format!("{request:?} {reply:?}")
        })?;
        let Some(asked) = asked else { return Ok(()) };
        self.a_variable_changes_for_who_knows_it(request, &asked, reply)?;
        // That a signal was passed on is no change that lasts.
        if !matches!(asked, Input::Operator(_, OperatorInput::Signal { .. })) {
            self.replies.acknowledged = self.replies.acknowledged.max(index_of(reply));
        }
        self.a_reply_is_remembered_first(world, &asked, reply)
    }

    /// A refusal says why.
    fn a_refusal_says_why(&mut self, request: RequestId, reply: &Reply) -> Verdict {
        let Reply::Refused(Refusal::NotFound(why) | Refusal::Conflict(why) | Refusal::Invalid(why)) =
            reply
        else {
            return Ok(());
        };
        self.holds(Property::ARefusalSaysWhy, !why.trim().is_empty(), || {
            format!("{request:?}")
        })
    }

    /// When a request for a lasting change is answered, the disk holds the change, or a later one.
    fn a_reply_is_remembered_first(
        &mut self,
        world: &World,
        asked: &Input,
        reply: &Reply,
    ) -> Verdict {
        let holds = match (asked, reply) {
            (
                Input::Local(
                    _,
                    LocalInput::Register { job, .. } | LocalInput::TakeOver { job, .. },
                ),
                Reply::Registered { job_index, .. },
            ) => match saved_job(world, &job.key()) {
                Some(saved) => saved.job.job_modify_index >= *job_index,
                None => self.replies.may_forget(&job.key()),
            },
            (
                Input::Local(_, LocalInput::Dispatch { dispatch, .. }),
                Reply::Dispatched { job, .. },
            ) => match saved_job(world, job) {
                Some(saved) => is_made_by(&saved.job, dispatch),
                None => self.replies.may_forget(job),
            },
            (
                Input::Local(_, LocalInput::Deregister { job, .. }),
                Reply::Stopping {
                    eval: Some(_),
                    index,
                },
            ) => saved_job(world, job)
                .is_none_or(|saved| saved.job.stop || saved.job.job_modify_index > *index),
            (
                Input::Operator(_, OperatorInput::StopAlloc { alloc }),
                Reply::Stopping { eval: Some(_), .. },
            ) => saved_alloc(world, *alloc)
                .is_none_or(|saved| saved.desired.is_terminal() || saved.finished),
            (_, Reply::HandedOver(slots)) => slots.iter().all(|(slot, alloc)| {
                let goes = saved_alloc(world, *alloc).is_none_or(|saved| saved.destroying);
                goes || saved_disk(world, slot).is_some_and(|disk| disk.lease.is_some())
            }),
            (Input::Operator(_, OperatorInput::Collect { alloc }), Reply::Done { .. }) => {
                saved_alloc(world, *alloc).is_none_or(|saved| saved.destroying)
            }
            (Input::Local(_, LocalInput::PutVariable { key, .. }), Reply::Variable(meta)) => {
                match saved_variable(world, key) {
                    Some(saved) => saved.meta.modify_index >= meta.modify_index,
                    None => self.replies.deletes(key),
                }
            }
            (Input::Local(_, LocalInput::DeleteVariable { key, .. }), Reply::Done { index }) => {
                saved_variable(world, key).is_none_or(|saved| saved.meta.create_index > *index)
            }
            _ => return Ok(()),
        };
        self.holds(Property::AReplyIsRememberedFirst, holds, || {
            format!("{asked:?} {reply:?}")
        })
    }
}

/// Whether the job bears what the dispatch brought, or an earlier one of the same token.
fn is_made_by(job: &Job, dispatch: &Dispatch) -> bool {
    let bears = |(key, value): (&String, &String)| job.meta.get(key) == Some(value);
    let same = job.payload == dispatch.payload && dispatch.meta.iter().all(bears);
    let again = !dispatch.token.is_empty();
    job.dispatched && job.dispatch_idempotency_token == dispatch.token && (same || again)
}

fn index_of(reply: &Reply) -> u64 {
    match reply {
        Reply::Registered { index, .. }
        | Reply::Dispatched { index, .. }
        | Reply::Stopping { index, .. }
        | Reply::Done { index } => *index,
        Reply::Variable(meta) => meta.modify_index,
        Reply::HandedOver(_) | Reply::Refused(_) => 0,
    }
}
