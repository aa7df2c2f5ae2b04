//! Themes of random worlds: in some of them everything is about one thing, so that what is rare
//! elsewhere meets itself often.

use drover_core::input::ShutdownMode;
use drover_core::model::identity::RenewMode;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartPolicy;
use drover_core::model::task::Task;
use drover_core::model::template::ChangeMode;
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::script::{
    Act, Change, ChangeTemplate, Collect, CollectAlloc, Deregister, DeregisterWithoutDelay,
    Dispatch, Evaluate, ForcePeriodic, HandOver, OpenSession, Register, Replace, Restart,
    RestartTask, Shutdown, StopAlloc, StopAllocWithoutDelay, TakeOver, TakeOverOne,
    TransferComplete, What,
};
use drover_io_sim::{Dice, Fault, Faults};

use crate::build::{
    EVER, GroupExt, TaskExt, check, check_restart, checked, group, parameterized, registered,
};
use crate::clock::by_the_clock;
use crate::themes_of_operators::{
    about_drains, about_rollouts, about_starts, is_drained, is_rolled_out,
};

/// What a world is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Tokens that are made anew, by agents that come and go.
    Tokens,
    /// Programs beside tasks: scripts of templates that change, and sessions of people.
    Scripts,
    /// Jobs that want the same port, and become more and less important.
    Places,
    /// Jobs that are made of others, by people who ask twice.
    Children,
    /// Devices of tasks that do not end.
    Devices,
    /// Disks that are too full, and go from allocation to allocation and from node to node.
    Disks,
    /// Services that are checked, and break.
    Checks,
    /// Jobs that are launched by the clock, while agents come and go.
    Clock,
    /// A node that is drained, and eligible again, again and again.
    Drains,
    /// Services that are rolled out before the last roll-out is over.
    Rollouts,
    /// Tasks whose starts fail, are lost, or are never answered.
    Starts,
    /// Stops that are not heeded.
    Stops,
    /// A machine that has not room for all, whose tasks take long to end.
    Scarcity,
}

/// How often things of one theme go wrong, in thousandths, and how often at most.
const OFTEN: u16 = 300;
const SELDOM: u16 = 30;
const NEARLY_ALWAYS: u16 = 900;
const AT_MOST: u32 = 10;

impl Theme {
    const ALL: [Theme; 13] = [
        Theme::Tokens,
        Theme::Scripts,
        Theme::Places,
        Theme::Children,
        Theme::Devices,
        Theme::Disks,
        Theme::Checks,
        Theme::Clock,
        Theme::Drains,
        Theme::Rollouts,
        Theme::Starts,
        Theme::Stops,
        Theme::Scarcity,
    ];

    /// What the world of a seed is about; most are about everything.
    pub(crate) fn of(dice: &mut Dice) -> Option<Theme> {
        let has_one = dice.below(2, "has a theme", "") == 1;
        let theme = dice.one_of(&Theme::ALL, "theme", "");
        theme.filter(|_| has_one)
    }

    /// What goes wrong besides the usual.
    pub(crate) fn faults(self) -> Faults {
        let devices = [Fault::HangDestroy, Fault::FailDestroy, Fault::HangStop];
        let (kinds, permille): (&[Fault], u16) = match self {
            // Of all that is done for a task its tokens are the last, and made again and again.
            Theme::Tokens => (&[Fault::FailHook], SELDOM),
            Theme::Scripts => (
                &[
                    Fault::ChangeTemplate,
                    Fault::Crash,
                    Fault::FailScript,
                    Fault::HangScript,
                    Fault::FailSession,
                    Fault::HangSession,
                ],
                OFTEN,
            ),
            Theme::Checks => (
                &[Fault::FailCheck, Fault::HangCheck, Fault::BreakService],
                OFTEN,
            ),
            Theme::Places | Theme::Children | Theme::Clock | Theme::Drains => (&[], 0),
            Theme::Rollouts => (&[Fault::KillProcess], SELDOM),
            Theme::Starts => (
                &[
                    Fault::LoseStart,
                    Fault::FailStartedStart,
                    Fault::HangStart,
                    Fault::FailHook,
                    Fault::CrashInStep,
                    Fault::Reboot,
                ],
                OFTEN,
            ),
            Theme::Stops => (&[Fault::HangStop, Fault::FailStop, Fault::Crash], OFTEN),
            Theme::Scarcity => (&[Fault::HangStop, Fault::KillProcess], OFTEN),
            Theme::Devices => (&devices, NEARLY_ALWAYS),
            Theme::Disks => (&[Fault::DiskPressure, Fault::SilentNode], NEARLY_ALWAYS),
        };
        Faults::only(kinds, permille).budget(AT_MOST)
    }

