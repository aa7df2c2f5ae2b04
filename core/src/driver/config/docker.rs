//! `docker`: a container of an engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Fields, IO};
use crate::driver::schema::{ConfigProblem, Field, Kind, Rule, Schema, validate_resolved};
use crate::model::value::Value;
use crate::time::Span;

/// The most bytes of anything: a petabyte.
const BYTES: Rule = Rule::Range(0, 1 << 50);

/// What a `docker` task's configuration may hold.
pub const DOCKER: Schema = Schema {
    driver: "docker",
    fields: &[
        Field::optional("image", Kind::String)
            .required()
            .with(Rule::Command),
        Field::optional("command", Kind::String),
        Field::optional("args", Kind::ListOfString),
        Field::optional("entrypoint", Kind::ListOfString),
        Field::optional("work_dir", Kind::String).with(Rule::AbsolutePath),
        Field::optional("labels", Kind::MapOfString),
        Field::optional("hostname", Kind::String),
        Field::optional("init", Kind::Bool),
        Field::optional("interactive", Kind::Bool),
        Field::optional("tty", Kind::Bool),
        // The image.
        Field::optional("auth", Kind::Block(AUTH)),
        Field::optional("auth_soft_fail", Kind::Bool),
        Field::optional("force_pull", Kind::Bool),
        Field::optional("image_pull_timeout", Kind::Duration),
        Field::optional("load", Kind::String),
        Field::optional("healthchecks", Kind::Block(HEALTHCHECKS)),
        // The network.
        Field::optional("network_mode", Kind::String),
        Field::optional("ports", Kind::ListOfString).with(Rule::Allowed),
        Field::optional("advertise_ipv6_address", Kind::Bool),
        Field::optional("network_aliases", Kind::ListOfString),
        Field::optional("ipv4_address", Kind::String),
        Field::optional("ipv6_address", Kind::String),
        Field::optional("extra_hosts", Kind::ListOfString),
        Field::optional("dns_servers", Kind::ListOfString),
        Field::optional("dns_search_domains", Kind::ListOfString),
        Field::optional("dns_options", Kind::ListOfString),
        // Files.
        Field::optional("volumes", Kind::ListOfString).with(Rule::Allowed),
        Field::optional("volume_driver", Kind::String).with(Rule::Allowed),
        Field::optional("mount", Kind::Blocks(MOUNT)),
        Field::optional("mounts", Kind::Blocks(MOUNT)),
        Field::optional("readonly_rootfs", Kind::Bool),
        Field::optional("shm_size", Kind::Number).with(BYTES),
        Field::optional("storage_opt", Kind::MapOfString),
        Field::optional("devices", Kind::Blocks(DEVICE)),
        // Rights.
        Field::optional("privileged", Kind::Bool),
        Field::optional("cap_add", Kind::ListOfString).with(Rule::Capabilities),
        Field::optional("cap_drop", Kind::ListOfString).with(Rule::Capabilities),
        Field::optional("group_add", Kind::ListOfString),
        Field::optional("security_opt", Kind::ListOfString).with(Rule::Allowed),
        Field::optional("pid_mode", Kind::String).with(Rule::Allowed),
        Field::optional("ipc_mode", Kind::String).with(Rule::Allowed),
        Field::optional("uts_mode", Kind::String).with(Rule::Allowed),
        Field::optional("userns_mode", Kind::String).with(Rule::Allowed),
        Field::optional("cgroupns", Kind::String).with(Rule::OneOf(&["private", "host"])),
        Field::optional("runtime", Kind::String).with(Rule::Allowed),
        // Limits.
        Field::optional("cpu_hard_limit", Kind::Bool),
        Field::optional("cpu_cfs_period", Kind::Number).with(Rule::Range(0, 1_000_000)),
        Field::optional("cpuset_cpus", Kind::String),
        Field::optional("memory_hard_limit", Kind::Number).with(Rule::Range(0, 1 << 30)),
        Field::optional("pids_limit", Kind::Number).with(Rule::Range(0, 1 << 22)),
        Field::optional("oom_score_adj", Kind::Number).with(Rule::Range(0, 1000)),
        Field::optional("io", Kind::Block(IO)),
        Field::optional("ulimit", Kind::MapOfString).with(Rule::Allowed),
        Field::optional("sysctl", Kind::MapOfString),
        // Logs.
        Field::optional("logging", Kind::Block(LOGGING)),
        // Nomad reads it, and does not use it.
        Field::optional("container_exists_attempts", Kind::Number),
        Field::optional(
            "port_map",
            Kind::Refused(
                "name the ports in `ports`, and what they are inside in `to` of the group's network",
            ),
        ),
        Field::optional(
            "mac_address",
            Kind::Refused("engines of today give it by network; leave it out"),
        ),
        Field::optional(
            "isolation",
            Kind::Refused("it is for Windows; leave it out"),
        ),
    ],
    exclusive: &[],
};

