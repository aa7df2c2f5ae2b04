//! Random jobs, random requests, random faults: each seed is another script. The jobs are made in `random_jobs.rs`.

use drover_core::claims::resources::Amounts;
use drover_core::input::ShutdownMode;
use drover_core::model::canonical::canonicalize;
use drover_core::model::job::Job;
use drover_core::time::Span;
use drover_io_sim::network::PLUGIN_MODE;
use drover_io_sim::script::{
    Act, Change, ChangeTemplate, CheckAndRegister, Collect, CollectAlloc, DeleteVariable,
    Deregister, Dispatch, Driver, Evaluate, Expect, FailDeployment, HandOver, OpenSession,
    PauseDeployment, PromoteDeployment, PutVariable, Register, Replace, Resize, Restart,
    RestartTask, RevertJob, ScaleJob, Script, Seen, SetAllocHealth, SetStable, Settings, Shutdown,
    Signal, SignalTask, StopAlloc, TagVersion, TakeOver, TransferComplete, UntagVersion, What,
};
use drover_io_sim::{Dice, Faults, Search};

use crate::acl_acts::acts_of_acl;
use crate::build::GroupExt;
use crate::changes::{a_day_later, changes, in_a_hurry};
use crate::clock::launches_by_hand;
use crate::cluster::in_a_cluster;
use crate::engine::on_an_engine;
use crate::node_acts::{acts_of_the_node, acts_of_the_scheduler};
use crate::policies::{namespaces, vary_policies};
use crate::random_jobs::random_job;
use crate::theme::Theme;
use crate::themes_of_operators::{drains_in_turn, versions_in_turn};
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
    for job in jobs.iter_mut().filter(|job| job.is_parameterized()) {
        if dice.below(2, "default of meta", &job.id) == 1 {
            job.meta.insert("who".to_owned(), "anybody".to_owned());
        }
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
    let at = dice.below(count, "whose turn", "");
    match dice.below(10, "in turn", "") {
        1 => acts.extend(versions_in_turn(&mut dice, &mut jobs[at])),
        2 => acts.extend(drains_in_turn(&mut dice, &mut jobs[at])),
        _ => {}
    }
    for _ in 0..dice.below(4, "acts of variables", "") {
        acts.push(act_of_variables(&mut dice));
    }
    for _ in 0..dice.below(4, "acts of versions", "") {
        acts.push(act_of_versions(&mut dice, count));
    }
    for _ in 0..dice
        .below(4, "acts of people who looked", "")
        .saturating_sub(1)
    {
        acts.push(act_after_a_query(&mut dice, count));
    }
    for _ in 0..dice.below(4, "acts of scaling", "") {
        acts.push(act_of_scaling(&mut dice, count));
    }
    acts_of_the_node(&mut dice, &mut acts);
    acts_of_the_scheduler(&mut dice, &mut acts);
    for _ in 0..dice.below(5, "acts of deployments", "") {
        acts.push(act_of_deployments(&mut dice, count));
    }
    changes(&mut dice, count, &mut acts);
    in_a_hurry(&mut dice, count, &mut acts);
    a_day_later(&mut dice, count, &mut acts);
    reach_for_the_ending(&mut dice, &mut acts);
    launches_by_hand(&mut dice, &jobs, &mut acts);
    let has = scarce(&mut dice, theme, &mut jobs);
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
    if dice.below(2, "canonical", "") == 1 {
        // As real agents get them.
        jobs.iter_mut().for_each(canonicalize);
    }
    let settings = settings(&mut dice, has.is_some());
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
        settings,
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
        let modes = ["bridge", "host", "bridge", "none", PLUGIN_MODE];
        let mode = dice.one_of(&modes, "network", &job.id);
        for group in &mut job.task_groups {
            let has_ports = group.networks.iter().any(|network| {
                !network.reserved_ports.is_empty() || !network.dynamic_ports.is_empty()
            });
            let mode = mode.filter(|mode| *mode != "none" || !has_ports);
            *group = group.clone().network(mode.unwrap_or("bridge"));
        }
    }
}

