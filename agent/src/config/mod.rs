//! The agent's configuration file: what is too much for a command line.
//!
//! ```hcl
//! plugin_dir = "/opt/drover/plugins"
//!
//! plugin "fpga" {                 # the name of a program in plugin_dir
//!   args = ["-quiet"]
//!   config { devices = ["a", "b"] }
//! }
//!
//! plugin "raw_exec" {             # built in, and on without this block
//!   config { enabled = true }
//! }
//!
//! plugin "exec" {}                # built in, and on without this block; see `exec`
//! plugin "docker" {}              # built in, and on without this block; see `docker`
//!
//! plugin "nvidia-gpu" {           # built in, and on without this block; every setting is optional
//!   config {
//!     enabled            = true
//!     ignored_gpu_ids    = ["GPU-fef8089b-1820-7c4b-2b5d-ecb33db08d9e"]
//!     fingerprint_period = "1m"
//!     library            = "/opt/nvidia/lib/libnvidia-ml.so.1"
//!   }
//! }
//!
//! device "acme/fpga/x1" {         # a device of this machine that needs no plugin
//!   id    = "slot-3"
//!   nodes = ["/dev/fpga0"]
//! }
//! ```
//!
//! [`acl`], [`address`], [`agent`], [`client`], [`docker`], [`exec`], [`limits`], [`log_forward`], [`machine`], [`node`], [`notify`], [`server`], [`telemetry`] and [`tls`] say what else there is.

pub mod acl;
pub(crate) mod address;
pub mod agent;
mod artifact;
pub mod client;
pub mod docker;
mod driver;
pub mod exec;
mod gc;
pub mod host_volume;
pub mod limits;
pub(crate) mod literal;
pub mod log_forward;
pub mod machine;
pub mod node;
pub mod notify;
mod nvidia;
mod place;
mod quoted;
mod reading;
pub mod server;
mod sockaddr;
pub mod telemetry;
mod throttle;
pub mod tls;
#[cfg(test)]
mod whole_tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use drover_core::config::Preemption;
use drover_core::driver::docker::DockerPolicy;
use drover_core::driver::isolation::{DOCKER, EXEC};
use drover_core::model::device::GroupId;
use drover_core::text::{nearest, quote};
use drover_io_real::device::declared::Declared;
use drover_io_real::device::nvidia::{NAME as NVIDIA, NvidiaSettings};
use drover_io_real::forward::ForwardSettings;
use drover_io_real::notify::TargetSettings;
use drover_io_real::plugins::PluginConfig;
use hcl_edit::structure::{Block, Body};

use acl::AclConfig;
use agent::AgentConfig;
use client::ClientConfig;
use docker::DockerConfig;
use exec::ExecConfig;
use limits::{ConnectionsPerClient, LimitsConfig};
use literal::{Fields, fields};
use place::Places;
use server::ServerConfig;
use telemetry::Telemetry;
use tls::TlsConfig;

/// The control group below which all tasks are.
pub(crate) const CGROUP_PARENT: &str = "drover";

/// What a file may have, besides blocks of Nomad that have no effect.
const BLOCKS: &[&str] = &[
    "acl",
    "addresses",
    "advertise",
    "client",
    "device",
    "limits",
    "log_forward",
    "notify",
    "plugin",
    "ports",
    "server",
    "telemetry",
    "tls",
];

/// A file is never larger.
const MAX_SIZE: u64 = 1 << 20;

/// What a configuration file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Where plugins are.
    pub plugin_dir: Option<PathBuf>,
    /// The plugins that are started.
    pub plugins: Vec<PluginConfig>,
    /// Devices that need no plugin.
    pub devices: Vec<Declared>,
    /// How GPUs are looked for; `None`: not at all.
    pub nvidia: Option<NvidiaSettings>,
    /// What containers are allowed, and which engine makes them.
    pub docker: DockerConfig,
    /// How tasks of `exec` are kept apart from the host.
    pub exec: ExecConfig,
    /// What is wanted of the node.
    pub client: ClientConfig,
    /// Whose jobs may preempt jobs of lower priority.
    pub preemption: Preemption,
    /// What is told of the agent in numbers.
    pub telemetry: Telemetry,
    /// What is encrypted.
    pub tls: TlsConfig,
    /// Who may use the API.
    pub acl: AclConfig,
    /// How many connections one client address of the API may have; a default if none.
    pub limits: Option<ConnectionsPerClient>,
    /// Who is told what happens.
    pub notify: Vec<TargetSettings>,
    /// Where logs of tasks are sent.
    pub log_forward: Vec<ForwardSettings>,
    /// What is said of the agent itself.
    pub agent: AgentConfig,
    /// What is given and has no effect here, each once.
    pub ignored: Vec<String>,
}

