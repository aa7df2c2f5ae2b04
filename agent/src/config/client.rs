//! The block `client`: which probes and drivers are wanted, and which clouds are asked.
//!
//! ```hcl
//! client {
//!   options = {
//!     "fingerprint.denylist" = "bridge,cni"    # or fingerprint.allowlist: these and no others
//!     "driver.allowlist"     = "raw_exec"      # or driver.denylist
//!     "env.allowlist"        = "HTTP_PROXY,MY_*"   # of our variables, beside PATH and the like
//!     "env.denylist"         = "TERM"          # and not these
//!   }
//!   fingerprint "env_aws" {}                   # a cloud is asked only if it is named
//!   gc_max_allocs            = 50              # ended allocations that are kept
//!   gc_disk_usage_threshold  = 80              # percent; above it, the oldest of them go
//!   gc_inode_usage_threshold = 70
//!   gc_interval              = "1m"            # how often that is checked
//!   gc_parallel_destroys     = 2               # how many go at once
//!   disk_usage_interval      = "1m"            # how often directories of allocations are measured
//!   disk_quota               = true            # the file system bounds them
//!   consul_services          = true            # services with provider "consul" are run as "nomad"
//!   artifact { http_max_size = "1GB" }         # bounds of what tasks fetch; see `artifact`
//! }
//! ```
//!
//! Options may be a block, too. [`super::node`] and [`super::machine`] say what else there is in it.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::task::host_env::HostEnvRules;
use drover_core::text::quote;
use drover_io_real::allowed::Allowed;
use drover_io_real::artifact::settings::Settings;
use drover_io_real::driver::exec::HostPart;
use drover_io_real::fingerprint::PROBES;
use hcl_edit::structure::Block;

use super::artifact::artifact;
use super::gc::{GcConfig, gc};
use super::literal::{as_settings, body, fields};
use super::node::{self, NodeConfig};
use super::{label, unknown};

/// Probes of Nomad that look at what this agent does not have. Lists may name them.
const PROBES_ELSEWHERE: &[&str] = &["consul", "host_volume_plugins", "secrets_plugins", "vault"];

/// Drivers of Nomad that this agent does not have. Lists may name them.
const DRIVERS_ELSEWHERE: &[&str] = &["docker", "java", "qemu"];

/// The drivers of this agent.
pub(super) const DRIVERS: &[&str] = &["raw_exec", "exec", "docker", "mock_driver", "mock"];

/// The option by which older files switch `raw_exec` on or off.
const RAW_EXEC_ENABLE: &str = "driver.raw_exec.enable";

/// Options of Nomad that have no effect here.
const OPTIONS_WITHOUT_EFFECT: &[&str] = &[
    "docker.auth.config",
    "docker.auth.helper",
    "docker.caps.allowlist",
    "docker.caps.whitelist",
    "docker.cleanup.container",
    "docker.cleanup.image",
    "docker.cleanup.image.delay",
    "docker.endpoint",
    "docker.nvidia_runtime",
    "docker.privileged.enabled",
    "docker.tls.ca",
    "docker.tls.cert",
    "docker.tls.key",
    "docker.volumes.enabled",
    "docker.volumes.selinuxlabel",
    "driver.raw_exec.no_cgroups",
    "fingerprint.network.disallow_link_local",
    "user.blacklist",
    "user.checked_drivers",
    "user.denylist",
];

/// Blocks that are read here.
const BLOCKS: &[&str] = &[
    "artifact",
    "chroot_env",
    "fingerprint",
    "host_network",
    "host_volume",
    "io",
    "meta",
    "options",
    "overcommit",
    "reserved",
    "server_join",
];

/// What is wanted of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// The probes.
    pub probes: Allowed,
    /// The drivers, plugins included.
    pub drivers: Allowed,
    /// Which variables of the agent's environment tasks see.
    pub env: HostEnvRules,
    /// The clouds that are asked.
    pub clouds: BTreeSet<String>,
    /// When ended allocations are garbage-collected.
    pub gc: GcConfig,
    /// Whether services whose provider is Consul are run as the node's own.
    pub consul_services: bool,
    /// What tasks may fetch.
    pub artifact: Settings,
    /// What of the host isolated tasks see, if it is said.
    pub chroot: Option<Vec<HostPart>>,
    /// Whether options switch `raw_exec` on or off.
    pub(super) raw_exec: Option<bool>,
    /// What is said of the node itself.
    pub node: NodeConfig,
    /// What is given and has no effect here.
    pub ignored: Vec<String>,
}

