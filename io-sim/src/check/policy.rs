//! What job files say of restarts, replacements, ends and health: read as they were handed in, by merges and arithmetic
//! of this file's own. Nothing here asks the agent, nor calls what it decides by: where the two differ, one is wrong.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::requests::Request;
use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::Answer;
use drover_core::ids::{AllocId, JobKey, TaskKey};
use drover_core::input::ServerInput;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::{ReschedulePolicy, RestartMode, RestartPolicy, UpdateStrategy};
use drover_core::model::scheduler::Preemption;
use drover_core::model::task::{Hook, Task};
use drover_core::model::value::Value;
use drover_core::time::{Span, Timestamp};

/// The job files that people handed in, of each job the oldest first. What is made of another job is made of its
/// file.
#[derive(Clone, Debug, Default)]
pub(super) struct JobFiles {
    files: BTreeMap<JobKey, Vec<Arc<Job>>>,
    /// Those that servers sent with an allocation.
    placed: BTreeMap<AllocId, Vec<Arc<Job>>>,
    found: RefCell<BTreeMap<AllocId, Found>>,
}

/// The file that was found for an allocation: to compare files takes long.
#[derive(Clone, Debug)]
struct Found {
    /// The job that it runs, and how many files of it there were.
    job: Arc<Job>,
    files: usize,
    at: usize,
}

impl JobFiles {
    /// Somebody is about to ask.
    pub(super) fn asked(&mut self, asked: &Request) {
        let job = match asked {
            Request::Register(asked) => &asked.job,
            Request::TakeOver(asked) => &asked.job,
            _ => return,
        };
        let files = self.files.entry(job.key()).or_default();
        if files.last() != Some(job) {
            files.push(job.clone());
        }
    }

    /// Servers sent allocations with their jobs.
    pub(super) fn delivered(&mut self, input: &ServerInput) {
        let ServerInput::Answered { result, .. } = input else {
            return;
        };
        let Ok(Answer::Pulled(pulled)) = result else {
            return;
        };
        for alloc in &pulled.allocs {
            let files = self.placed.entry(alloc.id).or_default();
            if let Ok(job) = &alloc.job
                && !files.contains(job)
            {
                files.push(job.clone());
            }
        }
    }

    fn files_of(&self, alloc: &AllocRunner) -> Option<&Vec<Arc<Job>>> {
        match alloc.record().of_servers {
            true => self.placed.get(&alloc.record().id),
            false => self.files.get(&parent_of(&alloc.record().job)),
        }
    }

    /// The file that an allocation was made from: the latest that has its groups, whatever their counts.
    pub(super) fn of(&self, alloc: &AllocRunner) -> Option<&Arc<Job>> {
        let files = self.files_of(alloc)?;
        let (id, job) = (alloc.record().id, alloc.job());
        let mut found = self.found.borrow_mut();
        if let Some(known) = found.get(&id)
            && Arc::ptr_eq(&known.job, job)
            && known.files == files.len()
        {
            return files.get(known.at);
        }
        let at = files.iter().rposition(|file| has_same_groups(file, job));
        let at = at.or(files.len().checked_sub(1))?;
        let known = Found {
            job: job.clone(),
            files: files.len(),
            at,
        };
        found.insert(id, known);
        files.get(at)
    }

    /// Every file that was handed in for an allocation's job.
    pub(super) fn all(&self, alloc: &AllocRunner) -> impl Iterator<Item = &Arc<Job>> {
        self.files_of(alloc).into_iter().flatten()
    }

    /// What these say of its group.
    pub(super) fn groups(&self, alloc: &AllocRunner) -> Vec<&TaskGroup> {
        let name = alloc.record().group.as_str();
        let files = self.all(alloc);
        files.filter_map(|file| group(file, name)).collect()
    }

    /// What these say of a task of it.
    pub(super) fn tasks(&self, alloc: &AllocRunner, key: &TaskKey) -> Vec<&Task> {
        let groups = self.groups(alloc).into_iter();
        groups
            .filter_map(|group| task(group, key.task.as_str()))
            .collect()
    }
}

fn has_same_groups(file: &Job, job: &Job) -> bool {
    let mut all = file.task_groups.iter().zip(&job.task_groups);
    file.task_groups.len() == job.task_groups.len() && all.all(|(one, other)| is_same(one, other))
}

fn is_same(one: &TaskGroup, other: &TaskGroup) -> bool {
    if one.count == other.count {
        return one == other;
    }
    let count = one.count;
    *one == TaskGroup {
        count,
        ..other.clone()
    }
}

/// The job that people handed in: children bear its name before their own.
pub(super) fn parent_of(key: &JobKey) -> JobKey {
    let ends = CHILDREN.iter().filter_map(|word| key.id.find(word));
    cut(key, ends.min())
}

/// The job that a job was made of, itself if of none. That may be made of another one.
pub(super) fn maker_of(key: &JobKey) -> JobKey {
    let ends = CHILDREN.iter().filter_map(|word| key.id.rfind(word));
    cut(key, ends.max())
}

