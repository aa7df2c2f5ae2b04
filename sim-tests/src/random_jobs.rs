//! Random jobs: each comes to rest when it is left alone.

use drover_core::model::group::TaskGroup;
use drover_core::model::identity::RenewMode;
use drover_core::model::job::{Constraint, Job, JobType};
use drover_core::model::policy::{RestartMode, RestartPolicy};
use drover_core::model::scaling::ScalingPolicy;
use drover_core::model::task::{Hook, LogConfig, Task};
use drover_core::model::template::ChangeMode;
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::{Dice, PRIVATE_NETWORK};

use crate::build::{
    EVER, GroupExt, TaskExt, check, check_restart, checked, group, job, parameterized, registered,
    task,
};
use crate::clock::by_the_clock;
use crate::theme::some_check;

/// A job that comes to rest when it is left alone.
pub(crate) fn random_job(dice: &mut Dice, id: &str) -> Job {
    let types = [
        JobType::Service,
        JobType::Service,
        JobType::Batch,
        JobType::System,
        JobType::Sysbatch,
    ];
    let job_type = types[dice.below(types.len(), "type", id)];
    let tasks = tasks_of(dice, job_type, id);
    let mut group = group("g", tasks).never_again();
    group.count = Some(1 + i64::try_from(dice.below(3, "count", id)).unwrap_or(0));
    match dice.below(6, "port", id) {
        1 | 2 => group = group.dynamic_port("http"),
        3 => group = group.static_port("http", 8080),
        4 => group = group.dynamic_port_in("http", PRIVATE_NETWORK),
        _ => {}
    }
    group = with_services(dice, group, id);
    group = with_policies(dice, group, id);
    if dice.below(3, "sticky", id) == 1 {
        group = group.sticky();
    }
    if dice.below(3, "migrates", id) == 1 {
        group = group.migrates();
        if let Some(disk) = &mut group.ephemeral_disk {
            disk.sticky = dice.below(3, "says sticky, too", id) > 0;
        }
    }
    if dice.below(6, "limit", id) == 1 && job_type.runs_to_completion() {
        let span = dice.one_of(&[20, 5, 60, 300], "length of the limit", id);
        group.max_run_duration = Some(Span::secs(span.unwrap_or(20)));
    }
    if dice.below(4, "group delay", id) == 1 {
        let span = dice.one_of(&[3, 20], "length of the group delay", id);
        group.shutdown_delay = Some(Span::secs(span.unwrap_or(3)));
    }
    let mut job = job(id, job_type, [group]);
    if dice.below(10, "rack", id) == 1 {
        job.constraints.push(Constraint {
            target: "${meta.rack}".to_owned(),
            value: "r1".to_owned(),
            operand: "=".to_owned(),
        });
    }
    job.priority = [50, 50, 70, 30, 45][dice.below(5, "priority", id)];
    if dice.below(10, "other rack", id) == 1 {
        let keys = ["${meta.rack}", "${meta.nothing}"];
        job.constraints.push(Constraint {
            target: keys[dice.below(2, "which key", id)].to_owned(),
            value: "r2".to_owned(),
            operand: "!=".to_owned(),
        });
    }
    if job_type.runs_to_completion() && dice.below(4, "mould", id) == 1 {
        let mut job = parameterized(job);
        for task in &mut job.task_groups[0].tasks {
            *task = task.clone().payload();
        }
        return job;
    }
    if job_type.runs_to_completion() && dice.below(8, "periodic", id) == 1 {
        return by_the_clock(dice, job);
    }
    job
}

/// Main tasks, and others of any place in the life of a group beside them.
fn tasks_of(dice: &mut Dice, job_type: JobType, id: &str) -> Vec<Task> {
    let mut tasks = vec![main_task(dice, job_type, "main", id)];
    if dice.below(3, "leader", id) == 1 {
        tasks[0].leader = true;
    }
    let extra = [
        ("pre", Hook::Prestart, false),
        ("preside", Hook::Prestart, true),
        ("post", Hook::Poststart, false),
        ("postside", Hook::Poststart, true),
        ("end", Hook::Poststop, false),
    ];
    for (name, hook, sidecar) in extra {
        if dice.below(4, "extra", &format!("{id} {name}")) == 1 {
            tasks.push(extra_task(dice, task(name).hook(hook, sidecar), id));
        }
    }
    if dice.below(4, "second", id) == 1 {
        tasks.push(main_task(dice, job_type, "second", id));
    }
    if dice.below(5, "fragile", id) == 1 {
        tasks[0] = task("main").ends("15s", 1);
    }
    match dice.below(6, "devices", id) {
        1 => tasks[0] = tasks[0].clone().devices("fpga", 1),
        2 => {
            let last = tasks.len() - 1;
            tasks[0] = tasks[0].clone().devices("bolt/gpu", 1);
            tasks[last] = tasks[last].clone().devices("fpga", 1);
        }
        3 => {
            let last = tasks.len() - 1;
            tasks[0] = tasks[0].clone().devices("fpga", 1);
            tasks[last] = tasks[last].clone().devices("fpga", 1);
        }
        _ => {}
    }
    tasks
        .into_iter()
        .map(|task| task_faults(dice, task, id))
        .collect()
}

