//! What may be asked of the world for a hook: a payload for each, and the table of all.
//!
//! The hooks themselves are in `task/hooks/` and `alloc/hooks/`. The work is done by an adapter for each payload:
//! in `io-real/src/hooks/`, and simulated in `io-sim/src/hooks/`. Payloads do not stand beside their hooks, because
//! effects carry them, and tasks and allocations are made of what sends effects: they would import each other.
//!
//! `HookEffect::Cancel` ends downloads, questions to other nodes, and the rendering of templates; all other
//! work is short. The answer of a cancelled hook is awaited no longer than that of a short one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, TaskName};
use crate::model::artifact::Artifact;
use crate::model::authority::Authority;
use crate::model::device::AssignedDevices;
use crate::model::network::{Dns, Ipv4, NetworkMode};
use crate::model::remote::RemotePrevious;
use crate::model::variable::Reads;
use crate::paths::task_path::TaskPath;
use crate::store::record::AssignedPort;
use crate::time::Span;

/// The table of payloads: under the hook that asks for it (named as its file is, and those of its adapters) what may be
/// asked of the world, and that in words. `payloads!(make)` hands it to the macro `make`: here it becomes [`HookWork`],
/// and where the work is done the adapters' modules with whoever gets which work.
#[macro_export]
macro_rules! payloads {
    ($make:ident) => {
        $make! {
            network {
                BuildNetwork(Arc<BuildNetwork>) "make the network",
                RemoveNetwork(RemoveNetwork) "remove the network",
            }
            alloc_dir {
                BuildAllocDir(BuildAllocDir) "make directory",
                RemoveAllocDir(RemoveAllocDir) "remove directory",
            }
            migrate_disk { InheritDisk(InheritDisk) "migrate the disk", }
            await_remote { AskRemote(AskRemote) "query another node", }
            fetch_disk { FetchDisk(FetchDisk) "fetch the disk", }
            disk_quota { SetDiskQuota(SetDiskQuota) "limit the disk space", }
            task_dir { BuildTaskDir(BuildTaskDir) "make directory", }
            identity { IssueIdentities(Arc<Issuing>) "make tokens", }
            dispatch_payload { WritePayload(WritePayload) "write the payload", }
            volumes { LinkVolumes(LinkVolumes) "link the volumes", }
            artifacts { FetchArtifacts(FetchArtifacts) "fetch artifacts", }
            devices { Reserve(Reserve) "reserve devices", }
            template { RenderTemplates(Arc<Rendering>) "render templates", }
        }
    };
}

/// The table as what effects carry.
macro_rules! hook_work {
    ($($hook:ident { $($name:ident($payload:ty) $words:literal,)* })*) => {
        /// Work of hooks, outside of the core. Doing it twice is doing it once.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum HookWork {
            $($(
                #[doc = concat!("Of the hook `", stringify!($hook), "`: ", $words, ".")]
                $name($payload),
            )*)*
        }

        impl HookWork {
            /// What it does, in a few words.
            pub fn words(&self) -> &'static str {
                match self { $($(HookWork::$name(_) => $words,)*)* }
            }
        }

        $($(impl From<$payload> for HookWork {
            fn from(work: $payload) -> HookWork { HookWork::$name(work) }
        })*)*
    };
}

payloads!(hook_work);

/// Make the allocation's network. What is there of it already stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuildNetwork {
    /// What kind of network it is. Of the host's only files are made, which say how names are resolved.
    pub mode: NetworkMode,
    /// The name that tasks have for themselves; the host's if empty.
    pub hostname: String,
    /// How names are resolved; as the host does if none.
    pub dns: Option<Dns>,
    /// Its address behind the bridge.
    pub address: Option<Ipv4>,
    /// The ports of the host that lead to it.
    pub ports: Vec<AssignedPort>,
    /// Arguments for plugins of CNI, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
}

/// Remove the allocation's network with everything that leads to it. Where none is, that is success.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RemoveNetwork {
    /// The address that it had behind the bridge.
    pub address: Option<Ipv4>,
}

/// Make the allocation's directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuildAllocDir;

/// Remove the allocation's directory with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RemoveAllocDir;

/// Take over what those before left: the shared data, and what these tasks kept in their own `local`.
/// Each from the first that has any; what is taken over already stays. Those whose directories are not
/// there have nothing to give.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InheritDisk {
    /// Whose disks, nearest first.
    pub from: Vec<AllocId>,
    /// The tasks of the group.
    pub tasks: Vec<TaskName>,
}

/// Ask another node whether this allocation of it still runs. The answer may wait until something of it
/// changed after the index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AskRemote {
    /// Which.
    pub previous: RemotePrevious,
    /// The index of the last answer; 0 for the first question.
    pub index: u64,
}

