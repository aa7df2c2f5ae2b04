//! Whether this node can run a group at all: its data center, its drivers, and the constraints.

use super::NotPlaced;
use crate::constraint;
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::node::Node;

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
        return Err(NotPlaced::Failed(format!(
            "no node in datacenters {}",
            job.datacenters.join(", ")
        )));
    }
    for task in &group.tasks {
        let known = node.drivers.get(&task.driver);
        if !known.is_some_and(|driver| driver.detected && driver.healthy) {
            let (driver, name) = (&task.driver, &task.name);
            return Err(match known {
                Some(_) => NotPlaced::Failed(format!(
                    "driver \"{driver}\" of task \"{name}\" does not work now"
                )),
                None => unless_unknown(
                    awaits_first_reports,
                    format!("driver \"{driver}\" of task \"{name}\" is not there"),
                ),
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
        .map_err(|why| unless_unknown(awaits_first_reports, format!("Constraint \"{why}\" failed")))
}

/// This is why a group is not placed, if nobody may still report what it lacks.
pub(super) fn unless_unknown(awaits_first_reports: bool, why: String) -> NotPlaced {
    match awaits_first_reports {
        true => NotPlaced::Unknown,
        false => NotPlaced::Failed(why),
    }
}
