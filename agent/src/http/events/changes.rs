//! What a commit changes, as shared records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::{Registration, View};
use drover_core::ids::{AllocId, JobKey};
use drover_core::store::record::JobRecord;
use drover_core::store::{Batch, Key, Record};

use super::node::NodeWatch;
use super::render::Step;
use crate::http::dto::{DeploymentDto, NodeDto, ServiceInstance};
use crate::http::records::{AllocRecords, EvalRecords, NodeNames};

/// Something that is not as it was before.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Job {
        record: Arc<JobRecord>,
        status: &'static str,
        kind: &'static str,
    },
    /// It was purged: nothing of it is left.
    JobGone(JobKey),
    Eval(EvalRecords),
    Alloc {
        alloc: Box<AllocRecords>,
        kind: &'static str,
    },
    Deployment {
        deployment: Box<DeploymentDto>,
        kind: &'static str,
    },
    Service {
        instance: Box<ServiceInstance>,
        kind: &'static str,
    },
    Node {
        node: Box<NodeDto>,
        kind: &'static str,
    },
}

/// What was known before, as far as events tell the difference.
#[derive(Debug)]
pub(super) struct Changes {
    /// The index of the last step.
    index: u64,
    /// Who was registered, by allocation.
    services: BTreeMap<AllocId, Vec<Registration>>,
    node: NodeWatch,
}

impl Changes {
    /// Nothing is known yet of a node that is shown so.
    pub(super) fn new(node: NodeWatch) -> Changes {
        Changes {
            index: 0,
            services: BTreeMap::new(),
            node,
        }
    }

    /// What a commit changes that readers hear of.
    pub(super) fn of(&mut self, view: View<'_>, batch: &Batch) -> Option<Step> {
        let node = Arc::new(NodeNames::of(view.node()));
        let mut changes = Vec::new();
        let mut allocs = BTreeSet::new();
        for (key, record) in batch {
            match (key, record) {
                (Key::Job(key), None) => changes.push(Change::JobGone(key.clone())),
                (Key::Job(key), Some(Record::Job(record))) => {
                    changes.push(self.job(view, key, record));
                }
                (Key::Eval(_), Some(Record::Eval(eval))) => {
                    changes.push(Change::Eval(EvalRecords::of(view, &node, eval)));
                }
                (Key::Deployment(_), Some(Record::Deployment(deployment))) => {
                    let kind = match deployment.create_index > self.index {
                        true => "PlanResult",
                        false => "DeploymentStatusUpdate",
                    };
                    let deployment = Box::new(DeploymentDto::of(view, deployment));
                    changes.push(Change::Deployment { deployment, kind });
                }
                (Key::Alloc(id) | Key::Task(id, _), _) => {
                    allocs.insert(*id);
                }
                _ => {}
            }
        }
        let of_node = |key: &Key| matches!(key, Key::Meta | Key::Node);
        if batch.keys().any(of_node) {
            changes.extend(self.node.change(view));
        }
        for id in allocs {
            let alloc = view.shown_alloc(id);
            if let Some(alloc) = alloc {
                let kind = match alloc.record().create_index > self.index {
                    true => "PlanResult",
                    false => "AllocationUpdated",
                };
                let alloc = Box::new(AllocRecords::of(view, &node, alloc));
                changes.push(Change::Alloc { alloc, kind });
            }
            self.registrations(view, id, &mut changes);
        }
        let index = view.index();
        self.index = index;
        (!changes.is_empty()).then(|| Step::new(index, changes))
    }

    fn job(&self, view: View<'_>, key: &JobKey, record: &Arc<JobRecord>) -> Change {
        let kind = match (record.job.stop, record.job.job_modify_index > self.index) {
            (true, _) => "JobDeregistered",
            (false, true) => "JobRegistered",
            (false, false) => "AllocationUpdated",
        };
        Change::Job {
            record: record.clone(),
            status: view.job_status(key).as_str(),
            kind,
        }
    }

    /// Who came and who went of an allocation's services.
    fn registrations(&mut self, view: View<'_>, id: AllocId, changes: &mut Vec<Change>) {
        let now = view.services_of(id);
        let before = self.services.remove(&id).unwrap_or_default();
        let is_in = |list: &[Registration], one: &Registration| {
            list.iter().any(|other| {
                (&other.id, &other.address, other.port) == (&one.id, &one.address, one.port)
            })
        };
        let change = |one: &Registration, kind| Change::Service {
            instance: Box::new(ServiceInstance::of(one)),
            kind,
        };
        let gone = before.iter().filter(|one| !is_in(&now, one));
        changes.extend(gone.map(|one| change(one, "ServiceDeregistration")));
        let new = now.iter().filter(|one| !is_in(&before, one));
        changes.extend(new.map(|one| change(one, "ServiceRegistration")));
        if !now.is_empty() {
            self.services.insert(id, now);
        }
    }
}
