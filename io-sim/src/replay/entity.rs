//! What somebody asks about: a job, an allocation, a task, a launch.

use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::effect::{Effect, HookEffect, StoreEffect, Told};
use drover_core::ids::{AllocId, JobKey, TaskName};
use drover_core::input::{Input, LocalInput, OperatorInput};
use drover_core::store::Key;

use super::player::Player;
use super::recording::Recording;

/// What somebody asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A job with all that belongs to it.
    Job {
        /// The job.
        job: JobKey,
        /// The allocations that it ever had in the recording.
        allocs: BTreeSet<AllocId>,
    },
    /// An allocation, or one task of it.
    Alloc {
        /// The allocation.
        alloc: AllocId,
        /// Its job.
        job: JobKey,
        /// The task, if only that is asked about.
        task: Option<TaskName>,
    },
}

/// Nothing in the recording has this name, or too much has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound(pub String);

impl std::fmt::Display for NotFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotFound {}

/// Everything in a recording that has a name.
#[derive(Debug, Default)]
struct Known {
    jobs: BTreeSet<JobKey>,
    allocs: BTreeSet<(AllocId, JobKey)>,
    tasks: BTreeSet<(AllocId, TaskName)>,
}

impl Known {
    fn note(&mut self, agent: &Agent) {
        let view = agent.view();
        self.jobs.extend(view.jobs().map(|record| record.job.key()));
        for alloc in view.allocs() {
            let id = alloc.record().id;
            self.allocs.insert((id, alloc.job_key().clone()));
            let tasks = alloc.tasks().iter();
            self.tasks
                .extend(tasks.map(|task| (id, task.spec().key.task.clone())));
        }
    }
}

