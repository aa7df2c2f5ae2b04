//! Random worlds in which jobs ask for a volume that comes and goes.

use drover_core::model::job::Job;
use drover_core::time::Span;
use drover_io_sim::Dice;
use drover_io_sim::script::{Act, CreateVolume, DeleteVolume, What};

use crate::build::{GroupExt, TaskExt};

/// The only volume of random worlds.
const NAME: &str = "data";

/// In some worlds the first jobs ask for a volume.
pub(crate) fn volumes(dice: &mut Dice, jobs: &mut [Job], acts: &mut Vec<Act>) {
    if dice.below(5, "volumes", "") != 1 {
        return;
    }
    let groups = jobs.iter_mut().take(2).flat_map(|job| &mut job.task_groups);
    for group in groups {
        *group = core::mem::take(group).volume(NAME);
        for task in &mut group.tasks {
            *task = core::mem::take(task).mounts(NAME);
        }
    }
    for nth in 0..1 + dice.below(6, "acts of volumes", "") {
        let name = NAME.to_owned();
        let registered = dice.below(4, "registered", "") == 1;
        let what: What = match dice.below(3, "make or delete", "") {
            0 if nth > 0 => DeleteVolume { name }.into(),
            _ => CreateVolume { name, registered }.into(),
        };
        let pause = dice.one_of(&[0, 0, 5_000, 60_000, 600_000], "pause of volumes", "");
        acts.push(Act {
            pause: Span::millis(pause.unwrap_or(0)),
            steps: 0,
            what,
        });
    }
}
