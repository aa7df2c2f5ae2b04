//! The driver `docker`, which is built in: `plugin "docker"`.
//!
//! ```hcl
//! plugin "docker" {
//!   config {
//!     endpoint         = "unix:///var/run/docker.sock"
//!     allow_privileged = false
//!     allow_caps       = ["chown", "net_raw"]     # what tasks may have of root's power; "all"
//!     allow_runtimes   = ["runc", "nvidia"]
//!     pids_limit       = 0                        # the most that a job may ask for; 0 for what any task may have
//!     volumes { enabled = false }                 # whether jobs may mount what is not their own
//!     allowed_modes { pid = ["host"] }            # namespaces of the host
//!     allow_devices    = ["/dev/fuse"]            # what jobs may name of the host's
//!     allow_unconfined = false                    # whether jobs may leave out filters of system calls and the like
//!     allowed_logging_types = ["json-file"]       # logging drivers that jobs may name
//!     gc {
//!       image       = true                        # remove images that were fetched and are not used
//!       image_delay = "3m"
//!       container   = true
//!     }
//!     logging {
//!       type = "json-file"
//!       config { max-file = "2", max-size = "2m" }
//!     }
//!     auth { config = "/root/.docker/config.json" }
//!     image_pull_timeout = "5m"
//!   }
//! }
//! ```

use std::time::Duration;

use drover_core::driver::capabilities::Capabilities;
use drover_core::driver::docker::DockerPolicy;
use drover_core::model::value::Value;
use drover_core::text::quote;
use drover_core::time::Span;
use drover_io_real::driver::docker::{CredentialSource, DockerSettings, socket_path};
use drover_io_real::plugins::PluginConfig;

use super::literal::{Fields, of_map};

/// The driver's name in a warning.
const NAME: &str = "plugin.docker";

/// What Nomad has and what has no effect here: there are no such containers, or there is nothing to be tried again.
const WITHOUT_EFFECT: &[&str] = &[
    "infra_image",
    "infra_image_pull_timeout",
    "container_exists_attempts",
    "windows_allow_insecure_container_admin",
];

const MIB: u64 = 1 << 20;

/// The least time that a download may make no progress, as in Nomad.
const LEAST_ACTIVITY: Span = Span::secs(60);

/// What is said of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DockerConfig {
    /// Whether tasks may use it.
    pub enabled: bool,
    /// What containers are allowed.
    pub policy: DockerPolicy,
    /// Which engine makes them, and how.
    pub settings: DockerSettings,
    /// What is given and has no effect here.
    pub(super) ignored: Vec<String>,
}

impl Default for DockerConfig {
    fn default() -> DockerConfig {
        let mut config = DockerConfig {
            enabled: true,
            policy: DockerPolicy::default(),
            settings: DockerSettings::default(),
            ignored: Vec::new(),
        };
        report(&mut config);
        config
    }
}

/// Reads the block of the plugin.
pub(super) fn config(plugin: PluginConfig) -> Result<DockerConfig, String> {
    if !plugin.args.is_empty() {
        return Err("it is built in and takes no arguments".to_owned());
    }
    // An empty list allows none, and no list the usual ones.
    let names_devices = plugin
        .config
        .get("allow_devices")
        .is_some_and(|it| *it != Value::Null);
    let mut given = of_map(plugin.config);
    let mut config = DockerConfig {
        enabled: given.flag("enabled")?.unwrap_or(true),
        ..DockerConfig::default()
    };
    if given.block("tls")?.is_some() {
        return Err(
            "tls: only engines of this machine can be used, by their Unix socket".to_owned(),
        );
    }
    policy(&mut given, &mut config.policy)?;
    let devices = given.texts("allow_devices")?;
    if names_devices {
        config.policy.allow_devices = patterns(devices)?;
    }
    settings(&mut given, &mut config)?;
    let names = given.ignore(WITHOUT_EFFECT).into_iter();
    config
        .ignored
        .extend(names.map(|name| format!("{NAME}.{name}")));
    given.nothing_else("config")?;
    report(&mut config);
    Ok(config)
}