/// In some worlds little is kept of what is over; a machine that has little may keep some for itself, or promise more.
fn settings(dice: &mut Dice, is_small: bool) -> Settings {
    let mut settings = Settings::default();
    if dice.below(4, "keeps little", "") == 1 {
        settings.keeps = dice.one_of(&[2, 0, 5], "keeps", "");
    }
    if dice.below(4, "keeps not long", "") == 1 {
        let span = dice.one_of(&[600, 60, 3600], "keeps for", "");
        settings.keeps_for = span.map(Span::secs);
    }
    if dice.below(4, "is away for long", "") == 1 {
        let span = dice.one_of(&[600, 7200], "away for", "");
        settings.away = span.map(Span::secs);
    }
    if is_small && dice.below(2, "shares", "") == 1 {
        settings.reserved.memory = dice.one_of(&[100, 400], "reserved", "").unwrap_or(0);
        let percent = dice.one_of(&[100, 150], "overcommit", "").unwrap_or(100);
        (settings.overcommit.memory, settings.overcommit.cpu) = (percent, percent);
    }
    settings
}

/// In some worlds the machine has little, and jobs ask for much of it.
fn scarce(dice: &mut Dice, theme: Option<Theme>, jobs: &mut [Job]) -> Option<Amounts> {
    if dice.below(6, "scarce", "") != 1 && theme != Some(Theme::Scarcity) {
        return None;
    }
    if dice.below(4, "only disk is scarce", "") == 1 {
        return Some(little_disk(dice, jobs));
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

/// Its disk is what the machine has little of.
fn little_disk(dice: &mut Dice, jobs: &mut [Job]) -> Amounts {
    for job in jobs {
        let wants = dice.one_of(&[300, 600, 450], "disk", &job.id);
        let group = &mut job.task_groups[0];
        let disk = group.ephemeral_disk.get_or_insert_default();
        disk.size_mb = wants.unwrap_or(300);
    }
    Amounts {
        cpu: 40_000,
        memory: 40_000,
        disk: 900,
    }
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

/// Now and then somebody reaches for a task just after its job was told to end, or it to begin again.
fn reach_for_the_ending(dice: &mut Dice, acts: &mut Vec<Act>) {
    for act in core::mem::take(acts) {
        let job = match &act.what {
            What::Deregister(asked) => Some(asked.job.clone()),
            What::RestartTask(asked) => Some(asked.job.clone()),
            _ => None,
        };
        acts.push(act);
        let Some(job) = job.filter(|job| dice.below(3, "reaches for the ending", job) == 1) else {
            continue;
        };
        let nth = dice.below(4, "which task that ends", &job);
        let steps = [1, 3, 8][dice.below(3, "steps to the ending", &job)];
        let what = match dice.below(2, "how it is reached for", &job) {
            0 => SignalTask { job, nth }.into(),
            _ => OpenSession { job, nth }.into(),
        };
        acts.push(Act {
            pause: Span::ZERO,
            steps,
            what,
        });
    }
}

/// Somebody looks at a job, changes it, and hands it in unless it is another one by then.
fn act_after_a_query(dice: &mut Dice, jobs: usize) -> Act {
    let job = format!("j{}", dice.below(jobs, "whose index", ""));
    let seen = [Seen::Shown, Seen::Shown, Seen::Older, Seen::Nothing];
    let pause = dice.one_of(&[0, 0, 5_000, 60_000], "pause of who looked", "");
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: 0,
        what: CheckAndRegister {
            job,
            change: Change::Env(dice.pick("env", "")),
            saw: dice.one_of(&seen, "seen", "").unwrap_or(Seen::Shown),
        }
        .into(),
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
        7 => Register {
            job,
            change: Some(Change::Meta(dice.pick("meta", ""))),
        }
        .into(),
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
            expects: [None, None, Some(true), Some(false)][dice.below(4, "expects", "")],
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
