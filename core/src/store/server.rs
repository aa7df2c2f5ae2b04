//! What must outlive the agent of the node's life in a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::alloc::ClientStatus;
use crate::model::drain::Eligibility;
use crate::model::job::Job;
use crate::model::secret::Secret;
use crate::model::service_instance::ServiceInstance;

/// What the servers know of this node, as far as the next agent has to know it: not what was registered, which is
/// registered again, and not the servers, of which the configuration names some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerRecord {
    /// Whether the node was registered: its secret is known to the servers, and heartbeats are awaited.
    pub registered: bool,
    /// Whether the node gets new allocations, as the servers said last.
    pub eligibility: Option<Eligibility>,
    /// The identity that servers signed for the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Secret>,
}

/// Of an allocation that servers placed here, what its own record does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PlacedRecord {
    /// Its job, in the version that it runs.
    pub job: Arc<Job>,
    /// The servers' index of their last change to it that was followed here.
    pub modify_index: u64,
}

/// What servers acknowledged last of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedRecord {
    /// The index of its record then.
    pub modify_index: u64,
    /// Its status then.
    pub status: ClientStatus,
}

/// The services of an allocation that servers may have, by their ids: what was sent before is remembered before it is
/// sent, so that nothing of it stays there for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AnnouncedRecord {
    /// The services.
    pub services: BTreeMap<Arc<str>, Announcement>,
}

/// A service that servers may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Announcement {
    /// As it was sent last.
    pub instance: Arc<ServiceInstance>,
    /// Whether servers acknowledged that, and nothing speaks against it since.
    pub acknowledged: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Saved;
    use crate::store::record::{AllocRecord, JobRecord};

    /// What ran of such an allocation counted as nobody's, and was ended when the agent was started again.
    #[test]
    fn job_of_alloc_of_servers_is_the_one_that_was_placed_with_it() {
        let job = |id: &str| {
            let id = id.to_owned();
            Arc::new(Job {
                id,
                ..Job::default()
            })
        };
        let (own, placed) = (job("own"), job("placed"));
        let mut saved = Saved::default();
        let record = JobRecord {
            job: own.clone(),
            ..JobRecord::default()
        };
        saved.jobs.insert(own.key(), Arc::new(record));
        let mut alloc = AllocRecord {
            job: own.key(),
            ..AllocRecord::default()
        };
        assert_eq!(saved.job_of(&alloc), Some(&own));
        alloc.of_servers = true;
        assert_eq!(saved.job_of(&alloc), None);
        let record = PlacedRecord {
            job: placed.clone(),
            modify_index: 1,
        };
        saved.placed.insert(alloc.id, Arc::new(record));
        assert_eq!(saved.job_of(&alloc), Some(&placed));
    }
}
