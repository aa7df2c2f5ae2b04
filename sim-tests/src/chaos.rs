//! Random jobs, random requests, random trouble.

use drover_core::input::{LocalInput, OperatorInput, RestartScope, ShutdownMode};
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::task::{Hook, Task};
use drover_core::time::Span;
use drover_io_sim::{Choices, Faults, Sim};

use crate::build::{EVER, GroupWords, TaskWords, changed, group, job, task};
use crate::look::Look;
use crate::seeds::Scenario;

/// One run: trouble for a while, then peace.
///
/// # Errors
/// What is violated.
pub fn run(sim: &mut Sim) -> Scenario {
    let seed = sim.seed();
    let mut dice = Choices::new(seed ^ 0x5eed);
    sim.world.faults = Faults::swarm(seed);
    let mut jobs: Vec<Job> = Vec::new();
    for index in 0..=dice.below(3, "jobs", "") {
        jobs.push(random_job(&mut dice, &format!("j{index}")));
    }
    for job in &jobs {
        sim.register(job);
    }
    for _ in 0..dice.below(12, "acts", "") {
        let pauses = [0, 0, 1, 1_000, 5_000, 30_000, 600_000];
        let at = dice.below(pauses.len(), "pause", "");
        let jitter = dice.below(3, "pause steps", "");
        for _ in 0..jitter {
            sim.step(sim.world.now().at)?;
        }
        sim.run(Span::millis(pauses.get(at).copied().unwrap_or(0)))?;
        let chosen = dice.below(jobs.len(), "whose", "");
        if let Some(job) = jobs.get_mut(chosen) {
            act(sim, &mut dice, job)?;
        }
    }
    sim.run(Span::secs(120))?;
    sim.peace()
}

fn act(sim: &mut Sim, dice: &mut Choices, job: &mut Job) -> Scenario {
    let id = job.id.clone();
    match dice.below(16, "act", "") {
        0 => {
            sim.deregister(&id, false);
        }
        1 => {
            sim.deregister(&id, true);
        }
        2 => {
            sim.register(job);
        }
        3 => {
            *job = changed(job, |group| {
                if let Some(task) = group.tasks.first_mut() {
                    task.env
                        .insert("V".to_owned(), format!("{}", dice.pick("env", "")));
                }
            });
            sim.register(job);
        }
        4 => {
            *job = changed(job, |group| {
                if let Some(task) = group.tasks.first_mut() {
                    task.kill_timeout = Some(Span::secs(1));
                }
            });
            sim.register(job);
        }
        5 => {
            let count = i64::try_from(dice.below(4, "count", "")).unwrap_or(1);
            *job = changed(job, |group| group.count = Some(count));
            sim.register(job);
        }
        6 => {
            sim.restart_tasks(&id, RestartScope::Running);
        }
        7 => {
            sim.restart_tasks(&id, RestartScope::All);
        }
        8 => {
            sim.stop_alloc(&id);
        }
        9 => {
            sim.signal(&id);
        }
        10 => {
            sim.ask(LocalInput::Collect);
        }
        11 => {
            sim.ask(LocalInput::Evaluate { job: job.key() });
        }
        12 => sim.driver(dice.below(2, "health", "") == 0),
        13 => {
            let modes = [ShutdownMode::StopTasks, ShutdownMode::KeepTasks];
            let mode = modes[dice.below(2, "mode", "")];
            sim.shutdown(mode);
            sim.run(Span::secs(300))?;
            sim.restart()?;
        }
        14 => sim.restart()?,
        _ => {
            let ids: Vec<_> = sim
                .allocs(&id)
                .iter()
                .map(|alloc| alloc.record().id)
                .collect();
            let at = dice.below(ids.len(), "which", "");
            if let Some(alloc) = ids.get(at).copied() {
                sim.operate(OperatorInput::StopAlloc { alloc });
            }
        }
    }
    Ok(())
}

/// A job that comes to rest when it is left alone.
fn random_job(dice: &mut Choices, id: &str) -> Job {
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
    let tasks: Vec<Task> = tasks
        .into_iter()
        .map(|task| habits(dice, task, id))
        .collect();
    let mut group = group("g", tasks).never_again();
    group.count = Some(1 + i64::try_from(dice.below(3, "count", id)).unwrap_or(0));
    if dice.below(3, "port", id) == 1 {
        group = group.dynamic_port("http");
    }
    if dice.below(3, "rolls", id) == 1 {
        group = group.rolls(1);
    }
    if dice.below(6, "limit", id) == 1 && job_type.runs_to_completion() {
        group.max_run_duration = Some(Span::secs(20));
    }
    if dice.below(4, "group delay", id) == 1 {
        group.shutdown_delay = Some(Span::secs(3));
    }
    job(id, job_type, [group])
}

fn main_task(dice: &mut Choices, job_type: JobType, name: &str, id: &str) -> Task {
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

fn habits(dice: &mut Choices, task: Task, id: &str) -> Task {
    let entity = format!("{id} {}", task.name);
    let mut task = task.restarts(2, Span::secs(24 * 3600), Span::secs(1), RestartMode::Fail);
    match dice.below(8, "kill after", &entity) {
        1 => task = task.with("kill_after", "1s"),
        2 => task = task.with("kill_after", "1h"),
        _ => {}
    }
    match dice.below(8, "start block", &entity) {
        1 => task = task.with("start_block_for", "1s"),
        2 => task = task.with("start_block_for", "20s"),
        _ => {}
    }
    if dice.below(6, "shutdown delay", &entity) == 1 {
        task.shutdown_delay = Span::secs(2);
    }
    task
}
