//! Tests of the defaults.

use super::*;
use crate::model::artifact::{Artifact, GetterMode};
use crate::model::group::{Network, Port};
use crate::model::policy::RestartMode;
use crate::model::scaling::ScalingPolicy;
use crate::model::task::Task;
use crate::model::template::{ChangeMode, ChangeScript, Template, Wait};

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
fn service_gets_its_defaults() {
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
fn job_types_have_own_default_policies() {
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
fn passed_through_blocks_get_defaults() {
    let mut job = job(JobType::Service);
    let check = map(&[("Type", Value::from("tcp"))]);
    let own = map(&[("CheckRestart", map(&[("Limit", Value::Int(2))]))]);
    let group = &mut job.task_groups[0];
    group.scaling = Some(ScalingPolicy {
        min: Some(4),
        ..ScalingPolicy::default()
    });
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
    task.artifacts.push(Artifact {
        getter_source: "https://example.com/a/b.tgz?x=1".to_owned(),
        getter_mode: GetterMode::File,
        ..Artifact::default()
    });
    task.templates.push(Template {
        change_mode: ChangeMode::Signal,
        ..Template::default()
    });
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
    assert_eq!(task.artifacts[0].relative_dest, "local/b.tgz");
    assert_eq!(task.templates[0].change_signal, "SIGHUP");
    assert_eq!(task.templates[0].perms, "0644");
}

#[test]
fn canonicalize_is_idempotent() {
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
fn defaults_are_valid() {
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
        let report = crate::validate::validate(&job);
        assert_eq!(report, Default::default(), "{job_type:?}");
    }
}

#[test]
fn canonicalize_keeps_set_values() {
    let mut job = job(JobType::Service);
    job.priority = 70;
    job.datacenters = vec!["eu".to_owned()];
    canonicalize(&mut job);
    assert_eq!(job.priority, 70);
    assert_eq!(job.datacenters, ["eu"]);
    job.priority = 0;
    canonicalize(&mut job);
    assert_eq!(job.priority, 50);
}

#[test]
fn only_service_and_system_jobs_get_update() {
    let update = UpdateStrategy {
        max_parallel: 3,
        ..UpdateStrategy::default()
    };
    for (job_type, of_job) in [
        (JobType::Service, Some(&update)),
        (JobType::System, Some(&update)),
        (JobType::Batch, None),
        (JobType::Sysbatch, None),
    ] {
        let mut job = job(job_type);
        job.update = Some(update.clone());
        canonicalize(&mut job);
        assert_eq!(job.task_groups[0].update.as_ref(), of_job, "{job_type:?}");
    }
    let own = UpdateStrategy {
        max_parallel: 7,
        ..UpdateStrategy::default()
    };
    let mut job = job(JobType::Service);
    job.update = Some(update);
    job.task_groups[0].update = Some(own.clone());
    canonicalize(&mut job);
    assert_eq!(job.task_groups[0].update, Some(own));
}

#[test]
fn migrate_and_batch_reschedule_defaults_match_nomad() {
    let mut service = job(JobType::Service);
    let two = Value::Int(2);
    let said = [
        ("HealthCheck", Value::from("")),
        ("MaxParallel", two.clone()),
    ];
    service.migrate = Some(map(&said));
    canonicalize(&mut service);
    let migrate = service.task_groups[0]
        .migrate
        .clone()
        .unwrap_or(Value::Null);
    assert_eq!(get(&migrate, "HealthCheck"), Some(&Value::from("checks")));
    let ten_seconds = Value::Int(10_000_000_000);
    assert_eq!(get(&migrate, "MinHealthyTime"), Some(&ten_seconds));
    let five_minutes = Value::Int(300_000_000_000);
    assert_eq!(get(&migrate, "HealthyDeadline"), Some(&five_minutes));
    assert_eq!(get(&migrate, "MaxParallel"), Some(&two));
    // What says no more than the defaults is as good as none.
    service.task_groups[0].migrate = None;
    service.migrate = Some(map(&[("MaxParallel", Value::Int(1))]));
    canonicalize(&mut service);
    assert_eq!(service.task_groups[0].migrate, None);
    let mut batch = job(JobType::Batch);
    canonicalize(&mut batch);
    let policy = batch.task_groups[0].reschedule_policy.clone();
    let interval = policy.and_then(|policy| policy.interval);
    assert_eq!(interval, Some(Span(86_400_000_000_000)));
}

#[test]
fn constraints_and_affinities_get_defaults() {
    let mut job = job(JobType::Service);
    job.constraints = vec![Constraint {
        target: "a".to_owned(),
        ..Constraint::default()
    }];
    job.affinities = vec![map(&[]), map(&[("Weight", Value::Int(7))])];
    job.spreads = vec![map(&[])];
    canonicalize(&mut job);
    assert_eq!(job.constraints[0].operand, "=");
    assert_eq!(get(&job.affinities[0], "Operand"), Some(&Value::from("=")));
    assert_eq!(get(&job.affinities[0], "Weight"), Some(&Value::Int(50)));
    assert_eq!(get(&job.affinities[1], "Weight"), Some(&Value::Int(7)));
    assert_eq!(get(&job.spreads[0], "Weight"), Some(&Value::Int(50)));
}

#[test]
fn volume_and_change_script_timeouts_get_defaults() {
    let mut job = job(JobType::Service);
    let script = ChangeScript {
        command: "/bin/true".to_owned(),
        timeout: Span::ZERO,
        ..ChangeScript::default()
    };
    let task = &mut job.task_groups[0].tasks[0];
    task.csi_plugin_config = Some(map(&[("ID", Value::from("disk"))]));
    task.templates = vec![Template {
        change_script: Some(script),
        perms: String::new(),
        left_delim: String::new(),
        right_delim: String::new(),
        wait: Some(Wait {
            min: Span::secs(2),
            max: Span::ZERO,
        }),
        ..Template::default()
    }];
    canonicalize(&mut job);
    let task = &job.task_groups[0].tasks[0];
    let plugin = task.csi_plugin_config.clone().unwrap_or(Value::Null);
    let half_a_minute = Value::Int(30_000_000_000);
    assert_eq!(get(&plugin, "HealthTimeout"), Some(&half_a_minute));
    let template = &task.templates[0];
    assert_eq!(template.perms, "0644");
    assert_eq!(
        (template.left_delim.as_str(), template.right_delim.as_str()),
        ("{{", "}}")
    );
    assert_eq!(template.wait.map(|wait| wait.max), Some(Span::secs(8)));
    let script = template.change_script.as_ref();
    assert_eq!(script.map(|script| script.timeout), Some(Span::secs(5)));
}

/// Programs with Nomad's types name every field, people only what they mean.
#[test]
fn service_is_the_same_with_all_fields_named() {
    let nothing = || Value::from("");
    let restart = |grace: &[(&str, Value)]| {
        let limit = [("Limit", Value::Int(3))];
        map(&[&limit[..], grace].concat())
    };
    let meant = map(&[
        ("Name", Value::from("web")),
        ("PortLabel", Value::from("http")),
        ("Meta", map(&[("empty", nothing())])),
        (
            "Checks",
            Value::List(vec![map(&[
                ("Type", Value::from("http")),
                ("Path", Value::from("/")),
                ("Interval", Value::Int(10 * SECOND)),
                ("Timeout", Value::Int(2 * SECOND)),
                ("CheckRestart", restart(&[])),
            ])]),
        ),
    ]);
    let mut named = meant.clone();
    let Value::Map(fields) = &mut named else {
        panic!("it is a map");
    };
    for (name, value) in [
        ("TaskName", nothing()),
        ("Address", nothing()),
        ("EnableTagOverride", Value::Bool(false)),
        ("Tags", Value::List(Vec::new())),
        ("CanaryMeta", map(&[])),
        ("Connect", Value::Null),
    ] {
        fields.insert(name.to_owned(), value);
    }
    if let Some(Value::List(checks)) = fields.get_mut("Checks")
        && let Some(Value::Map(check)) = checks.first_mut()
    {
        let unset = restart(&[
            ("IgnoreWarnings", Value::Bool(false)),
            ("Grace", Value::Null),
        ]);
        for (name, value) in [
            ("Name", nothing()),
            ("Body", nothing()),
            ("Args", Value::List(Vec::new())),
            ("Expose", Value::Bool(false)),
            ("FailuresBeforeCritical", Value::Int(0)),
            ("CheckRestart", unset),
        ] {
            check.insert(name.to_owned(), value);
        }
    }
    let canonical = |service: &Value| {
        let mut job = job(JobType::Service);
        job.task_groups[0].services.push(service.clone());
        job.task_groups[0].tasks[0].services.push(service.clone());
        canonicalize(&mut job);
        job
    };
    let (one, other) = (canonical(&meant), canonical(&named));
    assert_eq!(one, other);
    let service = &one.task_groups[0].services[0];
    let meta = get(service, "Meta").and_then(|meta| get(meta, "empty"));
    assert_eq!(meta, Some(&nothing()), "what somebody named stays");
}
