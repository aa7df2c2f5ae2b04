//! The configuration that the core gets once, at its start.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::claims::resources::{Overcommit, Reserved};
use crate::driver::docker::DockerPolicy;
use crate::driver::isolation::ExecPolicy;
use crate::input::DiskUsage;
use crate::model::node::Node;
pub use crate::model::scheduler::Preemption;
use crate::time::Span;

/// How many allocations are garbage-collected at once unless told otherwise, as in Nomad.
pub const PARALLEL_DESTROYS: usize = 2;

/// How many children of one job are kept after they are over, unless told otherwise.
pub const KEPT_CHILDREN: usize = 100;

/// How many records of allocations are kept whose directories are gone, unless told otherwise.
pub const KEPT_RECORDS: usize = 5_000;

/// How old it becomes what nothing depends on any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Retention {
    /// A dead job, since something last happened to it.
    pub jobs: Span,
    /// An evaluation.
    pub evals: Span,
    /// A deployment.
    pub deployments: Span,
    /// The record of an allocation whose directory is gone.
    pub records: Span,
}

impl Retention {
    /// Nothing is kept.
    pub const NOTHING: Retention = Retention {
        jobs: Span::ZERO,
        evals: Span::ZERO,
        deployments: Span::ZERO,
        records: Span::ZERO,
    };
}

impl Default for Retention {
    /// As in Nomad, where records live as long as evaluations: here they stay for days, there are
    /// only so many of them.
    fn default() -> Retention {
        Retention {
            jobs: Span::secs(4 * 3600),
            evals: Span::secs(3600),
            deployments: Span::secs(3600),
            records: Span::secs(7 * 24 * 3600),
        }
    }
}

/// Everything that does not change while the agent lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Config {
    /// Seeds all random numbers of this life of the agent (jitter, ids). Each start needs a new
    /// one, or ids would repeat.
    pub seed: u64,
    /// This node.
    pub node: Node,
    /// The directory below which allocations live, as tasks see it in their environment.
    pub alloc_root: String,
    /// The agent's own environment, as far as tasks may have it.
    pub host_env: Vec<(String, String)>,
    /// The longest `kill_timeout` that a task gets.
    pub max_kill_timeout: Span,
    /// How many ended allocations are kept before the oldest is cleaned up.
    pub keep_terminal: usize,
    /// How many children of one job are kept after they are over, for people. When one more is over,
    /// the oldest is forgotten, with what is left of its allocations.
    #[serde(default = "as_many_children_as_ever")]
    pub kept_children: usize,
    /// How many records are kept of allocations whose directories are gone; then the oldest goes.
    #[serde(default)]
    pub kept_records: usize,
    /// How old it becomes what nothing depends on any more; for ever if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How many allocations are garbage-collected at once.
    #[serde(default = "all_at_once")]
    pub parallel_destroys: usize,
    /// Whether tasks' directories are seen to before each start. Earlier agents did so only where secrets are in memory:
    /// what they recorded says so.
    #[serde(default, rename = "secrets_in_memory")]
    pub sees_to_task_dirs: bool,
    /// How much of the disk may be taken before ended allocations are garbage-collected; nobody looks
    /// if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "room")]
    pub disk_limits: Option<DiskUsageLimits>,
    /// The pause between two looks at how much the directories of allocations take; nobody looks if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir_usage: Option<Span>,
    /// Whether the file system keeps allocations from taking more than they asked for.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub disk_quota: bool,
    /// Whose jobs may preempt jobs of lower priority.
    #[serde(default = "no_preemption")]
    pub preemption: Preemption,
    /// Whether `memory_max` bounds the memory of a task, instead of `memory`.
    #[serde(default = "as_it_ever_did")]
    pub memory_oversubscription: bool,
    /// Memory and disk space that allocations do not get.
    #[serde(default)]
    pub reserved: Reserved,
    /// How much of what the node has allocations may hold together.
    #[serde(default = "nothing_is_counted")]
    pub overcommit: Overcommit,
    /// Whether the services whose provider is Consul are run as this node's own.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub consul_services: bool,
    /// Whether operators are told of checks and of the disk, of which no record says anything: then the disk is measured all the time.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub notices: bool,
    /// What isolated tasks are allowed.
    #[serde(default)]
    pub exec: ExecPolicy,
    /// What containers are allowed.
    #[serde(default)]
    pub docker: DockerPolicy,
    /// The namespaces that there are besides `default` and those that somebody makes. None where it is not known, as
    /// in recordings of earlier days: then there is every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<Arc<str>>>,
    /// How long the core waits for the outside.
    #[serde(alias = "patience")]
    pub timeouts: Timeouts,
    /// What is asked about the machine, and when.
    #[serde(default)]
    pub probes: Vec<ProbeConfig>,
    /// The drivers whose condition is listened to; that of others is what [`Config::node`] says.
    #[serde(default)]
    pub drivers: Vec<Arc<str>>,
    /// The plugins that have devices.
    #[serde(default)]
    pub device_plugins: Vec<Arc<str>>,
    /// The cluster whose client this node is; none if it is on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterConfig>,
}

/// A cluster, as its node has to know it. Where its servers are and which secret the node has is the business of
/// whoever carries out calls; region, data centre, pool and the address of the node's API are those of [`Node`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterConfig {
    /// The version of Nomad that the node is compatible with, which jobs' implicit constraints look at.
    pub version: Arc<str>,
    /// Whether servers alone decide which jobs begin here: those of the node's own that are there go on, and no new
    /// one is taken. Earlier agents took them: what they recorded says so.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub only_jobs_of_servers: bool,
}

