//! From the open gate to the start: prestart hooks, the launch id, and what the driver is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::destroyer::Destroyer;
use super::environment::{self, EnvInput, PortBinding};
use super::restart::Ending;
use super::runner::{Phase, Scope, TaskRunner};
use super::templates;
use crate::claims::resources::ranges;
use crate::config::{Config, Patience};
use crate::cx::Cx;
use crate::driver::config::schema_for;
use crate::driver::schema;
use crate::effect::{DriverEffect, HookEffect, HookWork, TaskConfig};
use crate::hooks::{Begun, OnError, Pipeline, Progress};
use crate::ids::{LaunchId, Run};
use crate::input::HookOutput;
use crate::interpolate::{self, Names};
use crate::model::event::{EventType, TaskEvent};
use crate::model::task::{Resources, Task};
use crate::op::{Failure, Op};
use crate::paths::destination;
use crate::paths::place::Place;
use crate::store::record::{AllocRecord, AssignedPort, Launch};
use crate::task::reservation;
use crate::time::Span;

/// The hooks of a task, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskHook {
    /// The driver's configuration must fit the driver.
    Validate,
    /// The task's directory.
    TaskDir,
    /// Tokens by which the task proves who it is.
    Identities,
    /// What a dispatch brought.
    DispatchPayload,
    /// Files that are fetched.
    Artifacts,
    /// What the task needs in order to use its devices.
    Devices,
    /// Files and variables that are rendered.
    Templates,
}

impl TaskHook {
    /// The name that events, records and metrics carry.
    pub fn name(self) -> &'static str {
        match self {
            TaskHook::Validate => "validate",
            TaskHook::TaskDir => "task_dir",
            TaskHook::Identities => "identity",
            TaskHook::DispatchPayload => "dispatch_payload",
            TaskHook::Artifacts => "artifacts",
            TaskHook::Devices => "devices",
            TaskHook::Templates => "template",
        }
    }

    /// Whether it runs once in a task's life, or before every start.
    fn once(self) -> bool {
        match self {
            TaskHook::Validate | TaskHook::TaskDir | TaskHook::Identities | TaskHook::Templates => {
                false
            }
            TaskHook::DispatchPayload | TaskHook::Artifacts | TaskHook::Devices => true,
        }
    }

    /// How long its work may take.
    fn patience(self, patience: &Patience) -> Span {
        match self {
            TaskHook::Validate
            | TaskHook::TaskDir
            | TaskHook::Identities
            | TaskHook::DispatchPayload
            | TaskHook::Devices
            | TaskHook::Templates => patience.hook,
            TaskHook::Artifacts => patience.artifacts,
        }
    }
}

/// The longest message of a hook that people are told, in letters.
const MAX_MESSAGE: usize = 500;

/// What happens before each start, in order.
pub const PRESTART: &[TaskHook] = &[
    TaskHook::Validate,
    TaskHook::TaskDir,
    TaskHook::Identities,
    TaskHook::DispatchPayload,
    TaskHook::Artifacts,
    TaskHook::Devices,
    TaskHook::Templates,
];

impl TaskRunner {
    pub(super) fn prepare(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        self.render_anew(cx);
        self.phase = Phase::Preparing(Pipeline::new(OnError::Stop));
        self.go_on_preparing(cx, scope);
    }

    pub(super) fn go_on_preparing(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        let Phase::Preparing(pipeline) = &mut self.phase else {
            return;
        };
        let mut pipeline = pipeline.clone();
        if self.kill.is_some() {
            if pipeline.awaited().is_none() {
                self.die(cx);
            }
            return;
        }
        let progress = pipeline.advance(PRESTART, |hook| self.begin_hook(cx, scope, hook));
        match progress {
            Progress::Pending => self.phase = Phase::Preparing(pipeline),
            Progress::Finished(_) if scope.gate_open => self.launch(cx, scope),
            // Its turn is over for now: its group ends, or begins again.
            Progress::Finished(_) => self.phase = Phase::Waiting,
            Progress::Failed(hook, failure) => self.preparing_failed(cx, hook, failure),
        }
    }