impl ClientConfig {
    /// Whether a probe is asked: if no list keeps it out and, if it asks others than this
    /// machine, if people want it.
    ///
    /// # Errors
    /// Why not.
    pub fn wants_probe(&self, name: &str, off_unless_enabled: bool) -> Result<(), String> {
        if let Some(denial) = self.probes.denial(name) {
            return Err(denial);
        }
        if off_unless_enabled && !self.clouds.contains(name) && !self.probes.only.contains(name) {
            return Err(format!("off; fingerprint \"{name}\" {{}} enables it"));
        }
        Ok(())
    }

    /// The drivers of this agent that are not wanted, with why.
    pub fn denied_drivers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let all = DRIVERS.iter();
        all.filter_map(|name| Some((*name, self.drivers.denial(name)?)))
    }

    /// Looks at names of drivers, which are known only when all of the file was read: those of
    /// plugins are not known before they run.
    ///
    /// # Errors
    /// The first name that nobody can have.
    pub(super) fn check_drivers(&self, has_plugins: bool) -> Result<(), String> {
        if has_plugins {
            return Ok(());
        }
        all_known("driver", self.drivers.names(), DRIVERS, DRIVERS_ELSEWHERE)
    }
}

/// Reads a block.
pub(super) fn client(block: &Block) -> Result<ClientConfig, String> {
    let mut given = fields(&block.body)?;
    let mut options = given.settings("options")?;
    let gc = gc(&mut given)?;
    let consul_services = given.flag("consul_services")?.unwrap_or(false);
    let chroot = super::exec::parts(&given.text_map("chroot_env")?)?;
    let node = node::node(&mut given)?;
    let mut ignored = Vec::new();
    for name in given.ignore(node::WITHOUT_EFFECT) {
        ignored.push(format!("client.{name}"));
    }
    given.nothing_else("client")?;
    let mut config = ClientConfig {
        gc,
        consul_services,
        chroot,
        node,
        ignored,
        ..ClientConfig::default()
    };
    let mut bounded = false;
    for inner in block.body.blocks() {
        match inner.ident.as_str() {
            "artifact" if std::mem::replace(&mut bounded, true) => {
                return Err("client: artifact is given twice".to_owned());
            }
            "artifact" => config.artifact = artifact(inner)?,
            "fingerprint" => drop(config.clouds.insert(cloud(inner, &mut config.ignored)?)),
            "options" => options.extend(as_settings("options", body(&inner.body)?)?),
            // An empty one asks for the usual parts.
            "chroot_env" if inner.body.is_empty() => {}
            _ if config.node.block(inner, &mut config.ignored)? => {}
            other => {
                let known = [BLOCKS, node::BLOCKS_WITHOUT_EFFECT].concat();
                let why = unknown("block", other, &known);
                return Err(format!("client: {why}"));
            }
        }
    }
    config.node.check_discovery(&mut config.ignored)?;
    config.options(options)?;
    Ok(config)
}

impl ClientConfig {
    /// Reads the options.
    fn options(&mut self, mut options: BTreeMap<String, String>) -> Result<(), String> {
        let (allow, deny) = two_lists(&mut options, "env")?;
        self.env = HostEnvRules { allow, deny };
        self.probes = lists(&mut options, "fingerprint")?;
        self.drivers = lists(&mut options, "driver")?;
        if let Some(text) = options.remove(RAW_EXEC_ENABLE) {
            self.raw_exec = Some(switch(RAW_EXEC_ENABLE, &text)?);
        }
        for name in OPTIONS_WITHOUT_EFFECT {
            if options.remove(*name).is_some() {
                self.ignored.push(format!("client.options.{name}"));
            }
        }
        if let Some(name) = options.keys().next() {
            let lists = ["fingerprint", "driver", "env"];
            let lists =
                lists.map(|about| ["allowlist", "denylist"].map(|it| format!("{about}.{it}")));
            let lists = lists.iter().flatten().map(String::as_str);
            let known: Vec<&str> = lists
                .chain([RAW_EXEC_ENABLE])
                .chain(OPTIONS_WITHOUT_EFFECT.iter().copied())
                .collect();
            return Err(format!("client: {}", unknown("option", name, &known)));
        }
        let known: Vec<&str> = PROBES.iter().map(|probe| probe.name).collect();
        all_known("probe", self.probes.names(), &known, PROBES_ELSEWHERE)
    }
}