const AUTH: &[Field] = &[
    Field::optional("username", Kind::String),
    Field::optional("password", Kind::String),
    Field::optional("email", Kind::String),
    Field::optional("server_address", Kind::String),
];

const HEALTHCHECKS: &[Field] = &[Field::optional("disable", Kind::Bool)];

const LOGGING: &[Field] = &[
    Field::optional("type", Kind::String).with(Rule::Allowed),
    Field::optional("driver", Kind::String).with(Rule::Allowed),
    Field::optional("config", Kind::MapOfString),
];

const DEVICE: &[Field] = &[
    Field::optional("host_path", Kind::String)
        .required()
        .with(Rule::AbsolutePath),
    Field::optional("container_path", Kind::String).with(Rule::AbsolutePath),
    Field::optional("cgroup_permissions", Kind::String).with(Rule::Allowed),
];

const MOUNT: &[Field] = &[
    Field::optional("type", Kind::String).with(Rule::OneOf(&["bind", "volume", "tmpfs"])),
    Field::optional("target", Kind::String)
        .required()
        .with(Rule::AbsolutePath),
    Field::optional("source", Kind::String).with(Rule::Allowed),
    Field::optional("readonly", Kind::Bool),
    Field::optional(
        "bind_options",
        Kind::Block(&[
            Field::optional("propagation", Kind::String).with(Rule::OneOf(&[
                "private", "rprivate", "slave", "rslave", "shared", "rshared",
            ])),
        ]),
    ),
    Field::optional(
        "tmpfs_options",
        Kind::Block(&[
            Field::optional("size", Kind::Number).with(BYTES),
            Field::optional("mode", Kind::Number).with(Rule::Range(0, 0o7777)),
        ]),
    ),
    Field::optional(
        "volume_options",
        Kind::Block(&[
            Field::optional("no_copy", Kind::Bool),
            Field::optional("labels", Kind::MapOfString),
            Field::optional(
                "driver_config",
                Kind::Block(&[
                    Field::optional("name", Kind::String),
                    Field::optional("options", Kind::MapOfString),
                ]),
            ),
        ]),
    ),
];

