use super::*;
use crate::model::image::ImageUpdate;
use crate::model::value::Value;

/// What is found of a job whose task follows `app:1`, after a change of the task.
fn found(kind: JobType, change: impl FnOnce(&mut Task)) -> String {
    let found = job_with(|job| {
        job.job_type = kind;
        let task = &mut job.task_groups[0].tasks[0];
        task.driver = "docker".to_owned();
        task.config = [("image".to_owned(), Value::from("app:1"))].into();
        task.image_update = Some(ImageUpdate {
            schedule: "0 4 * * *".to_owned(),
            ..ImageUpdate::default()
        });
        change(task);
    });
    let own = found.iter().filter(|line| line.contains("image_update"));
    own.cloned().collect::<Vec<_>>().join("; ")
}

#[test]
fn only_images_with_a_tag_are_followed() {
    assert_eq!(found(JobType::Service, |_| {}), "");
    for image in ["reg.example:5000/a/app:1.2", "app:latest"] {
        let is = found(JobType::Service, |task| {
            task.config.insert("image".to_owned(), Value::from(image));
        });
        assert_eq!(is, "", "{image}");
    }
    for (image, words) in [
        ("app", "must name a tag"),
        ("reg.example:5000/app", "must name a tag"),
        ("app:1@sha256:00", "names a digest"),
        ("app:${meta.v}", "must not contain references"),
    ] {
        let is = found(JobType::Service, |task| {
            task.config.insert("image".to_owned(), Value::from(image));
        });
        assert!(is.contains(words), "{image}: {is}");
    }
}

#[test]
fn image_update_is_for_running_docker_tasks_with_a_schedule() {
    type Change = fn(&mut Task);
    let cases: [(JobType, Change, &str); 6] = [
        (JobType::Batch, |_| {}, "service and system"),
        (
            JobType::Service,
            |task| task.driver = "raw_exec".to_owned(),
            "of the driver docker",
        ),
        (
            JobType::Service,
            |task| {
                task.image_update
                    .iter_mut()
                    .for_each(|it| it.schedule.clear())
            },
            "schedule: must be given",
        ),
        (
            JobType::Service,
            |task| {
                let at = &mut task.image_update;
                at.iter_mut()
                    .for_each(|it| it.schedule = "0 25 * * *".to_owned());
            },
            "schedule: hour \"25\"",
        ),
        (
            JobType::Service,
            |task| {
                let at = &mut task.image_update;
                at.iter_mut().for_each(|it| it.policy = "semver".to_owned());
            },
            "policy: must be \"digest\"",
        ),
        (
            JobType::Service,
            |task| {
                task.config.insert("load".to_owned(), Value::from("a.tar"));
            },
            "out of an archive",
        ),
    ];
    for (kind, change, words) in cases {
        let is = found(kind, change);
        assert!(is.contains(words), "{words}: {is}");
    }
}