/// Whether an option switches something on.
fn switch(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err(format!(
            "client: options: {name}: true or false is needed, not {}",
            quote(text)
        )),
    }
}

fn lists(options: &mut BTreeMap<String, String>, about: &'static str) -> Result<Allowed, String> {
    let (only, not) = two_lists(options, about)?;
    Ok(Allowed {
        about,
        only,
        not,
        disabled: BTreeMap::new(),
    })
}

/// The allow list and the deny list of names, each under its name or its older one.
fn two_lists(
    options: &mut BTreeMap<String, String>,
    about: &str,
) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
    let mut list = |names: [&str; 2]| {
        let keys = names.map(|name| format!("{about}.{name}"));
        let given = keys.each_ref().map(|key| options.remove(key));
        match given {
            [Some(_), Some(_)] => Err(format!(
                "client: {} and {} are the same; give one",
                keys[0], keys[1]
            )),
            [one, other] => Ok(names_of(&one.or(other).unwrap_or_default())),
        }
    };
    let allowed = list(["allowlist", "whitelist"])?;
    Ok((allowed, list(["denylist", "blacklist"])?))
}

/// Names with commas between them.
fn names_of(text: &str) -> BTreeSet<String> {
    let names = text.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn all_known<'a>(
    what: &str,
    names: impl Iterator<Item = &'a str>,
    known: &[&str],
    elsewhere: &[&str],
) -> Result<(), String> {
    let mut names = names.filter(|name| !known.contains(name) && !elsewhere.contains(name));
    match names.next() {
        None => Ok(()),
        Some(name) => Err(format!("client: {}", unknown(what, name, known))),
    }
}