/// A `docker` task's configuration. What is empty or none is as the engine and the image have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(
    missing_docs,
    reason = "the names are those of the job file; docs/docker.md says what each does"
)]
pub struct DockerConfig {
    pub image: String,
    pub command: Option<String>,
    pub args: Vec<String>,
    pub entrypoint: Vec<String>,
    pub work_dir: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub hostname: Option<String>,
    pub init: Option<bool>,
    pub interactive: bool,
    pub tty: bool,
    pub auth: Option<RegistryAuth>,
    pub auth_soft_fail: bool,
    pub force_pull: bool,
    pub image_pull_timeout: Option<Span>,
    pub load: Option<String>,
    pub healthchecks_disabled: bool,
    pub network_mode: Option<String>,
    pub ports: Vec<String>,
    pub advertise_ipv6_address: bool,
    pub network_aliases: Vec<String>,
    pub ipv4_address: Option<String>,
    pub ipv6_address: Option<String>,
    pub extra_hosts: Vec<String>,
    pub dns_servers: Vec<String>,
    pub dns_search_domains: Vec<String>,
    pub dns_options: Vec<String>,
    pub volumes: Vec<String>,
    pub volume_driver: Option<String>,
    pub mounts: Vec<DockerMount>,
    pub readonly_rootfs: bool,
    pub shm_size: u64,
    pub storage_opt: BTreeMap<String, String>,
    /// Path on the host, path inside, what may be done: `r`, `w` and `m`.
    pub devices: Vec<(String, String, String)>,
    pub privileged: bool,
    pub cap_add: Vec<String>,
    pub cap_drop: Vec<String>,
    pub group_add: Vec<String>,
    pub security_opt: Vec<String>,
    pub pid_mode: Option<String>,
    pub ipc_mode: Option<String>,
    pub uts_mode: Option<String>,
    pub userns_mode: Option<String>,
    pub cgroupns: Option<String>,
    pub runtime: Option<String>,
    pub cpuset_cpus: Option<String>,
    pub memory_hard_limit: u64,
    pub pids_limit: u64,
    pub oom_score_adj: Option<i64>,
    pub ulimit: BTreeMap<String, String>,
    pub sysctl: BTreeMap<String, String>,
    /// The engine's logging driver, if the job names one, and its options.
    pub logging: Option<(String, BTreeMap<String, String>)>,
}

/// What a registry is told of whoever asks for an image.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegistryAuth {
    /// The name.
    pub username: String,
    /// The password.
    pub password: String,
    /// The address of mail.
    pub email: String,
    /// Which registry; that of the image if empty.
    pub server_address: String,
}

impl core::fmt::Debug for RegistryAuth {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RegistryAuth")
            .field("username", &self.username)
            .field("server_address", &self.server_address)
            .finish_non_exhaustive()
    }
}

/// Something that is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DockerMount {
    /// Where inside.
    pub target: String,
    /// Whether it may only be read.
    pub readonly: bool,
    /// What it is.
    pub kind: MountKind,
}

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MountKind {
    /// A path of the host: below the task's directory if it is relative.
    Bind {
        /// The path.
        source: String,
        /// How mounts below it propagate; the engine's way if none.
        propagation: Option<String>,
    },
    /// A file system in memory.
    Tmpfs {
        /// Its bytes; the engine's default if 0.
        size: u64,
        /// Its permissions; the engine's default if 0.
        mode: u32,
    },
    /// A volume of the engine.
    Volume {
        /// Its name; a new one if empty.
        name: String,
        /// Whether it stays empty when it is new.
        no_copy: bool,
        /// Labels for a new one.
        labels: BTreeMap<String, String>,
        /// The driver of a new one and its options.
        driver: Option<(String, BTreeMap<String, String>)>,
    },
}

impl DockerConfig {
    /// Reads a configuration whose references are replaced already.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn decode(config: &BTreeMap<String, Value>) -> Result<Self, Vec<ConfigProblem>> {
        let problems = validate_resolved(&DOCKER, config);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(read(Fields(config)))
    }
}