/// A task beside the main ones: most do well, some end badly or though they are to run on.
fn extra_task(dice: &mut Dice, task: Task, id: &str) -> Task {
    let entity = format!("{id} {}", task.name);
    let sidecar = task.lifecycle.as_ref().is_some_and(|it| it.sidecar);
    match dice.below(10, "ends of extras", &entity) {
        1 => task.ends("20s", 1),
        2 => task.ends("20s", 0),
        _ if sidecar => task,
        _ => task.ends("2s", 0),
    }
}

/// What a group and its tasks register, check and wait for.
fn with_services(dice: &mut Dice, mut group: TaskGroup, id: &str) -> TaskGroup {
    if dice.below(3, "registers", id) == 1 {
        group = group.registers("group-service", "8080");
        group.tasks[0] = group.tasks[0].clone().serves("task-service", "8081");
    }
    if dice.below(6, "is checked", id) == 1 {
        let every = match dice.below(2, "which check", id) {
            1 => some_check(dice, &format!("{id} checked"), &group.tasks[0].name),
            _ => check("http", 300, &[check_restart(2, Span::secs(1))]),
        };
        let service = checked(registered("checked-service", "8082"), [every]);
        group.tasks[0].services.push(service);
    }
    if dice.below(3, "is reached by its port", id) == 1 {
        is_reached_by_its_port(dice, &mut group, id);
    }
    if dice.below(8, "waits for a service", id) == 1 {
        let services = ["group-service", "task-service", "checked-service"];
        let service = services[dice.below(3, "which service", id)];
        group.tasks[0] = group.tasks[0].clone().waits_for(service);
    }
    group
}

/// Its services name a port of it, which may be another one inside, and say at which address they are reached.
fn is_reached_by_its_port(dice: &mut Dice, group: &mut TaskGroup, id: &str) {
    let networks = group.networks.iter_mut();
    let ports = networks.flat_map(|it| it.dynamic_ports.iter_mut().chain(&mut it.reserved_ports));
    let ports: Vec<_> = ports.collect();
    if ports.is_empty() {
        return;
    }
    for port in ports {
        port.to = dice.one_of(&[8080, 0, -1], "port inside", id).unwrap_or(0);
    }
    let of_tasks = group.tasks.iter_mut().flat_map(|it| &mut it.services);
    for service in group.services.iter_mut().chain(of_tasks) {
        let mode = dice.one_of(&["alloc", "host", "auto"], "address mode", id);
        if let Value::Map(fields) = service {
            fields.insert("PortLabel".to_owned(), Value::from("http"));
            fields.insert(
                "AddressMode".to_owned(),
                Value::from(mode.unwrap_or("auto")),
            );
        }
    }
}

/// How a group restarts, is replaced, rolled out and scaled.
fn with_policies(dice: &mut Dice, mut group: TaskGroup, id: &str) -> TaskGroup {
    if dice.below(3, "reschedules", id) == 1 {
        group = group.reschedules(2, Span::secs(5));
        if let Some(policy) = &mut group.reschedule_policy {
            let functions = ["constant", "constant", "exponential", "fibonacci"];
            let function = functions[dice.below(4, "delay function", id)];
            policy.delay_function = Some(function.to_owned());
            policy.max_delay = Some(Span::secs(8));
        }
    }
    if dice.below(4, "restart policy of the group", id) == 1 {
        group.restart_policy = Some(some_restart_policy(dice, id));
        for task in &mut group.tasks {
            let whose = format!("{id} {}", task.name);
            if dice.below(2, "policy of its own", &whose) == 0 {
                task.restart_policy = None;
            }
        }
    }
    if dice.below(3, "rolls", id) == 1 {
        group = group.rolls(1);
        if let Some(update) = &mut group.update {
            update.canary = [0, 0, 1, 2][dice.below(4, "canaries", id)];
            update.auto_promote = update.canary > 0 && dice.below(3, "promotes", id) == 1;
            update.auto_revert = dice.below(2, "reverts", id) == 1;
        }
    }
    if dice.below(3, "scales", id) == 1 {
        group.scaling = Some(ScalingPolicy {
            min: Some(1),
            max: Some(3),
            ..ScalingPolicy::default()
        });
    }
    group
}

