//! Letting time pass, up to the time after all faults, in which everything must converge.

use drover_core::agent::{Agent, Wait};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::time::Span;

use super::{Sim, Stepped};
use crate::check::agreement::disagreement;
use crate::check::{Verdict, ensure};

/// How long batch jobs may go on after everything else is at rest.
const LONGEST_QUEUE: Span = Span::secs(12 * 3600);

impl Sim {
    /// Lets `span` pass.
    ///
    /// # Errors
    /// What is violated meanwhile.
    pub fn run(&mut self, span: Span) -> Verdict {
        // A reboot sets the boot clock back, so time is counted from the beginning.
        let end = self.world.scene.elapsed.0 + span.0;
        while self.world.scene.elapsed.0 < end {
            let left = Span(end - self.world.scene.elapsed.0);
            if self.step(self.world.scene.at + left)? == Stepped::Idle {
                break;
            }
        }
        Ok(())
    }

    /// Goes on until `what` holds.
    ///
    /// # Errors
    /// What is violated meanwhile, or that it does not hold within `limit`.
    pub fn until(&mut self, limit: Span, what: impl Fn(&Sim) -> bool) -> Verdict {
        let end = self.world.scene.elapsed.0 + limit.0;
        while !what(self) {
            let left = Span((end - self.world.scene.elapsed.0).max(0));
            let stepped = self.step(self.world.scene.at + left)?;
            if stepped == Stepped::Idle || self.world.scene.elapsed.0 > end {
                let holds = what(self);
                let pending = self.agent.as_ref().map(Agent::pending);
                return ensure(holds, "expected_outcome_happens", || format!("{pending:?}"));
            }
        }
        Ok(())
    }

