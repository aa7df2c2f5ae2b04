//! What is checked of volumes: those that a group asks for, and those that a task mounts.

use super::Report;
use crate::interpolate::has_reference;
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::model::names;
use crate::model::task::Task;
use crate::model::volume::{ACCESS_MODES, HOST, READER_ONLY, VolumeMount, VolumeRequest};
use crate::task::volumes::{can_mount, link_path};
use crate::text::quote;

/// The most volumes of a group, and the most mounts of a task.
const MAX_VOLUMES: usize = 100;
/// The longest destination, in bytes.
const MAX_DESTINATION: usize = 4_095;

pub(super) fn check_group(report: &mut Report, job: &Job, group: &TaskGroup, above: &str) {
    if group.volumes.len() > MAX_VOLUMES {
        let message = format!("must not have more than {MAX_VOLUMES} volumes");
        return report.problem(above, message);
    }
    for (name, volume) in &group.volumes {
        let path = format!("{above}.volume[{}]", quote(name));
        if let Err(why) = names::identifier(name) {
            report.problem(path.as_str(), format!("its name {why}"));
        }
        match volume.kind.as_str() {
            HOST => check_request(report, job, group, volume, &path),
            "csi" => report.problem(
                format!("{path}.type"),
                "not supported by this version: volumes of type csi; those of type host are",
            ),
            "" => report.problem(format!("{path}.type"), "must be given, and be \"host\""),
            other => report.problem(
                format!("{path}.type"),
                format!("unknown type of volume {}: only \"host\" is", quote(other)),
            ),
        }
    }
}

fn check_request(
    report: &mut Report,
    job: &Job,
    group: &TaskGroup,
    volume: &VolumeRequest,
    path: &str,
) {
    if let Err(why) = names::identifier(&volume.source) {
        report.problem(format!("{path}.source"), why);
    }
    if volume.mount_options.is_some() {
        let message = "only for volumes of type csi";
        report.problem(format!("{path}.mount_options"), message);
    }
    let mode = volume.access_mode.as_str();
    if !mode.is_empty() && !ACCESS_MODES.contains(&mode) {
        let modes = ACCESS_MODES.join(", ");
        report.problem(
            format!("{path}.access_mode"),
            format!("must be one of {modes}"),
        );
    } else if mode == READER_ONLY && !volume.read_only {
        let message = format!("{mode} needs read_only = true");
        report.problem(format!("{path}.access_mode"), message);
    }
    match volume.attachment_mode.as_str() {
        "" | "file-system" => {}
        "block-device" => report.problem(
            format!("{path}.attachment_mode"),
            "not supported by this version: block-device",
        ),
        _ => report.problem(format!("{path}.attachment_mode"), "must be file-system"),
    }
    if volume.per_alloc {
        check_per_alloc(report, job, group, volume, &format!("{path}.per_alloc"));
    }
}

/// A volume for each copy: which copy is which must be known, and stay so.
fn check_per_alloc(
    report: &mut Report,
    job: &Job,
    group: &TaskGroup,
    volume: &VolumeRequest,
    path: &str,
) {
    match job.job_type {
        JobType::System | JobType::Sysbatch => {
            let message = "must not be given for jobs of type system and sysbatch";
            report.problem(path, message);
        }
        JobType::Service | JobType::Batch => {}
    }
    let update = group.update.as_ref().or(job.update.as_ref());
    if update.is_some_and(|update| update.canary > 0) {
        // A canary would share the volume of the copy that it is to replace.
        report.problem(path, "must not be given together with canaries");
    }
    if volume.sticky {
        report.problem(path, "must not be given together with sticky");
    }
}

pub(super) fn check_task(report: &mut Report, group: &TaskGroup, task: &Task, above: &str) {
    if task.volume_mounts.len() > MAX_VOLUMES {
        let message = format!("must not have more than {MAX_VOLUMES} mounts");
        return report.problem(format!("{above}.volume_mount"), message);
    }
    for (index, mount) in task.volume_mounts.iter().enumerate() {
        let path = format!("{above}.volume_mount[{index}]");
        check_mounted(report, group, task, mount, &path);
        check_destination(report, task, mount, &format!("{path}.destination"));
        let before = task.volume_mounts.iter().take(index);
        if before.clone().any(|it| it.destination == mount.destination) {
            let message = "another mount has the same destination";
            report.problem(format!("{path}.destination"), message);
        }
        match mount.propagation_mode.as_str() {
            "" | "private" => {}
            "host-to-task" | "bidirectional" => {
                report.no_effect(!can_mount(&task.driver), &path, "propagation_mode");
            }
            _ => report.problem(
                format!("{path}.propagation_mode"),
                "must be private, host-to-task or bidirectional",
            ),
        }
        if !matches!(mount.selinux_label.as_str(), "" | "z" | "Z") {
            report.problem(format!("{path}.selinux_label"), "must be z or Z");
        }
    }
}

fn check_mounted(
    report: &mut Report,
    group: &TaskGroup,
    task: &Task,
    mount: &VolumeMount,
    path: &str,
) {
    let Some(volume) = group.volumes.get(&mount.volume) else {
        let message = match mount.volume.as_str() {
            "" => "must be given".to_owned(),
            name => format!("the group has no volume {}", quote(name)),
        };
        return report.problem(format!("{path}.volume"), message);
    };
    if (mount.read_only || volume.read_only) && !can_mount(&task.driver) {
        let message = format!(
            "driver {} cannot enforce it: the task gets a link, and may write what the permissions of the host let it write",
            task.driver
        );
        report.warning(format!("{path}.read_only"), message);
    }
}

fn check_destination(report: &mut Report, task: &Task, mount: &VolumeMount, path: &str) {
    let destination = &mount.destination;
    if destination.is_empty() {
        return report.problem(path, "must be given");
    }
    if destination.len() > MAX_DESTINATION || destination.contains(char::is_control) {
        let message =
            format!("must not have control characters or be longer than {MAX_DESTINATION} bytes");
        return report.problem(path, message);
    }
    // What a reference stands for is known when the task starts.
    if !can_mount(&task.driver)
        && !has_reference(destination)
        && let Err(why) = link_path(destination, "", &task.name)
    {
        report.problem(path, why);
    }
}
