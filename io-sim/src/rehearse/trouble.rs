//! The troubles that a job is rehearsed under.

use drover_core::model::job::Job;
use serde::{Deserialize, Serialize};

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// None, to compare with.
    Nothing,
    /// One task ends at each start.
    CrashAtStart,
    /// One task ends a few times.
    CrashNowAndThen,
    /// Starts take long.
    SlowStart,
    /// The agent is killed, and away for a while.
    AgentKilled,
    /// The machine starts again.
    Reboot,
    /// The servers cannot be reached.
    ServerGone,
    /// Nothing can be fetched that a start needs.
    RegistryDown,
    /// The agent can save nothing.
    FullDisk,
    /// Tasks do not end when they are asked to.
    HungStop,
    /// The leader ends.
    LeaderDies,
    /// Several of the others at once.
    Everything,
}

impl Trouble {
    /// Every trouble.
    pub const ALL: &[Trouble] = &[
        Trouble::Nothing,
        Trouble::CrashAtStart,
        Trouble::CrashNowAndThen,
        Trouble::SlowStart,
        Trouble::AgentKilled,
        Trouble::Reboot,
        Trouble::ServerGone,
        Trouble::RegistryDown,
        Trouble::FullDisk,
        Trouble::HungStop,
        Trouble::LeaderDies,
        Trouble::Everything,
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Trouble::Nothing => "nothing",
            Trouble::CrashAtStart => "crash-at-start",
            Trouble::CrashNowAndThen => "crash-now-and-then",
            Trouble::SlowStart => "slow-start",
            Trouble::AgentKilled => "agent-killed",
            Trouble::Reboot => "reboot",
            Trouble::ServerGone => "server-gone",
            Trouble::RegistryDown => "registry-down",
            Trouble::FullDisk => "full-disk",
            Trouble::HungStop => "hung-stop",
            Trouble::LeaderDies => "leader-dies",
            Trouble::Everything => "everything",
        }
    }

    /// The trouble of this name.
    pub fn named(name: &str) -> Option<Trouble> {
        let mut all = Trouble::ALL.iter().copied();
        all.find(|trouble| trouble.name() == name)
    }

    /// What happens.
    pub fn sentence(self) -> &'static str {
        match self {
            Trouble::Nothing => "Nothing goes wrong.",
            Trouble::CrashAtStart => {
                "One task ends with an error at each start, for 10 s to an hour."
            }
            Trouble::CrashNowAndThen => {
                "One task ends with an error up to six times within an hour."
            }
            Trouble::SlowStart => {
                "Each start takes 5 s to 8 min, for an hour in which a task ends twice."
            }
            Trouble::AgentKilled => {
                "The agent is killed up to three times and away for up to 10 min; a task may end meanwhile."
            }
            Trouble::Reboot => {
                "The machine starts again up to three times, which takes 20 s to 5 min."
            }
            Trouble::ServerGone => "The servers cannot be reached.",
            Trouble::RegistryDown => {
                "A task ends, and what its start needs (image, artifact) cannot be fetched, for 10 s to an hour."
            }
            Trouble::FullDisk => {
                "The agent's disk is full for 10 s to an hour, and a task ends meanwhile."
            }
            Trouble::HungStop => {
                "Tasks do not end when they are asked to, while the job is restarted, stopped or renewed."
            }
            Trouble::LeaderDies => "A leader ends, up to three times within an hour.",
            Trouble::Everything => "Several of all these at once.",
        }
    }

    /// Why this trouble means nothing to a job, if so.
    pub fn not_for(self, job: &Job) -> Option<&'static str> {
        let groups = || job.task_groups.iter();
        match self {
            Trouble::ServerGone => {
                Some("this agent stands alone and has no servers; agent-killed comes nearest")
            }
            Trouble::LeaderDies if !groups().any(|group| group.tasks.iter().any(|t| t.leader)) => {
                Some("no task is a leader")
            }
            Trouble::Nothing
            | Trouble::CrashAtStart
            | Trouble::CrashNowAndThen
            | Trouble::SlowStart
            | Trouble::AgentKilled
            | Trouble::Reboot
            | Trouble::RegistryDown
            | Trouble::FullDisk
            | Trouble::HungStop
            | Trouble::LeaderDies
            | Trouble::Everything => None,
        }
    }
}