    fn begin_hook(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>, hook: TaskHook) -> Begun {
        let once = match hook {
            TaskHook::TaskDir => !cx.config.secrets_in_memory,
            TaskHook::Validate
            | TaskHook::Identities
            | TaskHook::DispatchPayload
            | TaskHook::Artifacts
            | TaskHook::Devices
            | TaskHook::Templates => hook.once(),
        };
        if once && self.is_done(hook) && !self.is_lost(cx, scope, hook) {
            return Begun::Done;
        }
        match hook {
            TaskHook::Validate => match self.config_problem() {
                None => Begun::Done,
                Some(problem) => Begun::Failed(Failure::fatal(problem)),
            },
            TaskHook::TaskDir => {
                let made = self.is_done(hook);
                if !made {
                    let words = "Building Task Directory";
                    let event = TaskEvent::new(EventType::TaskSetup, cx.now.wall, words);
                    self.push(cx, event.detail("message", words));
                }
                let task = self.spec.task();
                let work = HookWork::BuildTaskDir {
                    user: task.user.clone(),
                    secrets_mb: u64::try_from(task.resources.secrets_mb).unwrap_or(0),
                    made,
                };
                self.hook_work(cx, hook, work)
            }
            TaskHook::Identities => self.issue_identities(cx),
            TaskHook::DispatchPayload => match self.payload() {
                None => Begun::Done,
                Some(Ok(work)) => self.hook_work(cx, hook, work),
                Some(Err(why)) => Begun::Failed(Failure::fatal(why)),
            },
            TaskHook::Artifacts => match self.artifacts(cx, scope) {
                None => Begun::Done,
                Some(work) => {
                    let message = "Client is downloading artifacts";
                    self.event(cx, EventType::DownloadingArtifacts, message);
                    self.hook_work(cx, hook, work)
                }
            },
            TaskHook::Devices => {
                let task = self.spec.task().name.as_str();
                let of_alloc = scope.alloc.devices.iter();
                let devices: Vec<_> = of_alloc.filter(|one| one.task == task).cloned().collect();
                if devices.is_empty() {
                    return Begun::Done;
                }
                self.hook_work(cx, hook, HookWork::Reserve { devices })
            }
            TaskHook::Templates => self.render_templates(cx, scope),
        }
    }

    fn is_done(&self, hook: TaskHook) -> bool {
        self.record.hooks_done.contains_key(hook.name())
    }

