//! What somebody asks about: a job, an allocation, a task.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use drover_core::agent::Agent;
use drover_core::effect::{Effect, StoreEffect};
use drover_core::ids::{AllocId, JobKey, TaskName};
use drover_recorder::ContentHash;
use serde::Serialize;
use serde_json::Value;

use super::player::{Played, Player};
use super::recording::Recording;

/// What somebody asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// The job that it is or belongs to.
    job: JobKey,
    /// Which allocations: all that the job ever had in the recording, or one.
    allocs: BTreeSet<AllocId>,
    /// What of the job.
    part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Job,
    Alloc,
    Task {
        name: TaskName,
        /// The other tasks of its allocation.
        others: BTreeSet<TaskName>,
    },
}

/// Nothing in the recording has this name, or too much has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound(pub String);

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotFound {}

/// Everything in a recording that has a name: jobs, and allocations with their jobs and tasks.
#[derive(Debug, Default)]
struct Known {
    jobs: BTreeSet<JobKey>,
    allocs: BTreeMap<AllocId, (JobKey, BTreeSet<TaskName>)>,
}

impl Known {
    fn of(recording: &Recording) -> Known {
        let mut known = Known::default();
        let mut player = Player::new(recording);
        while player.step().is_some() {
            let Some(view) = player.agent().map(Agent::view) else {
                continue;
            };
            known
                .jobs
                .extend(view.jobs().map(|record| record.job.key()));
            for alloc in view.allocs() {
                let tasks = alloc
                    .tasks()
                    .iter()
                    .map(|task| task.spec().key.task.clone());
                let alloc = (alloc.record().id, alloc.job_key().clone());
                let known = known.allocs.entry(alloc.0);
                known.or_insert_with(|| (alloc.1, tasks.collect()));
            }
        }
        known
    }
}

