//! Playing a script.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use drover_core::alloc::runner::AllocRunner;
use drover_core::config::Config;
use drover_core::ids::{AllocId, JobKey, TaskName};
use drover_core::input::{LocalInput, OperatorInput, RestartScope};
use drover_core::model::job::Job;
use drover_core::model::variable::{Items, VariableKey};
use drover_core::time::Span;

use super::{Act, Expect, Script, What};
use crate::check::{Verdict, Violation};
use crate::choice::Choices;
use crate::machine::listening;
use crate::sim::{Sim, Stepped, node};

/// What is kept of a run besides how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The story, and a number after each step.
    pub story: bool,
    /// What chance decided.
    pub choices: bool,
}

/// A run that is over.
#[derive(Debug)]
pub struct Ran {
    /// The world at its end.
    pub sim: Sim,
    /// Whether everything held.
    pub verdict: Verdict,
}

impl Script {
    /// Plays it: trouble for a while, then peace.
    pub fn run(&self, watch: Watch) -> Ran {
        let config = listening(Config::new(0, node(), "/alloc"));
        let mut sim = Sim::with_resources(self.seed, config, self.has);
        sim.world.choices = Choices::new(self.seed).with(&self.overrides);
        if watch.story {
            sim.world.trace.keep();
        }
        if watch.choices {
            sim.world.choices.keep_log();
        }
        sim.search(self.search);
        sim.world.faults = self.faults.clone();
        let verdict = catch_unwind(AssertUnwindSafe(|| self.play(&mut sim)));
        let verdict = verdict.unwrap_or_else(|panic| {
            let text = (panic.downcast_ref::<String>().cloned())
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Violation::new("no_panic", text.unwrap_or_default()))
        });
        Ran { sim, verdict }
    }

    fn play(&self, sim: &mut Sim) -> Verdict {
        let mut jobs: BTreeMap<&str, Job> = (self.jobs.iter())
            .map(|job| (job.id.as_str(), job.clone()))
            .collect();
        for act in &self.acts {
            for _ in 0..act.steps {
                if sim.step(sim.world.now().at)? == Stepped::Idle {
                    break;
                }
            }
            sim.run(act.pause)?;
            sim.act(act, &mut jobs)?;
        }
        sim.run(self.then)?;
        sim.peace()
    }
}

