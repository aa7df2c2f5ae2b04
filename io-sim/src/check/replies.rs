//! Requests and replies.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::requests::{Deregister, Request, Subject};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AccessorId, AllocId, DeploymentId, JobKey, RequestId, Slot, VolumeId};
use drover_core::model::acl::AclToken;
use drover_core::model::eval::Deployment;
use drover_core::model::variable::{Variable, VariableKey};
use drover_core::store::acl::{AclBootstrapRecord, AclPolicyRecord, AclTokenRecord};
use drover_core::store::disk::Disk;
use drover_core::store::namespace::NamespaceRecord;
use drover_core::store::node::NodeRecord;
use drover_core::store::record::{AllocRecord, JobRecord};
use drover_core::store::volume::VolumeRecord;
use drover_core::store::{Key, Record};

use super::disks::saved_disk;
use super::draining::saved_node;
use super::history::{saved_alloc, saved_job};
use super::namespaces::saved_namespace;
use super::variables::saved_variable;
use super::volumes::saved_volume;
use super::{Checker, Property, Verdict};
use crate::requests::simulated;
use crate::world::World;

/// What is remembered of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    /// What this life of the agent was asked.
    asked: BTreeMap<RequestId, Request>,
    given: BTreeMap<RequestId, Reply>,
    /// The index that was told last, and the highest that was acknowledged.
    reported: u64,
    acknowledged: u64,
    /// Jobs that somebody asked to forget.
    purged: Vec<JobKey>,
}

/// What an answer can be compared with.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    world: &'a World,
    /// What else was asked.
    pub(crate) replies: &'a Replies,
}

impl<'a> Facts<'a> {
    /// The job that the disk holds.
    pub(crate) fn job(self, key: &JobKey) -> Option<&'a JobRecord> {
        saved_job(self.world, key)
    }

    /// The roll-out that the disk holds.
    pub(crate) fn deployment(self, id: DeploymentId) -> Option<&'a Deployment> {
        match self.world.disk.records().get(&Key::Deployment(id)) {
            Some(Record::Deployment(saved)) => Some(saved),
            _ => None,
        }
    }

    /// The allocation that the disk holds.
    pub(crate) fn alloc(self, id: AllocId) -> Option<&'a AllocRecord> {
        saved_alloc(self.world, id)
    }

    /// The variable that the disk holds.
    pub(crate) fn variable(self, key: &VariableKey) -> Option<&'a Variable> {
        saved_variable(self.world, key)
    }

    /// What the disk holds of what people decided about the node.
    pub(crate) fn node(self) -> Option<&'a NodeRecord> {
        saved_node(self.world)
    }

    /// The namespace that the disk holds.
    pub(crate) fn namespace(self, name: &str) -> Option<&'a NamespaceRecord> {
        saved_namespace(self.world, name)
    }

    /// The policy of the API that the disk holds.
    pub(crate) fn acl_policy(self, name: &str) -> Option<&'a AclPolicyRecord> {
        match self.world.disk.records().get(&Key::AclPolicy(name.into())) {
            Some(Record::AclPolicy(saved)) => Some(saved),
            _ => None,
        }
    }

    /// The token of the API that the disk holds.
    pub(crate) fn acl_token(self, accessor: AccessorId) -> Option<&'a AclTokenRecord> {
        match self.world.disk.records().get(&Key::AclToken(accessor)) {
            Some(Record::AclToken(saved)) => Some(saved),
            _ => None,
        }
    }

    /// Whether the disk holds that there was a first token.
    pub(crate) fn acl_bootstrap(self) -> Option<&'a AclBootstrapRecord> {
        match self.world.disk.records().get(&Key::AclBootstrap) {
            Some(Record::AclBootstrap(saved)) => Some(saved),
            _ => None,
        }
    }

    /// Whether a token may be gone: it is expired, or somebody deletes it.
    pub(crate) fn may_lose_token(self, token: &AclToken) -> bool {
        let accessor = token.accessor;
        // It may have been over before the clock was set back.
        let was_set = self.world.scene.wall_jumps > 0 && token.expires.is_some();
        was_set
            || token.is_expired(self.world.now().wall)
            || self.replies.deletes_acl_token(accessor)
    }

    /// The volume that the disk holds.
    pub(crate) fn volume(self, id: VolumeId) -> Option<&'a VolumeRecord> {
        saved_volume(self.world, id)
    }

    /// The disk of a slot, as the disk of the machine says.
    pub(crate) fn disk(self, slot: &Slot) -> Option<&'a Disk> {
        saved_disk(self.world, slot)
    }
}

