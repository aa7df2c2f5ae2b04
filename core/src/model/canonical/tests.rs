//! Tests of the defaults.

use super::*;
use crate::model::group::{Network, Port};
use crate::model::policy::RestartMode;
use crate::model::task::Task;

fn map(entries: &[(&str, Value)]) -> Value {
    let entries = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()));
    Value::Map(entries.collect())
}

fn get<'a>(block: &'a Value, key: &str) -> Option<&'a Value> {
    block.as_map().and_then(|fields| fields.get(key))
}

fn job(job_type: JobType) -> Job {
    Job {
        id: "j".to_owned(),
        job_type,
        task_groups: vec![TaskGroup {
            name: "g".to_owned(),
            tasks: vec![Task {
                name: "t".to_owned(),
                ..Task::default()
            }],
            ..TaskGroup::default()
        }],
        ..Job::default()
    }
}

#[test]
fn a_service_gets_its_defaults() {
    let mut job = job(JobType::Service);
    job.namespace.clear();
    job.datacenters.clear();
    canonicalize(&mut job);
    let heads = (
        job.name.as_str(),
        job.namespace.as_str(),
        job.datacenters.as_slice(),
    );
    assert_eq!(heads, ("j", "default", &["*".to_owned()][..]));
    let group = &job.task_groups[0];
    assert_eq!(group.count, Some(1));
    assert_eq!(group.ephemeral_disk, Some(EphemeralDisk::default()));
    assert_eq!(group.update, Some(UpdateStrategy::default()));
    let restart = group.restart_policy.unwrap_or_default();
    assert_eq!(restart.attempts, Some(2));
    assert_eq!(restart.interval, Some(Span::secs(1800)));
    assert_eq!(restart.mode, Some(RestartMode::Fail));
    let reschedule = group.reschedule_policy.clone().unwrap_or_default();
    assert_eq!(reschedule.unlimited, Some(true));
    let task = &group.tasks[0];
    assert_eq!(task.kill_timeout, Some(Span::secs(5)));
    assert_eq!(task.restart_policy, group.restart_policy);
    assert_eq!(task.log_config.unwrap_or_default().max_files, 10);
}

#[test]
fn other_types_get_other_policies() {
    let mut batch = job(JobType::Batch);
    canonicalize(&mut batch);
    let group = &batch.task_groups[0];
    assert_eq!(group.restart_policy.unwrap_or_default().attempts, Some(3));
    let reschedule = group.reschedule_policy.clone().unwrap_or_default();
    assert_eq!(
        (reschedule.attempts, reschedule.unlimited),
        (Some(1), Some(false))
    );
    assert_eq!((group.update.clone(), group.migrate.clone()), (None, None));

    let mut system = job(JobType::System);
    system.update = Some(UpdateStrategy::default());
    canonicalize(&mut system);
    let group = &system.task_groups[0];
    assert_eq!(group.reschedule_policy, None);
    assert_eq!(group.update, Some(UpdateStrategy::default()));
}

#[test]
fn policies_are_merged_field_by_field() {
    let mut job = job(JobType::Service);
    job.reschedule = Some(ReschedulePolicy {
        delay: Some(Span::secs(40)),
        attempts: Some(7),
        ..ReschedulePolicy::default()
    });
    job.migrate = Some(map(&[("MaxParallel", Value::Int(9))]));
    let group = &mut job.task_groups[0];
    group.reschedule_policy = Some(ReschedulePolicy {
        attempts: Some(3),
        ..ReschedulePolicy::default()
    });
    group.restart_policy = Some(RestartPolicy {
        attempts: Some(5),
        ..RestartPolicy::default()
    });
    group.tasks[0].restart_policy = Some(RestartPolicy {
        delay: Some(Span::secs(1)),
        ..RestartPolicy::default()
    });
    canonicalize(&mut job);
    let group = &job.task_groups[0];
    let reschedule = group.reschedule_policy.clone().unwrap_or_default();
    assert_eq!(reschedule.attempts, Some(3));
    assert_eq!(reschedule.delay, Some(Span::secs(40)));
    assert_eq!(reschedule.delay_function.as_deref(), Some("exponential"));
    let restart = group.tasks[0].restart_policy.unwrap_or_default();
    assert_eq!(
        (restart.attempts, restart.delay),
        (Some(5), Some(Span::secs(1)))
    );
    assert_eq!(restart.interval, Some(Span::secs(1800)));
    let migrate = group.migrate.clone().unwrap_or_default();
    assert_eq!(get(&migrate, "MaxParallel"), Some(&Value::Int(9)));
    assert_eq!(get(&migrate, "HealthCheck"), Some(&Value::from("checks")));
}