/// A policy that gives up some day.
fn some_restart_policy(dice: &mut Dice, id: &str) -> RestartPolicy {
    let attempts = [1, 0, 3][dice.below(3, "attempts", id)];
    let delay = [1, 0, 15][dice.below(3, "delay", id)];
    RestartPolicy {
        attempts: Some(attempts),
        interval: Some(Span::secs(24 * 3600)),
        delay: Some(Span::secs(delay)),
        mode: Some(RestartMode::Fail),
        render_templates: None,
    }
}

fn main_task(dice: &mut Dice, job_type: JobType, name: &str, id: &str) -> Task {
    let entity = format!("{id} {name}");
    let task = task(name);
    if !job_type.runs_to_completion() {
        return task;
    }
    match dice.below(4, "ends", &entity) {
        0 => task.ends("0s", 0),
        1 => task.ends("10s", 0),
        2 => task.ends("5s", 3),
        _ => task.ends(EVER, 0),
    }
}

fn task_faults(dice: &mut Dice, task: Task, id: &str) -> Task {
    let entity = format!("{id} {}", task.name);
    let mut task = task.restarts(2, Span::secs(24 * 3600), Span::secs(1), RestartMode::Fail);
    match dice.below(8, "kill after", &entity) {
        1 => task = task.with("kill_after", "1s"),
        2 => task = task.with("kill_after", "1h"),
        _ => {}
    }
    match dice.below(12, "start error", &entity) {
        1 => task = task.with("start_error", "no"),
        2 => {
            task = task.with("start_error", "not now");
            task.config
                .insert("start_error_recoverable".to_owned(), Value::Bool(true));
        }
        3 => task = task.with("plugin_exit_after", "7s"),
        _ => {}
    }
    match dice.below(8, "start block", &entity) {
        1 => task = task.with("start_block_for", "1s"),
        2 => task = task.with("start_block_for", "20s"),
        _ => {}
    }
    if dice.below(3, "templates", &entity) == 1 {
        for nth in 0..=dice.below(2, "how many templates", &entity) {
            let modes = [ChangeMode::Restart, ChangeMode::Signal, ChangeMode::Noop];
            let mode = dice.below(3, "mode", &format!("{entity} {nth}"));
            let script = dice.below(4, "script", &format!("{entity} {nth}"));
            task = task.template(if script == 1 {
                ChangeMode::Script
            } else {
                modes[mode]
            });
            if let Some(script) = &mut task.templates[nth].change_script {
                script.run_on_first_render = dice.below(2, "first script", &entity) == 1;
                script.fail_on_error = dice.below(3, "fatal script", &entity) == 1;
            }
            if dice.below(4, "splay", &format!("{entity} {nth}")) == 1 {
                task.templates[nth].splay = Span::secs(30);
            }
            if dice.below(6, "once", &format!("{entity} {nth}")) == 1 {
                task.templates[nth].once = true;
            }
            if dice.below(4, "default", &format!("{entity} {nth}")) == 1 {
                let variable = format!("TEMPLATE_{nth}");
                task.env.insert(variable, "nothing yet".to_owned());
            }
        }
    }
    if dice.below(5, "token", &entity) == 1 {
        let modes = [RenewMode::Restart, RenewMode::Signal, RenewMode::Noop];
        let mode = modes[dice.below(3, "token mode", &entity)];
        let ttls = [0, 600, 7200];
        let ttl = dice.one_of(&ttls, "ttl", &entity).unwrap_or(0);
        task = task.token(Span::secs(ttl), mode);
        if dice.below(3, "second token", &entity) == 1 {
            let mode = modes[dice.below(3, "mode of the second token", &entity)];
            task = task.token(Span::secs(7200 - ttl), mode);
        }
    }
    if dice.below(6, "artifact", &entity) == 1 {
        let source = "https://files/${NOMAD_TASK_NAME}.tgz";
        let secret = dice.below(3, "secret artifact", &entity) == 1;
        task = match secret {
            true => task.fetches_a_secret(source),
            false => task.fetches(source),
        };
    }
    if dice.below(4, "logs", &entity) == 1 {
        task.log_config = Some(LogConfig {
            max_files: 3,
            disabled: dice.below(2, "no logs", &entity) == 1,
            ..LogConfig::default()
        });
    }
    if dice.below(6, "shutdown delay", &entity) == 1 {
        let span = dice.one_of(&[2, 15, 40], "length of the delay", &entity);
        task.shutdown_delay = Span::secs(span.unwrap_or(2));
    }
    task
}
