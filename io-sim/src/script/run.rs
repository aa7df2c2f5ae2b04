//! Playing a script.

use std::panic::{AssertUnwindSafe, catch_unwind};

use drover_core::alloc::runner::AllocRunner;
use drover_core::config::Config;
use drover_core::ids::{AllocId, TaskName};

use super::{Jobs, Script};
use crate::check::{Verdict, Violation};
use crate::choice::Choices;
use crate::engine::with_engine;
use crate::machine::listening;
use crate::sim::{Sim, Stepped, client_of_cluster, node};

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
    /// Plays it: trouble for a while, then convergence.
    pub fn run(&self, watch: Watch) -> Ran {
        let config = self
            .settings
            .set(listening(Config::new(0, node(), "/alloc")));
        let config = match self.engine {
            true => with_engine(config),
            false => config,
        };
        let config = match self.cluster {
            true => client_of_cluster(config),
            false => config,
        };
        let mut sim = Sim::with_resources(self.seed, config, self.has);
        sim.world.scene.choices = Choices::new(self.seed).with(&self.overrides);
        if watch.story {
            sim.world.scene.trace.keep();
        }
        if watch.choices {
            sim.world.scene.choices.keep_log();
        }
        sim.search(self.search);
        if let Some(away) = self.settings.away {
            sim.longest_absence = away;
        }
        sim.world.scene.faults = self.faults.clone();
        let verdict = catch_unwind(AssertUnwindSafe(|| self.play(&mut sim)));
        let verdict = verdict.unwrap_or_else(|panic| {
            let text = (panic.downcast_ref::<String>().cloned())
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Violation::new("no_panic", text.unwrap_or_default()))
        });
        Ran { sim, verdict }
    }

    fn play(&self, sim: &mut Sim) -> Verdict {
        let mut jobs: Jobs<'_> = (self.jobs.iter())
            .map(|job| (job.id.as_str(), job.clone()))
            .collect();
        for act in &self.acts {
            for _ in 0..act.steps {
                if sim.step(sim.world.now().at)? == Stepped::Idle {
                    break;
                }
            }
            sim.run(act.pause)?;
            act.what.get().act(sim, &mut jobs)?;
        }
        sim.run(self.then)?;
        sim.converge()
    }
}

impl Sim {
    /// The n-th task of the latest allocation of a job that is not over.
    pub(crate) fn task_of(&self, job: &str, nth: usize) -> Option<(AllocId, TaskName)> {
        let alloc = self.one_of(job, None)?;
        let tasks = self.view()?.alloc(alloc)?.tasks();
        let task = tasks.get(nth.checked_rem(tasks.len())?)?;
        Some((alloc, task.spec().key.task.clone()))
    }

    /// The n-th oldest allocation of a job, or the latest that is not over.
    pub(crate) fn one_of(&self, job: &str, nth: Option<usize>) -> Option<AllocId> {
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
