//! From the core's start request to the engine's: what a container is made of.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerCreateBody, EndpointIpamConfig, EndpointSettings, HealthConfig, HostConfig,
    HostConfigCgroupnsModeEnum, HostConfigLogConfig, NetworkingConfig, PortBinding, PortMap,
    ResourcesUlimits, ThrottleDevice,
};
use drover_core::driver::config::{DockerConfig, IoLimits};
use drover_core::driver::docker::{Container, security_parts, ulimit};
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::op::Failure;
use drover_core::store::record::AssignedPort;
use drover_core::text::glob_match;

use super::cores::{self, Cores};
use super::files::Mounted;
use super::records::Ours;
use super::settings::DockerSettings;
use super::taken::Taken;
use crate::cgroup::Disk;

/// The label with the launch, by which the engine's events are filtered. It proves nothing.
pub(super) const LAUNCH_LABEL: &str = "drover.launch";

/// The label with the word that only the agent knows.
pub(super) const TOKEN_LABEL: &str = "drover.token";

/// The label with the mark of the agent, for people who look at an engine of several. It proves nothing.
pub(super) const AGENT_LABEL: &str = "drover.agent";

/// The label that tools for Nomad look for.
const ALLOC_LABEL: &str = "com.hashicorp.nomad.alloc_id";

/// How GPUs of NVIDIA are asked for.
const NVIDIA: &str = "NVIDIA_VISIBLE_DEVICES";

/// What asks for none, whatever the image says.
const NO_GPU: &str = "void";

/// Logging drivers that write files of the engine's, which grow without these options.
const LOG_FILES: [&str; 2] = ["json-file", "local"];

/// The options, and what they are where neither the job nor the agent says it.
const LOG_LIMITS: [(&str, &str); 2] = [("max-file", "2"), ("max-size", "2m")];

const MIB: u64 = 1 << 20;

/// The name of a container: what people look for first, and what makes it the only one of its name.
pub(super) fn name(task: &TaskKey, launch: LaunchId) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-');
    let name = task.task.as_str().chars();
    let name: String = name
        .map(|it| if plain(it) { it } else { '_' })
        .take(128)
        .collect();
    // The first letter may not be one of those that are no letter.
    let name = name.trim_start_matches(['_', '.', '-']);
    let name = if name.is_empty() { "task" } else { name };
    format!("{name}-{}-{launch}", task.alloc)
}

/// What is known of a container that is to be made.
pub(super) struct Making<'a> {
    pub(super) settings: &'a DockerSettings,
    pub(super) task: &'a TaskKey,
    pub(super) launch: LaunchId,
    pub(super) ours: &'a Ours,
    pub(super) asked: &'a DockerConfig,
    pub(super) config: &'a TaskConfig,
    pub(super) container: &'a Container,
    /// The id of its image: names may mean another one by now.
    pub(super) image: &'a Taken,
    /// Which cores it may use.
    pub(super) cores: &'a Cores,
    /// The engine's runtime for containers that name none.
    pub(super) default_runtime: &'a str,
    /// How fast it reads and writes which disk, if that is limited.
    pub(super) io: Option<(Disk, IoLimits)>,
    /// Where it is started, if its group has a network of its own.
    pub(super) network_mode: Option<String>,
}

