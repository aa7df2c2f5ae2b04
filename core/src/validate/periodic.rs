//! What is checked of jobs that are launched by the clock. Whether there is such a time zone is checked by whoever
//! can look that up.

use super::Report;
use crate::cron::schedule::{MAX_EXPRESSIONS, Schedule, lines};
use crate::model::job::Job;
use crate::model::periodic::LONGEST;
use crate::text::quote;

/// The longest id of a periodic job, so that there is room for the ids of its launches.
const MAX_ID: usize = 256 - LONGEST;

/// The longest name of a time zone, in bytes.
const MAX_ZONE: usize = 128;

pub(super) fn check(report: &mut Report, job: &Job) {
    let Some(periodic) = &job.periodic else {
        return;
    };
    let path = "job.periodic";
    if !job.job_type.runs_to_completion() {
        let kind = job.job_type.as_str();
        let message = format!("only for jobs of type batch and sysbatch, not {kind}");
        report.problem(path, message);
    }
    if job.id.len() > MAX_ID {
        let message = format!("the id of a periodic job must not be longer than {MAX_ID} bytes");
        report.problem("job.id", message);
    }
    if !periodic.spec_type.is_empty() && periodic.spec_type != "cron" {
        let message = format!("SpecType must be cron, is {}", quote(&periodic.spec_type));
        report.problem(path, message);
    }
    if !periodic.spec.is_empty() && !periodic.specs.is_empty() {
        report.problem(path, "cron and crons cannot both be given");
    }
    check_zone(
        report,
        &periodic.time_zone,
        "job.periodic.time_zone".to_owned(),
    );
    match lines(periodic).count() {
        0 => return report.problem(path, "cron or crons must be given"),
        many if many > MAX_EXPRESSIONS => {
            let message = format!("must not have more than {MAX_EXPRESSIONS} expressions");
            return report.problem("job.periodic.crons", message);
        }
        _ => {}
    }
    match Schedule::of(periodic) {
        Ok(schedule) if schedule.never_comes() => {
            report.problem(path, "no day of the calendar fits the expression");
        }
        Ok(_) => {}
        Err(bad) => {
            for one in bad {
                let place = match one.nth {
                    None => format!("{path}.cron"),
                    Some(nth) => format!("{path}.crons[{nth}]"),
                };
                report.problem(place, one.mistake.to_string());
            }
        }
    }
}

/// Whether this may be the name of a time zone.
pub(super) fn check_zone(report: &mut Report, zone: &str, path: String) {
    if zone.len() > MAX_ZONE || zone.contains(char::is_control) {
        report.problem(path, "is no name of a time zone");
    }
}
