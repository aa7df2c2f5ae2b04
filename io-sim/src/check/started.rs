//! What tasks are started with, and what those that live were started with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::job::Job;

use super::{Checker, Property, Verdict, policy};
use crate::templates::variable;
use crate::world::World;

/// What launches began with.
#[derive(Clone, Debug, Default)]
pub(super) struct Started {
    with: BTreeMap<LaunchId, Arc<TaskConfig>>,
}

/// The first variable that a task of a job does not have as the job wants it; none also if it is not a task of that
/// job.
fn untold(job: &Job, group: &str, task: &str, env: &BTreeMap<String, String>) -> Option<String> {
    let group = policy::group(job, group)?;
    let task = policy::task(group, task)?;
    let mut meta = BTreeMap::new();
    // What a dispatch brings has a property of its own.
    if !job.is_child() && job.parameterized_job.is_none() {
        meta.extend(&job.meta);
    }
    meta.extend(&group.meta);
    meta.extend(&task.meta);
    let meta = meta.into_iter();
    let meta = meta.map(|(key, value)| (format!("NOMAD_META_{key}"), value));
    // What a template gives goes before, and has a property of its own.
    let of_templates: BTreeSet<String> = (0..task.templates.len()).map(variable).collect();
    let own = task.env.iter().map(|(key, value)| (key.clone(), value));
    let own = own.filter(|(key, _)| !of_templates.contains(key));
    let mut all = own.chain(meta).filter(|(_, value)| !value.contains("${"));
    all.find(|(key, value)| env.get(key) != Some(value))
        .map(|(key, _)| key)
}

impl Checker {
    /// A task starts with the variables, the share of the processor, the memory and the logs of its job file, and on the cores that
    /// are its own.
    pub(super) fn start_is_that_of_job_file(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
        launch: LaunchId,
        config: &Arc<TaskConfig>,
    ) -> Verdict {
        self.started.with.insert(launch, config.clone());
        let (group, name) = (alloc.record().group.as_str(), key.task.as_str());
        let cores = alloc.record().cores.iter();
        let cores = cores.filter(|cores| cores.task == name);
        let cores: BTreeSet<u32> = cores.flat_map(|cores| cores.ids.clone()).collect();
        let memory = (config.memory_limit, config.memory_reserved);
        // It may have been started before the last change, and only have left now.
        let says_so = |file: &Job| {
            let task = policy::group(file, group).and_then(|group| policy::task(group, name));
            task.is_some_and(|task| {
                let shares = u64::try_from(task.resources.cpu).unwrap_or(0);
                untold(file, group, name, &config.env).is_none()
                    && config.cpu_shares == shares
                    && self.scheduler.allows_memory(task, memory)
                    && config.logs == task.log_config.unwrap_or_default()
            })
        };
        let mut files = self.files.all(alloc).peekable();
        let holds = files.peek().is_none() || files.any(|file| says_so(file));
        drop(files);
        let on_its_cores = config.cores == cores;
        self.holds(
            Property::StartIsThatOfJobFile,
            holds && on_its_cores,
            || {
                let (given, env) = (&config.cores, &config.env);
                format!("{key:?} starts on {given:?} of {cores:?}, memory {memory:?}, with {env:?}")
            },
        )
    }

    /// A task that lives was started with the variables of the version that its allocation has: that of a version which
    /// changes them is started anew.
    pub(super) fn live_task_has_env_of_its_version(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        for (launch, process) in world.alive() {
            let (alloc, name) = (process.key.alloc, process.key.task.as_str());
            let alloc = agent.view().alloc(alloc).filter(|alloc| !alloc.is_ending());
            let (Some(alloc), Some(config)) = (alloc, self.started.with.get(launch)) else {
                continue;
            };
            let group = alloc.record().group.as_str();
            let untold = untold(alloc.job(), group, name, &config.env);
            let version = alloc.record().job_version;
            self.holds(
                Property::LiveTaskHasEnvOfItsVersion,
                untold.is_none(),
                || format!("{} lacks {untold:?} of version {version}", process.name),
            )?;
        }
        Ok(())
    }
}
