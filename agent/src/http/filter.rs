//! Filter expressions: the two that Nomad's own command line sends of itself. A language for all others is not
//! offered; a program that can do without is told so in the words that it waits for.

use axum::http::StatusCode;
use drover_core::model::job::Job;

use super::errors::ApiError;

/// Which jobs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobFilter {
    /// Those that can be dispatched (`job dispatch`).
    Parameterized,
    /// Those that begin at times (`job periodic force`).
    Periodic,
}

impl JobFilter {
    /// Reads an expression that was given for this path.
    ///
    /// # Errors
    /// It is none of the two, or the path is not the list of jobs.
    pub(super) fn of(path: &str, expression: &str) -> Result<JobFilter, ApiError> {
        match (path, expression.trim()) {
            ("/v1/jobs", r#"ParentID == "" and ParameterizedJob is not nil"#) => {
                Ok(JobFilter::Parameterized)
            }
            ("/v1/jobs", "Periodic is not nil") => Ok(JobFilter::Periodic),
            _ => {
                let words = "failed to create result paginator: filter expressions are not \
                             supported by this version";
                Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, words))
            }
        }
    }

    /// Whether a job is listed.
    pub(super) fn takes(self, job: &Job) -> bool {
        match self {
            JobFilter::Parameterized => job.parent_id.is_empty() && job.parameterized_job.is_some(),
            JobFilter::Periodic => job.periodic.is_some(),
        }
    }
}
