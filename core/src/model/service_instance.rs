//! Services, as they are registered at servers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, JobKey, TaskName};

/// One instance of a service, as servers shall have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceInstance {
    /// Its name in the world.
    pub id: Arc<str>,
    /// The service's name.
    pub name: String,
    /// The job, and the namespace in which it is known.
    pub job: JobKey,
    /// The node's data centre.
    pub datacenter: String,
    /// The allocation.
    pub alloc: AllocId,
    /// The task; none for a service of the group.
    pub task: Option<TaskName>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Where it listens.
    pub address: String,
    /// The port there.
    pub port: u16,
}