    /// Whether what this hook did once is lost: what was fetched into secrets that are gone.
    fn is_lost(&self, cx: &Cx<'_>, scope: Scope<'_>, hook: TaskHook) -> bool {
        if hook != TaskHook::Artifacts || self.record.secrets == self.secrets {
            return false;
        }
        let Some(HookWork::FetchArtifacts {
            artifacts, root, ..
        }) = self.artifacts(cx, scope)
        else {
            return false;
        };
        let task = self.spec.key.task.as_str();
        let secrets = format!("{task}/secrets");
        artifacts.iter().any(|one| {
            let place = destination::place(&one.relative_dest, task, &root);
            let rest = place.as_ref().ok().and_then(|it| it.strip_prefix(&secrets));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    pub(super) fn hook_work(&self, cx: &mut Cx<'_>, hook: TaskHook, work: HookWork) -> Begun {
        let awaited = cx.awaited(hook.patience(&cx.config.patience));
        cx.send(crate::effect::Effect::Hook(HookEffect::Run {
            op: awaited.op,
            alloc: self.spec.key.alloc,
            task: Some(self.spec.key.task.clone()),
            work,
        }));
        Begun::Working(awaited)
    }

    /// What a dispatch brought, and the file for it; none if there is nothing, or nobody wants it.
    fn payload(&self) -> Option<Result<HookWork, String>> {
        let (job, task) = (self.spec.job(), self.spec.task());
        let wanted = task.dispatch_payload.as_ref();
        let wanted = wanted.filter(|_| job.dispatched && !job.payload.is_empty())?;
        let work = |file| HookWork::WritePayload {
            file,
            payload: job.payload.clone(),
        };
        Some(Place::in_local(&wanted.file, &task.name).map(work))
    }

    /// What is to be fetched, with all references replaced; none if there is nothing.
    fn artifacts(&self, cx: &Cx<'_>, scope: Scope<'_>) -> Option<HookWork> {
        let task = self.spec.task();
        if task.artifacts.is_empty() {
            return None;
        }
        let env = self.environment(cx, scope, &[TaskHook::Devices]);
        let names = Names {
            env: &env,
            node: &cx.config.node,
        };
        let artifacts = task.artifacts.iter();
        Some(HookWork::FetchArtifacts {
            artifacts: artifacts
                .map(|one| interpolate::interpolate_artifact(one, &names))
                .collect(),
            root: alloc_root(cx, scope),
            user: task.user.clone(),
        })
    }

    /// What a hook gave, kept for every start.
    ///
    /// # Errors
    /// It gave what cannot be.
    pub(super) fn hook_done(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        given: HookOutput,
    ) -> Result<(), Failure> {
        let Phase::Preparing(pipeline) = &self.phase else {
            return Ok(());
        };
        let Some(hook) = pipeline.current(PRESTART) else {
            return Ok(());
        };
        match hook {
            TaskHook::Templates => {
                templates::check(&given).map_err(Failure::fatal)?;
                self.templates_rendered(op, &given);
            }
            TaskHook::Validate
            | TaskHook::TaskDir
            | TaskHook::Identities
            | TaskHook::DispatchPayload
            | TaskHook::Artifacts
            | TaskHook::Devices => {
                reservation::check(&given).map_err(Failure::fatal)?;
            }
        }
        if !given.message.is_empty() {
            let words: String = given.message.chars().take(MAX_MESSAGE).collect();
            let event = TaskEvent::new(EventType::HookMessage, cx.now.wall, &words);
            self.push(cx, event.detail("message", &words));
        }
        match hook {
            TaskHook::TaskDir => self.secrets = given.secrets,
            TaskHook::Identities => self.identities_issued(cx),
            TaskHook::Artifacts if self.record.secrets != self.secrets => {
                let secrets = self.secrets.clone();
                self.edit().secrets = secrets;
            }
            TaskHook::Artifacts
            | TaskHook::Validate
            | TaskHook::DispatchPayload
            | TaskHook::Devices
            | TaskHook::Templates => {}
        }
        if hook.once()
            || (hook == TaskHook::TaskDir && !self.is_done(hook))
            || !given.env.is_empty()
            || !given.mounts.is_empty()
            || !given.nodes.is_empty()
            || !given.rendered.is_empty()
        {
            let record = self.edit();
            record.reserved.mounts.extend(given.mounts);
            record.reserved.nodes.extend(given.nodes);
            record.hooks_done.insert(hook.name().to_owned(), given.env);
            self.save(cx);
        }
        Ok(())
    }

    /// What is wrong with the driver's configuration as it stands in the job. Drivers without a
    /// known schema check it themselves.
    fn config_problem(&self) -> Option<String> {
        let task = self.spec.task();
        let problems = schema::validate(schema_for(&task.driver)?, &task.config);
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        if texts.is_empty() {
            None
        } else {
            Some(texts.join("; "))
        }
    }

    fn preparing_failed(&mut self, cx: &mut Cx<'_>, hook: TaskHook, failure: Failure) {
        let (kind, key) = match hook {
            TaskHook::Validate => (EventType::FailedValidation, "validation_error"),
            TaskHook::Artifacts => (EventType::FailedArtifactDownload, "download_error"),
            TaskHook::TaskDir
            | TaskHook::Identities
            | TaskHook::DispatchPayload
            | TaskHook::Devices
            | TaskHook::Templates => (EventType::HookFailed, "message"),
        };
        let message = match hook {
            TaskHook::Validate | TaskHook::Artifacts => failure.message.clone(),
            TaskHook::TaskDir
            | TaskHook::Identities
            | TaskHook::DispatchPayload
            | TaskHook::Devices
            | TaskHook::Templates => {
                format!("{}: {}", hook.name(), failure.message)
            }
        };
        let event = TaskEvent::new(kind, cx.now.wall, &message).detail(key, &message);
        self.push(cx, event);
        self.follow(
            cx,
            Ending::StartFailed {
                recoverable: failure.recoverable,
            },
        );
    }

    /// Decides the launch id, remembers it, and only then asks the driver.
    fn launch(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        let run = Run(self.record.runs.0.saturating_add(1));
        let config = match self.task_config(cx, scope, run) {
            Ok(config) => Arc::new(config),
            Err(message) => {
                let failure = Failure::fatal(message);
                return self.preparing_failed(cx, TaskHook::Validate, failure);
            }
        };
        let id = cx.launch_id();
        self.start_with_templates();
        let record = self.edit();
        record.runs = run;
        record.paused_until = None;
        record.launch = Some(Launch {
            id,
            run,
            ..Launch::default()
        });
        self.save(cx);
        let awaited = cx.awaited(cx.config.patience.start);
        let start = DriverEffect::Start {
            op: awaited.op,
            launch: id,
            config,
        };
        cx.drive_after_save(&self.spec.driver, &self.spec.key, start);
        self.phase = Phase::Starting(awaited);
    }

    pub(super) fn ask_to_recover(&mut self, cx: &mut Cx<'_>, launch: LaunchId) -> Phase {
        let awaited = cx.awaited(cx.config.patience.recover);
        let logs = self.spec.task().log_config.unwrap_or_default();
        let effect = DriverEffect::Recover {
            op: awaited.op,
            launch,
            logs,
        };
        cx.drive(&self.spec.driver, &self.spec.key, effect);
        Phase::Recovering(awaited)
    }

    /// The driver could not start the launch. It may have run nevertheless, so it is destroyed
    /// before anything else.
    pub(super) fn start_failed(&mut self, cx: &mut Cx<'_>, recoverable: bool) {
        if let Some(launch) = &mut self.edit().launch {
            launch.start_failed = Some(recoverable);
        }
        self.save(cx);
        self.phase = Phase::Cleaning(Destroyer::default());
    }

    /// What the driver needs for a start of this number, or for what runs beside it.
    pub(super) fn task_config(
        &self,
        cx: &Cx<'_>,
        scope: Scope<'_>,
        run: Run,
    ) -> Result<TaskConfig, String> {
        let (job, group, task) = (self.spec.job(), self.spec.group(), self.spec.task());
        let env = self.environment(cx, scope, PRESTART);
        let names = Names {
            env: &env,
            node: &cx.config.node,
        };
        let config = interpolate::interpolate_config(&task.config, &names).map_err(join)?;
        if let Some(schema) = schema_for(&task.driver) {
            let problems = schema::validate_resolved(schema, &config);
            if !problems.is_empty() {
                return Err(join(problems));
            }
        }
        let (memory_limit, memory_reserved) = memory(&task.resources);
        Ok(TaskConfig {
            run,
            job: job.id.clone(),
            group: group.name.clone(),
            config,
            env,
            user: task.user.clone(),
            cpu_shares: u64::try_from(task.resources.cpu).unwrap_or(0),
            memory_limit,
            memory_reserved,
            logs: task.log_config.unwrap_or_default(),
            reserved: self.record.reserved.clone(),
            device_env: (self.record.hooks_done.get(TaskHook::Devices.name()))
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// The task's variables, with those that these hooks gave.
    pub(super) fn environment(
        &self,
        cx: &Cx<'_>,
        scope: Scope<'_>,
        hooks: &[TaskHook],
    ) -> BTreeMap<String, String> {
        self.environment_in(cx.config, scope.alloc, self.spec.task(), hooks)
    }

    /// What the task's services may refer to: not what templates gave, of which secrets are made
    /// and which may themselves be made of services.
    pub(crate) fn environment_of_services(
        &self,
        config: &Config,
        alloc: &AllocRecord,
    ) -> BTreeMap<String, String> {
        self.environment_in(config, alloc, self.spec.task(), &[TaskHook::Devices])
    }

    /// What the services of the group may refer to: what all tasks of it have in common.
    pub(crate) fn environment_of_group(
        &self,
        config: &Config,
        alloc: &AllocRecord,
    ) -> BTreeMap<String, String> {
        let mut env = self.environment_in(config, alloc, &Task::default(), &[]);
        for of_a_task in [
            "NOMAD_TASK_NAME",
            "NOMAD_TASK_DIR",
            "NOMAD_SECRETS_DIR",
            "NOMAD_CPU_LIMIT",
            "NOMAD_MEMORY_LIMIT",
        ] {
            env.remove(of_a_task);
        }
        env
    }

    fn environment_in(
        &self,
        config: &Config,
        alloc: &AllocRecord,
        task: &Task,
        hooks: &[TaskHook],
    ) -> BTreeMap<String, String> {
        let root = format!("{}/{}", config.alloc_root, alloc.id);
        let of_task = alloc.cores.iter().filter(|cores| cores.task == task.name);
        let cores = ranges(of_task.flat_map(|it| it.ids.iter().copied()));
        let ports: Vec<PortBinding> = alloc.ports.iter().map(binding).collect();
        let of_hooks = |hook: &TaskHook| self.record.hooks_done.get(hook.name());
        let hook_env: Vec<(String, String)> = hooks
            .iter()
            .filter_map(of_hooks)
            .flatten()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        environment::environment(&EnvInput {
            alloc_id: alloc.id,
            alloc_name: &alloc.name,
            alloc_index: Some(u64::from(alloc.index)),
            job: self.spec.job(),
            parent_id: self.spec.job().parent(),
            group: self.spec.group(),
            task,
            node: &config.node,
            alloc_dir: &format!("{root}/alloc"),
            task_dir: &format!("{root}/{}/local", task.name),
            secrets_dir: &format!("{root}/{}/secrets", task.name),
            parent_cgroup: None,
            ports: &ports,
            cores: &cores,
            hook_env: &hook_env,
            host_env: &config.host_env,
        })
    }
}

/// The allocation's directory, as its tasks know it.
fn alloc_root(cx: &Cx<'_>, scope: Scope<'_>) -> String {
    format!("{}/{}", cx.config.alloc_root, scope.alloc.id)
}

fn binding(port: &AssignedPort) -> PortBinding {
    PortBinding {
        label: port.label.clone(),
        value: port.value,
        to: port.to,
        host_ip: port.host_ip.clone(),
    }
}

fn join<T: ToString>(problems: Vec<T>) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The hard limit and the reservation in bytes; 0 for none.
fn memory(resources: &Resources) -> (u64, u64) {
    let bytes = |mb: i64| u64::try_from(mb).unwrap_or(0).saturating_mul(1024 * 1024);
    match resources.memory_max_mb {
        0 => (bytes(resources.memory_mb), 0),
        -1 => (0, bytes(resources.memory_mb)),
        max => (bytes(max), bytes(resources.memory_mb)),
    }
}