fn read(fields: Fields<'_>) -> DockerConfig {
    let mounts = fields.blocks("mount").chain(fields.blocks("mounts"));
    DockerConfig {
        image: fields.text("image"),
        command: fields.some_text("command"),
        args: fields.texts("args"),
        entrypoint: fields.texts("entrypoint"),
        work_dir: fields.some_text("work_dir"),
        labels: fields.map("labels"),
        hostname: fields.some_text("hostname"),
        init: fields.some_bool("init"),
        interactive: fields.bool("interactive"),
        tty: fields.bool("tty"),
        auth: fields.block("auth").map(auth),
        auth_soft_fail: fields.bool("auth_soft_fail"),
        force_pull: fields.bool("force_pull"),
        image_pull_timeout: Some(fields.span("image_pull_timeout")).filter(|it| !it.is_zero()),
        load: fields.some_text("load"),
        healthchecks_disabled: (fields.block("healthchecks")).is_some_and(|it| it.bool("disable")),
        network_mode: fields.some_text("network_mode"),
        ports: fields.texts("ports"),
        advertise_ipv6_address: fields.bool("advertise_ipv6_address"),
        network_aliases: fields.texts("network_aliases"),
        ipv4_address: fields.some_text("ipv4_address"),
        ipv6_address: fields.some_text("ipv6_address"),
        extra_hosts: fields.texts("extra_hosts"),
        dns_servers: fields.texts("dns_servers"),
        dns_search_domains: fields.texts("dns_search_domains"),
        dns_options: fields.texts("dns_options"),
        volumes: fields.texts("volumes"),
        volume_driver: fields.some_text("volume_driver"),
        mounts: mounts.map(mount).collect(),
        readonly_rootfs: fields.bool("readonly_rootfs"),
        shm_size: fields.number("shm_size"),
        storage_opt: fields.map("storage_opt"),
        devices: fields.blocks("devices").map(device).collect(),
        privileged: fields.bool("privileged"),
        cap_add: fields.texts("cap_add"),
        cap_drop: fields.texts("cap_drop"),
        group_add: fields.texts("group_add"),
        security_opt: fields.texts("security_opt"),
        pid_mode: fields.some_text("pid_mode"),
        ipc_mode: fields.some_text("ipc_mode"),
        uts_mode: fields.some_text("uts_mode"),
        userns_mode: fields.some_text("userns_mode"),
        cgroupns: fields.some_text("cgroupns"),
        runtime: fields.some_text("runtime"),
        cpuset_cpus: fields.some_text("cpuset_cpus"),
        memory_hard_limit: fields.number("memory_hard_limit"),
        pids_limit: fields.number("pids_limit"),
        oom_score_adj: fields.some_number("oom_score_adj"),
        ulimit: fields.map("ulimit"),
        sysctl: fields.map("sysctl"),
        logging: fields.block("logging").and_then(logging),
    }
}

/// What the configuration of a task says of who asks for its image, and whether that is asked for without a password
/// where none can be found. References in it stay as they are.
pub fn registry_auth(config: &BTreeMap<String, Value>) -> (Option<RegistryAuth>, bool) {
    let fields = Fields(config);
    (
        fields.block("auth").map(auth),
        fields.bool("auth_soft_fail"),
    )
}

fn auth(fields: Fields<'_>) -> RegistryAuth {
    RegistryAuth {
        username: fields.text("username"),
        password: fields.text("password"),
        email: fields.text("email"),
        server_address: fields.text("server_address"),
    }
}

fn logging(fields: Fields<'_>) -> Option<(String, BTreeMap<String, String>)> {
    let driver = fields.some_text("type").or(fields.some_text("driver"))?;
    Some((driver, fields.map("config")))
}

fn device(fields: Fields<'_>) -> (String, String, String) {
    let host = fields.text("host_path");
    let inside = fields.some_text("container_path");
    let permissions = fields.some_text("cgroup_permissions");
    (
        host.clone(),
        inside.unwrap_or(host),
        permissions.unwrap_or_else(|| "rwm".to_owned()),
    )
}

fn mount(fields: Fields<'_>) -> DockerMount {
    let source = fields.text("source");
    let kind = match fields.text("type").as_str() {
        "bind" => MountKind::Bind {
            source,
            propagation: (fields.block("bind_options")).and_then(|it| it.some_text("propagation")),
        },
        "tmpfs" => {
            let options = fields.block("tmpfs_options");
            MountKind::Tmpfs {
                size: options.map_or(0, |it| it.number("size")),
                mode: options.map_or(0, |it| it.number("mode")),
            }
        }
        _ => {
            let options = fields.block("volume_options");
            let driver = options.and_then(|it| it.block("driver_config"));
            MountKind::Volume {
                name: source,
                no_copy: options.is_some_and(|it| it.bool("no_copy")),
                labels: options.map_or_else(BTreeMap::new, |it| it.map("labels")),
                driver: driver.map(|it| (it.text("name"), it.map("options"))),
            }
        }
    };
    DockerMount {
        target: fields.text("target"),
        readonly: fields.bool("readonly"),
        kind,
    }
}
