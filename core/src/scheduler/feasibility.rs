//! Whether this node can run a group at all: its data center, its drivers, and the constraints.

use super::NotPlaced;
use crate::constraint;
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::node::Node;
use crate::model::placement::PlacementFailure;

/// Whether a node can run a group; `awaits_first_reports` if something may still be found on it.
///
/// # Errors
/// What it lacks.
pub fn admits(
    node: &Node,
    awaits_first_reports: bool,
    job: &Job,
    group: &TaskGroup,
) -> Result<(), NotPlaced> {
    if !constraint::datacenter_matches(&job.datacenters, &node.datacenter) {
        let wanted = PlacementFailure::Datacenters(job.datacenters.clone());
        return Err(NotPlaced::Failed(wanted));
    }
    for task in &group.tasks {
        let known = node.drivers.get(&task.driver);
        if !known.is_some_and(|driver| driver.detected && driver.healthy) {
            let why = PlacementFailure::Driver {
                driver: task.driver.clone(),
                task: task.name.clone(),
                detected: known.is_some(),
            };
            return Err(match known {
                Some(_) => NotPlaced::Failed(why),
                None => unless_unknown(awaits_first_reports, why),
            });
        }
    }
    let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
    let constraints = job
        .constraints
        .iter()
        .chain(&group.constraints)
        .chain(of_tasks);
    constraint::check_node(node, constraints)
        .map_err(|why| unless_unknown(awaits_first_reports, PlacementFailure::Constraint(why)))
}

/// This is why a group is not placed, if nobody may still report what it lacks.
pub(super) fn unless_unknown(awaits_first_reports: bool, why: PlacementFailure) -> NotPlaced {
    match awaits_first_reports {
        true => NotPlaced::Unknown,
        false => NotPlaced::Failed(why),
    }
}