impl Making<'_> {
    /// The engine's request.
    ///
    /// # Errors
    /// Two things that were asked for do not go together.
    pub(super) fn body(
        &self,
        mounted: &Mounted,
        devices: Vec<bollard::models::DeviceMapping>,
    ) -> Result<ContainerCreateBody, Failure> {
        let asked = self.asked;
        let command = asked.command.iter().chain(&asked.args).cloned();
        let mut host = self.host()?;
        host.mounts = Some(mounted.mounts.clone());
        host.binds = some_list(mounted.binds.clone());
        host.devices = some_list(devices);
        let (exposed, bindings) = self.ports();
        host.port_bindings = Some(bindings);
        Ok(ContainerCreateBody {
            image: Some(self.image.id.clone()),
            cmd: some_list(command.collect()),
            entrypoint: some_list(asked.entrypoint.clone()),
            working_dir: asked.work_dir.clone(),
            env: Some(self.env()),
            user: Some(self.config.user.clone()).filter(|user| !user.is_empty()),
            hostname: asked.hostname.clone(),
            labels: Some(self.labels()),
            open_stdin: Some(asked.interactive),
            tty: Some(asked.tty),
            exposed_ports: some_list(exposed),
            healthcheck: asked.healthchecks_disabled.then(|| HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            networking_config: self.network(),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        })
    }

    fn host(&self) -> Result<HostConfig, Failure> {
        let (asked, settings) = (self.asked, self.settings);
        let (limit, reserved) = memory(self.config, asked.memory_hard_limit)?;
        let cpu_quota = self.config.cpu_quota;
        let (quota, period) = cpu_quota.map(|it| (it.quota, it.period)).unzip();
        let capabilities = self.container.capabilities.names();
        let capabilities = capabilities.map(|name| format!("CAP_{}", name.to_ascii_uppercase()));
        let pids = match self.container.pids_limit {
            0 => settings.pids_limit,
            limit => Some(limit),
        };
        let shares = i64::try_from(self.config.cpu_shares).unwrap_or(i64::MAX);
        Ok(HostConfig {
            network_mode: self.network_mode().map(str::to_owned),
            memory: Some(limit),
            // As much as memory alone: none of it is swapped out.
            memory_swap: (limit > 0).then_some(limit),
            memory_reservation: (reserved > 0).then_some(reserved),
            cpu_shares: Some(shares.clamp(2, 262_144)),
            cpu_quota: quota,
            cpu_period: period,
            cpuset_cpus: self.cores.set(),
            blkio_device_read_bps: self.throttle(|it| it.read_bps),
            blkio_device_write_bps: self.throttle(|it| it.write_bps),
            blkio_device_read_iops: self.throttle(|it| it.read_iops),
            blkio_device_write_iops: self.throttle(|it| it.write_iops),
            pids_limit: pids.and_then(|limit| i64::try_from(limit).ok()),
            privileged: Some(asked.privileged),
            // All are taken, and those that it has are given: whatever the engine gives by itself.
            cap_drop: (!asked.privileged).then(|| vec!["ALL".to_owned()]),
            cap_add: (!asked.privileged).then(|| capabilities.collect()),
            group_add: some_list(asked.group_add.clone()),
            security_opt: some_list(
                asked
                    .security_opt
                    .iter()
                    .map(|it| match security_parts(it) {
                        (name, Some(value)) => format!("{name}={value}"),
                        (name, None) => name.to_owned(),
                    })
                    .collect(),
            ),
            pid_mode: asked.pid_mode.clone(),
            ipc_mode: asked.ipc_mode.clone(),
            uts_mode: asked.uts_mode.clone(),
            userns_mode: asked.userns_mode.clone(),
            cgroupns_mode: match asked.cgroupns.as_deref() {
                Some("host") => Some(HostConfigCgroupnsModeEnum::HOST),
                Some("private") => Some(HostConfigCgroupnsModeEnum::PRIVATE),
                _ => None,
            },
            runtime: self.runtime()?,
            readonly_rootfs: Some(asked.readonly_rootfs),
            shm_size: i64::try_from(asked.shm_size).ok().filter(|size| *size > 0),
            storage_opt: some_map(&asked.storage_opt),
            volume_driver: asked.volume_driver.clone(),
            extra_hosts: some_list(asked.extra_hosts.clone()),
            dns: some_list(asked.dns_servers.clone()),
            dns_search: some_list(asked.dns_search_domains.clone()),
            dns_options: some_list(asked.dns_options.clone()),
            init: asked.init,
            oom_score_adj: Some(asked.oom_score_adj.unwrap_or(settings.oom_score_adj)),
            sysctls: some_map(&asked.sysctl),
            ulimits: some_list(ulimits(&asked.ulimit)),
            log_config: Some(self.logging()),
            auto_remove: Some(false),
            ..HostConfig::default()
        })
    }

    fn throttle(&self, limit: fn(&IoLimits) -> Option<u64>) -> Option<Vec<ThrottleDevice>> {
        let (disk, limits) = self.io.as_ref()?;
        let rate = limit(limits)?;
        Some(vec![ThrottleDevice {
            path: Some(disk.node.to_string_lossy().into_owned()),
            rate: Some(i64::try_from(rate).unwrap_or(i64::MAX)),
        }])
    }

    fn labels(&self) -> HashMap<String, String> {
        let mut labels = self.image.silenced();
        labels.extend(self.asked.labels.clone());
        let env = |name: &str| self.config.env.get(name).cloned();
        let facts = [
            ("job_name", env("NOMAD_JOB_NAME")),
            ("job_id", Some(self.config.job.clone())),
            ("parent_job_id", env("NOMAD_JOB_PARENT_ID")),
            ("task_group_name", Some(self.config.group.clone())),
            ("task_name", Some(self.task.task.to_string())),
            ("namespace", env("NOMAD_NAMESPACE")),
            ("node_name", env("NOMAD_NODE_NAME")),
            ("node_id", env("NOMAD_NODE_ID")),
        ];
        for (name, value) in facts {
            let wanted = self
                .settings
                .extra_labels
                .iter()
                .any(|it| glob_match(it, name));
            if let Some(value) = value.filter(|_| wanted) {
                labels.insert(format!("com.hashicorp.nomad.{name}"), value);
            }
        }
        labels.insert(ALLOC_LABEL.to_owned(), self.task.alloc.to_string());
        labels.insert(LAUNCH_LABEL.to_owned(), self.launch.to_string());
        labels.insert(TOKEN_LABEL.to_owned(), self.ours.token.clone());
        labels.insert(AGENT_LABEL.to_owned(), self.settings.mark.clone());
        labels.insert(cores::LABEL.to_owned(), self.cores.label().to_owned());
        labels
    }

    /// Its variables. GPUs are those that it was given, and no others.
    fn env(&self) -> Vec<String> {
        let mut env = self.config.env.clone();
        if let Some(gpus) = self.config.device_env.get(NVIDIA) {
            env.insert(NVIDIA.to_owned(), gpus.clone());
        } else if self.would_have_all_gpus() {
            env.insert(NVIDIA.to_owned(), NO_GPU.to_owned());
        }
        let pairs = env.into_iter();
        pairs.map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// Whether its runtime gives it the GPUs that its image names, of which it was given none. A job that may have
    /// every device may say so itself.
    fn would_have_all_gpus(&self) -> bool {
        let runtime = self.asked.runtime.as_deref();
        let runtime = runtime.unwrap_or(self.default_runtime);
        let gives = runtime == self.settings.nvidia_runtime || runtime.contains("nvidia");
        gives && !(self.container.raw_devices && self.config.env.contains_key(NVIDIA))
    }

    fn runtime(&self) -> Result<Option<String>, Failure> {
        let asked = self.asked.runtime.clone();
        if !self.config.device_env.contains_key(NVIDIA) {
            return Ok(asked);
        }
        let needed = &self.settings.nvidia_runtime;
        match asked {
            Some(other) if other != *needed => Err(Failure::fatal(format!(
                "runtime: the task's GPU needs {needed:?}, and the job says {other:?}"
            ))),
            _ => Ok(Some(needed.clone())),
        }
    }

    fn logging(&self) -> HostConfigLogConfig {
        let (driver, options) = match &self.asked.logging {
            _ if self.config.logs.disabled && self.asked.logging.is_none() => {
                ("none", BTreeMap::new())
            }
            Some((driver, options)) => (driver.as_str(), self.bounded(driver, options)),
            None => (
                self.settings.logging.0.as_str(),
                self.settings.logging.1.clone(),
            ),
        };
        HostConfigLogConfig {
            typ: Some(driver.to_owned()),
            config: Some(options.into_iter().collect()),
        }
    }

    /// A job's options of a logging driver, with bounds where they say none.
    fn bounded(
        &self,
        driver: &str,
        options: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let mut options = options.clone();
        if LOG_FILES.contains(&driver) {
            let (of_agent, limits) = &self.settings.logging;
            for (name, usual) in LOG_LIMITS {
                let own = limits.get(name).filter(|_| of_agent == driver);
                let limit = || own.cloned().unwrap_or_else(|| usual.to_owned());
                options.entry(name.to_owned()).or_insert_with(limit);
            }
        }
        options
    }

    /// What the job says goes before the group's network, as in Nomad.
    fn network_mode(&self) -> Option<&str> {
        let asked = self.asked.network_mode.as_deref();
        asked.or(self.network_mode.as_deref())
    }

    /// What is opened, and what of the host leads there.
    fn ports(&self) -> (Vec<String>, PortMap) {
        let mode = self.network_mode().unwrap_or_default();
        let published_already = self.config.network.as_ref().is_some_and(|it| it.own);
        if published_already || mode == "host" || mode.starts_with("container:") {
            return (Vec::new(), PortMap::new());
        }
        let mut bindings = PortMap::new();
        for port in &self.container.ports {
            for protocol in ["tcp", "udp"] {
                let binding = PortBinding {
                    host_ip: Some(port.host_ip.clone()),
                    host_port: Some(port.value.to_string()),
                };
                let of_port = bindings
                    .entry(format!("{}/{protocol}", inside(port)))
                    .or_default();
                of_port.get_or_insert_default().push(binding);
            }
        }
        let mut exposed: Vec<String> = bindings.keys().cloned().collect();
        exposed.sort();
        (exposed, bindings)
    }

    /// What it is in a network that somebody made.
    fn network(&self) -> Option<NetworkingConfig> {
        let asked = self.asked;
        let name = self.network_mode()?;
        let of_engine = matches!(name, "default" | "bridge" | "host" | "none");
        if of_engine || name.starts_with("container:") {
            return None;
        }
        let address = (asked.ipv4_address.is_some() || asked.ipv6_address.is_some()).then(|| {
            EndpointIpamConfig {
                ipv4_address: asked.ipv4_address.clone(),
                ipv6_address: asked.ipv6_address.clone(),
                ..EndpointIpamConfig::default()
            }
        });
        let endpoint = EndpointSettings {
            aliases: some_list(asked.network_aliases.clone()),
            ipam_config: address,
            ..EndpointSettings::default()
        };
        Some(NetworkingConfig {
            endpoints_config: Some([(name.to_owned(), endpoint)].into()),
        })
    }
}

/// A port's number inside.
pub(super) fn inside(port: &AssignedPort) -> u16 {
    match port.to {
        0 => port.value,
        to => to,
    }
}

/// The limit and the reservation, in bytes; 0 for none.
fn memory(config: &TaskConfig, hard_mb: u64) -> Result<(i64, i64), Failure> {
    let number = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let (mut limit, mut reserved) = (config.memory_limit, config.memory_reserved);
    if hard_mb > 0 && limit > 0 {
        let own = if reserved > 0 { reserved } else { limit };
        limit = match reserved {
            0 => hard_mb.saturating_mul(MIB),
            _ => limit.max(hard_mb.saturating_mul(MIB)),
        };
        reserved = own;
    }
    if limit > 0 && reserved > limit {
        return Err(Failure::fatal(format!(
            "memory_hard_limit: {hard_mb} MB are less than the task's memory of {} MB",
            reserved / MIB
        )));
    }
    Ok((number(limit), number(reserved)))
}

fn ulimits(given: &BTreeMap<String, String>) -> Vec<ResourcesUlimits> {
    let one = |(name, text): (&String, &String)| {
        let (soft, hard) = ulimit(text)?;
        Some(ResourcesUlimits {
            name: Some(name.clone()),
            soft: Some(soft),
            hard: Some(hard),
        })
    };
    given.iter().filter_map(one).collect()
}

fn some_list<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

fn some_map(map: &BTreeMap<String, String>) -> Option<HashMap<String, String>> {
    Some(map.clone().into_iter().collect()).filter(|map: &HashMap<_, _>| !map.is_empty())
}