/// The cloud that is to be asked. How often Nomad tries that, and whether it stops without an answer, has no effect: a
/// probe that fails never stops the agent, and is asked again after a pause that grows.
fn cloud(block: &Block, ignored: &mut Vec<String>) -> Result<String, String> {
    let name = label(block)?;
    let about = format!("client: fingerprint {}", quote(name));
    let clouds = PROBES.iter().filter(|probe| probe.off_unless_enabled);
    let clouds: Vec<&str> = clouds.map(|probe| probe.name).collect();
    if !clouds.contains(&name) {
        return Err(format!("client: {}", unknown("cloud", name, &clouds)));
    }
    let mut given = fields(&block.body)?;
    let without_effect = given.ignore(&["exit_on_failure", "retry_attempts", "retry_interval"]);
    ignored.extend((without_effect.iter()).map(|it| format!("client.fingerprint.{name}.{it}")));
    given.nothing_else(&about)?;
    match block.body.blocks().next() {
        None => Ok(name.to_owned()),
        Some(inner) => Err(format!(
            "{about}: {}",
            unknown("block", inner.ident.as_str(), &[])
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    #[test]
    fn allow_and_deny_lists_select_probes_and_drivers() {
        let config = parse(
            r#"
            client {
              options = {
                "fingerprint.denylist" = "bridge, vault,cpu"
                "driver.whitelist"     = "raw_exec"
              }
              fingerprint "env_aws" {}
            }
            "#,
        )
        .unwrap()
        .client;
        let denied = Err("denied by fingerprint.denylist".to_owned());
        assert_eq!(config.wants_probe("bridge", false), denied);
        assert_eq!(config.wants_probe("cpu", false), denied);
        assert_eq!(config.wants_probe("memory", false), Ok(()));
        assert_eq!(config.wants_probe("env_aws", true), Ok(()));
        let off = config.wants_probe("env_gce", true).unwrap_err();
        assert!(off.starts_with("off; fingerprint \"env_gce\""), "{off}");
        let drivers: Vec<&str> = config.denied_drivers().map(|(name, _)| name).collect();
        assert_eq!(drivers, ["exec", "docker", "mock_driver", "mock"]);
    }

    #[test]
    fn env_list_is_read_under_both_names() {
        let text =
            r#"client { options = { "env.allowlist" = "A, B_*", "env.blacklist" = "PATH" } }"#;
        let env = parse(text).unwrap().client.env;
        assert!(env.allows("A") && env.allows("B_C") && env.allows("HOME"));
        assert!(!env.allows("PATH") && !env.allows("C"));
    }

    #[test]
    fn default_enables_all_probes_but_clouds() {
        let config = parse("").unwrap().client;
        assert_eq!(config.wants_probe("cpu", false), Ok(()));
        assert!(config.wants_probe("env_aws", true).is_err());
        assert_eq!(config.denied_drivers().count(), 0);
        let named = r#"client { options = { "fingerprint.allowlist" = "env_gce" } }"#;
        let config = parse(named).unwrap().client;
        assert_eq!(config.wants_probe("env_gce", true), Ok(()));
        assert!(config.wants_probe("cpu", false).is_err());
    }

    #[test]
    fn options_may_be_a_block_and_those_without_effect_are_named() {
        let text = r#"
            client {
              options {
                "driver.denylist"           = "mock"
                "docker.cleanup.image"      = false
                "user.denylist"             = "root"
              }
              chroot_env {
                "/srv/tools" = "/tools"
              }
              meta {
                rack       = "r1"
                "rack.row" = 7
              }
              fingerprint "env_aws" {
                retry_interval  = "5m"
                exit_on_failure = true
              }
            }
            http_api_response_headers {
              "Access-Control-Allow-Origin" = "*"
            }
            "#;
        let config = parse(text).unwrap();
        let drivers: Vec<&str> = config
            .client
            .denied_drivers()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(drivers, ["mock"]);
        assert_eq!(config.exec.settings.parts.len(), 1);
        assert_eq!(config.client.node.meta["rack"], "r1");
        assert_eq!(config.client.node.meta["rack.row"], "7");
        let expected = [
            "client.fingerprint.env_aws.exit_on_failure",
            "client.fingerprint.env_aws.retry_interval",
            "client.options.docker.cleanup.image",
            "client.options.user.denylist",
            "http_api_response_headers",
        ];
        assert_eq!(config.ignored, expected);
    }

    #[test]
    fn invalid_setting_error_names_valid_form() {
        let options = |text: &str| format!("client {{ options = {{ {text} }} }}");
        for (text, expected) in [
            (
                options("\"fingerprint.denylist\" = \"memry\""),
                "did you mean memory?",
            ),
            (
                options("\"fingerprint.denilist\" = \"cpu\""),
                "did you mean fingerprint.denylist?",
            ),
            (
                options("\"driver.denylist\" = \"rawexec\""),
                "did you mean raw_exec?",
            ),
            (
                options("\"driver.denylist\" = \"mock\"\n\"driver.blacklist\" = \"mock\""),
                "are the same",
            ),
            (
                options("\"env.allowlists\" = \"A\""),
                "did you mean env.allowlist?",
            ),
            (
                "client {\n fingerprint \"env_asw\" {}\n}".to_owned(),
                "did you mean env_aws?",
            ),
            (
                "client {\n fingerprint \"env_aws\" { retry_attempt = 3 }\n}".to_owned(),
                "did you mean retry_attempts?",
            ),
            (
                options("\"driver.raw_exec.enable\" = \"on\""),
                "true or false is needed",
            ),
            (
                "client {\n reservd {}\n}".to_owned(),
                "did you mean reserved?",
            ),
            (
                "client {\n templat {}\n}".to_owned(),
                "did you mean template?",
            ),
        ] {
            let why = parse(&text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        // A plugin's name is known only when it runs.
        let text = "plugin \"x\" {}\nclient { options = { \"driver.denylist\" = \"podman\" } }";
        assert!(parse(text).is_ok());
    }
}
