//! Random jobs, random requests, random faults: each seed is another script.

use drover_core::claims::resources::Amounts;
use drover_core::input::ShutdownMode;
use drover_core::model::identity::RenewMode;
use drover_core::model::job::{Constraint, Job, JobType};
use drover_core::model::policy::{RestartMode, RestartPolicy};
use drover_core::model::scaling::ScalingPolicy;
use drover_core::model::task::{Hook, Task};
use drover_core::model::template::ChangeMode;
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::script::{
    Act, Change, ChangeTemplate, Collect, CollectAlloc, DeleteVariable, Deregister, Dispatch,
    Driver, Evaluate, Expect, FailDeployment, HandOver, OpenSession, PauseDeployment,
    PromoteDeployment, PutVariable, Register, Replace, Resize, Restart, RestartTask, RevertJob,
    ScaleJob, Script, SetAllocHealth, SetStable, Shutdown, Signal, SignalTask, StopAlloc,
    TagVersion, TakeOver, TransferComplete, UntagVersion, What,
};
use drover_io_sim::{Dice, Faults, Search};

use crate::acl_acts::acts_of_acl;
use crate::build::{
    EVER, GroupWords, TaskWords, check, check_restart, checked, group, job, parameterized,
    registered, task,
};
use crate::clock::{by_the_clock, launches_by_hand};
use crate::cluster::in_a_cluster;
use crate::engine::on_an_engine;
use crate::node_acts::{acts_of_the_node, acts_of_the_scheduler};
use crate::policies::{namespaces, vary_policies};
use crate::theme::Theme;
use crate::volume_acts::volumes;

/// The script of a seed.
pub fn script(seed: u64) -> Script {
    let mut dice = Dice::new(seed ^ 0x5eed);
    let theme = Theme::of(&mut dice);
    let count = 1 + dice.below(3, "jobs", "");
    let mut jobs: Vec<Job> = (0..count)
        .map(|index| random_job(&mut dice, &format!("j{index}")))
        .collect();
    if let Some(theme) = theme {
        jobs.iter_mut().for_each(|job| theme.suit(&mut dice, job));
    }
    let register = |job: &Job| Act {
        pause: Span::ZERO,
        steps: 0,
        what: Register {
            job: job.id.clone(),
            change: None,
        }
        .into(),
    };
    let mut acts: Vec<Act> = jobs.iter().map(register).collect();
    for (act, job) in acts.iter_mut().zip(&jobs) {
        if dice.below(8, "taken over", &job.id) == 1 {
            let job = job.id.clone();
            act.what = TakeOver { job }.into();
        }
    }
    for job in jobs.iter().filter(|job| job.is_parameterized()) {
        for nth in 0..1 + dice.below(4, "dispatches", &job.id) {
            acts.push(dispatch(&job.id, u32::try_from(nth).unwrap_or(0)));
        }
    }
    for _ in 0..dice.below(12, "acts", "") {
        acts.push(random_act(&mut dice, count));
    }
    if let Some(theme) = theme {
        for _ in 0..1 + dice.below(10, "acts of the theme", "") {
            let job = format!("j{}", dice.below(count, "whose", ""));
            acts.push(theme.act(&mut dice, job));
        }
    }
    for _ in 0..dice.below(4, "acts of variables", "") {
        acts.push(act_of_variables(&mut dice));
    }
    for _ in 0..dice.below(4, "acts of versions", "") {
        acts.push(act_of_versions(&mut dice, count));
    }
    for _ in 0..dice.below(4, "acts of scaling", "") {
        acts.push(act_of_scaling(&mut dice, count));
    }
    acts_of_the_node(&mut dice, &mut acts);
    acts_of_the_scheduler(&mut dice, &mut acts);
    for _ in 0..dice.below(5, "acts of deployments", "") {
        acts.push(act_of_deployments(&mut dice, count));
    }
    launches_by_hand(&mut dice, &jobs, &mut acts);
    let has = scarce(&mut dice, &mut jobs);
    if has.is_some() {
        for _ in 0..dice.below(3, "acts of the machine", "") {
            acts.push(resize(&mut dice));
        }
    }
    volumes(&mut dice, &mut jobs, &mut acts);
    networks(&mut dice, &mut jobs);
    vary_policies(&mut dice, &mut jobs);
    namespaces(&mut dice, &mut jobs, &mut acts);
    acts_of_acl(&mut dice, &mut acts);
    let faults = Faults::swarm(seed);
    let searches = [
        Search::Seeds,
        Search::Seeds,
        Search::Pct {
            depth: 3,
            steps: 200,
        },
        Search::First,
    ];
    let script = Script {
        seed,
        search: dice.one_of(&searches, "search", "").unwrap_or_default(),
        faults: theme.map_or(faults.clone(), |theme| faults.and(&theme.faults())),
        jobs,
        acts,
        then: Span::secs(120),
        has,
        ..Script::default()
    };
    let script = on_an_engine(&mut dice, script);
    in_a_cluster(&mut dice, script)
}