impl Entity {
    /// What `name` means in this recording: a job's id, an allocation's id or the beginning of it,
    /// `ALLOCATION/TASK`, or a task's name if only one task has it.
    ///
    /// # Errors
    /// Nothing is called so, or more than one thing.
    pub fn find(recording: &Recording, name: &str) -> Result<Entity, NotFound> {
        let known = Known::of(recording);
        if let Some(job) = known.jobs.iter().find(|job| *job.id == *name) {
            let of_job = known.allocs.iter().filter(|(_, (of, _))| of == job);
            return Ok(Entity {
                job: job.clone(),
                allocs: of_job.map(|(id, _)| *id).collect(),
                part: Part::Job,
            });
        }
        let (prefix, task) = match name.split_once('/') {
            Some((prefix, task)) => (prefix, Some(task)),
            None => (name, None),
        };
        let is_meant = |id: &AllocId| !prefix.is_empty() && id.to_string().starts_with(prefix);
        let mut found = Vec::new();
        for (id, (job, tasks)) in known.allocs.iter().filter(|(id, _)| is_meant(id)) {
            match task.map(|task| tasks.iter().find(|name| name.as_str() == task)) {
                None => found.push((Entity::alloc(*id, job), id.to_string())),
                Some(Some(task)) => found.push(Entity::task(*id, job, task, tasks)),
                Some(None) => {}
            }
        }
        if found.is_empty() && task.is_none() {
            for (id, (job, tasks)) in &known.allocs {
                let named = tasks.iter().find(|task| task.as_str() == name);
                found.extend(named.map(|task| Entity::task(*id, job, task, tasks)));
            }
        }
        match found.as_slice() {
            [(entity, _)] => Ok(entity.clone()),
            [] => {
                let jobs: Vec<&str> = known.jobs.iter().map(|job| &*job.id).take(10).collect();
                let jobs = match jobs.is_empty() {
                    true => String::new(),
                    false => format!("; jobs are {}", jobs.join(", ")),
                };
                Err(NotFound(format!(
                    "no job, allocation or task in this recording is called {name:?}{jobs}"
                )))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|(_, name)| name.as_str()).collect();
                let names = names.join(", ");
                Err(NotFound(format!("{name:?} may be any of {names}")))
            }
        }
    }

    fn alloc(id: AllocId, job: &JobKey) -> Entity {
        Entity {
            job: job.clone(),
            allocs: BTreeSet::from([id]),
            part: Part::Alloc,
        }
    }

    fn task(
        id: AllocId,
        job: &JobKey,
        task: &TaskName,
        tasks: &BTreeSet<TaskName>,
    ) -> (Entity, String) {
        let others = tasks.iter().filter(|other| *other != task);
        let part = Part::Task {
            name: task.clone(),
            others: others.cloned().collect(),
        };
        let alloc = Entity::alloc(id, job);
        (Entity { part, ..alloc }, format!("{}/{task}", id.short()))
    }

    /// Whether something of the core's names it: its allocation and, if that is a task, no other one of
    /// that allocation; or its job.
    fn is_in<T: Serialize>(&self, value: &T) -> bool {
        let value = serde_json::to_value(value).unwrap_or_default();
        let mut texts = BTreeSet::new();
        gather(&value, &mut texts);
        let mut allocs = self.allocs.iter();
        let is_there = allocs.any(|id| texts.contains(id.to_string().as_str()));
        let is_other = match &self.part {
            Part::Task { name, others } => {
                !texts.contains(name.as_str())
                    && others.iter().any(|other| texts.contains(other.as_str()))
            }
            Part::Job | Part::Alloc => false,
        };
        is_there && !is_other || self.job_is_in(&value)
    }

    /// Whether something is its job, or names that by its whole name.
    fn job_is_in(&self, value: &Value) -> bool {
        let is = |fields: &serde_json::Map<String, Value>, [id, namespace]: [&str; 2]| {
            fields.get(id).is_some_and(|id| *id == *self.job.id)
                && fields
                    .get(namespace)
                    .is_some_and(|namespace| *namespace == *self.job.namespace)
        };
        match value {
            Value::Object(fields) => {
                is(fields, ["id", "namespace"])
                    || is(fields, ["ID", "Namespace"])
                    || fields.values().any(|value| self.job_is_in(value))
            }
            Value::Array(items) => items.iter().any(|item| self.job_is_in(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    /// Whether an effect is about it; a commit by the names of what is saved.
    pub fn is_touched_by(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Store(StoreEffect::Commit(_, batch)) => {
                // What is saved along with another of its tasks is about that.
                let keys: Vec<_> = batch.keys().collect();
                self.is_in(&keys)
            }
            Effect::Driver(..)
            | Effect::Forget(..)
            | Effect::Hook(_)
            | Effect::Check(_)
            | Effect::Node(_)
            | Effect::Server(_)
            | Effect::Reply(..)
            | Effect::Notify(_)
            | Effect::Stopped => self.is_in(effect),
        }
    }

    /// What of an agent's state it is.
    pub fn state(&self, agent: &Agent) -> Vec<ContentHash> {
        let view = agent.view();
        let allocs = self.allocs.iter().filter_map(|id| view.alloc(*id));
        match &self.part {
            Part::Job => {
                let job = view.job(&self.job).into_iter().map(ContentHash::of);
                job.chain(allocs.map(|alloc| ContentHash::of(&alloc)))
                    .collect()
            }
            Part::Alloc => allocs.map(|alloc| ContentHash::of(&alloc)).collect(),
            Part::Task { name, .. } => {
                let tasks = allocs.filter_map(|alloc| alloc.task(name));
                tasks.map(|task| ContentHash::of(&task)).collect()
            }
        }
    }

    /// Whether a step is about it, or made another one of it than it was before.
    pub fn is_touched(
        &self,
        before: Option<&Vec<ContentHash>>,
        played: &Played<'_>,
        after: Option<&Vec<ContentHash>>,
    ) -> bool {
        // Where a segment begins nothing changes that was not changed before.
        let changed = before.is_some() && played.begins.is_none() && before != after;
        let mut effects = played.effects.iter();
        changed
            || played.input.is_some_and(|input| self.is_in(input))
            || effects.any(|(effect, _)| self.is_touched_by(effect))
    }
}

/// All texts in a value, but for names of fields.
fn gather<'v>(value: &'v Value, texts: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) => {
            texts.insert(text);
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| gather(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