    /// Makes a job fit.
    pub(crate) fn suit(self, dice: &mut Dice, job: &mut Job) {
        let id = job.id.clone();
        match self {
            Theme::Tokens => {
                lives_long(job);
                each_task(job, |task| tokens(dice, task, &id));
            }
            Theme::Scripts => {
                lives_long(job);
                each_task(job, |task| scripts(dice, task, &id));
            }
            Theme::Checks => {
                lives_long(job);
                has_checks(dice, job);
            }
            Theme::Places => {
                lives_long(job);
                job.priority = [30, 50, 70][dice.below(3, "importance", &id)];
                each_group_has_the_port(job);
            }
            Theme::Scarcity => {
                lives_long(job);
                job.priority = [30, 50, 70][dice.below(3, "importance", &id)];
                job.task_groups[0].count = dice.one_of(&[2, 1, 3], "copies in little room", &id);
            }
            Theme::Children => {
                job.job_type = JobType::Batch;
                each_task(job, |task| task.ends("1s", 0).payload());
                *job = parameterized(job.clone());
            }
            Theme::Clock => {
                job.job_type = JobType::Batch;
                let run_for = ["1s", "30s", "300s"][dice.below(3, "length", &id)];
                each_task(job, |task| match task.lifecycle {
                    None => task.ends(run_for, 0),
                    Some(_) => task,
                });
                *job = by_the_clock(dice, job.clone());
            }
            Theme::Drains => {
                lives_long(job);
                is_drained(dice, job);
            }
            Theme::Rollouts => {
                lives_long(job);
                is_rolled_out(dice, job);
            }
            Theme::Starts => {
                if dice.below(3, "is started once", &id) == 1 {
                    each_task(job, |mut task| {
                        task.restart_policy = task.restart_policy.map(|policy| RestartPolicy {
                            attempts: Some(0),
                            ..policy
                        });
                        task
                    });
                }
            }
            Theme::Stops => {
                lives_long(job);
                job.task_groups[0].shutdown_delay = dice
                    .one_of(&[5, 0, 30], "delay of stops", &id)
                    .map(Span::secs);
                each_task(job, |mut task| {
                    task.shutdown_delay = Span::secs(10);
                    task
                });
            }
            Theme::Devices => {
                lives_long(job);
                // All that there are: whoever comes next needs the same ones.
                let (name, all) = [("fpga", 3), ("bolt/gpu", 2)][dice.below(2, "device", &id)];
                let group = &mut job.task_groups[0];
                group.count = Some(1);
                for task in &mut group.tasks {
                    task.resources.devices.clear();
                }
                group.tasks[0] = group.tasks[0].clone().devices(name, all);
            }
            Theme::Disks => {
                let migrates = dice.below(2, "migrates", &id) == 1;
                let group = job.task_groups[0].clone();
                job.task_groups[0] = if migrates {
                    group.migrates()
                } else {
                    group.sticky()
                };
            }
        }
    }