/// In some worlds groups have networks of their own.
fn networks(dice: &mut Dice, jobs: &mut [Job]) {
    if dice.below(4, "networks", "") != 1 {
        return;
    }
    for job in jobs {
        let mode = dice.one_of(&["bridge", "host", "bridge", "none"], "network", &job.id);
        for group in &mut job.task_groups {
            let has_ports = group.networks.iter().any(|network| {
                !network.reserved_ports.is_empty() || !network.dynamic_ports.is_empty()
            });
            let mode = mode.filter(|mode| *mode != "none" || !has_ports);
            *group = group.clone().network(mode.unwrap_or("bridge"));
        }
    }
}

/// In some worlds the machine has little, and jobs ask for much of it.
fn scarce(dice: &mut Dice, jobs: &mut [Job]) -> Option<Amounts> {
    if dice.below(6, "scarce", "") != 1 {
        return None;
    }
    for job in jobs {
        for task in &mut job.task_groups[0].tasks {
            let entity = format!("{} {}", job.id, task.name);
            let wants = &mut task.resources;
            wants.memory_mb = dice
                .one_of(&[300, 10, 600], "memory", &entity)
                .unwrap_or(10);
            wants.cpu = dice.one_of(&[100, 100, 900], "cpu", &entity).unwrap_or(100);
            wants.memory_max_mb = dice.one_of(&[0, 9000], "memory max", &entity).unwrap_or(0);
            wants.cores = dice.one_of(&[0, 0, 0, 1, 2], "cores", &entity).unwrap_or(0);
        }
    }
    Some(some_machine(dice))
}

fn some_machine(dice: &mut Dice) -> Amounts {
    Amounts {
        cpu: dice.one_of(&[4000, 1000], "has cpu", "").unwrap_or(4000),
        memory: dice
            .one_of(&[1000, 500, 2000], "has memory", "")
            .unwrap_or(1000),
        disk: dice
            .one_of(&[10_000, 900], "has disk", "")
            .unwrap_or(10_000),
    }
}

/// The machine has more or less than before; the agent looks every 15 minutes.
fn resize(dice: &mut Dice) -> Act {
    let pause = dice.one_of(&[0, 1000], "pause of the machine", "");
    Act {
        pause: Span::secs(pause.unwrap_or(0)),
        steps: 0,
        what: Resize {
            has: some_machine(dice),
        }
        .into(),
    }
}

fn act_of_variables(dice: &mut Dice) -> Act {
    let expect = [Expect::Anything, Expect::Nothing, Expect::WhatIsShown];
    let expect = expect[dice.below(3, "expect", "")];
    let what = match dice.below(3, "delete", "") {
        1 => DeleteVariable { expect }.into(),
        _ => PutVariable {
            value: dice.pick("value", ""),
            expect,
        }
        .into(),
    };
    let pause = dice.one_of(&[0, 0, 1, 30_000], "pause of variables", "");
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: 0,
        what,
    }
}

fn act_of_versions(dice: &mut Dice, jobs: usize) -> Act {
    let job = format!("j{}", dice.below(jobs, "whose versions", ""));
    let pause = dice.one_of(&[0, 0, 5_000, 60_000], "pause of versions", "");
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: 0,
        what: about_versions(dice, job),
    }
}