/// What stands between the name of a job and what its children are told apart by.
const CHILDREN: [&str; 2] = ["/dispatch-", "/periodic-"];

fn cut(key: &JobKey, end: Option<usize>) -> JobKey {
    let id = &*key.id;
    JobKey {
        namespace: key.namespace.clone(),
        id: end.map_or(id, |end| &id[..end]).into(),
    }
}

/// Whether jobs of a type may preempt others, by these settings.
pub(super) fn may_preempt(set: Preemption, job_type: JobType) -> bool {
    match job_type {
        JobType::Service => set.service,
        JobType::Batch => set.batch,
        JobType::System => set.system,
        JobType::Sysbatch => set.sysbatch,
    }
}

/// The group of this name in a file.
pub(super) fn group<'a>(file: &'a Job, name: &str) -> Option<&'a TaskGroup> {
    file.task_groups.iter().find(|group| group.name == name)
}

/// The task of this name in a group.
pub(super) fn task<'a>(group: &'a TaskGroup, name: &str) -> Option<&'a Task> {
    group.tasks.iter().find(|task| task.name == name)
}

/// Whether a job is over some day.
pub(super) fn completes(file: &Job) -> bool {
    match file.job_type {
        JobType::Batch | JobType::Sysbatch => true,
        JobType::Service | JobType::System => false,
    }
}

/// Whether a task is to run as long as its group does.
pub(super) fn lasts(file: &Job, task: &Task) -> bool {
    match &task.lifecycle {
        None => !completes(file),
        Some(lifecycle) => lifecycle.sidecar && lifecycle.hook != Hook::Poststop,
    }
}

/// What a file says of restarts of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restarts {
    pub(super) attempts: u32,
    pub(super) interval: Span,
    pub(super) delay: Span,
    /// Whether it waits for the next interval when the attempts are used up, instead of failing.
    pub(super) waits: bool,
}

/// What a file says of restarts: each word from the task, else from the group, else what holds for such jobs.
pub(super) fn restarts(file: &Job, group: &TaskGroup, task: &Task) -> Restarts {
    let nothing = RestartPolicy::default();
    let of_task = task.restart_policy.unwrap_or(nothing);
    let of_group = group.restart_policy.unwrap_or(nothing);
    let (attempts, interval) = match completes(file) {
        true => (3, Span::secs(24 * 3600)),
        false => (2, Span::secs(1800)),
    };
    let attempts = of_task.attempts.or(of_group.attempts).unwrap_or(attempts);
    let interval = of_task.interval.or(of_group.interval).unwrap_or(interval);
    let delay = of_task.delay.or(of_group.delay);
    let mode = of_task.mode.or(of_group.mode);
    Restarts {
        attempts: u32::try_from(attempts.max(0)).unwrap_or(u32::MAX),
        interval,
        delay: delay.unwrap_or(Span::secs(15)),
        waits: mode == Some(RestartMode::Delay),
    }
}

/// What a file says of replacements of a failed allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacements {
    /// How many in one interval; without limit if none.
    pub(super) attempts: Option<usize>,
    pub(super) interval: Span,
    first: Span,
    function: String,
    longest: Span,
}

/// What a file says of replacements: the group's block before the job's; none for jobs of which each node has one.
pub(super) fn replacements(file: &Job, group: &TaskGroup) -> Option<Replacements> {
    let batch = match file.job_type {
        JobType::Service => false,
        JobType::Batch => true,
        JobType::System | JobType::Sysbatch => return None,
    };
    let nothing = ReschedulePolicy::default();
    let said = match (&group.reschedule_policy, &file.reschedule) {
        (Some(of_group), _) => of_group,
        (None, Some(of_job)) => of_job,
        (None, None) => &nothing,
    };
    let for_ever = match (said.unlimited, said.attempts) {
        (Some(for_ever), _) => for_ever,
        (None, None) => !batch,
        (None, Some(_)) => false,
    };
    let attempts = said.attempts.unwrap_or(if batch { 1 } else { 0 }).max(0);
    let usual = if batch { "constant" } else { "exponential" };
    let first = Span::secs(if batch { 5 } else { 30 });
    Some(Replacements {
        attempts: (!for_ever).then(|| usize::try_from(attempts).unwrap_or(usize::MAX)),
        interval: said.interval.unwrap_or(Span::secs(24 * 3600)),
        first: said.delay.unwrap_or(first),
        function: said.delay_function.clone().unwrap_or_else(|| usual.into()),
        longest: said.max_delay.unwrap_or(Span::secs(3600)),
    })
}