    /// The trouble is over: everything converges, and a restart of the agent changes nothing.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn converge(&mut self) -> Verdict {
        self.run_until_quiescent()?;
        self.tape.plays_the_same(self.is_deep())?;
        let renewed = self.renews();
        let before = self.living_without_clock();
        let commits = self.changes_on_disk();
        let leased = self.leased_disks();
        self.restart()?;
        self.run_until_quiescent()?;
        let after = self.living_without_clock();
        ensure(
            before == after,
            "agent_restart_at_rest_changes_nothing",
            || format!("{before:?} {after:?}"),
        )?;
        let wrote = self.changes_on_disk() - commits;
        // Each network is found by itself, and what its tasks then say again is saved by itself. What another node
        // may take over goes when its time is over, and its directory after it.
        let most = 3 + self.world.networks.owners().count() + 4 * leased;
        let few = usize::try_from(wrote).is_ok_and(|wrote| wrote <= most);
        ensure(
            few || renewed || self.renews(),
            "agent_restart_at_rest_changes_nothing",
            || format!("{wrote} commits"),
        )
    }

    /// Commits that do more than forget what became old, which only takes time.
    fn changes_on_disk(&self) -> u64 {
        self.world.disk.commits - self.world.disk.forgetting
    }

    /// How many disks are kept for other nodes.
    fn leased_disks(&self) -> usize {
        let Some(view) = self.view() else {
            return 0;
        };
        let now = self.world.now().wall;
        let leased = |alloc: &&AllocRunner| {
            let disk = view.disk_of(alloc.record());
            disk.is_some_and(|disk| disk.is_leased(alloc.record().id, now))
        };
        view.allocs().filter(leased).count()
    }

    /// Whether anything has tokens that are made anew after a while.
    fn renews(&self) -> bool {
        let agent = self.agent.as_ref();
        agent.is_some_and(|agent| {
            let mut allocs = agent.view().allocs();
            allocs.any(|alloc| self.world.tokens.are_renewed_in(alloc))
        })
    }

    /// Whether allocations of batch jobs are on their way: many that queue for a small node, each
    /// restarted and rescheduled until it fails for good, take longer than anything else.
    fn is_batch_at_work(&self) -> bool {
        let Some(agent) = &self.agent else {
            return false;
        };
        let view = agent.view();
        let is_batch = |id: AllocId| {
            let alloc = view.alloc(id);
            alloc.is_some_and(|alloc| alloc.job().job_type.runs_to_completion())
        };
        let mut alive = self.world.alive();
        let ends = alive.any(|(_, process)| {
            let ends = process.config.command.run_for < LONGEST_QUEUE;
            process.key.task.as_str() == "main" && ends && is_batch(process.key.alloc)
        });
        let awaits = |wait: &Wait| match wait {
            Wait::Alloc(id, _) | Wait::Task(TaskKey { alloc: id, .. }, _) => is_batch(*id),
            Wait::Job(..) | Wait::Node | Wait::Drain | Wait::Servers(_) | Wait::Store => false,
        };
        let pending = agent.pending();
        ends || pending.awaiting.iter().any(|one| awaits(&one.wait))
    }

    /// Whether there are periodic jobs.
    fn has_launches(&self) -> bool {
        let mut jobs = self.view().into_iter().flat_map(|view| view.jobs());
        jobs.any(|job| job.job.schedule().is_some())
    }

    /// Whether a periodic job is launched soon: nothing is at rest before.
    fn is_launch_to_come(&self) -> bool {
        let Some(view) = self.view() else {
            return false;
        };
        let soon = self.world.now().wall + LONGEST_QUEUE;
        let launches = view.jobs().filter_map(|job| view.periodic(&job.job.key()));
        let mut next = launches.filter_map(|it| it.next);
        next.any(|at| at < soon)
    }

    /// Whether node and servers know different things.
    fn disagrees(&self) -> bool {
        let (servers, agent) = (&self.world.link.servers, &self.agent);
        let both = servers.as_ref().zip(agent.as_ref());
        both.is_some_and(|(servers, agent)| disagreement(&self.world, servers, agent).is_some())
    }

    /// What lives and is left alone by the clock: who gets a new token may be started again for it.
    fn living_without_clock(&self) -> Vec<LaunchId> {
        let alive = self.world.alive();
        let alone = alive.filter(|(_, process)| !self.world.tokens.are_renewed_of(&process.key));
        alone.map(|(launch, _)| *launch).collect()
    }

    /// The trouble is over.
    ///
    /// # Errors
    /// What is violated by a new agent, where there is none.
    pub fn end_trouble(&mut self) -> Verdict {
        self.world.scene.converging = true;
        self.world.disk.full = false;
        self.world.disk.full_until = None;
        // One that is ending may go on with that for an hour, where the disk answers late.
        let ends = self.view().is_none_or(|view| view.shutdown().is_some());
        if ends || self.stopped {
            self.restart()?;
        }
        self.world.engine_returns();
        self.world.machine_is_whole();
        Ok(())
    }

    fn set_calm(&mut self, is_calm: bool) {
        if let Some(servers) = &mut self.world.link.servers {
            servers.set_calm(is_calm);
        }
    }

    /// The trouble is over: within a bounded time everything converges.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn run_until_quiescent(&mut self) -> Verdict {
        self.end_trouble()?;
        self.run(Span::secs(600))?;
        self.checker.trouble_ended(&self.world);
        self.set_calm(true);
        self.run(Span::secs(2 * 3600 - 600))?;
        let late = self.world.scene.elapsed.0 + LONGEST_QUEUE.0;
        while (self.is_batch_at_work() || self.is_launch_to_come())
            && self.world.scene.elapsed.0 < late
        {
            self.run(Span::secs(600))?;
        }
        if self.has_launches() {
            // Their directories are collected when the disk is looked at again.
            self.run(Span::secs(2 * 3600))?;
        }
        if !self.world.remotes.is_empty() {
            // A disk that hangs on its way is given up late.
            self.run(self.world.scene.timeouts.disk)?;
        }
        if self.renews() && self.disagrees() {
            // Servers are told a moment later of a token that is new just now.
            self.run(Span::secs(10))?;
        }
        self.set_calm(false);
        match &self.agent {
            Some(agent) => {
                for (request, (life, input)) in &self.requests {
                    let open =
                        *life == self.world.scene.life && self.checker.reply(*request).is_none();
                    ensure(!open, "request_gets_one_reply", || format!("{input:?}"))?;
                }
                self.checker.rest(&self.world, agent)
            }
            None => Ok(()),
        }
    }
}