fn policy(given: &mut Fields, policy: &mut DockerPolicy) -> Result<(), String> {
    policy.allow_privileged = given.flag("allow_privileged")?.unwrap_or(false);
    policy.allow_unconfined = given.flag("allow_unconfined")?.unwrap_or(false);
    let caps = given.texts("allow_caps")?;
    if !caps.is_empty() {
        let named = Capabilities::named(caps);
        policy.allow_caps = named.map_err(|why| format!("allow_caps: {why}"))?;
    }
    let runtimes = given.texts("allow_runtimes")?;
    if !runtimes.is_empty() {
        policy.allow_runtimes = runtimes;
    }
    let logging = given.texts("allowed_logging_types")?;
    if !logging.is_empty() {
        policy.allowed_logging_types = logging;
    }
    if let Some(number) = given.number("pids_limit")? {
        let wrong =
            |_| format!("pids_limit: {number} is no number of processes; 0 is what any task has");
        policy.pids_limit = u64::try_from(number).map_err(wrong)?;
    }
    if let Some(mut modes) = given.block("allowed_modes")? {
        for kind in ["pid", "ipc", "userns", "uts", "network", "cgroupns"] {
            policy
                .allowed_modes
                .insert(kind.to_owned(), modes.texts(kind)?);
        }
        modes.nothing_else("allowed_modes")?;
    }
    if let Some(span) = given.span("image_pull_timeout")? {
        policy.image_pull_timeout = span;
    }
    Ok(())
}

/// Patterns of devices: one that is none of a path below `/dev` would never match.
fn patterns(devices: Vec<String>) -> Result<Vec<String>, String> {
    match devices.iter().find(|it| !it.starts_with("/dev/")) {
        Some(other) => Err(format!(
            "allow_devices: a path below /dev such as /dev/dri/* is needed, not {}",
            quote(other)
        )),
        None => Ok(devices),
    }
}

fn settings(given: &mut Fields, config: &mut DockerConfig) -> Result<(), String> {
    let DockerConfig {
        policy,
        settings,
        ignored,
        ..
    } = config;
    if let Some(endpoint) = given.text("endpoint")?.filter(|it| !it.is_empty()) {
        settings.socket = socket_path(&endpoint)?;
    }
    if let Some(mut volumes) = given.block("volumes")? {
        policy.volumes = volumes.flag("enabled")?.unwrap_or(false);
        settings.selinux_label = volumes.text("selinuxlabel")?.unwrap_or_default();
        volumes.nothing_else("volumes")?;
    }
    if let Some(mut gc) = given.block("gc")? {
        settings.collect_images = gc.flag("image")?.unwrap_or(true);
        settings.collect_containers = gc.flag("container")?.unwrap_or(true);
        if let Some(delay) = gc.span("image_delay")? {
            settings.image_delay = duration(delay);
        }
        if let Some(dangling) = gc.block("dangling_containers")? {
            ignored.extend(dangling_containers(dangling)?);
        }
        gc.nothing_else("gc")?;
    }
    if let Some(mut logging) = given.block("logging")? {
        let driver = logging.text("type")?;
        let options = logging.block("config")?;
        if let Some(driver) = driver.filter(|it| *it != settings.logging.0) {
            settings.logging = (driver, Default::default());
        }
        if let Some(options) = options {
            settings.logging.1 = options.into_texts("logging.config")?;
        }
        logging.nothing_else("logging")?;
    }
    if let Some(mut auth) = given.block("auth")? {
        let file = auth.text("config")?.filter(|it| !it.is_empty());
        let helper = auth.text("helper")?.filter(|it| !it.is_empty());
        let file = file.map(|path| CredentialSource::File(path.into()));
        let helper = helper.map(CredentialSource::Helper);
        settings.credentials = file.into_iter().chain(helper).collect();
        auth.nothing_else("auth")?;
    }
    if let Some(size) = given.number("image_max_size_mb")? {
        let wrong = |_| format!("image_max_size_mb: {size} is no size; 0 is what fits on the disk");
        let size = u64::try_from(size).map_err(wrong)?;
        settings.image_max_size = (size > 0).then(|| size.saturating_mul(MIB));
    }
    settings.extra_labels = given.texts("extra_labels")?;
    settings.disable_log_collection = given.flag("disable_log_collection")?.unwrap_or(false);
    if let Some(runtime) = given.text("nvidia_runtime")? {
        settings.nvidia_runtime = runtime;
    }
    if let Some(span) = given.span("pull_activity_timeout")? {
        if span < LEAST_ACTIVITY {
            return Err(format!(
                "pull_activity_timeout: must be at least {LEAST_ACTIVITY}"
            ));
        }
        settings.pull_activity_timeout = duration(span);
    }
    if let Some(number) = given.number("oom_score_adj")? {
        if !(0..=1000).contains(&number) {
            return Err(format!(
                "oom_score_adj: must be from 0 to 1000, is {number}"
            ));
        }
        settings.oom_score_adj = number;
    }
    Ok(())
}

