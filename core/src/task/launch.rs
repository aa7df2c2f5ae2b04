//! The start: the launch id, what the driver is given, and the task's environment.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::environment::{self, EnvInput, PortBinding};
use super::hooks::{PRESTART, TaskHook};
use super::runner::{Phase, Scope, TaskRunner};
use super::volumes;
use crate::claims::resources::ranges;
use crate::config::Config;
use crate::cx::Cx;
use crate::driver::config::{DockerConfig, ExecConfig, schema_for};
use crate::driver::cpu_quota::{Compute, CpuQuota};
use crate::driver::docker::{Container, DockerPolicy};
use crate::driver::isolation::{
    DIRS, DOCKER, EXEC, Profile, account, has_engine, has_own_users, isolates,
};
use crate::driver::schema;
use crate::effect::{TaskConfig, TaskNetwork, request};
use crate::ids::{AllocId, LaunchId, Run};
use crate::interpolate::{self, Names};
use crate::model::alloc::DriverNetwork;
use crate::model::image::pinned;
use crate::model::network::Network;
use crate::model::node::Node;
use crate::model::task::{Resources, Task};
use crate::model::value::Value;
use crate::op::Failure;
use crate::operations::Purpose;
use crate::store::record::{AllocRecord, AssignedPort, Launch};
use crate::task::hooks::devices::Devices;
use crate::task::hooks::validate::Validate;