impl FileConfig {
    /// What containers are allowed, with what holds for all tasks.
    pub fn docker_policy(&self) -> DockerPolicy {
        DockerPolicy {
            pids_limit_of_tasks: self.client.node.most_processes(),
            ..self.docker.policy.clone()
        }
    }
}

impl Default for FileConfig {
    /// GPUs are looked for unless somebody says not to.
    fn default() -> FileConfig {
        FileConfig {
            plugin_dir: None,
            plugins: Vec::new(),
            devices: Vec::new(),
            nvidia: Some(NvidiaSettings::default()),
            docker: DockerConfig::default(),
            exec: ExecConfig::default(),
            client: ClientConfig::default(),
            preemption: Preemption::default(),
            telemetry: Telemetry::default(),
            tls: TlsConfig::default(),
            acl: AclConfig::default(),
            limits: None,
            notify: Vec::new(),
            log_forward: Vec::new(),
            agent: AgentConfig::default(),
            ignored: Vec::new(),
        }
    }
}

impl FileConfig {
    /// Takes the blocks of what is built in out of those of plugins that are programs.
    fn take_built_in(&mut self, needs_tokens: bool) -> Result<(), String> {
        let plugins = &mut self.plugins;
        let mut names: Vec<&str> = plugins.iter().map(|plugin| plugin.file.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("plugin {} is there twice", quote(pair[0])));
        }
        if let Some(at) = plugins.iter().position(|it| it.file == NVIDIA) {
            self.nvidia = nvidia::settings(plugins.remove(at))
                .map_err(|why| format!("plugin {}: {why}", quote(NVIDIA)))?;
        }
        if let Some(at) = plugins.iter().position(|it| it.file == EXEC) {
            self.exec = exec::config(plugins.remove(at))
                .map_err(|why| format!("plugin {}: {why}", quote(EXEC)))?;
        }
        if let Some(at) = plugins.iter().position(|it| it.file == DOCKER) {
            self.docker = docker::config(plugins.remove(at))
                .map_err(|why| format!("plugin {}: {why}", quote(DOCKER)))?;
            self.ignored.append(&mut self.docker.ignored);
        }
        if let Some(parts) = self.client.chroot.take() {
            self.exec.settings.parts = parts;
        }
        let built_in = driver::built_in(plugins, needs_tokens, self.client.raw_exec)?;
        self.ignored.extend(built_in.ignored);
        self.exec.settings.denied_raw = built_in.denied;
        let mut disabled = built_in.disabled;
        let own = [(EXEC, self.exec.enabled), (DOCKER, self.docker.enabled)];
        disabled.extend(
            own.iter()
                .filter(|(_, on)| !on)
                .map(|(name, _)| driver::off(name)),
        );
        self.client.drivers.disabled = disabled;
        self.client.check_drivers(!self.plugins.is_empty())
    }
}

/// Reads a configuration file.
///
/// # Errors
/// It cannot be read, or says what cannot be; where, and what is known instead.
pub fn read(path: &Path) -> Result<FileConfig, String> {
    let describe = |why: String| format!("the configuration {}: {why}", path.display());
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| describe(error.to_string()))?;
    let read = file.take(MAX_SIZE + 1).read_to_string(&mut text);
    read.map_err(|error| describe(error.to_string()))?;
    if text.len() as u64 > MAX_SIZE {
        return Err(describe(format!("it has more than {MAX_SIZE} bytes")));
    }
    parse(&text).map_err(describe)
}

