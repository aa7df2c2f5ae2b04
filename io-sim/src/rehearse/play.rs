//! One run: the job is submitted, the trouble happens, and then the job is left alone until it is
//! whole.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use drover_core::agent::requests::{Register, Restart, RestartScope, StopAlloc};
use drover_core::config::Config;
use drover_core::ids::{AllocId, LaunchId};
use drover_core::model::alloc::ExitResult;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::Node;
use drover_core::model::volume::HostVolume;
use drover_core::time::Span;

use super::measure::Watcher;
use super::{Happening, Outcome, Plan};
use crate::check::{Verdict, Violation};
use crate::sim::{Sim, Stepped, node};
use crate::trace::{Column, Way};

/// Who is not whole so long after the trouble is late.
pub(super) const LATE: Span = Span::secs(300);
/// Who stays whole for so long has come to rest.
const STEADY: Span = Span::secs(900);
/// Who is not whole by then never will be: longer than any interval that people write.
const FOR_EVER: Span = Span::secs(8 * 24 * 3600);

/// The volumes that a job asks for: a rehearsal is not about whether a node has them.
fn volumes_for(job: &Job) -> BTreeMap<String, HostVolume> {
    let of_group = |group: &TaskGroup| {
        let copies = u32::try_from(group.wanted()).unwrap_or(0);
        let asked = group.volumes.values();
        let names = asked.flat_map(|it| (0..copies).map(|index| it.source_for(index).into_owned()));
        names.collect::<BTreeSet<String>>()
    };
    let names = job.task_groups.iter().flat_map(of_group);
    let volume = |name: String| {
        let volume = HostVolume {
            path: format!("/volumes/{name}"),
            name: name.clone(),
            ..HostVolume::default()
        };
        (name, volume)
    };
    names.map(volume).collect()
}

/// Plays it.
pub(super) fn play(job: &Job, plan: &Plan, seed: u64, with_story: bool) -> Outcome {
    let node = Node {
        dynamic_ports: (20_000, 32_000),
        host_volumes: volumes_for(job),
        ..node()
    };
    let mut config = Config::new(0, node, "/alloc");
    // What the job did is asked for at the end, days later.
    config.retention = None;
    let mut sim = Sim::with_config(seed, config);
    if with_story {
        sim.world.scene.trace.keep();
    }
    let mut run = Run {
        sim,
        watcher: Watcher::new(job),
        job,
        renewals: 0,
    };
    let verdict = catch_unwind(AssertUnwindSafe(|| run.all(plan)));
    let verdict = verdict.unwrap_or_else(|panic| {
        let text = (panic.downcast_ref::<String>().cloned())
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation::new("no_panic", text.unwrap_or_default()))
    });
    let Run {
        sim, mut watcher, ..
    } = run;
    let failed = core::mem::take(&mut watcher.failed);
    let unhealthy = core::mem::take(&mut watcher.unhealthy);
    let disorder = core::mem::take(&mut watcher.order.found);
    Outcome {
        seed,
        over: plan.over,
        groups: watcher.end(plan.over),
        failed,
        unhealthy,
        disorder: disorder.into_iter().collect(),
        broken: verdict
            .err()
            .map(|broken| (broken.invariant, broken.detail)),
        story: sim.world.scene.trace.events().to_vec(),
    }
}

struct Run<'a> {
    sim: Sim,
    watcher: Watcher<'a>,
    job: &'a Job,
    renewals: u32,
}