impl Replies {
    pub(super) fn agent_died(&mut self) {
        self.asked.clear();
        self.reported = 0;
    }

    pub(super) fn asked(&mut self, request: RequestId, asked: &Request) {
        if let Request::Deregister(Deregister {
            job, purge: true, ..
        }) = asked
        {
            self.purged.push(job.clone());
        }
        self.asked.insert(request, asked.clone());
    }

    pub(super) fn of(&self, request: RequestId) -> Option<&Reply> {
        self.given.get(&request)
    }

    pub(super) fn reported(&mut self, index: u64) -> u64 {
        core::mem::replace(&mut self.reported, index)
    }

    pub(super) fn any(&self, asked: impl Fn(&Request) -> bool) -> bool {
        self.asked.values().any(asked)
    }

    /// Whether somebody said in this life that an allocation is healthy.
    pub(super) fn says_healthy(&self, id: AllocId) -> bool {
        self.any(|asked| matches!(asked, Request::SetAllocHealth(one) if one.healthy.contains(&id)))
    }

    /// The same, that it is not.
    pub(super) fn says_unhealthy(&self, id: AllocId) -> bool {
        self.any(
            |asked| matches!(asked, Request::SetAllocHealth(one) if one.unhealthy.contains(&id)),
        )
    }

    /// Whether this life was asked to clean up.
    pub(super) fn collects(&self) -> bool {
        self.any(|asked| matches!(asked, Request::CollectGarbage(_)))
    }

    /// Whether somebody asked to forget the job, or all garbage.
    pub(crate) fn may_forget(&self, key: &JobKey) -> bool {
        self.purged.contains(key) || self.collects()
    }

    /// Whether this life was asked to garbage-collect this allocation.
    pub(super) fn collects_one(&self, id: AllocId) -> bool {
        self.any(|asked| matches!(asked, Request::CollectAlloc(one) if one.alloc == id))
    }

    /// Whether this life was asked to forget the job.
    pub(super) fn purges(&self, key: &JobKey) -> bool {
        self.any(|asked| matches!(asked, Request::Deregister(one) if one.purge && one.job == *key))
    }

    /// The jobs that this life was asked to forget, and of which nobody asked anything else since but to stop them.
    pub(super) fn purged_for_good(&self) -> BTreeSet<JobKey> {
        let mut purged = BTreeSet::new();
        for (request, asked) in &self.asked {
            match (asked, self.given.get(request)) {
                (_, Some(Reply::Refused(_)) | None) => {}
                (Request::Deregister(one), Some(_)) if one.purge => {
                    purged.insert(one.job.clone());
                }
                (Request::Deregister(_), Some(_)) => {}
                (_, Some(_)) => {
                    if let Subject::Job(key) = asked.get().subject() {
                        purged.remove(&key);
                    }
                }
            }
        }
        purged
    }

    /// Whether this life was asked to stop the job.
    pub(super) fn stops(&self, key: &JobKey) -> bool {
        self.any(|asked| matches!(asked, Request::Deregister(one) if one.job == *key))
    }

    /// Whether this life was asked to delete the variable.
    pub(crate) fn deletes(&self, of: &VariableKey) -> bool {
        self.any(|asked| matches!(asked, Request::DeleteVariable(one) if one.key == *of))
    }

