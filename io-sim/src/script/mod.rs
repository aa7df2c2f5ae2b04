//! A run as data: jobs, what people do, what goes wrong, and how the next one is picked. Data can be
//! written to a file, played again anywhere, and made smaller.

mod cluster;
mod machine;
mod run;
mod settings;
mod shrink;

use std::collections::BTreeMap;

use drover_core::claims::resources::Amounts;
use drover_core::model::job::Job;
use drover_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::check::Verdict;
use crate::choice::Overrides;
use crate::faults::Faults;
use crate::search::Search;
use crate::sim::Sim;

pub use crate::requests::*;
pub use cluster::{
    ClusterCollect, ClusterDeregister, ClusterEligibility, ClusterEndIdentities, ClusterForgetNode,
    ClusterGoBack, ClusterRegister, ClusterSave, ClusterStopAlloc,
};
pub use machine::{ChangeTemplate, Driver, Replace, Resize, Shutdown};
pub use run::{Ran, Watch};
pub use settings::Settings;
pub use shrink::{Shrunk, shrink};

/// Everything that decides how a run goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Decides whatever nothing else decides.
    pub seed: u64,
    /// What is decided otherwise than the seed says.
    #[serde(default)]
    pub overrides: Overrides,
    /// How the next one is picked.
    pub search: Search,
    /// What goes wrong.
    pub faults: Faults,
    /// The jobs that acts speak of, by their ids.
    pub jobs: Vec<Job>,
    /// What people do, in this order.
    pub acts: Vec<Act>,
    /// How long the trouble lasts after the last act.
    pub then: Span,
    /// What the machine has of counted resources, if that is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<Amounts>,
    /// How the agent is set up.
    #[serde(default, skip_serializing_if = "Settings::are_usual")]
    pub settings: Settings,
    /// Whether the node has an engine of containers.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub engine: bool,
    /// Whether the node is in a cluster.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cluster: bool,
}

/// One thing that somebody does, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// How much time passes before it.
    pub pause: Span,
    /// How many things happen at that instant before it, if so many do.
    pub steps: u32,
    /// What is done.
    pub what: What,
}

/// The jobs of a script by their ids, as they are now.
pub type Jobs<'a> = BTreeMap<&'a str, Job>;

/// Something that people do, or that happens to the machine.
pub trait ActKind {
    /// The job that it is about.
    fn job(&self) -> Option<&str> {
        None
    }

    /// Does it.
    ///
    /// # Errors
    /// What is violated by it.
    fn act(&self, sim: &mut Sim, jobs: &mut Jobs<'_>) -> Verdict;
}

/// What people can do: a line for each.
macro_rules! acts {
    ($($name:ident,)*) => {
        /// What people do.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum What {
            $(#[allow(missing_docs, reason = "its type says it")]
            $name($name),)*
        }

        impl What {
            /// As what is the same of all.
            pub fn get(&self) -> &dyn ActKind {
                match self {
                    $(What::$name(act) => act,)*
                }
            }
        }

        $(impl From<$name> for What {
            fn from(act: $name) -> What {
                What::$name(act)
            }
        })*
    };
}

acts! {
    Register,
    CheckAndRegister,
    TakeOver,
    TakeOverOne,
    HandOver,
    Dispatch,
    Deregister,
    DeregisterWithoutDelay,
    Evaluate,
    ForceReschedule,
    ForcePeriodic,
    SetEligibility,
    UpdateDrain,
    ApplyNodeMeta,
    SetScheduler,
    CreateVolume,
    DeleteVolume,
    ApplyNamespace,
    DeleteNamespace,
    BootstrapAcl,
    CreateAclToken,
    UpdateAclToken,
    DeleteAclToken,
    ApplyAclPolicy,
    DeleteAclPolicy,
    EvaluateNode,
    Restart,
    RestartTask,
    Signal,
    SignalTask,
    OpenSession,
    RevertJob,
    TagVersion,
    UntagVersion,
    SetStable,
    ScaleJob,
    PromoteDeployment,
    FailDeployment,
    PauseDeployment,
    SetAllocHealth,
    StopAlloc,
    StopAllocWithoutDelay,
    CollectAlloc,
    TransferComplete,
    Collect,
    PutVariable,
    DeleteVariable,
    Driver,
    Resize,
    ChangeTemplate,
    Shutdown,
    Replace,
    ClusterRegister,
    ClusterDeregister,
    ClusterStopAlloc,
    ClusterCollect,
    ClusterEligibility,
    ClusterForgetNode,
    ClusterSave,
    ClusterGoBack,
    ClusterEndIdentities,
}

impl Script {
    /// How much there is to understand: jobs, copies and tasks, acts, and what chance decided.
    pub fn len(&self) -> usize {
        let tasks: usize = (self.jobs.iter())
            .flat_map(|job| &job.task_groups)
            .map(|group| group.tasks.len() * usize::try_from(group.count.unwrap_or(1)).unwrap_or(1))
            .sum();
        tasks + self.acts.len() + self.overrides.chosen.len()
    }

    /// Whether nothing happens at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