impl Run<'_> {
    fn all(&mut self, plan: &Plan) -> Verdict {
        self.sim
            .world
            .task_faults
            .fault_windows
            .clone_from(&plan.fault_windows);
        self.register();
        for (at, happening) in &plan.happenings {
            self.until(*at)?;
            self.happens(happening, plan)?;
        }
        self.until(plan.over)?;
        self.converge()?;
        self.until(Span(plan.over.0 + LATE.0))?;
        self.watcher.ask_why(&self.sim);
        self.settle(Span(plan.over.0 + FOR_EVER.0))
    }

    /// Lets time pass up to this moment since the beginning, watching.
    fn until(&mut self, at: Span) -> Verdict {
        loop {
            let left = at.0 - self.sim.world.scene.elapsed.0;
            if left < 0 {
                return Ok(());
            }
            let idle = self.sim.step(self.sim.world.scene.at + Span(left))? == Stepped::Idle;
            self.watcher.observe(&self.sim);
            if idle {
                return Ok(());
            }
        }
    }

    /// Nothing goes wrong from now on.
    fn converge(&mut self) -> Verdict {
        let at = self.sim.world.scene.elapsed;
        self.sim.world.scene.trace.write(at, Way::Fault, || {
            (Column::Agent, "the trouble is over".to_owned())
        });
        self.sim.world.scene.converging = true;
        self.sim.world.disk.full_until = None;
        if self.sim.agent().is_none() {
            self.sim.restart()?;
        }
        Ok(())
    }

    /// Until the job is whole and stays so, or until `limit`.
    fn settle(&mut self, limit: Span) -> Verdict {
        while self.sim.world.scene.elapsed < limit {
            if self.watcher.content() {
                let end = Span(self.sim.world.scene.elapsed.0 + STEADY.0);
                let mut steady = true;
                while steady && self.sim.world.scene.elapsed < end {
                    steady = self.step(end)? == Stepped::Done && self.watcher.content();
                }
                if self.watcher.content() && self.sim.world.scene.elapsed >= end {
                    return Ok(());
                }
            } else {
                self.step(limit)?;
            }
        }
        self.watcher.ask_why(&self.sim);
        Ok(())
    }

    fn step(&mut self, until: Span) -> Result<Stepped, Violation> {
        let left = Span((until.0 - self.sim.world.scene.elapsed.0).max(0));
        let stepped = self.sim.step(self.sim.world.scene.at + left)?;
        self.watcher.observe(&self.sim);
        Ok(stepped)
    }

    fn register(&mut self) {
        let mut job = self.job.clone();
        if self.renewals > 0 {
            let tasks = job.task_groups.iter_mut().flat_map(|g| &mut g.tasks);
            for task in tasks {
                let renewal = self.renewals.to_string();
                task.env.insert("RENEWAL".to_owned(), renewal);
            }
        }
        self.sim.ask(Register {
            job: Arc::new(job),
            expect_index: None,
            submission: None,
        });
    }

    fn happens(&mut self, happening: &Happening, plan: &Plan) -> Verdict {
        // Chance gets its say when the trouble begins, not before.
        if self.sim.world.scene.faults.kinds().next().is_none() {
            self.sim.world.scene.faults = plan.faults.clone();
        }
        let at = self.sim.world.scene.elapsed;
        self.sim
            .world
            .scene
            .trace
            .write(at, Way::Fault, || (Column::Agent, happening.to_string()));
        match happening {
            Happening::Ends {
                group,
                task,
                everywhere,
                code,
            } => self.ends(group, task, *everywhere, *code),
            Happening::AgentDown(pause) => self.sim.goes_down(false, *pause),
            Happening::Reboot(pause) => self.sim.goes_down(true, *pause),
            Happening::DiskFull(span) => {
                self.sim.world.disk.full_until = Some(Span(at.0 + span.0));
            }
            Happening::Restart => {
                if let Some(alloc) = self.latest() {
                    self.watcher.order.restarted.insert(alloc);
                    let tasks = RestartScope::Running;
                    self.sim.ask(Restart { alloc, tasks });
                }
            }
            Happening::StopAlloc => {
                if let Some(alloc) = self.latest() {
                    self.sim.ask(StopAlloc {
                        alloc,
                        no_shutdown_delay: false,
                    });
                }
            }
            Happening::Renew => {
                self.renewals += 1;
                self.register();
            }
        }
        self.watcher.observe(&self.sim);
        Ok(())
    }

    /// Processes of a task end, those of every copy or the first's.
    fn ends(&mut self, group: &str, task: &str, everywhere: bool, code: i32) {
        let living = self.sim.world.alive();
        let of_task = |launch: &LaunchId, alloc: AllocId| {
            let in_group = self.watcher.group_of(alloc) == Some(group);
            in_group.then_some(*launch)
        };
        let launches: Vec<LaunchId> = living
            .filter(|(_, process)| process.key.task.as_str() == task)
            .filter_map(|(launch, process)| of_task(launch, process.key.alloc))
            .take(if everywhere { usize::MAX } else { 1 })
            .collect();
        for launch in launches {
            self.sim.world.end(launch, ExitResult::code(code));
        }
    }

    /// The job's latest allocation that is not over.
    fn latest(&self) -> Option<AllocId> {
        let view = self.sim.view()?;
        let key = self.job.key();
        let allocs = view.allocs_of(&key);
        let live = allocs.filter(|alloc| !alloc.record().finished);
        let latest = live.max_by_key(|alloc| alloc.record().create_index)?;
        Some(latest.record().id)
    }
}