/// Fetch from another node what its allocation left on its disk, as
/// [`InheritDisk`] takes it over on this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FetchDisk {
    /// Which.
    pub previous: RemotePrevious,
    /// The tasks of the group.
    pub tasks: Vec<TaskName>,
}

/// Let the allocation's directory take no more than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SetDiskQuota {
    /// How many bytes.
    pub bytes: u64,
}

/// Make a task's directory, and its secrets in memory. They are gone when the machine restarts, so they
/// are seen to before each start; who they are is reported.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuildTaskDir {
    /// As whom the task runs; nobody in particular if empty.
    pub user: String,
    /// Megabytes of the secrets; the usual size if 0.
    #[serde(default)]
    pub secrets_mb: u64,
    /// Whether the directory was made before, and belongs to the task: only the secrets are seen to.
    #[serde(default)]
    pub made: bool,
    /// Whether the task has users of its own, of whom nothing is known: inside, all of them may use everything, and
    /// nobody else reaches it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub private: bool,
}

/// Make tokens for a task's identities: those that are files are written, those that are variables are
/// held for its next start. The answer has none of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Issuing {
    /// Who signs them.
    #[serde(default, skip_serializing_if = "Authority::is_node")]
    pub authority: Authority,
    /// The region of the task's job.
    pub region: String,
    /// The namespace of its job.
    pub namespace: String,
    /// The job, or the one that it was made of.
    pub job: String,
    /// The task's group.
    pub group: String,
    /// Whose the files are; nobody in particular if empty.
    pub user: String,
    /// What is to be made.
    pub identities: Vec<IdentityWork>,
}

/// A token that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdentityWork {
    /// Of which identity.
    pub name: String,
    /// For whom it is; for whoever issues it if empty.
    pub audience: Vec<String>,
    /// How long it is good; for ever if zero.
    pub ttl: Span,
    /// The file for it.
    pub file: Option<TaskPath>,
    /// The variable for it.
    pub variable: Option<String>,
}

/// Write what a dispatch brought into the task's directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WritePayload {
    /// The file.
    pub file: TaskPath,
    /// What it holds, in base64.
    pub payload: Arc<str>,
}

/// Make links to the volumes of a task whose driver does not mount. What links there are in their places is
/// replaced; whatever else is there stays, and is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinkVolumes {
    /// The links.
    pub links: Vec<VolumeLink>,
}

/// A link to a volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VolumeLink {
    /// Where it goes.
    pub path: TaskPath,
    /// The directory of the volume on the host.
    pub target: String,
}

/// Fetch what the task needs, each into its place below the allocation's directory. What is there already
/// is replaced, and nothing but what was wholly fetched and validated gets there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FetchArtifacts {
    /// What, with all references replaced.
    pub artifacts: Vec<Artifact>,
    /// The allocation's directory as destinations may name it.
    pub root: String,
    /// Whose they are if that is wanted; nobody in particular if empty.
    pub user: String,
}

/// Ask the plugins of these devices what the task needs in order to use them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reserve {
    /// Which devices.
    pub devices: Vec<AssignedDevices>,
}

/// Render these templates, and answer when all are. Afterwards watch what they are made of, and report every
/// change ([`crate::input::TemplateInput`]) until this operation is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rendering {
    /// Who has the variables and services that they read.
    #[serde(default, skip_serializing_if = "Authority::is_node")]
    pub authority: Authority,
    /// The templates, in the order of the job file.
    pub templates: Vec<TemplateWork>,
    /// The variables of the environment that they may use.
    pub env: BTreeMap<String, String>,
    /// The Nomad variables that they may read.
    pub reads: Reads,
    /// The allocation's directory, as the variables name it.
    pub root: String,
    /// Whether the task runs already: what is rendered once, or depends on the time, stays as it
    /// is.
    pub runs: bool,
}

/// One template, with all references replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TemplateWork {
    /// Where its text is.
    pub source: TemplateSource,
    /// The file to render.
    pub destination: TaskPath,
    /// What opens an action.
    pub left: String,
    /// What closes it.
    pub right: String,
    /// Whether a key that a map lacks is an error.
    pub error_on_missing_key: bool,
    /// Whether the file's lines become variables.
    pub env: bool,
    /// The file's permissions.
    pub mode: u32,
    /// The file's owner; the agent's own if none.
    pub uid: Option<u32>,
    /// The file's group.
    pub gid: Option<u32>,
    /// Whether it is rendered once.
    pub once: bool,
    /// How long changes are collected, at least and at most.
    pub wait: (Span, Span),
}

/// Where the text of a template is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TemplateSource {
    /// Here.
    Text(String),
    /// In a file of the task.
    File(TaskPath),
}