/// What is lost is found by the agent's records when it starts, and removed then: nothing is looked for by labels, which
/// may be others'. What would keep a container is refused, so that nobody relies on it; when it is looked for has no
/// effect, and is named.
fn dangling_containers(mut given: Fields) -> Result<Vec<String>, String> {
    let is_enabled = given.flag("enabled")?.unwrap_or(true);
    let is_dry_run = given.flag("dry_run")?.unwrap_or(false);
    let mut ignored = Vec::new();
    for name in ["period", "creation_grace"] {
        if given.span(name)?.is_some() {
            ignored.push(format!("{NAME}.gc.dangling_containers.{name}"));
        }
    }
    if !is_enabled || is_dry_run {
        return Err(
            "gc.dangling_containers: containers that an agent lost are always removed, and only those of which it has a \
             record; leave the block out"
                .to_owned(),
        );
    }
    given.nothing_else("gc.dangling_containers")?;
    Ok(ignored)
}

/// What of this jobs may ask for in constraints.
fn report(config: &mut DockerConfig) {
    let mut attributes = Vec::new();
    let mut attribute = |name: &str, value: String| {
        attributes.push((format!("driver.docker.{name}"), value));
    };
    if config.policy.allow_privileged {
        attribute("privileged.enabled", "true".to_owned());
    }
    if config.policy.volumes {
        attribute("volumes.enabled", "true".to_owned());
    }
    if config.policy.pids_limit > 0 {
        attribute("pids.limit", config.policy.pids_limit.to_string());
    }
    config.settings.attributes = attributes;
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(u64::try_from(span.0).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn docker(inner: &str) -> Result<DockerConfig, String> {
        let config = parse(&format!("plugin \"docker\" {{\nconfig {{\n{inner}\n}}\n}}"))?;
        assert!(config.plugins.is_empty(), "it is no program");
        Ok(config.docker)
    }

    #[test]
    fn default_is_closed() {
        assert_eq!(parse("").map(|it| it.docker), Ok(DockerConfig::default()));
        assert_eq!(docker(""), Ok(DockerConfig::default()));
        let policy = DockerConfig::default().policy;
        assert!(!policy.allow_privileged && !policy.volumes && !policy.allow_unconfined);
        let off = parse("plugin \"docker\" {\nconfig {\nenabled = false\n}\n}").unwrap();
        assert!(!off.client.drivers.allows("docker") && off.client.drivers.allows("exec"));
    }

    #[test]
    fn settings_are_read() {
        let config = docker(
            "endpoint = \"unix:///run/d.sock\"\nallow_privileged = true\nallow_caps = [\"all\"]\n\
             pids_limit = 7\nvolumes {\n enabled = true\n selinuxlabel = \"z\"\n}\n\
             allowed_modes {\n pid = [\"host\"]\n}\n\
             gc {\n image = false\n image_delay = \"1m\"\n container = false\n\
              dangling_containers {\n enabled = true\n }\n}\n\
             logging {\n type = \"journald\"\n config {\n tag = \"x\"\n }\n}\n\
             auth {\n config = \"/x.json\"\n helper = \"ecr-login\"\n}\n\
             infra_image = \"pause\"\nextra_labels = [\"job*\"]\nimage_pull_timeout = \"2m\"",
        )
        .unwrap();
        assert_eq!(config.settings.socket, std::path::Path::new("/run/d.sock"));
        assert!(config.policy.allow_privileged && config.policy.volumes);
        assert_eq!(config.policy.allow_caps, Capabilities::ALL);
        assert_eq!(
            config.policy.allowed_modes.get("pid").map(Vec::len),
            Some(1)
        );
        assert_eq!(config.policy.image_pull_timeout, Span::secs(120));
        assert!(!config.settings.collect_images && !config.settings.collect_containers);
        assert_eq!(config.settings.image_delay, Duration::from_secs(60));
        let options = [("tag".to_owned(), "x".to_owned())].into();
        assert_eq!(config.settings.logging, ("journald".to_owned(), options));
        assert_eq!(config.settings.credentials.len(), 2);
        let names: Vec<&str> = config
            .settings
            .attributes
            .iter()
            .map(|it| it.0.as_str())
            .collect();
        assert!(
            names.contains(&"driver.docker.volumes.enabled"),
            "{names:?}"
        );
    }

    /// An engine refuses a container whose log driver does not know an option.
    #[test]
    fn options_of_usual_log_driver_are_not_given_to_another() {
        let usual = DockerConfig::default().settings.logging;
        assert!(!usual.1.is_empty());
        let of = |driver: &str, options: &[(&str, &str)]| {
            let options = options
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            (driver.to_owned(), options.collect())
        };
        for (inner, expected) in [
            ("type = \"journald\"", of("journald", &[])),
            ("type = \"json-file\"", usual.clone()),
            (
                "config {\n max-size = \"5m\"\n }",
                of(&usual.0, &[("max-size", "5m")]),
            ),
        ] {
            let config = docker(&format!("logging {{\n {inner}\n}}")).unwrap();
            assert_eq!(config.settings.logging, expected, "{inner}");
        }
    }

    #[test]
    fn host_access_policy_of_containers_is_read() {
        let config = docker(
            "allow_devices = [\"/dev/fuse\"]\nallow_unconfined = true\n\
             allowed_modes {\n network = [\"container:web-*\"]\n cgroupns = [\"host\"]\n}",
        );
        let policy = config.unwrap().policy;
        assert_eq!(policy.allow_devices, ["/dev/fuse"]);
        assert!(policy.allow_unconfined);
        let logging = docker("allowed_logging_types = [\"fluentd\"]").unwrap();
        assert_eq!(logging.policy.allowed_logging_types, ["fluentd"]);
        for (kind, pattern) in [("network", "container:web-*"), ("cgroupns", "host")] {
            assert_eq!(policy.allowed_modes.get(kind).unwrap(), &[pattern]);
        }
        let none = docker("allow_devices = []").unwrap().policy;
        assert_eq!(none.allow_devices, [""; 0]);
        assert!(!DockerConfig::default().policy.allow_devices.is_empty());
    }

    #[test]
    fn unsupported_docker_setting_is_ignored_and_named() {
        let dangling = "dangling_containers {\n enabled = true\n dry_run = false\n period = \"5m\"\n creation_grace \
                        = \"5m\"\n}";
        let inner = format!("infra_image = \"pause\"\ngc {{\n {dangling}\n}}");
        let text = format!("plugin \"docker\" {{\nconfig {{\n{inner}\n}}\n}}");
        assert_eq!(
            parse(&text).unwrap().ignored,
            [
                "plugin.docker.gc.dangling_containers.creation_grace",
                "plugin.docker.gc.dangling_containers.period",
                "plugin.docker.infra_image",
            ]
        );
        assert_eq!(
            docker("gc {\n dangling_containers {}\n}").unwrap().ignored,
            [""; 0]
        );
    }

    #[test]
    fn invalid_setting_error_names_valid_form() {
        for (inner, expected) in [
            ("endpoint = \"tcp://127.0.0.1:2375\"", "a Unix socket"),
            ("tls {\n cert = \"x\"\n}", "Unix socket"),
            ("allow_caps = [\"kil\"]", "did you mean kill?"),
            (
                "gc {\n image_dealy = \"3m\"\n}",
                "did you mean image_delay?",
            ),
            ("allow_devices = [\"*\"]", "a path below /dev"),
            (
                "gc {\n dangling_containers {\n enabled = false\n }\n}",
                "always removed",
            ),
            (
                "gc {\n dangling_containers {\n dry_run = true\n }\n}",
                "leave the block out",
            ),
            (
                "gc {\n dangling_containers {\n period = \"often\"\n }\n}",
                "a duration such as 3m",
            ),
            ("pids_limit = -1", "no number of processes"),
            ("pull_activity_timeout = \"1s\"", "at least"),
            ("image_pull_timeout = \"soon\"", "a duration such as 3m"),
            ("allow_priviliged = true", "did you mean allow_privileged?"),
        ] {
            let why = docker(inner).unwrap_err();
            assert!(why.starts_with("plugin \"docker\": "), "{why}");
            assert!(why.contains(expected), "{why}");
        }
    }
}
