//! How jobs are taken in and placed, as somebody sets it while the agent runs.
//!
//! - **It is remembered** in the node's record, and goes before the configuration from then on, also in the next
//!   agent.
//! - **Jobs that wait are evaluated** when it changes: they may be allowed to preempt now.
//! - **What is there goes on.** Nothing that was preempted comes back sooner, and a task keeps the bound of its
//!   memory until it starts again.

use super::Agent;
use crate::effect::{Refusal, Reply};
use crate::model::scheduler::{SchedulerConfig, SchedulerRecord};
use crate::time::Now;

impl Agent {
    /// The settings as they are now.
    pub(super) fn scheduler_config(&self) -> SchedulerRecord {
        let set = self.node_life.record.scheduler;
        set.unwrap_or_else(|| SchedulerRecord {
            config: SchedulerConfig {
                preemption: self.config.preemption,
                ..SchedulerConfig::default()
            },
            ..SchedulerRecord::default()
        })
    }

    /// Other settings from now on. Answers with index 0 if they were changed since `expect`.
    pub(super) fn set_scheduler_config(
        &mut self,
        now: Now,
        config: SchedulerConfig,
        expect: Option<u64>,
    ) -> Reply {
        let before = self.node_life.record.scheduler;
        let known = self.scheduler_config();
        if expect.is_some_and(|expect| expect != known.modify_index) {
            return changed(0);
        }
        if before.is_some() && known.config == config {
            return changed(known.modify_index);
        }
        let index = self.edit_node(now, |node| {
            let index = node.modify_index;
            node.scheduler = Some(SchedulerRecord {
                config,
                create_index: before.map_or(index, |before| before.create_index),
                modify_index: index,
            });
        });
        self.follow_scheduler_config();
        self.local.mark_blocked();
        changed(index)
    }

    /// What others read of the configuration is what somebody set.
    pub(super) fn follow_scheduler_config(&mut self) {
        let set = self.scheduler_config().config;
        self.config.preemption = set.preemption;
        self.config.memory_oversubscription = set.memory_oversubscription;
    }

    /// Why no job is taken in now, if so.
    pub(super) fn registration_refusal(&self) -> Option<Refusal> {
        let rejects = self.scheduler_config().config.reject_job_registration;
        rejects.then(|| {
            Refusal::Forbidden(
                "no job is registered, changed, scaled or dispatched now: the scheduler's configuration rejects it \
                 (operator scheduler set-config -reject-job-registration=false)"
                    .to_owned(),
            )
        })
    }
}

fn changed(index: u64) -> Reply {
    Reply::NodeChanged {
        evals: Vec::new(),
        eval_index: 0,
        index,
    }
}