fn as_many_children_as_ever() -> usize {
    KEPT_CHILDREN
}

/// As it was before there was such a setting.
fn all_at_once() -> usize {
    usize::MAX
}

fn as_it_ever_did() -> bool {
    true
}

/// As it was before there was such a setting.
fn no_preemption() -> Preemption {
    Preemption {
        system: false,
        ..Preemption::default()
    }
}

/// As it was before there was such a setting.
fn nothing_is_counted() -> Overcommit {
    Overcommit {
        cpu: u64::MAX,
        memory: u64::MAX,
        disk: u64::MAX,
    }
}

/// How full the disk of the allocations' directories may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DiskUsageLimits {
    /// The pause between two looks.
    pub interval: Span,
    /// Percent of its bytes.
    pub disk_percent: u8,
    /// Percent of its inodes.
    pub inode_percent: u8,
}

impl DiskUsageLimits {
    /// Whether more is taken than may be.
    pub fn is_exceeded(&self, disk_limits: DiskUsage) -> bool {
        disk_limits.disk_percent > self.disk_percent
            || disk_limits.inode_percent > self.inode_percent
    }
}

impl Default for DiskUsageLimits {
    /// As in Nomad.
    fn default() -> DiskUsageLimits {
        DiskUsageLimits {
            interval: Span::secs(60),
            disk_percent: 80,
            inode_percent: 70,
        }
    }
}

/// Deadlines of operations: nobody outside is trusted to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timeouts {
    /// A driver starting a task.
    pub start: Span,
    /// A driver finding a task again after a restart of the agent.
    pub recover: Span,
    /// The same where only an engine can say what became of the task: that engine may be away, and the task runs on
    /// without it.
    #[serde(default = "engine_timeout")]
    pub recover_by_engine: Span,
    /// A driver passing on a signal.
    pub signal: Span,
    /// A driver opening a session.
    #[serde(default = "session_timeout")]
    pub session: Span,
    /// A driver ending a task by force; tried again after it.
    pub destroy: Span,
    /// One hook's work.
    pub hook: Span,
    /// Fetching all artifacts of a task.
    #[serde(default = "artifacts_timeout")]
    pub artifacts: Span,
    /// Fetching a disk from another node.
    #[serde(default = "disk_timeout")]
    pub disk: Span,
    /// The pause before a failed commit is tried again.
    pub commit_retry: Span,
    /// How long a change that nothing waits for may stay unsaved, so that several share a commit.
    pub lazy_commit: Span,
    /// How long a change may stay unsaved that only the destruction of a task waits for: where many
    /// tasks end, one commit serves several. What was recorded before there was such a time was
    /// saved at once.
    #[serde(default)]
    pub soon_commit: Span,
    /// One probe of the machine.
    #[serde(default = "probe_timeout")]
    pub probe: Span,
    /// The first report of a driver or plugin that was asked to tell of itself.
    #[serde(default = "report_timeout")]
    #[serde(alias = "first_news")]
    pub first_report: Span,
}

fn engine_timeout() -> Span {
    Span::secs(24 * 3600)
}

fn session_timeout() -> Span {
    Span::secs(30)
}

fn artifacts_timeout() -> Span {
    Span::secs(3600)
}

fn disk_timeout() -> Span {
    Span::secs(4 * 3600)
}

fn probe_timeout() -> Span {
    Span::secs(10)
}

fn report_timeout() -> Span {
    Span::secs(60)
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            start: Span::secs(600),
            recover: Span::secs(30),
            recover_by_engine: engine_timeout(),
            signal: Span::secs(10),
            session: session_timeout(),
            destroy: Span::secs(15),
            hook: Span::secs(120),
            artifacts: artifacts_timeout(),
            disk: disk_timeout(),
            commit_retry: Span::secs(1),
            lazy_commit: Span::millis(50),
            soon_commit: Span::millis(5),
            probe: probe_timeout(),
            first_report: report_timeout(),
        }
    }
}

impl Config {
    /// The usual settings for `node`, with allocations below `alloc_root`.
    pub fn new(seed: u64, node: Node, alloc_root: impl Into<String>) -> Config {
        Config {
            seed,
            node,
            alloc_root: alloc_root.into(),
            host_env: Vec::new(),
            max_kill_timeout: Span::secs(30),
            keep_terminal: 50,
            kept_children: KEPT_CHILDREN,
            kept_records: KEPT_RECORDS,
            retention: Some(Retention::default()),
            parallel_destroys: PARALLEL_DESTROYS,
            preemption: Preemption::default(),
            memory_oversubscription: true,
            sees_to_task_dirs: true,
            disk_limits: None,
            dir_usage: None,
            disk_quota: false,
            reserved: Reserved::default(),
            overcommit: Overcommit::default(),
            consul_services: false,
            notices: false,
            exec: ExecPolicy::default(),
            docker: DockerPolicy::default(),
            namespaces: Some(Vec::new()),
            timeouts: Timeouts::default(),
            probes: Vec::new(),
            drivers: Vec::new(),
            device_plugins: Vec::new(),
            cluster: None,
        }
    }
}

/// How a probe is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbeConfig {
    /// Its name.
    pub name: Arc<str>,
    /// After how long it is asked again when it answered; never if none.
    pub every: Option<Span>,
    /// Whether nothing is placed before it answered, failed or took too long once.
    pub essential: bool,
}
