//! Random worlds whose jobs differ in their policies: what the job says, its groups and its tasks, in every mode and
//! with every function of delays, and how tasks end.
//!
//! A world has to come to rest when it is left alone. So what fails by itself is given up some day: it has few attempts,
//! in an interval that is longer than they take. What runs for ever may wait and begin again as often as it likes.

use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::{ReschedulePolicy, RestartMode, RestartPolicy};
use drover_core::model::task::{Hook, Task};
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::Dice;
use drover_io_sim::script::{Act, ApplyNamespace, DeleteNamespace, What};

use crate::build::{EVER, GroupExt, TaskExt, group, task};

/// In most worlds policies differ.
pub(crate) fn vary_policies(dice: &mut Dice, jobs: &mut [Job]) {
    if dice.below(5, "policies", "") == 0 {
        return;
    }
    for job in jobs {
        let id = job.id.clone();
        if dice.below(6, "second group", &id) == 1 {
            second_group(dice, job);
        }
        for group in &mut job.task_groups {
            let entity = format!("{id} {}", group.name);
            for task in &mut group.tasks {
                ends(dice, task, &entity);
            }
        }
        if dice.below(3, "reschedule policy of the job", &id) == 1 && !one_per_node(job) {
            let fails = (job.task_groups.iter()).any(|group| fails_by_itself(job.job_type, group));
            job.reschedule = Some(replacements(dice, fails, &format!("{id} itself")));
        }
        for nth in 0..job.task_groups.len() {
            of_group(dice, job, nth);
        }
    }
}

/// In some worlds jobs are in a namespace that comes and goes, and does not allow their driver now and then.
pub(crate) fn namespaces(dice: &mut Dice, jobs: &mut [Job], acts: &mut Vec<Act>) {
    if dice.below(8, "namespaces", "") != 1 {
        return;
    }
    for job in jobs {
        if dice.below(3, "in a namespace", &job.id) > 0 {
            NAMESPACE.clone_into(&mut job.namespace);
        }
    }
    acts.insert(
        0,
        of_namespace(ApplyNamespace {
            name: NAMESPACE.to_owned(),
            without: None,
        }),
    );
    for _ in 0..dice.below(4, "acts of namespaces", "") {
        let name = NAMESPACE.to_owned();
        let what: What = match dice.below(4, "about namespaces", "") {
            0 => DeleteNamespace { name }.into(),
            1 => ApplyNamespace {
                name,
                without: Some("mock_driver".to_owned()),
            }
            .into(),
            _ => ApplyNamespace {
                name,
                without: None,
            }
            .into(),
        };
        let pause = dice.one_of(&[0, 0, 5_000, 60_000], "pause of namespaces", "");
        acts.push(Act {
            pause: Span::millis(pause.unwrap_or(0)),
            ..of_namespace(what)
        });
    }
}

/// The namespace of random worlds that is not always there.
const NAMESPACE: &str = "team";

fn of_namespace(what: impl Into<What>) -> Act {
    Act {
        pause: Span::ZERO,
        steps: 0,
        what: what.into(),
    }
}

/// Services of groups that have canaries are known by other tags as long as these are not promoted.
fn tags(group: &mut TaskGroup) {
    let tag = |tag: &str| Value::List(vec![Value::from(tag)]);
    let of_tasks = group.tasks.iter_mut().flat_map(|task| &mut task.services);
    for service in group.services.iter_mut().chain(of_tasks) {
        if let Value::Map(fields) = service {
            fields.insert("Tags".to_owned(), tag("live"));
            fields.insert("CanaryTags".to_owned(), tag("canary"));
        }
    }
}

fn one_per_node(job: &Job) -> bool {
    matches!(job.job_type, JobType::System | JobType::Sysbatch)
}