fn act_of_deployments(dice: &mut Dice, jobs: usize) -> Act {
    let job = format!("j{}", dice.below(jobs, "whose roll-out", ""));
    let pauses = [0, 0, 5_000, 15_000, 60_000];
    let pause = dice.one_of(&pauses, "pause of deployments", "");
    let what = match dice.below(10, "about deployments", "") {
        0 => FailDeployment { job }.into(),
        1 => PauseDeployment { job, pause: true }.into(),
        2 => PauseDeployment { job, pause: false }.into(),
        3 => SetAllocHealth {
            job,
            healthy: dice.below(3, "healthy", "") != 1,
        }
        .into(),
        4..=6 => PromoteDeployment { job }.into(),
        _ => Register {
            job,
            change: Some(Change::Env(dice.pick("env", ""))),
        }
        .into(),
    };
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: 0,
        what,
    }
}

fn act_of_scaling(dice: &mut Dice, jobs: usize) -> Act {
    let job = format!("j{}", dice.below(jobs, "whose count", ""));
    let pause = dice.one_of(&[0, 0, 5_000, 60_000], "pause of scaling", "");
    let count = dice.one_of(&[1, 2, 3, 0, 4], "scaled to", "").unwrap_or(1);
    let note = dice.below(4, "note", "") == 1;
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: 0,
        what: ScaleJob {
            job,
            count: (!note).then_some(count),
            elsewhere: dice.below(12, "elsewhere", "") == 1,
        }
        .into(),
    }
}

/// Something that people do with the versions of a job.
pub(crate) fn about_versions(dice: &mut Dice, job: String) -> What {
    let back = [1, 1, 0, 2, 5][dice.below(5, "how far back", "")];
    let tag = ["blue", "green"][dice.below(2, "tag", "")].to_owned();
    match dice.below(10, "about versions", "") {
        0 => UntagVersion { job, tag }.into(),
        1 | 2 => TagVersion {
            job,
            back: Some(back).filter(|back| *back > 0),
            tag,
        }
        .into(),
        3 => SetStable {
            job,
            back,
            stable: dice.below(3, "stable", "") != 1,
        }
        .into(),
        4..=6 => RevertJob {
            job,
            back,
            checked: dice.below(3, "checked", "") == 1,
        }
        .into(),
        _ => Register {
            job,
            change: Some(Change::Env(dice.pick("env", ""))),
        }
        .into(),
    }
}

fn dispatch(job: &str, nth: u32) -> Act {
    Act {
        pause: Span::secs(i64::from(nth)),
        steps: 0,
        what: Dispatch {
            job: job.to_owned(),
            nth,
        }
        .into(),
    }
}

fn random_act(dice: &mut Dice, jobs: usize) -> Act {
    let pauses = [0, 0, 1, 1_000, 5_000, 30_000, 600_000];
    let pause = Span::millis(dice.one_of(&pauses, "pause", "").unwrap_or(0));
    let steps = dice.one_of(&[0, 1, 2, 3, 8], "pause steps", "");
    let job = format!("j{}", dice.below(jobs, "whose", ""));
    let one_task = dice.below(24, "one task", "");
    let nth = dice.below(8, "which task", "");
    let what = match dice.below(16, "act", "") {
        _ if one_task == 1 => RestartTask { job, nth }.into(),
        _ if one_task == 2 => SignalTask { job, nth }.into(),
        _ if one_task == 8 => OpenSession { job, nth }.into(),
        _ if one_task >= 21 => ChangeTemplate.into(),
        _ if one_task == 20 => Register {
            job,
            change: Some(Change::Priority([30, 50, 70][nth % 3])),
        }
        .into(),
        _ if one_task == 4 => TakeOver { job }.into(),
        _ if one_task == 3 => CollectAlloc { job, nth }.into(),
        _ if one_task == 5 => HandOver { job }.into(),
        _ if one_task == 6 => TransferComplete { job, nth }.into(),
        _ if one_task == 7 => Dispatch {
            job,
            nth: u32::try_from(nth).unwrap_or(0),
        }
        .into(),
        0 => Deregister { job, purge: false }.into(),
        1 => Deregister { job, purge: true }.into(),
        2 => Register { job, change: None }.into(),
        kind @ 3..=5 => {
            let change = match kind {
                3 => Change::Env(dice.pick("env", "")),
                4 => Change::KillTimeout(Span::secs(1)),
                _ => Change::Count(i64::try_from(dice.below(4, "count", "")).unwrap_or(1)),
            };
            Register {
                job,
                change: Some(change),
            }
            .into()
        }
        6 => Restart { job, all: false }.into(),
        7 => Restart { job, all: true }.into(),
        8 => StopAlloc { job, nth: None }.into(),
        9 => Signal { job }.into(),
        10 => Collect.into(),
        11 => Evaluate { job }.into(),
        12 => Driver {
            healthy: dice.below(2, "health", "") == 0,
        }
        .into(),
        13 => Shutdown {
            mode: match dice.below(2, "mode", "") {
                0 => ShutdownMode::StopTasks,
                _ => ShutdownMode::KeepTasks,
            },
        }
        .into(),
        14 => Replace.into(),
        _ => StopAlloc {
            job,
            nth: Some(dice.below(16, "which", "")),
        }
        .into(),
    };
    Act {
        pause,
        steps: steps.unwrap_or(0),
        what,
    }
}

