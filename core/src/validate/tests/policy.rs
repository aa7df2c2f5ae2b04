use super::*;
use crate::model::scaling::ScalingPolicy;

#[test]
fn restart_policies_are_validated() {
    let group = |policy: RestartPolicy| group_with(|g| g.restart_policy = Some(policy));
    let none = RestartPolicy::default();
    assert_eq!(group(none).len(), 0);
    assert_eq!(
        group(RestartPolicy {
            interval: Some(Span::secs(20)),
            ..none
        }),
        [
            "group[\"web\"].restart: 2 attempts with a delay of 15s do not fit into an interval of 20s"
        ]
    );
    let exact = RestartPolicy {
        interval: Some(Span::secs(30)),
        ..none
    };
    assert_eq!(group(exact).len(), 0);
    let short = RestartPolicy {
        attempts: Some(0),
        interval: Some(Span::secs(4)),
        ..none
    };
    assert_eq!(group(short).len(), 1);
    let delay = RestartPolicy {
        attempts: Some(0),
        mode: Some(RestartMode::Delay),
        ..none
    };
    assert_eq!(group(delay).len(), 1);
    let negative = RestartPolicy {
        attempts: Some(-1),
        delay: Some(Span(-1)),
        ..none
    };
    assert_eq!(group(negative).len(), 2);
    let hostile = RestartPolicy {
        attempts: Some(i64::MAX),
        delay: Some(Span(i64::MAX)),
        ..none
    };
    assert_eq!(group(hostile).len(), 1);
}

#[test]
fn task_restart_policy_is_validated_over_group() {
    let found = group_with(|g| {
        g.restart_policy = Some(RestartPolicy {
            interval: Some(Span::secs(60)),
            ..RestartPolicy::default()
        });
        g.tasks.iter_mut().for_each(|t| {
            t.restart_policy = Some(RestartPolicy {
                attempts: Some(5),
                ..RestartPolicy::default()
            });
        });
    });
    assert_eq!(found.len(), 1);
}

#[test]
fn reschedule_policies_are_validated() {
    let with = |job_type, policy: &ReschedulePolicy| {
        let policy = policy.clone();
        job_with(|j| {
            j.job_type = job_type;
            j.reschedule = Some(policy);
        })
    };
    let none = ReschedulePolicy::default();
    assert_eq!(with(JobType::Service, &none).len(), 0);
    assert_eq!(with(JobType::System, &none).len(), 1);
    let short = ReschedulePolicy {
        delay: Some(Span::secs(4)),
        ..none.clone()
    };
    assert_eq!(with(JobType::Batch, &short).len(), 1);
    let off = ReschedulePolicy {
        attempts: Some(0),
        unlimited: Some(false),
        ..short
    };
    assert_eq!(with(JobType::Batch, &off).len(), 0);
    let function = ReschedulePolicy {
        delay_function: Some("linear".into()),
        ..none.clone()
    };
    assert_eq!(with(JobType::Service, &function).len(), 1);
    let shrinking = ReschedulePolicy {
        delay: Some(Span::secs(60)),
        max_delay: Some(Span::secs(30)),
        delay_function: Some("exponential".into()),
        ..none.clone()
    };
    assert_eq!(with(JobType::Service, &shrinking).len(), 1);
    let both = ReschedulePolicy {
        attempts: Some(1),
        unlimited: Some(true),
        ..none
    };
    assert_eq!(with(JobType::Service, &both).len(), 1);
}

#[test]
fn update_strategies_are_validated() {
    let with = |change: fn(&mut UpdateStrategy)| {
        let mut update = UpdateStrategy::default();
        change(&mut update);
        job_with(|j| j.update = Some(update))
    };
    assert_eq!(with(|_| {}).len(), 0);
    assert_eq!(with(|u| u.canary = 1).len(), 0);
    assert_eq!(with(|u| (u.canary, u.auto_promote) = (1, true)).len(), 0);
    assert_eq!(with(|u| u.canary = -1).len(), 1);
    assert_eq!(with(|u| u.max_parallel = -1).len(), 1);
    assert_eq!(with(|u| u.max_parallel = 0).len(), 0);
    assert_eq!(with(|u| u.auto_promote = true).len(), 1);
    assert_eq!(with(|u| u.health_check = "magic".into()).len(), 1);
    assert_eq!(with(|u| u.min_healthy_time = u.healthy_deadline).len(), 1);
    assert_eq!(with(|u| u.healthy_deadline = Span::ZERO).len(), 1);
    assert_eq!(with(|u| u.progress_deadline = u.healthy_deadline).len(), 1);
    assert_eq!(with(|u| u.progress_deadline = Span::ZERO).len(), 0);
}

#[test]
fn kill_and_shutdown_times_are_validated() {
    assert_eq!(task_with(|t| t.kill_timeout = Some(Span(-1))).len(), 1);
    assert_eq!(task_with(|t| t.kill_timeout = Some(Span::ZERO)).len(), 0);
    assert_eq!(
        task_with(|t| t.kill_timeout = Some(Span::secs(600))),
        [""; 0],
        "as long as the deadline"
    );
    assert_eq!(
        task_with(|t| t.kill_timeout = Some(Span::secs(601))),
        [
            "group[\"web\"].task[\"server\"].kill_timeout: must not be more than progress_deadline, which is 10m0s"
        ]
    );
    let batch = job_with(|j| {
        j.job_type = JobType::Batch;
        for task in j.task_groups.iter_mut().flat_map(|g| &mut g.tasks) {
            task.kill_timeout = Some(Span::secs(600));
        }
    });
    assert_eq!(batch.len(), 0);
    assert_eq!(task_with(|t| t.shutdown_delay = Span(-1)).len(), 1);
    assert_eq!(group_with(|g| g.shutdown_delay = Some(Span(-1))).len(), 1);
    assert_eq!(
        warnings(|j| {
            for task in j.task_groups.iter_mut().flat_map(|g| &mut g.tasks) {
                task.kill_timeout = Some(Span(5));
            }
        }),
        [
            "group[\"web\"].task[\"server\"].kill_timeout: is 5ns: a number without a unit counts nanoseconds"
        ]
    );
    let run = |job_type, span| {
        job_with(|j| {
            j.job_type = job_type;
            j.task_groups
                .iter_mut()
                .for_each(|g| g.max_run_duration = Some(span));
        })
    };
    assert_eq!(run(JobType::Service, Span::secs(1)).len(), 1);
    assert_eq!(run(JobType::Batch, Span::ZERO).len(), 1);
    assert_eq!(run(JobType::Batch, Span::secs(1)).len(), 0);
}

#[test]
fn scaling_bounds_are_checked() {
    let with = |min, max, count| {
        group_with(|group| {
            group.count = Some(count);
            group.scaling = Some(ScalingPolicy {
                min: Some(min),
                max,
                ..ScalingPolicy::default()
            });
        })
    };
    assert_eq!(with(1, Some(3), 2), Vec::<String>::new());
    for (min, max, count) in [
        (1, None, 1),
        (3, Some(1), 2),
        (-1, Some(3), 1),
        (1, Some(3), 4),
    ] {
        assert_eq!(with(min, max, count).len(), 1, "{min} {max:?} {count}");
    }
    let above = with(1, Some(3), 4).remove(0);
    assert!(above.ends_with("group count was greater than scaling policy maximum: 4 > 3"));
}
