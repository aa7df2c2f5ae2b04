use super::*;
use crate::model::volume::{VolumeMount, VolumeRequest};

fn request() -> VolumeRequest {
    VolumeRequest {
        name: "data".to_owned(),
        kind: "host".to_owned(),
        source: "data".to_owned(),
        ..VolumeRequest::default()
    }
}

fn mount() -> VolumeMount {
    VolumeMount {
        volume: "data".to_owned(),
        destination: "/data".to_owned(),
        ..VolumeMount::default()
    }
}

/// What is found of a group that asks for a volume so, and whose task mounts it so.
fn found(ask: impl FnOnce(&mut VolumeRequest), see: impl FnOnce(&mut VolumeMount)) -> Vec<String> {
    let (mut volume, mut mount) = (request(), mount());
    ask(&mut volume);
    see(&mut mount);
    group_with(|group| {
        group.volumes.insert("data".to_owned(), volume);
        for task in group.tasks.iter_mut().take(1) {
            task.volume_mounts.push(mount.clone());
        }
    })
}

fn has(problems: &[String], words: &str) {
    let text = problems.join("\n");
    assert!(
        problems.len() == 1 && text.contains(words),
        "{words}: {text}"
    );
}

#[test]
fn host_volume_and_mount_are_valid() {
    assert_eq!(found(|_| (), |_| ()), Vec::<String>::new());
    let nested = found(
        |_| (),
        |it| it.destination = "local/../var/lib/db".to_owned(),
    );
    assert_eq!(nested, Vec::<String>::new());
    let own = found(
        |_| (),
        |it| it.destination = "${NOMAD_TASK_DIR}/db".to_owned(),
    );
    assert_eq!(own, Vec::<String>::new());
}

#[test]
fn invalid_volume_request_is_refused() {
    has(
        &found(|it| it.kind = "csi".to_owned(), |_| ()),
        "volumes of type csi",
    );
    has(
        &found(|it| it.kind = "hots".to_owned(), |_| ()),
        "unknown type of volume",
    );
    has(&found(|it| it.kind.clear(), |_| ()), "must be given");
    has(
        &found(|it| it.source.clear(), |_| ()),
        ".source: must not be empty",
    );
    let options = Some(Value::Map(BTreeMap::new()));
    has(
        &found(|it| it.mount_options = options, |_| ()),
        "only for volumes of type csi",
    );
    has(
        &found(|it| it.access_mode = "any".to_owned(), |_| ()),
        "must be one of",
    );
    let reads = |it: &mut VolumeRequest| it.access_mode = "single-node-reader-only".to_owned();
    has(&found(reads, |_| ()), "needs read_only = true");
    let device = |it: &mut VolumeRequest| it.attachment_mode = "block-device".to_owned();
    has(
        &found(device, |_| ()),
        "not supported by this version: block-device",
    );
    let both = |it: &mut VolumeRequest| (it.per_alloc, it.sticky) = (true, true);
    has(&found(both, |_| ()), "together with sticky");
}

#[test]
fn volume_per_alloc_needs_numbered_copies() {
    let found = job_with(|job| {
        job.job_type = JobType::System;
        for group in &mut job.task_groups {
            let volume = VolumeRequest {
                per_alloc: true,
                ..request()
            };
            group.volumes.insert("data".to_owned(), volume);
        }
    });
    has(&found, "must not be given for jobs of type system");
}

#[test]
fn invalid_mount_is_refused() {
    has(
        &found(|_| (), |it| it.volume = "other".to_owned()),
        "the group has no volume",
    );
    has(
        &found(|_| (), |it| it.volume.clear()),
        ".volume: must be given",
    );
    has(
        &found(|_| (), |it| it.destination.clear()),
        ".destination: must be given",
    );
    has(
        &found(|_| (), |it| it.destination = "/a\0".to_owned()),
        "control characters",
    );
    has(
        &found(|_| (), |it| it.destination = "../x".to_owned()),
        "leads out",
    );
    has(
        &found(|_| (), |it| it.destination = "/".to_owned()),
        "a directory of the agent's own",
    );
    has(
        &found(|_| (), |it| it.destination = "/local/".to_owned()),
        "each task has already",
    );
    let shared = |it: &mut VolumeMount| it.destination = "../alloc/data/x".to_owned();
    has(&found(|_| (), shared), "not in the task's own directory");
    let odd = |it: &mut VolumeMount| it.propagation_mode = "slave".to_owned();
    has(
        &found(|_| (), odd),
        "must be private, host-to-task or bidirectional",
    );
    has(
        &found(|_| (), |it| it.selinux_label = "y".to_owned()),
        "must be z or Z",
    );
}

#[test]
fn mounts_at_one_destination_are_refused() {
    let found = group_with(|group| {
        group.volumes.insert("data".to_owned(), request());
        for task in group.tasks.iter_mut().take(1) {
            task.volume_mounts = vec![mount(), mount()];
        }
    });
    has(&found, "another mount has the same destination");
}

#[test]
fn read_only_mount_of_driver_that_cannot_enforce_it_is_warned_about() {
    let warned = |driver: &str| {
        warnings(|job| {
            for group in &mut job.task_groups {
                group.volumes.insert("data".to_owned(), request());
                for task in group.tasks.iter_mut().take(1) {
                    task.driver = driver.to_owned();
                    let read_only = true;
                    task.volume_mounts = vec![VolumeMount {
                        read_only,
                        ..mount()
                    }];
                }
            }
        })
    };
    let found = warned("raw_exec");
    has(&found, "driver raw_exec cannot enforce it");
    assert_eq!(warned("someones_plugin"), Vec::<String>::new());
}