    /// Whether this life was asked to delete the namespace.
    pub(crate) fn deletes_namespace(&self, name: &str) -> bool {
        self.any(|asked| matches!(asked, Request::DeleteNamespace(one) if *one.name == *name))
    }

    /// Whether this life was asked to delete the policy.
    pub(crate) fn deletes_acl_policy(&self, name: &str) -> bool {
        self.any(|asked| matches!(asked, Request::DeleteAclPolicy(one) if *one.name == *name))
    }

    /// Whether this life was asked to delete the token.
    pub(crate) fn deletes_acl_token(&self, of: AccessorId) -> bool {
        self.any(|asked| matches!(asked, Request::DeleteAclToken(one) if one.accessor == of))
    }

    /// Whether this life was asked to delete the volume.
    pub(crate) fn deletes_volume(&self, id: VolumeId) -> bool {
        self.any(|asked| matches!(asked, Request::DeleteVolume(one) if one.volume == id))
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
        self.holds(Property::RequestGetsOneReply, before.is_none(), || {
            format!("{request:?}")
        })?;
        self.refusal_has_a_reason(request, reply)?;
        let asked = self.replies.asked.get(&request).cloned();
        self.holds(Property::ReplyBelongsToARequest, asked.is_some(), || {
            format!("{request:?} {reply:?}")
        })?;
        let Some(asked) = asked else { return Ok(()) };
        self.variable_change_checks_index(request, &asked, reply)?;
        self.acl_answered(&asked, reply)?;
        self.scaling_is_bounded(request, reply)?;
        self.registration_checks_index(request, reply)?;
        self.dispatched_job_is_as_asked(world, request, &asked, reply)?;
        self.living_task_takes_signals(request, reply)?;
        self.living_task_takes_sessions(request, reply)?;
        self.deleted_namespace_is_empty(world, &asked, reply)?;
        self.job_without_home_is_refused(request, reply)?;
        self.rejected_registration_brings_no_job(request, reply)?;
        // That a signal was passed on, or a session opened, is no change that lasts.
        if !matches!(asked, Request::Signal(_) | Request::OpenSession(_)) {
            self.replies.acknowledged = self.replies.acknowledged.max(index_of(reply));
        }
        self.reply_follows_save(world, &asked, reply)
    }

    /// Each refusal has a reason.
    fn refusal_has_a_reason(&mut self, request: RequestId, reply: &Reply) -> Verdict {
        let Reply::Refused(
            Refusal::NotFound(why)
            | Refusal::Conflict(why)
            | Refusal::Invalid(why)
            | Refusal::Forbidden(why),
        ) = reply
        else {
            return Ok(());
        };
        self.holds(Property::RefusalHasAReason, !why.trim().is_empty(), || {
            format!("{request:?}")
        })
    }

    /// When a request for a lasting change is answered, the disk holds the change, or a later one.
    fn reply_follows_save(&mut self, world: &World, asked: &Request, reply: &Reply) -> Verdict {
        let facts = Facts {
            world,
            replies: &self.replies,
        };
        let Some(holds) = simulated(asked).is_remembered(facts, reply) else {
            return Ok(());
        };
        self.holds(Property::ReplyFollowsSave, holds, || {
            format!("{asked:?} {reply:?}")
        })
    }
}

fn index_of(reply: &Reply) -> u64 {
    match reply {
        Reply::Registered { index, .. }
        | Reply::Dispatched { index, .. }
        | Reply::Stopping { index, .. }
        | Reply::NodeChanged { index, .. }
        | Reply::Deployment { index, .. }
        | Reply::Done { index } => *index,
        Reply::AclToken(token) => token.modify_index,
        Reply::Variable(meta) => meta.modify_index,
        Reply::HandedOver(_) | Reply::Volume(_) | Reply::Refused(_) => 0,
    }
}