/// One more group, of a task that runs for ever, and now and then one before it. It may register a service, and roll
/// out as the first one does.
fn second_group(dice: &mut Dice, job: &mut Job) {
    if job.parameterized_job.is_some() || job.periodic.is_some() {
        return;
    }
    let mut second = group("h", [task("main")]);
    if dice.below(3, "second group begins", &job.id) == 1 {
        let before = task("before").hook(Hook::Prestart, false).ends("2s", 0);
        second.tasks.push(before);
    }
    if dice.below(3, "second group registers", &job.id) == 1 {
        second = second.registers("second-service", "8090");
    }
    second.count = dice.one_of(&[1, 2], "count of the second group", &job.id);
    let first = &job.task_groups[0];
    second
        .reschedule_policy
        .clone_from(&first.reschedule_policy);
    if dice.below(2, "second group rolls", &job.id) == 1 {
        second.update.clone_from(&first.update);
    }
    job.task_groups.push(second);
}

fn of_group(dice: &mut Dice, job: &mut Job, nth: usize) {
    let of_every_node = one_per_node(job);
    let has_policy = job.reschedule.is_some();
    let group = &mut job.task_groups[nth];
    let entity = format!("{} {}", job.id, group.name);
    let fails = fails_by_itself(job.job_type, group);
    if !of_every_node {
        match dice.below(3, "reschedule policy", &entity) {
            0 => {}
            1 if has_policy => group.reschedule_policy = None,
            _ => group.reschedule_policy = Some(replacements(dice, fails, &entity)),
        }
    }
    if dice.below(2, "restart policies", &entity) == 1 {
        restarts_of_group(dice, group, fails, &entity);
    }
    tags(group);
    if let Some(update) = &mut group.update {
        let times = [10, 0, 1, 45];
        let least = dice.one_of(&times, "min healthy time", &entity);
        update.min_healthy_time = Span::secs(least.unwrap_or(10));
        let times = [300, 60, 120];
        let most = dice.one_of(&times, "healthy deadline", &entity);
        update.healthy_deadline = Span::secs(most.unwrap_or(300));
        // A roll-out needs more time than each of its allocations.
        let times = [600, 305, 0];
        let whole = dice.one_of(&times, "progress deadline", &entity);
        update.progress_deadline = Span::secs(whole.unwrap_or(600));
        let kinds = ["checks", "checks", "task_states", "checks", "manual"];
        kinds[dice.below(5, "health check", &entity)].clone_into(&mut update.health_check);
        let counts = [1, 1, 2, 0];
        let most = dice.one_of(&counts, "max parallel", &entity);
        update.max_parallel = most.unwrap_or(1);
    }
}

/// How much time a task has to end, by which signal it is asked to, and what its end looks like.
fn ends(dice: &mut Dice, task: &mut Task, group: &str) {
    let entity = format!("{group} {}", task.name);
    let times = [0, 1, 20, 45, 300];
    if dice.below(3, "kill timeout", &entity) == 1 {
        let time = dice.one_of(&times, "how long", &entity);
        task.kill_timeout = Some(Span::secs(time.unwrap_or(0)));
    }
    if dice.below(4, "kill signal", &entity) == 1 {
        "SIGQUIT".clone_into(&mut task.kill_signal);
    }
    let ends_well = task.config.get("exit_code") == Some(&Value::Int(0));
    // One that takes minutes and is started again and again takes hours to come to rest.
    let takes_long = task.config.get("run_for") == Some(&Value::from("300s"));
    if ends_well && dice.below(6, "ended by a signal", &entity) == 1 && !takes_long {
        task.config.insert("exit_signal".to_owned(), Value::Int(15));
    }
}

/// Whether a task of a group may be started again and again without anybody's doing.
fn fails_by_itself(of: JobType, group: &TaskGroup) -> bool {
    group
        .tasks
        .iter()
        .any(|task| task_fails_by_itself(of, task))
}

fn task_fails_by_itself(of: JobType, task: &Task) -> bool {
    let trouble = ["start_error", "plugin_exit_after", "exit_signal"];
    let runs = task.config.get("run_for") == Some(&Value::from(EVER));
    let ends_well = task.config.get("exit_code") == Some(&Value::Int(0));
    // What is to run beside others is started again, also if it did well.
    let is_done = match &task.lifecycle {
        Some(lifecycle) => !lifecycle.sidecar,
        None => of.runs_to_completion(),
    };
    let ends_badly = !(runs || ends_well && is_done);
    ends_badly || trouble.iter().any(|word| task.config.contains_key(*word))
}