impl Sim {
    fn act(&mut self, act: &Act, jobs: &mut BTreeMap<&str, Job>) -> Verdict {
        match &act.what {
            What::Register { job, change } => {
                if let Some(job) = jobs.get_mut(job.as_str()) {
                    if let Some(change) = change {
                        change.make(job);
                    }
                    self.ask(LocalInput::Register {
                        job: Arc::new(job.clone()),
                        expect_index: None,
                    });
                }
            }
            What::TakeOver { job } => {
                if let Some(job) = jobs.get(job.as_str()) {
                    self.take_over(job);
                }
            }
            What::TakeOverOne { job } => {
                if let Some(job) = jobs.get(job.as_str()) {
                    self.take_over_some(job, 1);
                }
            }
            What::Dispatch { job, nth } => {
                self.dispatch(job, *nth);
            }
            What::Deregister { job, purge } => {
                let (job, purge) = (JobKey::local(job), *purge);
                self.ask(LocalInput::Deregister { job, purge });
            }
            What::Evaluate { job } => {
                let job = JobKey::local(job);
                self.ask(LocalInput::Evaluate { job });
            }
            What::Restart { job, all } => {
                let tasks = if *all {
                    RestartScope::All
                } else {
                    RestartScope::Running
                };
                if let Some(alloc) = self.one_of(job, None) {
                    self.operate(OperatorInput::Restart { alloc, tasks });
                }
            }
            What::RestartTask { job, nth } => {
                if let Some((alloc, task)) = self.task_of(job, *nth) {
                    let tasks = RestartScope::Task(task);
                    self.operate(OperatorInput::Restart { alloc, tasks });
                }
            }
            What::SignalTask { job, nth } => {
                if let Some((alloc, task)) = self.task_of(job, *nth) {
                    self.operate(OperatorInput::Signal {
                        alloc,
                        task: Some(task),
                        signal: "SIGHUP".to_owned(),
                    });
                }
            }
            What::StopAlloc { job, nth } => {
                if let Some(alloc) = self.one_of(job, *nth) {
                    self.operate(OperatorInput::StopAlloc { alloc });
                }
            }
            What::CollectAlloc { job, nth } => {
                if let Some(alloc) = self.one_of(job, Some(*nth)) {
                    self.operate(OperatorInput::Collect { alloc });
                }
            }
            What::HandOver { job } => {
                self.hand_over(job);
            }
            What::TransferComplete { job, nth } => {
                if let Some(alloc) = self.one_of(job, Some(*nth)) {
                    self.operate(OperatorInput::TransferComplete { alloc });
                }
            }
            What::Signal { job } => {
                if let Some(alloc) = self.one_of(job, None) {
                    self.operate(OperatorInput::Signal {
                        alloc,
                        task: None,
                        signal: "SIGHUP".to_owned(),
                    });
                }
            }
            What::Collect => {
                self.ask(LocalInput::Collect);
            }
            What::Driver { healthy } => self.driver(*healthy),
            What::Resize { has } => self.machine_has(*has),
            What::ChangeTemplate => self.a_template_changes(),
            What::PutVariable { value, expect } => {
                let items = BTreeMap::from([("key".to_owned(), value.to_string())]);
                let expect = self.expected(*expect);
                self.ask(LocalInput::PutVariable {
                    key: the_variable(),
                    items: Items::new(items).unwrap_or_default(),
                    expect,
                });
            }
            What::DeleteVariable { expect } => {
                let (key, expect) = (the_variable(), self.expected(*expect));
                self.ask(LocalInput::DeleteVariable { key, expect });
            }
            What::Shutdown { mode } => {
                self.shutdown(*mode);
                self.run(Span::secs(300))?;
                self.restart()?;
            }
            What::Replace => self.restart()?,
        }
        Ok(())
    }

    /// The index that somebody expects of the variable.
    fn expected(&self, expect: Expect) -> Option<u64> {
        match expect {
            Expect::Anything => None,
            Expect::Nothing => Some(0),
            Expect::WhatIsShown => {
                let shown = self.view()?.variables().get(&the_variable());
                Some(shown.map_or(0, |one| one.meta.modify_index))
            }
        }
    }

    /// The n-th task of the latest allocation of a job that is not over.
    fn task_of(&self, job: &str, nth: usize) -> Option<(AllocId, TaskName)> {
        let alloc = self.one_of(job, None)?;
        let tasks = self.view()?.alloc(alloc)?.tasks();
        let task = tasks.get(nth.checked_rem(tasks.len())?)?;
        Some((alloc, task.spec().key.task.clone()))
    }

    /// The n-th oldest allocation of a job, or the latest that is not over.
    fn one_of(&self, job: &str, nth: Option<usize>) -> Option<AllocId> {
        let view = self.view()?;
        let keys = self.keys_of(job);
        let mut allocs: Vec<&AllocRunner> =
            keys.iter().flat_map(|key| view.allocs_of(key)).collect();
        allocs.sort_by_key(|alloc| alloc.record().create_index);
        let found = match nth {
            Some(nth) if !allocs.is_empty() => allocs.get(nth % allocs.len()),
            Some(_) => None,
            None => (allocs.iter()).rfind(|alloc| !alloc.record().finished),
        };
        found.map(|alloc| alloc.record().id)
    }
}

/// The only variable of random worlds.
fn the_variable() -> VariableKey {
    VariableKey {
        namespace: "default".into(),
        path: "nomad/jobs".into(),
    }
}