/// Reads the text of a configuration.
///
/// # Errors
/// See [`read`].
pub fn parse(text: &str) -> Result<FileConfig, String> {
    let text = &*quoted::as_maps(text);
    let body = text.parse::<Body>().map_err(|error| error.to_string())?;
    let mut config = FileConfig::default();
    let (mut client, mut server, mut telemetry, mut ports) = (None, None, None, None);
    let (mut addresses, mut advertise) = (None, None);
    let (mut limits, mut tls, mut acl) = (None, None, None);
    let mut top = fields(&body)?;
    config.plugin_dir = top.text("plugin_dir")?.map(PathBuf::from);
    config.agent = agent::agent(&mut top, &mut config.ignored)?;
    top.nothing_else("the configuration")?;
    for block in body.blocks() {
        match block.ident.as_str() {
            "plugin" => config.plugins.push(plugin(block)?),
            "device" => config.devices.push(device(block)?),
            "client" => once(&mut client, block, client::client)?,
            "server" => once(&mut server, block, server::server)?,
            "telemetry" => once(&mut telemetry, block, telemetry::telemetry)?,
            "log_forward" => {
                log_forward::destination(&mut config.log_forward, block, &Places(text))?;
            }
            "notify" => notify::target(&mut config.notify, block, &Places(text))?,
            "ports" => once(&mut ports, block, agent::ports)?,
            "addresses" => once(&mut addresses, block, address::named)?,
            "advertise" => once(&mut advertise, block, address::named)?,
            "limits" => once(&mut limits, block, limits::limits)?,
            "tls" => once(&mut tls, block, tls::tls)?,
            "acl" => once(&mut acl, block, acl::acl)?,
            name if agent::is_without_effect(name) => {
                config.ignored.push(name.to_owned());
            }
            other => {
                let at = Places(text).of(block);
                let known = [BLOCKS, agent::BLOCKS_WITHOUT_EFFECT].concat();
                return Err(format!("{at}{}", unknown("block", other, &known)));
            }
        }
    }
    config.client = client.unwrap_or_default();
    let needs_tokens = acl.as_ref().is_some_and(|acl| acl.enabled == Some(true));
    config.take_built_in(needs_tokens)?;
    config.agent.http_port = ports.flatten();
    let (addresses, advertise) = (addresses.unwrap_or_default(), advertise.unwrap_or_default());
    config.agent.http_address = addresses.http;
    config.agent.advertised_http = advertise.http;
    config.ignored.extend(addresses.ignored);
    config.ignored.extend(advertise.ignored);
    let server: ServerConfig = server.unwrap_or_default();
    config.preemption = server.preemption;
    let joins = !config.client.node.servers.is_empty();
    if server.enabled && joins {
        // One that is a server too joins itself.
        config.client.node.servers.clear();
        config.ignored.push("client.servers".to_owned());
    }
    config.ignored.extend(server.ignored);
    let limits: LimitsConfig = limits.unwrap_or_default();
    config.limits = limits.connections;
    config.ignored.extend(limits.ignored);
    config.tls = tls.unwrap_or_default();
    config.client.node.servers_tls = config.tls.rpc;
    config.ignored.append(&mut config.tls.ignored);
    config.acl = acl.unwrap_or_default();
    config.ignored.append(&mut config.acl.ignored);
    config.ignored.append(&mut config.client.ignored);
    config.telemetry = telemetry.unwrap_or_default();
    config.ignored.append(&mut config.telemetry.ignored);
    config.ignored.sort_unstable();
    config.ignored.dedup();
    Ok(config)
}

/// Reads a block that may be there once.
fn once<T>(
    into: &mut Option<T>,
    block: &Block,
    read: fn(&Block) -> Result<T, String>,
) -> Result<(), String> {
    let name = block.ident.as_str();
    if !block.labels.is_empty() {
        return Err(format!("{name} has no name"));
    }
    match into.replace(read(block)?) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is there twice")),
    }
}

pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let near = near.map_or_else(
        || format!("known are {}", known.join(", ")),
        |near| format!("did you mean {near}?"),
    );
    format!("unknown {what} {}; {near}", quote(name))
}

