mod artifact;
mod dispatch;
mod identity;
mod image_update;
mod periodic;
mod policy;
mod service;
mod support;
mod task;
mod template;
mod volume;

use super::*;
use crate::model::group::{Dns, EphemeralDisk, Network, Port, TaskGroup};
use crate::model::policy::{
    PeriodicConfig, ReschedulePolicy, RestartMode, RestartPolicy, UpdateStrategy,
};
use crate::model::task::{Hook, Lifecycle, LogConfig, Task};
use crate::model::template::{ChangeMode, ChangeScript, Template, Wait};
use crate::model::value::Value;
use crate::time::Span;

fn task(name: &str) -> Task {
    Task {
        name: name.to_owned(),
        driver: "raw_exec".to_owned(),
        config: [("command".to_owned(), Value::from("/bin/true"))].into(),
        ..Task::default()
    }
}

fn job() -> Job {
    Job {
        id: "shop".to_owned(),
        task_groups: vec![TaskGroup {
            name: "web".to_owned(),
            tasks: vec![task("server")],
            ..TaskGroup::default()
        }],
        ..Job::default()
    }
}

fn lines(list: &[Problem]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// The problems after changing something of the job.
fn job_with(change: impl FnOnce(&mut Job)) -> Vec<String> {
    let mut job = job();
    change(&mut job);
    lines(&validate(&job).problems)
}

fn group_with(change: impl FnOnce(&mut TaskGroup)) -> Vec<String> {
    job_with(|job| job.task_groups.iter_mut().take(1).for_each_once(change))
}

fn task_with(change: impl FnOnce(&mut Task)) -> Vec<String> {
    group_with(|group| group.tasks.iter_mut().take(1).for_each_once(change))
}

/// Applies a function that can be called once to an iterator of one item.
trait ForEachOnce: Iterator + Sized {
    fn for_each_once(mut self, change: impl FnOnce(Self::Item)) {
        if let Some(item) = self.next() {
            change(item);
        }
    }
}

impl<I: Iterator> ForEachOnce for I {}

fn warnings(change: impl FnOnce(&mut Job)) -> Vec<String> {
    let mut job = job();
    change(&mut job);
    let report = validate(&job);
    assert_eq!(lines(&report.problems), Vec::<String>::new());
    lines(&report.warnings)
}

#[test]
fn plain_job_is_valid() {
    assert_eq!(validate(&job()), Report::default());
    assert!(validate(&job()).is_ok());
}

#[test]
fn job_id_and_numbers_are_validated() {
    assert_eq!(job_with(|j| j.id.clear()), ["job.id: must not be empty"]);
    assert_eq!(
        job_with(|j| j.id = "a b".into()),
        ["job.id: must not contain spaces"]
    );
    assert_eq!(
        job_with(|j| j.id = "a\0b".into()),
        ["job.id: must not contain control characters"]
    );
    assert_eq!(job_with(|j| j.id = "a/dispatch-1".into()).len(), 0);
    assert_eq!(job_with(|j| j.id = "x".repeat(257)).len(), 1);
    assert_eq!(job_with(|j| j.name = "a\0".into()).len(), 1);
    assert_eq!(job_with(|j| j.namespace.clear()).len(), 1);
    for priority in [0, 101, -1] {
        assert_eq!(job_with(|j| j.priority = priority).len(), 1);
    }
    assert_eq!(
        job_with(|j| j.datacenters = vec![String::new()]),
        ["job.datacenters[0]: must not be empty"]
    );
    assert_eq!(job_with(|j| j.datacenters.clear()).len(), 1);
}

#[test]
fn names_with_slashes_are_refused() {
    let long = "x".repeat(129);
    for bad in [
        "", ".", "..", "../x", "a/b", "/a", "a\\b", "a\0", "a\n", &long,
    ] {
        assert_eq!(task_with(|t| t.name = bad.into()).len(), 1, "{bad:?}");
        assert_eq!(group_with(|g| g.name = bad.into()).len(), 1, "{bad:?}");
    }
    assert_eq!(
        task_with(|t| t.name = "alloc".into()),
        ["group[\"web\"].task[\"alloc\"]: the name alloc is the shared directory's"]
    );
    assert_eq!(task_with(|t| t.name = "alloc2".into()).len(), 0);
    assert_eq!(group_with(|g| g.name = "alloc".into()).len(), 0);
    assert_eq!(task_with(|t| t.name = "x".repeat(128)).len(), 0);
    assert_eq!(task_with(|t| t.name = "...".into()).len(), 0);
}

#[test]
fn duplicate_names_are_refused() {
    assert_eq!(
        group_with(|g| g.tasks.push(task("server"))),
        ["group[\"web\"].task[\"server\"]: another task has the same name"]
    );
    let twice = job_with(|j| j.task_groups.extend_from_within(..));
    assert_eq!(twice, ["group[\"web\"]: another group has the same name"]);
}

#[test]
fn numbers_of_groups_tasks_and_allocs_are_bounded() {
    assert_eq!(
        job_with(|j| j.task_groups.clear()),
        ["job: must have at least one group"]
    );
    let many_groups = job_with(|j| {
        let group = j.task_groups.first().cloned().unwrap_or_default();
        j.task_groups = (0..=MAX_GROUPS)
            .map(|n| TaskGroup {
                name: format!("g{n}"),
                ..group.clone()
            })
            .collect();
    });
    assert_eq!(many_groups, ["job: must not have more than 1000 groups"]);
    let many_tasks = group_with(|g| {
        g.tasks = (0..=MAX_TASKS).map(|n| task(&format!("t{n}"))).collect();
    });
    assert_eq!(
        many_tasks,
        ["group[\"web\"]: must not have more than 100 tasks"]
    );
    assert_eq!(group_with(|g| g.count = Some(MAX_COUNT)).len(), 0);
    assert_eq!(group_with(|g| g.count = Some(i64::MAX)).len(), 1);
    let overflow = job_with(|j| {
        j.task_groups.extend_from_within(..);
        j.task_groups
            .iter_mut()
            .for_each(|g| g.count = Some(i64::MAX));
    });
    assert_eq!(overflow.len(), 2);
    let large = task_with(|t| {
        t.env.insert("A".into(), "x".repeat(MAX_TEXT));
    });
    assert_eq!(large.len(), 1);
    let endless = job_with(|j| j.datacenters = vec![String::new(); 10_000]);
    assert_eq!(endless.len(), MAX_PROBLEMS);
    let conditions = job_with(|j| {
        let fine = Constraint {
            target: "a".into(),
            value: "b".into(),
            operand: String::new(),
        };
        j.constraints = vec![fine; MAX_CONSTRAINTS + 1];
    });
    assert_eq!(conditions.len(), 1);
}

#[test]
fn invalid_counts_are_refused() {
    assert_eq!(
        group_with(|g| g.count = Some(-1)),
        ["group[\"web\"].count: must not be negative"]
    );
    assert_eq!(group_with(|g| g.count = Some(0)).len(), 0);
    let of_type = |job_type| {
        job_with(|j| {
            j.job_type = job_type;
            j.task_groups.iter_mut().for_each(|g| g.count = Some(2));
        })
    };
    assert_eq!(of_type(JobType::System).len(), 1);
    assert_eq!(of_type(JobType::Sysbatch).len(), 0);
}

#[test]
fn group_has_a_main_task_and_one_leader() {
    let side = Lifecycle {
        hook: Hook::Prestart,
        sidecar: true,
    };
    assert_eq!(
        task_with(|t| t.lifecycle = Some(side)),
        ["group[\"web\"]: must have at least one task without a lifecycle block"]
    );
    assert_eq!(
        group_with(|g| g.tasks.clear()),
        ["group[\"web\"]: must have at least one task"]
    );
    let leaders = group_with(|g| {
        g.tasks.push(task("other"));
        g.tasks.iter_mut().for_each(|t| t.leader = true);
    });
    assert_eq!(leaders, ["group[\"web\"]: only one task may be the leader"]);
}

#[test]
fn constraints_are_checked_at_every_level() {
    let bad = || {
        vec![Constraint {
            target: "${attr.kernel.name}".into(),
            value: "(".into(),
            operand: "regexp".into(),
        }]
    };
    let places = [
        job_with(|j| j.constraints = bad()),
        group_with(|g| g.constraints = bad()),
        task_with(|t| t.constraints = bad()),
    ];
    let places = places.map(|found| {
        let first = found.first().cloned().unwrap_or_default();
        first.split(": ").next().unwrap_or_default().to_owned()
    });
    assert_eq!(
        places,
        [
            "job.constraint[0]",
            "group[\"web\"].constraint[0]",
            "group[\"web\"].task[\"server\"].constraint[0]",
        ]
    );
}

fn conditions(count: usize) -> Vec<Constraint> {
    let condition = Constraint {
        target: "${attr.kernel.name}".to_owned(),
        value: "linux".to_owned(),
        operand: "=".to_owned(),
    };
    vec![condition; count]
}

/// The text of a group and two tasks counts with the job's.
fn with_texts(job: &mut Job, more: usize) {
    let text = |length: usize| BTreeMap::from([("k".to_owned(), "x".repeat(length - 1))]);
    let part = MAX_TEXT / 4;
    job.meta = text(part);
    let group = &mut job.task_groups[0];
    group.meta = text(part);
    group.tasks[0].meta = text(part);
    group.tasks[0].env = text(MAX_TEXT - 3 * part + more);
}

fn with_conditions(job: &mut Job, more: usize) {
    let part = MAX_CONSTRAINTS / 3;
    job.constraints = conditions(part);
    let group = &mut job.task_groups[0];
    group.constraints = conditions(part);
    group.tasks[0].constraints = conditions(MAX_CONSTRAINTS - 2 * part + more);
}

#[test]
fn job_at_limits_is_valid() {
    let groups = |count: usize| {
        let group = |n: usize| TaskGroup {
            name: format!("g{n}"),
            tasks: vec![task("t")],
            ..TaskGroup::default()
        };
        (0..count).map(group).collect::<Vec<_>>()
    };
    let tasks = |count: usize| (0..count).map(|n| task(&format!("t{n}"))).collect();
    let found = |change: &dyn Fn(&mut Job)| job_with(|job| change(job)).len();
    assert_eq!(found(&|job| job.task_groups = groups(MAX_GROUPS)), 0);
    assert_eq!(found(&|job| job.task_groups = groups(MAX_GROUPS + 1)), 1);
    assert_eq!(group_with(|group| group.tasks = tasks(MAX_TASKS)).len(), 0);
    assert_eq!(
        group_with(|group| group.tasks = tasks(MAX_TASKS + 1)).len(),
        1
    );
    assert_eq!(found(&|job| with_texts(job, 0)), 0);
    assert_eq!(found(&|job| with_texts(job, 1)), 1);
    assert_eq!(found(&|job| with_conditions(job, 0)), 0);
    assert_eq!(found(&|job| with_conditions(job, 1)), 1);
}

#[test]
fn report_without_problems_is_valid() {
    let mut job = job();
    assert!(validate(&job).is_ok());
    job.meta.insert("a-b".to_owned(), String::new());
    let report = validate(&job);
    assert!(report.is_ok() && report.warnings.len() == 1, "{report:?}");
    job.id.clear();
    assert!(!validate(&job).is_ok());
}

#[test]
fn meta_key_unusable_as_env_is_warned_about() {
    let warnings =
        |key: &str| warnings(|job| drop(job.meta.insert(key.to_owned(), String::new()))).len();
    assert_eq!(
        (warnings("a_1"), warnings("a-1"), warnings("a.1")),
        (0, 1, 1)
    );
}

#[test]
fn name_at_maximum_length_is_valid() {
    let long = |length: usize| "n".repeat(length);
    assert_eq!(task_with(|task| task.name = long(128)).len(), 0);
    assert_eq!(task_with(|task| task.name = long(129)).len(), 1);
    assert_eq!(job_with(|job| job.id = long(256)).len(), 0);
    assert_eq!(job_with(|job| job.id = long(257)).len(), 1);
    let port = |label: String| {
        let port = Port {
            label,
            ..Port::default()
        };
        let network = Network {
            dynamic_ports: vec![port],
            ..Network::default()
        };
        group_with(|group| group.networks = vec![network]).len()
    };
    assert_eq!((port(long(128)), port(long(129))), (0, 1));
}

#[test]
fn boundary_values_are_valid() {
    let resources = |cpu: i64, memory_max_mb: i64, secrets_mb: i64| {
        task_with(|task| {
            task.resources.cpu = cpu;
            task.resources.memory_mb = 100;
            task.resources.memory_max_mb = memory_max_mb;
            task.resources.secrets_mb = secrets_mb;
        })
        .len()
    };
    assert_eq!(resources(1, 100, 100), 0);
    assert_eq!(resources(0, 100, 100), 1);
    assert_eq!(resources(1, 99, 0), 1);
    assert_eq!(resources(1, 100, 101), 1);
    let logs = |max_files: i64| {
        let log_config = LogConfig {
            max_files,
            ..LogConfig::default()
        };
        task_with(|task| task.log_config = Some(log_config)).len()
    };
    assert_eq!((logs(1), logs(0)), (0, 1));
    let mode = |mode: &str| {
        let network = Network {
            mode: mode.to_owned(),
            ..Network::default()
        };
        group_with(|group| group.networks = vec![network])
    };
    assert_eq!(mode("host").len(), 0);
    assert_eq!(mode("cni/mine").len(), 0);
    assert!(mode("odd")[0].contains("unknown network mode"));
}
