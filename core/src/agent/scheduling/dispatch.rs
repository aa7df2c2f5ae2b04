//! Jobs that were made of parameterized ones ([`DispatchJob`]) and of periodic ones, and how many of them are kept.
//!
//! Of one job's children that ended, the latest 100 (`kept_children`): whenever a child ends, the oldest
//! beyond that are purged, and `system gc` purges all of them.
//!
//! [`DispatchJob`]: crate::agent::requests::DispatchJob

use crate::model::job::JobStatus;
use std::sync::Arc;

use crate::agent::Agent;
use crate::ids::JobKey;
use crate::model::dispatch::children_of;
use crate::model::periodic::launches_of;
use crate::store::record::JobRecord;
use crate::time::Now;

impl Agent {
    /// The jobs that were made of this one, the oldest first.
    pub(in crate::agent) fn children(&self, parent: &JobKey) -> Vec<Arc<JobRecord>> {
        let mut children: Vec<_> = self.children_by_name(parent).cloned().collect();
        children.sort_by_key(|child| child.job.create_index);
        children
    }

    /// The jobs that were made of this one, by name.
    pub(in crate::agent) fn children_by_name<'a>(
        &'a self,
        parent: &JobKey,
    ) -> impl Iterator<Item = &'a Arc<JobRecord>> + use<'a> {
        let ids = [children_of(&parent.id), launches_of(&parent.id)];
        let firsts = ids.map(|ids| JobKey {
            namespace: parent.namespace.clone(),
            id: ids.as_str().into(),
        });
        let named = firsts.into_iter().flat_map(|first| self.jobs_below(first));
        let parent = parent.id.clone();
        named.filter(move |record| record.job.is_child() && record.job.parent_id == *parent)
    }

    /// The jobs whose names begin with this one.
    fn jobs_below(&self, first: JobKey) -> impl Iterator<Item = &Arc<JobRecord>> {
        let from = self.local.jobs.range(first.clone()..);
        let below = from.take_while(move |(key, _)| {
            key.namespace == first.namespace && key.id.starts_with(&*first.id)
        });
        below.map(|(_, record)| record)
    }

    /// A job was looked at: if it is a child that is over, its oldest siblings that are so too are
    /// forgotten.
    pub(super) fn forget_siblings(&mut self, now: Now, record: &JobRecord) {
        if !self.is_finished_child(record) {
            return;
        }
        let parent = record.job.parent_key();
        let mut over = parent.map_or_else(Vec::new, |parent| self.children(&parent));
        over.retain(|child| self.is_finished_child(child));
        over.truncate(over.len().saturating_sub(self.config.kept_children));
        for child in over {
            self.deregister(now, &child.job.key(), true);
        }
    }

    /// Whether this is a child of which nothing more is to come.
    fn is_finished_child(&self, record: &JobRecord) -> bool {
        let job = &record.job;
        job.is_child() && !record.purge && self.view().job_status(&job.key()) == JobStatus::Dead
    }
}