impl Entity {
    /// What `name` means in this recording: a job's id, an allocation's id or the beginning of it,
    /// `ALLOCATION/TASK`, or a task's name if only one task has it.
    ///
    /// # Errors
    /// Nothing is called so, or more than one thing.
    pub fn find(recording: &Recording, name: &str) -> Result<Entity, NotFound> {
        let mut known = Known::default();
        let mut player = Player::new(recording);
        while player.step().is_some() {
            if let Some(agent) = player.agent() {
                known.note(agent);
            }
        }
        if let Some(job) = known.jobs.iter().find(|job| *job.id == *name) {
            let of_job = known.allocs.iter().filter(|(_, of)| of == job);
            return Ok(Entity::Job {
                job: job.clone(),
                allocs: of_job.map(|(id, _)| *id).collect(),
            });
        }
        let (alloc, task) = match name.split_once('/') {
            Some((alloc, task)) => (alloc, Some(task)),
            None => (name, None),
        };
        let prefixed = |id: &AllocId| !alloc.is_empty() && id.to_string().starts_with(alloc);
        let mut found: Vec<(AllocId, Option<TaskName>)> = match task {
            None => (known.allocs.iter())
                .filter(|(id, _)| prefixed(id))
                .map(|(id, _)| (*id, None))
                .collect(),
            Some(task) => (known.tasks.iter())
                .filter(|(id, name)| prefixed(id) && name.as_str() == task)
                .map(|(id, name)| (*id, Some(name.clone())))
                .collect(),
        };
        if found.is_empty() && task.is_none() {
            let named = known.tasks.iter().filter(|(_, task)| task.as_str() == name);
            found = named.map(|(id, task)| (*id, Some(task.clone()))).collect();
        }
        match found.as_slice() {
            [(alloc, task)] => {
                let of = known.allocs.iter().find(|(id, _)| id == alloc);
                Ok(Entity::Alloc {
                    alloc: *alloc,
                    job: of.map(|(_, job)| job.clone()).unwrap_or_default(),
                    task: task.clone(),
                })
            }
            [] => Err(NotFound(format!(
                "no job, allocation or task in this recording is called {name:?}{}",
                known.suggestion()
            ))),
            several => Err(NotFound(format!(
                "{name:?} may be any of {}",
                several.iter().map(shown).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    fn is_alloc(&self, id: AllocId) -> bool {
        match self {
            Entity::Job { allocs, .. } => allocs.contains(&id),
            Entity::Alloc { alloc, .. } => *alloc == id,
        }
    }

    fn is_task(&self, id: AllocId, name: Option<&TaskName>) -> bool {
        self.is_alloc(id)
            && match self {
                Entity::Alloc {
                    task: Some(task), ..
                } => name.is_none_or(|name| name == task),
                Entity::Alloc { task: None, .. } | Entity::Job { .. } => true,
            }
    }

    fn is_job(&self, key: &JobKey) -> bool {
        match self {
            Entity::Job { job, .. } => job == key,
            Entity::Alloc { .. } => false,
        }
    }

    /// Whether an input speaks of it.
    pub fn is_meant_by(&self, input: &Input) -> bool {
        match input {
            Input::Driver(key, _) => self.is_task(key.alloc, Some(&key.task)),
            Input::Hook(hook) => self.is_task(hook.alloc, hook.task.as_ref()),
            Input::Template(key, _) => self.is_task(key.alloc, Some(&key.task)),
            Input::Local(
                _,
                LocalInput::Register { job, .. } | LocalInput::TakeOver { job, .. },
            ) => self.belongs_to(&job.key()),
            Input::Local(
                _,
                LocalInput::Deregister { job, .. }
                | LocalInput::Evaluate { job }
                | LocalInput::Dispatch { job, .. },
            ) => self.belongs_to(job),
            Input::Operator(_, asked) => match asked {
                OperatorInput::StopAlloc { alloc }
                | OperatorInput::Collect { alloc }
                | OperatorInput::Promise { alloc }
                | OperatorInput::Delivered { alloc }
                | OperatorInput::Restart { alloc, .. } => self.is_alloc(*alloc),
                OperatorInput::Signal { alloc, task, .. } => self.is_task(*alloc, task.as_ref()),
            },
            Input::Local(
                _,
                LocalInput::Collect
                | LocalInput::PutVariable { .. }
                | LocalInput::DeleteVariable { .. },
            )
            | Input::Store(_)
            | Input::Node(_)
            | Input::Shutdown(_) => false,
        }
    }

    fn belongs_to(&self, key: &JobKey) -> bool {
        match self {
            Entity::Job { job, .. } | Entity::Alloc { job, .. } => job == key,
        }
    }

    /// Whether an effect is about it.
    pub fn is_touched_by(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Driver(_, key, _) | Effect::Tell(Told::Event(key, _)) => {
                self.is_task(key.alloc, Some(&key.task))
            }
            Effect::Hook(HookEffect::Run { alloc, task, .. }) => {
                self.is_task(*alloc, task.as_ref())
            }
            Effect::Store(StoreEffect::Commit(_, batch)) => batch.keys().any(|key| match key {
                Key::Job(job) => self.is_job(job),
                Key::Alloc(alloc) | Key::Collected(alloc) => self.is_task(*alloc, None),
                Key::Task(alloc, task) => self.is_task(*alloc, Some(task)),
                Key::Meta | Key::Eval(_) | Key::Deployment(_) | Key::Variable(_) => false,
            }),
            Effect::Hook(HookEffect::Cancel { .. })
            | Effect::Forget(..)
            | Effect::Node(_)
            | Effect::Reply(..)
            | Effect::Tell(Told::Index(_))
            | Effect::Stopped => false,
        }
    }

    /// Whether it is another in the second state than in the first.
    pub fn changed(&self, before: Option<&Agent>, after: Option<&Agent>) -> bool {
        let (before, after) = (before.map(Agent::view), after.map(Agent::view));
        let alloc = |id: AllocId| {
            before.and_then(|view| view.alloc(id)) != after.and_then(|view| view.alloc(id))
        };
        match self {
            Entity::Job { job, allocs } => {
                let of = |view: Option<_>| {
                    view.and_then(|view: drover_core::agent::View<'_>| view.job(job).cloned())
                };
                of(before) != of(after) || allocs.iter().copied().any(alloc)
            }
            Entity::Alloc {
                alloc: id,
                task: None,
                ..
            } => alloc(*id),
            Entity::Alloc {
                alloc: id,
                task: Some(task),
                ..
            } => {
                let of = |view: Option<drover_core::agent::View<'_>>| {
                    let alloc = view.and_then(|view| view.alloc(*id).cloned())?;
                    alloc.task(task).cloned()
                };
                of(before) != of(after)
            }
        }
    }
}

impl Known {
    fn suggestion(&self) -> String {
        let jobs: Vec<&str> = self.jobs.iter().map(|job| &*job.id).take(10).collect();
        match jobs.is_empty() {
            true => String::new(),
            false => format!("; jobs are {}", jobs.join(", ")),
        }
    }
}

fn shown((alloc, task): &(AllocId, Option<TaskName>)) -> String {
    match task {
        Some(task) => format!("{}/{task}", alloc.short()),
        None => alloc.to_string(),
    }
}