    /// Something that people do about it.
    pub(crate) fn act(self, dice: &mut Dice, job: String) -> Act {
        let nth = dice.below(8, "which of its", &job);
        let changed = |job, change| {
            Register {
                job,
                change: Some(change),
            }
            .into()
        };
        let (pauses, what): (&[i64], What) = match self {
            Theme::Tokens => {
                let what = match dice.below(4, "about tokens", &job) {
                    0 => Replace.into(),
                    1 | 2 => Shutdown {
                        mode: ShutdownMode::KeepTasks,
                    }
                    .into(),
                    _ => Evaluate { job }.into(),
                };
                (&[40, 130, 250, 290, 310], what)
            }
            Theme::Scripts => {
                let what = match dice.below(8, "beside tasks", &job) {
                    0..=2 => OpenSession { job, nth }.into(),
                    3 => RestartTask { job, nth }.into(),
                    _ => ChangeTemplate.into(),
                };
                (&[1, 5, 30], what)
            }
            Theme::Checks => {
                let what = match dice.below(7, "about checks", &job) {
                    0 => RestartTask { job, nth }.into(),
                    1 => StopAlloc { job, nth: None }.into(),
                    2 => changed(job, Change::Env(dice.pick("env", ""))),
                    3 => Replace.into(),
                    4 => changed(job, Change::CheckInterval([20, 600][nth % 2])),
                    _ => changed(job, Change::KillTimeout(Span::secs(1))),
                };
                (&[5, 30, 100, 400], what)
            }
            Theme::Places | Theme::Scarcity => {
                let what = match dice.below(6, "about places", &job) {
                    4 => StopAlloc { job, nth: None }.into(),
                    5 => changed(job, Change::Env(dice.pick("env", ""))),
                    0 => Deregister { job, purge: false }.into(),
                    1 => Register { job, change: None }.into(),
                    _ => changed(job, Change::Priority([30, 50, 70][nth % 3])),
                };
                (&[0, 5, 30], what)
            }
            Theme::Children => {
                let nth = u32::try_from(nth).unwrap_or(0);
                (&[0, 1, 5], Dispatch { job, nth }.into())
            }
            Theme::Clock => {
                let what = match dice.below(10, "about the clock", &job) {
                    0 | 1 => Replace.into(),
                    2 => Shutdown {
                        mode: ShutdownMode::KeepTasks,
                    }
                    .into(),
                    3 => Deregister { job, purge: false }.into(),
                    4 => Register { job, change: None }.into(),
                    5 => Evaluate { job }.into(),
                    6 => changed(job, Change::Env(dice.pick("env", ""))),
                    _ => ForcePeriodic { job }.into(),
                };
                (&[1, 10, 20, 60, 300], what)
            }
            Theme::Devices => {
                let what = match dice.below(4, "about devices", &job) {
                    0 => StopAlloc { job, nth: None }.into(),
                    1 => Restart { job, all: true }.into(),
                    _ => changed(job, Change::Env(dice.pick("env", ""))),
                };
                (&[5, 30, 60], what)
            }
            Theme::Disks => (&[0, 5, 60, 1500], about_disks(dice, job, nth)),
            Theme::Drains => (&[0, 5, 60, 300], about_drains(dice, job)),
            Theme::Rollouts => (&[0, 5, 30, 120, 700], about_rollouts(dice, job)),
            Theme::Starts => (&[0, 5, 60], about_starts(dice, job, nth)),
            Theme::Stops => {
                let what = match dice.below(7, "about stops", &job) {
                    0 => DeregisterWithoutDelay { job }.into(),
                    1 => StopAllocWithoutDelay { job }.into(),
                    2 => Deregister { job, purge: false }.into(),
                    3 => StopAlloc { job, nth: None }.into(),
                    4 => Register { job, change: None }.into(),
                    5 => Restart { job, all: false }.into(),
                    _ => changed(job, Change::Env(dice.pick("env", ""))),
                };
                (&[0, 1, 4, 8, 20], what)
            }
        };
        Act {
            pause: Span::secs(dice.one_of(pauses, "pause of a theme", "").unwrap_or(0)),
            steps: dice
                .one_of(&[0, 0, 1, 5], "steps of a theme", "")
                .unwrap_or(0),
            what,
        }
    }
}

fn about_disks(dice: &mut Dice, job: String, nth: usize) -> What {
    let read = dice.below(2, "read", &job) == 1;
    match dice.below(10, "about disks", &job) {
        0 => Deregister { job, purge: false }.into(),
        1 => Register { job, change: None }.into(),
        2 if read => TakeOver { job }.into(),
        2 => TakeOverOne { job }.into(),
        3 if read => TransferComplete { job, nth }.into(),
        3 => HandOver { job }.into(),
        4 => StopAlloc { job, nth: None }.into(),
        5 => CollectAlloc { job, nth }.into(),
        6 => Collect.into(),
        _ => Register {
            job,
            change: Some(Change::Env(dice.pick("env", ""))),
        }
        .into(),
    }
}

