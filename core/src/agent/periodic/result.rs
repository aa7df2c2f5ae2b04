//! How a job fares that was made for a time of a periodic one.

use crate::agent::View;
use crate::ids::JobKey;
use crate::model::alloc::ClientStatus;
use crate::model::job::JobStatus;

/// How far a launch is, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchResult {
    /// Nothing of it started yet.
    Pending,
    /// It runs.
    Running,
    /// It was stopped.
    Stopped,
    /// An allocation failed that nothing replaced.
    Failed,
    /// All that it was to do is done.
    Succeeded,
    /// It is over, and what became of it is not known, or not any more.
    Over,
}

impl LaunchResult {
    /// In a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            LaunchResult::Pending => "not started yet",
            LaunchResult::Running => "running",
            LaunchResult::Stopped => "stopped",
            LaunchResult::Failed => "failed",
            LaunchResult::Succeeded => "succeeded",
            LaunchResult::Over => "over",
        }
    }

    /// By the job's status, whether it was stopped, and the statuses of those of its allocations that nothing replaced.
    fn of(
        status: JobStatus,
        stop: bool,
        mut last: impl Iterator<Item = ClientStatus> + Clone,
    ) -> Self {
        let failed = || last.clone().any(|status| status == ClientStatus::Failed);
        match status {
            JobStatus::Pending => LaunchResult::Pending,
            JobStatus::Running => LaunchResult::Running,
            JobStatus::Dead if failed() => LaunchResult::Failed,
            JobStatus::Dead if stop => LaunchResult::Stopped,
            JobStatus::Dead if last.clone().next().is_none() => LaunchResult::Over,
            JobStatus::Dead if last.all(|status| status == ClientStatus::Complete) => {
                LaunchResult::Succeeded
            }
            JobStatus::Dead => LaunchResult::Over,
        }
    }
}

impl View<'_> {
    /// How far a job is that was made for a time, or how it ended; none of one that is not there any more.
    pub fn launch_result(self, launch: &JobKey) -> Option<LaunchResult> {
        let record = self.job(launch)?;
        let allocs = self.shown_allocs_of(launch);
        let statuses = allocs.map(|alloc| alloc.record());
        let last = statuses.filter(|record| record.next.is_none());
        let last: Vec<ClientStatus> = last.map(|record| record.status).collect();
        let status = self.job_status(launch);
        Some(LaunchResult::of(
            status,
            record.job.stop,
            last.iter().copied(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_a_launch_is_not_guessed() {
        use ClientStatus::{Complete, Failed, Lost};
        let of = |status: JobStatus, stop: bool, last: &[ClientStatus]| {
            LaunchResult::of(status, stop, last.iter().copied())
        };
        let cases: [(&[ClientStatus], LaunchResult); 4] = [
            (&[], LaunchResult::Over),
            (&[Complete, Lost], LaunchResult::Over),
            (&[Complete, Complete], LaunchResult::Succeeded),
            (&[Failed, Complete], LaunchResult::Failed),
        ];
        for (last, result) in cases {
            assert_eq!(of(JobStatus::Dead, false, last), result, "{last:?}");
        }
        assert_eq!(
            of(JobStatus::Dead, true, &[Complete]),
            LaunchResult::Stopped
        );
        assert_eq!(of(JobStatus::Dead, true, &[Failed]), LaunchResult::Failed);
        assert_eq!(of(JobStatus::Pending, false, &[]), LaunchResult::Pending);
        assert_eq!(
            of(JobStatus::Running, false, &[Failed]),
            LaunchResult::Running
        );
    }
}
