//! What happens at the servers of the node's cluster.

use drover_core::model::drain::Eligibility;
use serde::{Deserialize, Serialize};

use super::{ActKind, Change, Jobs};
use crate::check::Verdict;
use crate::sim::Sim;

/// A job is handed in at the servers, as it is or after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRegister {
    /// Which.
    pub job: String,
    /// What is changed first, for good.
    pub change: Option<Change>,
}

impl ActKind for ClusterRegister {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, jobs: &mut Jobs<'_>) -> Verdict {
        let Some(job) = jobs.get_mut(self.job.as_str()) else {
            return Ok(());
        };
        if let Some(change) = self.change {
            change.make(job);
        }
        let in_place = !matches!(self.change, Some(Change::Env(_) | Change::Meta(_)));
        let job = job.clone();
        sim.at_servers(|servers| servers.register(&job, in_place));
        Ok(())
    }
}

/// A job is stopped at the servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterDeregister {
    /// Which.
    pub job: String,
}

impl ActKind for ClusterDeregister {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.at_servers(|servers| servers.deregister(&self.job));
        Ok(())
    }
}

/// The servers collect what ended as garbage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterCollect;

impl ActKind for ClusterCollect {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.at_servers(|servers| servers.collect());
        Ok(())
    }
}

/// The servers stop an allocation of a job, and replace it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStopAlloc {
    /// Which job's.
    pub job: String,
    /// The how-manieth of all.
    pub nth: usize,
}

impl ActKind for ClusterStopAlloc {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.at_servers(|servers| servers.stop_one(&self.job, self.nth));
        Ok(())
    }
}

/// A snapshot is taken of the servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSave;

impl ActKind for ClusterSave {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.at_servers(|servers| servers.save());
        Ok(())
    }
}

/// The servers are restored from their last snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterGoBack;

impl ActKind for ClusterGoBack {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.at_servers(|servers| servers.go_back());
        Ok(())
    }
}

/// The identities that servers signed for nodes are over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEndIdentities {
    /// Whether nobody believes them any more, because the servers have new keys.
    pub keys_are_new: bool,
}

impl ActKind for ClusterEndIdentities {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.at_servers(|servers| servers.end_identities(self.keys_are_new));
        Ok(())
    }
}

/// The node gets new allocations from now on, or does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEligibility {
    /// Whether it does.
    pub eligible: bool,
}

impl ActKind for ClusterEligibility {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let eligibility = match self.eligible {
            true => Eligibility::Eligible,
            false => Eligibility::Ineligible,
        };
        let node = sim.config().node.id;
        sim.at_servers(|servers| servers.set_eligibility(node, eligibility));
        Ok(())
    }
}

/// The servers forget the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterForgetNode {
    /// Whether they forget its allocations, too.
    pub allocs: bool,
}

impl ActKind for ClusterForgetNode {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let node = sim.config().node.id;
        sim.at_servers(|servers| servers.forget_node(node, self.allocs));
        Ok(())
    }
}