/// It is not over before people have done something.
fn lives_long(job: &mut Job) {
    job.parameterized_job = None;
    let to_completion = job.job_type.runs_to_completion();
    for task in &mut job.task_groups[0].tasks {
        task.dispatch_payload = None;
        if to_completion && task.lifecycle.is_none() {
            *task = task.clone().ends(EVER, 0);
        }
    }
}

fn each_task(job: &mut Job, mut change: impl FnMut(Task) -> Task) {
    for task in &mut job.task_groups[0].tasks {
        *task = change(task.clone());
    }
}

fn tokens(dice: &mut Dice, mut task: Task, id: &str) -> Task {
    let modes = [RenewMode::Restart, RenewMode::Signal, RenewMode::Noop];
    let mode = modes[dice.below(3, "mode of the tokens", &format!("{id} {}", task.name))];
    task.identities.clear();
    task.token(Span::secs(600), mode)
}

fn scripts(dice: &mut Dice, mut task: Task, id: &str) -> Task {
    let entity = format!("{id} {}", task.name);
    task.templates.clear();
    let modes = [ChangeMode::Script, ChangeMode::Script, ChangeMode::Restart];
    let mut task = task.template(modes[dice.below(3, "on change", &entity)]);
    if let Some(script) = &mut task.templates[0].change_script {
        script.run_on_first_render = dice.below(3, "first run", &entity) == 1;
        script.fail_on_error = dice.below(2, "fatal", &entity) == 1;
    }
    task
}

fn each_group_has_the_port(job: &mut Job) {
    let tasks = job.task_groups[0].tasks.clone();
    job.task_groups[0] = group("g", tasks).never_again().static_port("http", 8080);
}

/// Services of the group and of its first task, each with a check.
fn has_checks(dice: &mut Dice, job: &mut Job) {
    let id = job.id.clone();
    let group = &mut job.task_groups[0];
    let main = group.tasks[0].name.clone();
    let mains: Vec<&Task> = (group.tasks.iter())
        .filter(|it| it.lifecycle.is_none())
        .collect();
    let checked_task = mains.get(dice.below(mains.len(), "checked task", &id));
    let checked_task = checked_task.map_or(main.clone(), |it| it.name.clone());
    let of_group = some_check(dice, &format!("{id} of the group"), &checked_task);
    let of_task = some_check(dice, &format!("{id} of the task"), &main);
    group.services = vec![checked(registered("group-service", "8080"), [of_group])];
    group.tasks[0].services = vec![checked(registered("task-service", "8081"), [of_task])];
    if dice.below(2, "rolls with checks", &id) == 1 {
        *group = group.clone().rolls(1);
    }
}

pub(crate) fn some_check(dice: &mut Dice, entity: &str, task: &str) -> Value {
    let kind = ["http", "tcp", "grpc", "script"][dice.below(4, "check", entity)];
    let seconds = dice
        .one_of(&[100, 30, 300], "interval", entity)
        .unwrap_or(100);
    let mut number =
        |what: &str, among: &[i64]| Value::Int(dice.one_of(among, what, entity).unwrap_or(0));
    let mut fields = vec![
        ("SuccessBeforePassing", number("success before", &[0, 0, 2])),
        (
            "FailuresBeforeCritical",
            number("failures before", &[0, 0, 3]),
        ),
        ("FailuresBeforeWarning", number("warns before", &[0, 0, 1])),
    ];
    if kind == "script" || dice.below(4, "is about one task", entity) == 1 {
        fields.push(("TaskName", Value::from(task)));
    }
    if kind != "script" && dice.below(3, "has a port of its own", entity) == 1 {
        fields.push(("PortLabel", Value::from("9090")));
    }
    if dice.below(2, "check restarts", entity) == 1 {
        let limit = dice.one_of(&[1, 2, 3], "limit", entity).unwrap_or(1);
        let grace = dice.one_of(&[1, 120, 0, 600], "grace", entity).unwrap_or(1);
        fields.push(check_restart(limit, Span::secs(grace)));
    }
    let policies = ["", "", "ignore_warnings", "ignore"];
    let policy = policies[dice.below(4, "on update", entity)];
    fields.push(("OnUpdate", Value::from(policy)));
    check(kind, seconds, &fields)
}