impl TaskRunner {
    /// Decides the launch id, remembers it, and only then asks the driver.
    pub(super) fn launch(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        let run = Run(self.record.runs.0.saturating_add(1));
        let config = match self.start_config(cx, scope, run) {
            Ok(config) => Arc::new(config),
            Err(message) => {
                let failure = Failure::fatal(message);
                return self.hook_failed(cx, &Validate, failure);
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
        let op = self.operation(cx, Purpose::Start, cx.config.timeouts.start);
        let start = request::Start {
            op,
            launch: id,
            config,
        };
        cx.drive_after_save(&self.spec.driver, &self.spec.key, start);
        self.phase = Phase::Starting(op);
    }

    pub(super) fn ask_to_recover(&mut self, cx: &mut Cx<'_>, launch: LaunchId) -> Phase {
        let timeouts = &cx.config.timeouts;
        let limit = match has_engine(&self.spec.driver) {
            true => timeouts.recover_by_engine,
            false => timeouts.recover,
        };
        let op = self.operation(cx, Purpose::Recover, limit);
        let logs = self.spec.task().log_config.unwrap_or_default();
        let effect = request::Recover { op, launch, logs };
        cx.drive(&self.spec.driver, &self.spec.key, effect);
        Phase::Recovering(op)
    }

    /// The driver could not start the launch. It may have run nevertheless, so it is destroyed
    /// before anything else.
    pub(super) fn start_failed(&mut self, cx: &mut Cx<'_>, recoverable: bool) {
        if let Some(launch) = &mut self.edit().launch {
            launch.start_failed = Some(recoverable);
        }
        self.save(cx);
        self.clean_up(cx);
    }

    /// What the driver needs for a start of this number, with the volumes that it mounts.
    fn start_config(&self, cx: &Cx<'_>, scope: Scope<'_>, run: Run) -> Result<TaskConfig, String> {
        let mut config = self.task_config(cx, scope, run)?;
        let (group, task) = (self.spec.group(), self.spec.task());
        if volumes::can_mount(&task.driver) {
            let node = &cx.config.node;
            let env = &config.env;
            let mounted = volumes::mounted(node, group, task, scope.alloc.index)?;
            let mounts = volumes::mounts(&mounted, &Names { env, node });
            config.reserved.mounts.extend(mounts);
        }
        Ok(config)
    }

    /// What the driver needs for a start of this number, or for what runs beside it.
    pub(super) fn task_config(
        &self,
        cx: &Cx<'_>,
        scope: Scope<'_>,
        run: Run,
    ) -> Result<TaskConfig, String> {
        let (job, group, task) = (self.spec.job(), self.spec.group(), self.spec.task());
        let env = self.environment_within(cx, scope, PRESTART);
        let names = Names {
            env: &env,
            node: &cx.config.node,
        };
        let mut config = interpolate::interpolate_config(&task.config, &names).map_err(join)?;
        if !task.image_digest.is_empty() {
            pin_image(&mut config, &task.image_digest);
        }
        if let Some(schema) = schema_for(&task.driver) {
            let problems = schema::validate_resolved(schema, &config);
            if !problems.is_empty() {
                return Err(join(problems));
            }
        }
        let profile = self.profile(cx.config, &config)?;
        let container = self.container(cx.config, scope.alloc, &config)?;
        let user = match has_own_users(&task.driver) {
            true => task.user.as_str(),
            false => account(task),
        };
        let resources = &task.resources;
        let cpu_shares = u64::try_from(resources.cpu).unwrap_or(0);
        let cpu_quota = CpuQuota::of(&config, cpu_shares, compute(&cx.config.node))?;
        let (memory_limit, memory_reserved) = match cx.config.memory_oversubscription {
            true => memory(resources),
            false => (bytes(resources.memory_mb), 0),
        };
        Ok(TaskConfig {
            run,
            job: job.id.clone(),
            group: group.name.clone(),
            config,
            env,
            user: user.to_owned(),
            cpu_shares,
            cpu_quota,
            memory_limit,
            memory_reserved,
            cores: own_cores(scope.alloc, task).collect(),
            logs: task.log_config.unwrap_or_default(),
            reserved: self.record.reserved.clone(),
            device_env: (self.record.hooks_done.get(Devices.name()))
                .cloned()
                .unwrap_or_default(),
            profile,
            container,
            network: self.network_of(cx.config, scope.alloc),
        })
    }

    /// The network that was made for its allocation.
    fn network_of(&self, config: &Config, alloc: &AllocRecord) -> Option<TaskNetwork> {
        let own = alloc.network.as_ref()?;
        let wanted = self.spec.group().networks.first()?;
        let env = self.environment_of_group(config, alloc);
        let names = Names {
            env: &env,
            node: &config.node,
        };
        let of_plugins = own.found.as_ref().and_then(|found| found.address);
        Some(TaskNetwork {
            own: wanted.mode().is_own(),
            hostname: hostname(wanted, alloc.id, &names),
            address: own.address.or(of_plugins),
        })
    }

    /// What the task's container may have, if its driver makes one.
    fn container(
        &self,
        config: &Config,
        alloc: &AllocRecord,
        own: &BTreeMap<String, Value>,
    ) -> Result<Option<Container>, String> {
        let task = self.spec.task();
        if task.driver != DOCKER {
            return Ok(None);
        }
        let asked = DockerConfig::decode(own).map_err(join)?;
        let mut container = config.docker.container(&asked, &alloc.ports)?;
        let network = self.spec.group().networks.first();
        if network.is_some_and(|network| network.mode().is_own()) {
            DockerPolicy::joins_group_network(&asked)?;
        }
        container.cores = ranges(own_cores(alloc, task));
        Ok(Some(container))
    }

    /// How the task is isolated, if its driver does that.
    fn profile(
        &self,
        config: &Config,
        own: &BTreeMap<String, Value>,
    ) -> Result<Option<Profile>, String> {
        if self.spec.task().driver != EXEC {
            return Ok(None);
        }
        let asked = ExecConfig::decode(own).map_err(join)?;
        config.exec.profile(&asked).map(Some)
    }

    /// The task's variables, with those that these hooks gave, and with directories as the agent sees them.
    pub(crate) fn environment(
        &self,
        cx: &Cx<'_>,
        scope: Scope<'_>,
        hooks: &[&dyn TaskHook],
    ) -> BTreeMap<String, String> {
        let dirs = dirs(cx.config, scope.alloc, &self.spec.task().name);
        self.environment_in(cx.config, scope.alloc, self.spec.task(), hooks, None, dirs)
    }

    /// The same with directories as the task sees them.
    pub(crate) fn environment_within(
        &self,
        cx: &Cx<'_>,
        scope: Scope<'_>,
        hooks: &[&dyn TaskHook],
    ) -> BTreeMap<String, String> {
        if !isolates(&self.spec.task().driver) {
            return self.environment(cx, scope, hooks);
        }
        let dirs = DIRS.map(str::to_owned);
        self.environment_in(cx.config, scope.alloc, self.spec.task(), hooks, None, dirs)
    }

    /// What the task's services may refer to: the ports that its driver reported too, but not what templates
    /// gave, of which secrets are made and which may themselves be made of services.
    pub(crate) fn environment_of_services(
        &self,
        config: &Config,
        alloc: &AllocRecord,
    ) -> BTreeMap<String, String> {
        let task = self.spec.task();
        let dirs = dirs(config, alloc, &task.name);
        self.environment_in(config, alloc, task, &[&Devices], self.network(), dirs)
    }

    /// What the services of the group may refer to: what all tasks of it have in common.
    pub(crate) fn environment_of_group(
        &self,
        config: &Config,
        alloc: &AllocRecord,
    ) -> BTreeMap<String, String> {
        let (task, dirs) = (Task::default(), dirs(config, alloc, ""));
        let mut env = self.environment_in(config, alloc, &task, &[], None, dirs);
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
        hooks: &[&dyn TaskHook],
        network: Option<&DriverNetwork>,
        [alloc_dir, task_dir, secrets_dir]: [String; 3],
    ) -> BTreeMap<String, String> {
        let cores = ranges(own_cores(alloc, task));
        let ports: Vec<PortBinding> = (alloc.ports.iter())
            .map(|port| binding(port, network))
            .collect();
        let of_hooks = |hook: &&dyn TaskHook| self.record.hooks_done.get(hook.name());
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
            memory_oversubscription: config.memory_oversubscription,
            node: &config.node,
            alloc_dir: &alloc_dir,
            task_dir: &task_dir,
            secrets_dir: &secrets_dir,
            parent_cgroup: None,
            ports: &ports,
            address: alloc.own_address(),
            cores: &cores,
            hook_env: &hook_env,
            // An image has its own.
            host_env: match has_own_users(&task.driver) {
                true => &[],
                false => &config.host_env,
            },
        })
    }
}

