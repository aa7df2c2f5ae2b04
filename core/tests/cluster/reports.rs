//! What servers are told of an allocation beside its status.

use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::AllocReport;
use drover_core::ids::AllocId;
use drover_core::model::alloc::TaskState;
use drover_core::time::Span;

use crate::allocs::{job, placed};
use crate::world::World;

/// What is not as it was reported last.
pub(crate) fn reported_otherwise(alloc: &AllocRunner, report: &AllocReport) -> Vec<String> {
    let (record, id) = (alloc.record(), report.id);
    let mut wrong = Vec::new();
    if record.health != report.health {
        let (here, there) = (record.health, report.health);
        wrong.push(format!("{id} is healthy {here:?}, servers have {there:?}"));
    }
    for task in alloc.tasks() {
        let (name, state) = (&task.spec().key.task, &task.record().state);
        let seen = |state: &TaskState| (state.state, state.failed, state.restarts);
        let (here, there) = (seen(state), report.tasks.get(name).map(seen));
        if there != Some(here) {
            wrong.push(format!(
                "{name} of {id} is {here:?}, servers have {there:?}"
            ));
        }
    }
    wrong
}

/// Its status is the same as before, and says nothing of the restart.
#[test]
fn restart_whose_report_was_lost_is_reported_again() {
    let mut world = World::quiet();
    let mut restarted = job("web", 0);
    if let Some(policy) = &mut restarted.task_groups[0].restart_policy {
        policy.attempts = Some(1);
    }
    world.servers.place(world.now, placed(1, restarted));
    world.run(Span::secs(30));
    let restarts = |world: &World| {
        let reported = world.servers.allocs[&AllocId(1)].reported.as_deref();
        reported.map(|it| it.tasks.values().map(|task| task.restarts).sum::<u64>())
    };
    assert_eq!(restarts(&world), Some(0));
    world.reports_lost = true;
    world.exit_of(AllocId(1));
    world.run(Span::secs(40));
    world.reports_lost = false;
    world.run(Span::secs(60));
    assert_eq!(restarts(&world), Some(1));
}
