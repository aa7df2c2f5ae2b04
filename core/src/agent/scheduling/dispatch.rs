//! Jobs that were made of parameterized ones ([`DispatchJob`]) and of periodic ones, and how many of them are kept.
//!
//! Of one job's children that ended, the latest 100 (`kept_children`): whenever a child ends, the oldest
//! beyond that are purged, and `system gc` purges all of them.
//!
//! [`DispatchJob`]: crate::agent::requests::DispatchJob

use std::sync::Arc;

use crate::agent::Agent;
use crate::ids::JobKey;
use crate::model::dispatch::children_of;
use crate::model::job::Job;
use crate::model::periodic::launches_of;
use crate::store::record::JobRecord;
use crate::time::Now;

impl Agent {
    /// The jobs that were made of this one, the oldest first.
    pub(in crate::agent) fn children(&self, parent: &JobKey) -> Vec<Arc<JobRecord>> {
        let mut children: Vec<_> = [children_of(&parent.id), launches_of(&parent.id)]
            .into_iter()
            .flat_map(|ids| self.children_named(parent, &ids))
            .collect();
        children.sort_by_key(|child| child.job.create_index);
        children
    }

    fn children_named(&self, parent: &JobKey, ids: &str) -> Vec<Arc<JobRecord>> {
        let first = JobKey {
            namespace: parent.namespace.clone(),
            id: ids.into(),
        };
        let from = self.local.jobs.range(first.clone()..);
        let named = from.take_while(|(key, _)| {
            key.namespace == first.namespace && key.id.starts_with(&*first.id)
        });
        let is_child = |job: &Job| job.is_child() && job.parent_id == *parent.id;
        let children = named.map(|(_, record)| record);
        children
            .filter(|record| is_child(&record.job))
            .cloned()
            .collect()
    }

    /// A job was looked at: if it is a child that is over, its oldest siblings that are so too are
    /// forgotten.
    pub(super) fn forget_siblings(&mut self, now: Now, record: &JobRecord) {
        if !self.is_finished_child(record) {
            return;
        }
        let parent = JobKey {
            namespace: record.job.namespace.as_str().into(),
            id: record.job.parent_id.as_str().into(),
        };
        let mut over = self.children(&parent);
        over.retain(|child| self.is_finished_child(child));
        over.truncate(over.len().saturating_sub(self.config.kept_children));
        for child in over {
            self.deregister(now, &child.job.key(), true);
        }
    }

    /// Whether this is a child of which nothing more is to come.
    fn is_finished_child(&self, record: &JobRecord) -> bool {
        let job = &record.job;
        job.is_child() && !record.purge && self.view().job_status(&job.key()) == "dead"
    }
}