#[test]
fn blocks_that_are_passed_on_get_their_defaults() {
    let mut job = job(JobType::Service);
    let check = map(&[("Type", Value::from("tcp"))]);
    let own = map(&[("CheckRestart", map(&[("Limit", Value::Int(2))]))]);
    let group = &mut job.task_groups[0];
    group.scaling = Some(map(&[("Min", Value::Int(4))]));
    group.networks.push(Network {
        dynamic_ports: vec![Port::default()],
        ..Network::default()
    });
    group.services.push(map(&[
        ("Checks", Value::List(vec![check, own])),
        (
            "CheckRestart",
            map(&[("Limit", Value::Int(3)), ("Grace", Value::Int(7))]),
        ),
    ]));
    let task = &mut group.tasks[0];
    task.services.push(map(&[]));
    let source = Value::from("https://example.com/a/b.tgz?x=1");
    task.artifacts.push(map(&[
        ("GetterSource", source),
        ("GetterMode", Value::from("file")),
    ]));
    task.templates
        .push(map(&[("ChangeMode", Value::from("signal"))]));
    canonicalize(&mut job);
    let group = &job.task_groups[0];
    assert_eq!(group.count, Some(4));
    assert_eq!(group.networks[0].mode, "host");
    assert_eq!(group.networks[0].dynamic_ports[0].host_network, "default");
    assert_eq!(get(&group.services[0], "Name"), Some(&Value::from("j-g")));
    let checks = get(&group.services[0], "Checks")
        .and_then(Value::as_list)
        .unwrap_or(&[]);
    let limit = |check: &Value| {
        get(check, "CheckRestart")
            .and_then(|own| get(own, "Limit"))
            .cloned()
    };
    assert_eq!(limit(&checks[0]), Some(Value::Int(3)));
    assert_eq!(limit(&checks[1]), Some(Value::Int(2)));
    let grace = get(&checks[1], "CheckRestart").and_then(|own| get(own, "Grace"));
    assert_eq!(grace, Some(&Value::Int(7)));
    let task = &group.tasks[0];
    assert_eq!(get(&task.services[0], "Name"), Some(&Value::from("j-g-t")));
    assert_eq!(
        get(&task.artifacts[0], "RelativeDest"),
        Some(&Value::from("local/b.tgz"))
    );
    assert_eq!(
        get(&task.templates[0], "ChangeSignal"),
        Some(&Value::from("SIGHUP"))
    );
    assert_eq!(get(&task.templates[0], "Perms"), Some(&Value::from("0644")));
}

#[test]
fn twice_is_the_same_as_once() {
    for job_type in [
        JobType::Service,
        JobType::Batch,
        JobType::System,
        JobType::Sysbatch,
    ] {
        let mut once = job(job_type);
        once.task_groups[0].services.push(map(&[]));
        once.affinities.push(map(&[]));
        canonicalize(&mut once);
        let mut twice = once.clone();
        canonicalize(&mut twice);
        assert_eq!(once, twice);
    }
}

#[test]
fn the_defaults_are_valid() {
    for job_type in [
        JobType::Service,
        JobType::Batch,
        JobType::System,
        JobType::Sysbatch,
    ] {
        let mut job = job(job_type);
        let task = &mut job.task_groups[0].tasks[0];
        task.driver = "raw_exec".to_owned();
        task.config
            .insert("command".to_owned(), Value::from("/bin/true"));
        canonicalize(&mut job);
        let report = crate::model::validate::validate(&job);
        assert_eq!(report, Default::default(), "{job_type:?}");
    }
}