impl Scope<'_> {
    /// The allocation's directory, as its tasks know it.
    pub(crate) fn root(&self, config: &Config) -> String {
        alloc_root(config, self.alloc)
    }
}

/// The image of a configuration is that of this digest, whatever its tag means.
fn pin_image(config: &mut BTreeMap<String, Value>, digest: &str) {
    if let Some(image) = config.get_mut("image")
        && let Some(named) = image.as_str()
    {
        *image = Value::from(pinned(named, digest).as_str());
    }
}

/// The cores that a task has for itself.
fn own_cores(alloc: &AllocRecord, task: &Task) -> impl Iterator<Item = u32> {
    let of_task = alloc.cores.iter().filter(|cores| cores.task == task.name);
    of_task.flat_map(|cores| cores.ids.iter().copied())
}

/// The directories of a task as the agent sees them: what its allocation shares, its own, its secrets.
fn dirs(config: &Config, alloc: &AllocRecord, task: &str) -> [String; 3] {
    let root = alloc_root(config, alloc);
    let own = |name| format!("{root}/{task}/{name}");
    [format!("{root}/alloc"), own("local"), own("secrets")]
}

/// The name that the tasks of an allocation have for themselves, if that is not the host's.
pub(crate) fn hostname(network: &Network, alloc: AllocId, names: &Names<'_>) -> String {
    match network.hostname.as_str() {
        _ if !network.mode().is_own() => String::new(),
        "" => alloc.short(),
        name => interpolate::interpolate(name, names),
    }
}

fn alloc_root(config: &Config, alloc: &AllocRecord) -> String {
    format!("{}/{}", config.alloc_root, alloc.id)
}

/// What the machine has of processors, if that is known.
fn compute(node: &Node) -> Option<Compute> {
    let number = |name| node.attributes.get(name)?.parse().ok();
    Some(Compute {
        mhz: number("cpu.totalcompute")?,
        cores: number("cpu.numcores")?,
    })
}

fn binding(port: &AssignedPort, network: Option<&DriverNetwork>) -> PortBinding {
    let inside = network.and_then(|network| network.port_map.get(&port.label));
    PortBinding {
        label: port.label.clone(),
        value: port.value,
        to: inside.copied().unwrap_or(port.to),
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
    match resources.memory_max_mb {
        0 => (bytes(resources.memory_mb), 0),
        -1 => (0, bytes(resources.memory_mb)),
        max => (bytes(max), bytes(resources.memory_mb)),
    }
}

fn bytes(mb: i64) -> u64 {
    u64::try_from(mb).unwrap_or(0).saturating_mul(1024 * 1024)
}