/// Whoever waits for the next interval is to be at rest soon.
const LONGEST_WAIT: Span = Span::secs(1800);

/// Restart policies of a group and of its tasks. Each may leave open what the other says.
fn restarts_of_group(dice: &mut Dice, group: &mut TaskGroup, fails: bool, entity: &str) {
    let whole = restarts(dice, fails, true, &format!("{entity} itself"));
    let waits = whole.mode == Some(RestartMode::Delay);
    group.restart_policy = Some(whole);
    for task in &mut group.tasks {
        let whose = format!("{entity} {}", task.name);
        let mut own = match dice.below(3, "whose policy", &whose) {
            0 => None,
            1 => Some(restarts(dice, fails, true, &whose)),
            _ => Some(restarts(dice, fails, false, &whose)),
        };
        if let Some(own) = own.as_mut().filter(|own| waits && own.mode.is_none()) {
            // It waits as its group does, and would wait for the end of its own interval.
            let interval = own.interval;
            own.interval = interval.map(|interval| interval.min(LONGEST_WAIT));
        }
        task.restart_policy = own;
    }
}

/// A policy that says everything if it is `whole`, and now and then less if not.
fn restarts(dice: &mut Dice, fails: bool, whole: bool, entity: &str) -> RestartPolicy {
    let mut says = |what: &str| whole || dice.below(2, what, entity) == 1;
    let (attempts, delay) = (says("says attempts"), says("says delay"));
    let (interval, mode) = (says("says interval"), says("says mode"));
    let waits = !fails && dice.below(3, "waits", entity) == 1;
    let intervals: &[i64] = match fails {
        true => &[24 * 3600, 12 * 3600],
        false => &[24 * 3600, 1800, 60, 600],
    };
    let span = |seconds: Option<i64>| seconds.map(Span::secs);
    // Who waits for the next interval has one that is over soon.
    let intervals = if waits { &[600, 60, 1800] } else { intervals };
    RestartPolicy {
        attempts: (dice.one_of(&[1, 0, 2, 3], "how many attempts", entity))
            .map(|attempts| if waits { attempts.max(1) } else { attempts })
            .filter(|_| attempts || waits),
        interval: span(dice.one_of(intervals, "how long an interval", entity))
            .filter(|_| interval || waits),
        delay: span(dice.one_of(&[1, 0, 7, 15], "how long a delay", entity)).filter(|_| delay),
        mode: (mode || waits).then_some(match waits {
            true => RestartMode::Delay,
            false => RestartMode::Fail,
        }),
        render_templates: [None, Some(true), Some(false)][dice.below(3, "renders again", entity)],
    }
}

/// A policy that says everything.
fn replacements(dice: &mut Dice, fails: bool, entity: &str) -> ReschedulePolicy {
    let functions = ["constant", "exponential", "fibonacci"];
    let function = functions[dice.below(3, "function of delays", entity)];
    let for_ever = !fails && dice.below(4, "for ever", entity) == 1;
    let attempts = dice.one_of(&[1, 0, 2, 4], "how many replacements", entity);
    let delay = dice.one_of(&[5, 30, 12], "delay of replacements", entity);
    let longest = dice.one_of(&[3600, 40, 60], "longest delay", entity);
    let hours = dice.one_of(&[24, 12], "interval of replacements", entity);
    let span = |seconds: Option<i64>| seconds.map(Span::secs);
    ReschedulePolicy {
        attempts: attempts.filter(|_| !for_ever),
        interval: span(hours.map(|hours| hours * 3600)),
        delay: span(delay),
        delay_function: Some(function.to_owned()),
        max_delay: span(longest),
        unlimited: Some(for_ever),
    }
}
