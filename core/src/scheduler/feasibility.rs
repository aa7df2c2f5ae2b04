//! Whether this node can run a group at all: its data center, its drivers, its volumes, its networks, and the constraints.

use super::{NotPlaced, network};
use crate::constraint;
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::node::Node;
use crate::model::placement::PlacementFailure;

/// Whether a node can run the copy of a group of this index; `awaits_first_reports` if something may still be
/// found on it.
///
/// # Errors
/// What it lacks.
pub fn admits(
    node: &Node,
    awaits_first_reports: bool,
    job: &Job,
    group: &TaskGroup,
    index: u32,
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
    check_volumes(node, group, index).map_err(NotPlaced::Failed)?;
    network::admits(node, group).map_err(|why| unless_unknown(awaits_first_reports, why))?;
    let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
    let constraints = job
        .constraints
        .iter()
        .chain(&group.constraints)
        .chain(of_tasks);
    constraint::check_node(node, constraints)
        .map_err(|why| unless_unknown(awaits_first_reports, PlacementFailure::Constraint(why)))
}

/// Whether the node has the volumes that a copy asks for. They are known from the beginning: no report
/// brings any.
fn check_volumes(node: &Node, group: &TaskGroup, index: u32) -> Result<(), PlacementFailure> {
    for wanted in group.volumes.values() {
        let source = wanted.source_for(index);
        let found = node.host_volumes.get(&*source);
        let accepted = wanted.accepts(&source, found);
        accepted.map_err(PlacementFailure::HostVolume)?;
    }
    Ok(())
}

/// This is why a group is not placed, if nobody may still report what it lacks.
pub(super) fn unless_unknown(awaits_first_reports: bool, why: PlacementFailure) -> NotPlaced {
    match awaits_first_reports {
        true => NotPlaced::Unknown,
        false => NotPlaced::Failed(why),
    }
}