/// The one label of a block.
fn label(block: &Block) -> Result<&str, String> {
    match block.labels.as_slice() {
        [label] => Ok(label.as_str()),
        _ => Err(format!(
            "{} needs one name, such as {0} \"x\" {{ … }}",
            block.ident.as_str()
        )),
    }
}

fn plugin(block: &Block) -> Result<PluginConfig, String> {
    let file = label(block)?.to_owned();
    let about = format!("plugin {}", quote(&file));
    let mut given = fields(&block.body)?;
    let args = given.texts("args")?;
    given.nothing_else(&about)?;
    let mut config = BTreeMap::new();
    for inner in block.body.blocks() {
        match inner.ident.as_str() {
            "config" => config.extend(literal::body(&inner.body)?),
            other => return Err(format!("{about}: {}", unknown("block", other, &["config"]))),
        }
    }
    Ok(PluginConfig { file, args, config })
}

fn device(block: &Block) -> Result<Declared, String> {
    let name = label(block)?;
    let about = format!("device {}", quote(name));
    let mut parts = name.splitn(3, '/');
    let (Some(vendor), Some(kind), Some(model)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("{about}: its name is to be vendor/type/name"));
    };
    let mut given: Fields = fields(&block.body)?;
    let id = given
        .text("id")?
        .ok_or_else(|| format!("{about}: needs an id"))?;
    let declared = Declared {
        group: GroupId {
            vendor: vendor.to_owned(),
            kind: kind.to_owned(),
            name: model.to_owned(),
        },
        id,
        nodes: given.texts("nodes")?,
        mounts: given.texts("mounts")?,
        env: given.text_map("env")?,
        attributes: given.text_map("attributes")?,
    };
    given.nothing_else(&about)?;
    if let Some(inner) = block.body.blocks().next() {
        return Err(format!(
            "{about}: {}",
            unknown("block", inner.ident.as_str(), &[])
        ));
    }
    Ok(declared)
}

#[cfg(test)]
mod tests {
    use drover_core::model::value::Value;

    use super::*;

    const WHOLE: &str = r#"
        plugin_dir = "/opt/plugins"
        plugin "fpga" {
          args = ["-quiet"]
          config {
            devices = ["a", "b"]
            limit   = 2
            nested { on = true }
          }
        }
        plugin "podman" {}
        device "acme/fpga/x1" {
          id         = "slot-3"
          nodes      = ["/dev/fpga0"]
          env        = { FPGA = "0" }
          attributes = { memory = "4 GiB" }
        }
    "#;

    #[test]
    fn plugins_and_devices_are_read() {
        let config = parse(WHOLE).unwrap();
        assert_eq!(config.plugin_dir, Some(PathBuf::from("/opt/plugins")));
        assert_eq!(config.plugins.len(), 2);
        assert_eq!(config.plugins[0].args, ["-quiet"]);
        assert_eq!(config.plugins[0].config["limit"], Value::Int(2));
        let nested = config.plugins[0].config["nested"].as_list().unwrap();
        assert_eq!(nested[0].as_map().unwrap()["on"], Value::Bool(true));
        assert_eq!(config.devices[0].group.to_string(), "acme/fpga/x1");
        assert_eq!(config.devices[0].env["FPGA"], "0");
    }

    #[test]
    fn invalid_setting_error_names_valid_form() {
        for (text, expected) in [
            ("plugin_dri = \"/x\"", "did you mean plugin_dir?"),
            ("plugn \"x\" {}", "did you mean plugin?"),
            ("plugin \"x\" { arg = [] }", "did you mean args?"),
            ("plugin {}", "needs one name"),
            ("plugin \"x\" {}\nplugin \"x\" {}", "is there twice"),
            ("device \"gpu\" { id = \"a\" }", "vendor/type/name"),
            ("device \"a/b/c\" {}", "needs an id"),
            ("plugin_dir = 3", "a string is needed"),
            ("plugin_dir = upper(\"x\")", "a literal value"),
            ("plugin \"x\" {", "expected"),
            ("telemetry {}\ntelemetry {}", "telemetry is there twice"),
            ("client \"x\" {}", "client has no name"),
            ("client { option = {} }", "did you mean options?"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
