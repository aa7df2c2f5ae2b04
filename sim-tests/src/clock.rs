//! Periodic jobs of random worlds.

use drover_core::model::job::Job;
use drover_core::model::policy::Missed;
use drover_core::time::Span;
use drover_io_sim::Dice;
use drover_io_sim::script::{Act, ForcePeriodic};

use crate::build::periodic;

/// The job as one that is launched by the clock, a few times in all: the world must come to rest.
pub(crate) fn by_the_clock(dice: &mut Dice, mut job: Job) -> Job {
    let id = job.id.clone();
    job.parameterized_job = None;
    // Worlds begin on 2023-11-14 at 22:13:21 UTC.
    let few = [
        "*/20 14-15 22 14 11 * 2023",
        "0 15-30/5 22 14 11 * 2023",
        "0 0,30 23 14 11 * 2023",
        "*/2 14 22 14 11 * 2023",
    ];
    let mut job = periodic(job, few[dice.below(few.len(), "cron", &id)]);
    if let Some(periodic) = &mut job.periodic {
        periodic.prohibit_overlap = dice.below(2, "no overlap", &id) == 1;
        if dice.below(3, "missed", &id) == 1 {
            periodic.missed = Missed::Skip;
        }
    }
    job
}

/// Some periodic jobs are launched by people, too.
pub(crate) fn launches_by_hand(dice: &mut Dice, jobs: &[Job], acts: &mut Vec<Act>) {
    for job in jobs.iter().filter(|job| job.periodic.is_some()) {
        for _ in 0..dice.below(3, "forced", &job.id) {
            acts.push(force(dice, &job.id));
        }
    }
}

fn force(dice: &mut Dice, job: &str) -> Act {
    let pause = dice.one_of(&[20, 0, 60, 600], "pause of a launch", job);
    Act {
        pause: Span::secs(pause.unwrap_or(0)),
        steps: 0,
        what: ForcePeriodic {
            job: job.to_owned(),
        }
        .into(),
    }
}