/// A job that comes to rest when it is left alone.
fn random_job(dice: &mut Dice, id: &str) -> Job {
    let types = [
        JobType::Service,
        JobType::Service,
        JobType::Batch,
        JobType::System,
        JobType::Sysbatch,
    ];
    let job_type = types[dice.below(types.len(), "type", id)];
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
            let side = task(name).hook(hook, sidecar);
            tasks.push(if sidecar { side } else { side.ends("2s", 0) });
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
    let tasks: Vec<Task> = tasks
        .into_iter()
        .map(|task| task_faults(dice, task, id))
        .collect();
    let mut group = group("g", tasks).never_again();
    group.count = Some(1 + i64::try_from(dice.below(3, "count", id)).unwrap_or(0));
    match dice.below(6, "port", id) {
        1 | 2 => group = group.dynamic_port("http"),
        3 => group = group.static_port("http", 8080),
        _ => {}
    }
    if dice.below(3, "registers", id) == 1 {
        group = group.registers("group-service", "8080");
        group.tasks[0] = group.tasks[0].clone().serves("task-service", "8081");
    }
    if dice.below(6, "is checked", id) == 1 {
        let every = check("http", 300, &[check_restart(2, Span::secs(1))]);
        let service = checked(registered("checked-service", "8082"), [every]);
        group.tasks[0].services.push(service);
    }
    if dice.below(8, "waits for a service", id) == 1 {
        let services = ["group-service", "task-service", "checked-service"];
        let service = services[dice.below(3, "which service", id)];
        group.tasks[0] = group.tasks[0].clone().waits_for(service);
    }
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
    if dice.below(3, "sticky", id) == 1 {
        group = group.sticky();
    }
    if dice.below(3, "migrates", id) == 1 {
        group = group.migrates();
    }
    if dice.below(6, "limit", id) == 1 && job_type.runs_to_completion() {
        group.max_run_duration = Some(Span::secs(20));
    }
    if dice.below(4, "group delay", id) == 1 {
        group.shutdown_delay = Some(Span::secs(3));
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
            if dice.below(6, "once", &format!("{entity} {nth}")) == 1 {
                task.templates[nth].once = true;
            }
        }
    }
    if dice.below(5, "token", &entity) == 1 {
        let modes = [RenewMode::Restart, RenewMode::Signal, RenewMode::Noop];
        let mode = modes[dice.below(3, "token mode", &entity)];
        let ttls = [0, 600, 7200];
        let ttl = dice.one_of(&ttls, "ttl", &entity).unwrap_or(0);
        task = task.token(Span::secs(ttl), mode);
    }
    if dice.below(6, "artifact", &entity) == 1 {
        let source = "https://files/${NOMAD_TASK_NAME}.tgz";
        let secret = dice.below(3, "secret artifact", &entity) == 1;
        task = match secret {
            true => task.fetches_a_secret(source),
            false => task.fetches(source),
        };
    }
    if dice.below(6, "shutdown delay", &entity) == 1 {
        task.shutdown_delay = Span::secs(2);
    }
    task
}
