//! What operators are told: of the disk by the core itself, of all else by what commits say.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::notice::{Event, Notice};
use drover_core::notice::Watch;
use drover_core::store::Batch;

use super::{Checker, Property, Verdict};
use crate::world::World;

/// Whoever reads the commits for operators.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    watch: Watch,
}

impl Notices {
    /// What an earlier agent told, the next one does not tell again.
    pub(super) fn agent_restored(&mut self, world: &World) {
        self.watch = Watch::restored(&world.disk.saved()).0;
    }
}

impl Checker {
    /// Looks at what a commit tells.
    pub(super) fn notices_of_commit(&mut self, agent: &Agent, batch: &Batch) -> Verdict {
        let notices = self.notices.watch.on_commit(agent.view(), batch);
        let dead = notices.iter().filter(|it| it.event == Event::JobDead);
        for notice in dead {
            self.notice_of_dead_job_is_true(agent, notice)?;
        }
        Ok(())
    }

    /// Of a dead job operators are told how the last of its allocations ended, unless somebody stopped it.
    fn notice_of_dead_job_is_true(&mut self, agent: &Agent, notice: &Notice) -> Verdict {
        let view = agent.view();
        let job = notice.subject.job.as_ref().and_then(|key| view.job(key));
        let Some(job) = job else {
            return self.holds(Property::NoticeOfDeadJobIsTrue, false, || {
                format!("there is no such job: {notice:?}")
            });
        };
        let allocs = view.allocs_of(&job.job.key()).map(AllocRunner::record);
        let last = allocs.max_by_key(|alloc| alloc.create_index);
        let failed = last.is_some_and(|alloc| alloc.status == ClientStatus::Failed);
        let word = match (job.job.stop, failed) {
            (true, _) => "stopped",
            (false, true) => "failed",
            (false, false) => "complete",
        };
        let holds = notice.reason.contains(word) && notice.text.contains(&*job.job.id);
        self.holds(Property::NoticeOfDeadJobIsTrue, holds, || {
            format!("{:?}, and it is {word}", notice.text)
        })
    }

    /// Operators are told once that the disk fills up, and once that it is over, however the looks between went.
    pub(super) fn disk_pressure_is_told_once(&mut self, notice: &Notice) -> Verdict {
        let begins = match notice.event {
            Event::DiskPressure => true,
            Event::DiskPressureOver => false,
            _ => return Ok(()),
        };
        let before = core::mem::replace(&mut self.disk_pressure_told, begins);
        self.holds(Property::DiskPressureIsToldOnce, before != begins, || {
            format!("{} once more", notice.event)
        })
    }
}