impl Replacements {
    /// The pause before the next replacement, after so many.
    pub(super) fn pause(&self, earlier: usize) -> Span {
        let mut pauses = (self.first, self.first);
        for _ in 0..earlier {
            let (now, next) = pauses;
            pauses = match self.function.as_str() {
                "exponential" => (double(now), Span::ZERO),
                "fibonacci" => (next, Span(now.0.saturating_add(next.0))),
                _ => return self.first,
            };
        }
        match self.function.as_str() {
            "exponential" | "fibonacci" if self.longest > Span::ZERO => pauses.0.min(self.longest),
            _ => pauses.0,
        }
    }
}

fn double(span: Span) -> Span {
    Span(span.0.saturating_mul(2))
}

/// From the polite signal to the impolite one, on a node that allows so much.
pub(super) fn kill_timeout(task: &Task, most: Span) -> Span {
    let said = task.kill_timeout.unwrap_or(Span::secs(5));
    if said > most { most } else { said }
}

/// How long the tasks of a group that ends are left alone.
pub(super) fn group_delay(group: &TaskGroup) -> Span {
    group.shutdown_delay.unwrap_or(Span::ZERO)
}

/// How many copies of a group one node has.
pub(super) fn copies(file: &Job, group: &TaskGroup) -> u32 {
    let of_others = file.parameterized_job.is_some() && !file.dispatched;
    if of_others || file.periodic.is_some() {
        return 0;
    }
    let wanted = group.count.unwrap_or(1).max(0);
    let most = match file.job_type {
        JobType::Service | JobType::Batch => i64::from(u32::MAX),
        JobType::System | JobType::Sysbatch => 1,
    };
    u32::try_from(wanted.min(most)).unwrap_or(u32::MAX)
}

/// How many copies of a group leave a node that is drained at a time.
pub(super) fn drained_at_a_time(group: &TaskGroup) -> usize {
    let block = group.migrate.as_ref();
    let wanted = block.and_then(|block| said(block, "maxparallel"));
    match wanted {
        Some(Value::Int(count)) if *count > 0 => usize::try_from(*count).unwrap_or(usize::MAX),
        Some(_) | None => 1,
    }
}

/// The name of a service, if this node shall know of it; `consul` is whether it stands in for that provider.
pub(super) fn service_here(block: &Value, consul: bool) -> Option<&str> {
    let text = |name| said(block, name).and_then(Value::as_str).unwrap_or("");
    let provider = text("provider");
    let here = provider == "nomad" || consul && (provider.is_empty() || provider == "consul");
    here.then(|| text("name"))
}

/// What a block says of something, however its name is written.
fn said<'a>(block: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(block) = block else {
        return None;
    };
    let is_it = |key: &str| key.replace('_', "").eq_ignore_ascii_case(name);
    block.iter().find(|(key, _)| is_it(key)).map(|(_, it)| it)
}

/// Whether two versions of a job differ in nothing that its author wrote.
pub(super) fn says_the_same(one: &Job, other: &Job) -> bool {
    let written = |job: &Job| {
        let mut job = Job {
            stop: false,
            version: 0,
            stable: false,
            status: String::new(),
            status_description: String::new(),
            submit_time: Timestamp(0),
            create_index: 0,
            modify_index: 0,
            job_modify_index: 0,
            ..job.clone()
        };
        let tasks = job.task_groups.iter_mut().flat_map(|it| &mut it.tasks);
        tasks.for_each(|task| task.image_digest.clear());
        job
    };
    written(one) == written(other)
}

/// Whether they also run the same contents, where they follow the tags of their images.
pub(super) fn runs_the_same(one: &Job, other: &Job) -> bool {
    fn digests(job: &Job) -> impl Iterator<Item = &String> {
        let tasks = job.task_groups.iter().flat_map(|it| &it.tasks);
        tasks.map(|task| &task.image_digest)
    }
    says_the_same(one, other) && digests(one).eq(digests(other))
}

/// How a group is rolled out.
pub(super) fn update<'a>(file: &'a Job, group: &'a TaskGroup) -> Option<&'a UpdateStrategy> {
    group.update.as_ref().or(file.update.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growing(function: &str, longest: i64) -> Vec<i64> {
        let rules = Replacements {
            attempts: None,
            interval: Span::ZERO,
            first: Span::secs(5),
            function: function.to_owned(),
            longest: Span::secs(longest),
        };
        (0..6)
            .map(|earlier| rules.pause(earlier).0 / Span::secs(1).0)
            .collect()
    }

    #[test]
    fn pause_grows_by_its_function_up_to_the_longest() {
        assert_eq!(growing("constant", 1), [5, 5, 5, 5, 5, 5]);
        assert_eq!(growing("exponential", 0), [5, 10, 20, 40, 80, 160]);
        assert_eq!(growing("fibonacci", 30), [5, 5, 10, 15, 25, 30]);
    }

    #[test]
    fn child_is_made_of_the_file_of_its_parent() {
        for (id, parent) in [("a/dispatch-1-x", "a"), ("b/periodic-7", "b"), ("c", "c")] {
            let key = JobKey {
                namespace: "default".into(),
                id: id.into(),
            };
            assert_eq!(&*parent_of(&key).id, parent);
        }
    }
}
