//! What containers are allowed: what a job asks of the driver `docker`, within what the agent's configuration allows.
//!
//! A task that asks for more is refused before anything is made for it; the refusal names the setting that would
//! allow it.

mod devices;
mod kernel;
mod limits;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::kernel::security_parts;
pub use self::limits::ulimit;

use super::capabilities::Capabilities;
use super::config::{DockerConfig, MountKind};
use crate::paths::task_path::names;
use crate::store::record::AssignedPort;
use crate::text::{listed, quote};
use crate::time::Span;

/// The capabilities that an engine gives by itself, but for `net_raw`, as in Nomad.
const USUAL: [&str; 13] = [
    "audit_write",
    "chown",
    "dac_override",
    "fowner",
    "fsetid",
    "kill",
    "mknod",
    "net_bind_service",
    "setfcap",
    "setgid",
    "setpcap",
    "setuid",
    "sys_chroot",
];

/// Logging drivers that keep what tasks write on this machine, or nowhere.
const LOGGING: [&str; 4] = ["json-file", "local", "journald", "none"];

/// How long an image may take to be there unless somebody says it.
const PULL_TIME: Span = Span::secs(300);

/// What the agent's configuration allows containers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerPolicy {
    /// Whether a container may have all rights of the host.
    pub allow_privileged: bool,
    /// The capabilities that a container may have.
    pub allow_caps: Capabilities,
    /// The runtimes that a job may name.
    pub allow_runtimes: Vec<String>,
    /// Whether a job may mount what is outside of its allocation's directory, and name drivers of volumes.
    pub volumes: bool,
    /// The devices that a job may name, as patterns over the paths of their nodes, to which links lead.
    pub allow_devices: Vec<String>,
    /// Whether a job may leave out what the engine keeps containers in: filters of system calls, profiles of
    /// AppArmor, labels of SELinux, that nothing gets more rights than it began with.
    pub allow_unconfined: bool,
    /// Namespaces of the host, and of others, that a container may have, by `pid`, `ipc`, `userns`, `uts`, `network`
    /// and `cgroupns`, as patterns.
    pub allowed_modes: BTreeMap<String, Vec<String>>,
    /// The engine's logging drivers that a job may name. What the agent's own configuration names needs no leave.
    pub allowed_logging_types: Vec<String>,
    /// The most processes and threads of a container; 0 for as many as any task.
    pub pids_limit: u64,
    /// The most processes and threads of any task; 0 for no limit.
    pub pids_limit_of_tasks: u64,
    /// How long an image may take to be there.
    pub image_pull_timeout: Span,
}

impl Default for DockerPolicy {
    fn default() -> DockerPolicy {
        DockerPolicy {
            allow_privileged: false,
            allow_caps: usual(),
            allow_runtimes: vec!["runc".to_owned(), "nvidia".to_owned()],
            volumes: false,
            allow_devices: devices::usual(),
            allow_unconfined: false,
            allowed_modes: BTreeMap::new(),
            allowed_logging_types: LOGGING.map(str::to_owned).into(),
            pids_limit: 0,
            pids_limit_of_tasks: 0,
            image_pull_timeout: PULL_TIME,
        }
    }
}

fn usual() -> Capabilities {
    Capabilities::named(USUAL).unwrap_or_default()
}

/// What one container may have beside what its job's configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// All its capabilities.
    pub capabilities: Capabilities,
    /// The ports of the host that lead to it.
    pub ports: Vec<AssignedPort>,
    /// The cores that it has for itself, such as `0-1,4`; empty for none.
    pub cores: String,
    /// The most processes and threads; 0 for the agent's limit.
    pub pids_limit: u64,
    /// How long its image may take to be there.
    pub pull_time: Span,
    /// Whether it may have every device of the host.
    pub raw_devices: bool,
    /// The devices that it may have else, as patterns over the paths of their nodes.
    pub allowed_devices: Vec<String>,
}

impl DockerPolicy {
    /// Whether a container may be as it is asked for.
    ///
    /// # Errors
    /// What may not be, and which setting would allow it.
    pub fn admit(&self, asked: &DockerConfig) -> Result<(), String> {
        if asked.privileged && !self.allow_privileged {
            return Err(denied(
                "privileged",
                "all rights of the host",
                "allow_privileged",
            ));
        }
        self.capabilities(asked)?;
        self.modes(asked)?;
        self.files(asked)?;
        if let Some(runtime) = &asked.runtime
            && !self.allow_runtimes.contains(runtime)
        {
            let what = format!("the runtime {}", quote(runtime));
            let allowed = self.allow_runtimes.iter().map(String::as_str);
            return Err(denied_beside("runtime", &what, "allow_runtimes", allowed));
        }
        let most = match self.pids_limit {
            0 => self.pids_limit_of_tasks,
            most => most,
        };
        if most > 0 && asked.pids_limit > most {
            let what = format!("more than {most} processes");
            return Err(denied("pids_limit", &what, "pids_limit"));
        }
        for option in &asked.security_opt {
            self.security_option(option)?;
        }
        self.devices(asked)?;
        kernel::sysctls(asked)?;
        limits::labels(asked)?;
        limits::storage(asked)?;
        limits::logging(asked, &self.allowed_logging_types)?;
        limits::ulimits(asked, self.allow_privileged)
    }

    /// What a container may have that is asked for like this, in an allocation with these ports.
    ///
    /// # Errors
    /// As [`DockerPolicy::admit`]; or the allocation has no port of a name.
    pub fn container(
        &self,
        asked: &DockerConfig,
        ports: &[AssignedPort],
    ) -> Result<Container, String> {
        self.admit(asked)?;
        let of_label = |label: &str| ports.iter().find(|port| port.label == label);
        DockerPolicy::has_ports(asked, |label| of_label(label).is_some())?;
        Ok(Container {
            capabilities: self.capabilities(asked)?,
            ports: (asked.ports.iter())
                .filter_map(|label| of_label(label).cloned())
                .collect(),
            cores: String::new(),
            pids_limit: match asked.pids_limit {
                0 => self.pids_limit,
                limit => limit,
            },
            pull_time: asked.image_pull_timeout.unwrap_or(self.image_pull_timeout),
            ..self.devices_of(asked)
        })
    }

    /// Which devices a container may have that is asked for like this; nothing else of it.
    pub fn devices_of(&self, asked: &DockerConfig) -> Container {
        Container {
            raw_devices: self.allow_privileged,
            allowed_devices: match asked.devices.is_empty() {
                true => Vec::new(),
                false => self.allow_devices.clone(),
            },
            ..Container::default()
        }
    }

    /// Whether there is every port of the group's network that a container asks for.
    ///
    /// # Errors
    /// The first that is not there.
    pub fn has_ports(asked: &DockerConfig, is_there: impl Fn(&str) -> bool) -> Result<(), String> {
        match asked.ports.iter().find(|label| !is_there(label)) {
            None => Ok(()),
            Some(label) => {
                let label = quote(label);
                Err(format!(
                    "ports: the group's network has no port {label}; add port {label} {{ }} there"
                ))
            }
        }
    }

    /// Whether what is asked for goes together with a network of the group's own, which the container joins.
    ///
    /// # Errors
    /// What does not, and what to do.
    pub fn joins_group_network(asked: &DockerConfig) -> Result<(), String> {
        if asked.network_mode.is_some() {
            return Ok(());
        }
        let dns = [
            &asked.dns_servers,
            &asked.dns_search_domains,
            &asked.dns_options,
        ];
        for (given, field, instead) in [
            (
                asked.hostname.is_some(),
                "hostname",
                "hostname of the group's network says it",
            ),
            (
                dns.iter().any(|list| !list.is_empty()),
                "dns_servers, dns_search_domains, dns_options",
                "dns of the group's network says it",
            ),
            (
                !asked.extra_hosts.is_empty(),
                "extra_hosts",
                "containers of the group share one list of hosts",
            ),
        ] {
            if given {
                return Err(format!(
                    "{field}: the group has a network of its own: {instead}; leave it out"
                ));
            }
        }
        Ok(())
    }

    fn capabilities(&self, asked: &DockerConfig) -> Result<Capabilities, String> {
        let named = |field: &str, names: &[String]| {
            Capabilities::named(names).map_err(|why| format!("{field}: {why}"))
        };
        let dropped = named("cap_drop", &asked.cap_drop)?;
        let added = named("cap_add", &asked.cap_add)?;
        // Whoever asks for all gets all that there is to get.
        let added = match added == Capabilities::ALL {
            true => self.allow_caps,
            false => added,
        };
        if let Some(name) = added.without(self.allow_caps).names().next() {
            return Err(denied_beside(
                "cap_add",
                &format!("the capability {name}"),
                "allow_caps",
                self.allow_caps.names(),
            ));
        }
        let usual = usual().and(Capabilities::named(["net_raw"]).unwrap_or_default());
        Ok(usual.within(self.allow_caps).without(dropped).and(added))
    }

    fn files(&self, asked: &DockerConfig) -> Result<(), String> {
        let outside = |field: &str, source: &str| {
            let what = format!(
                "{}, which is outside of the allocation's directory",
                quote(source)
            );
            denied(field, &what, "volumes { enabled }")
        };
        if asked.volume_driver.is_some() && !self.volumes {
            return Err(denied(
                "volume_driver",
                "drivers of volumes",
                "volumes { enabled }",
            ));
        }
        for volume in &asked.volumes {
            let (source, _, _) = volume_parts(volume)?;
            if !self.volumes && !is_inside(source) {
                return Err(outside("volumes", source));
            }
        }
        for mount in &asked.mounts {
            match &mount.kind {
                MountKind::Bind { source, .. } if source.is_empty() => {
                    return Err("mount: a bind needs a source".to_owned());
                }
                MountKind::Bind { source, .. } if !self.volumes && !is_inside(source) => {
                    return Err(outside("mount", source));
                }
                // Its options may name any directory of the host.
                MountKind::Volume { driver, .. } if driver.is_some() && !self.volumes => {
                    let what = "drivers of volumes";
                    return Err(denied("mount.volume_options", what, "volumes { enabled }"));
                }
                MountKind::Bind { .. } | MountKind::Tmpfs { .. } | MountKind::Volume { .. } => {}
            }
        }
        Ok(())
    }
}

/// Whether a source is relative, and in the directory of the task or in that which its allocation shares.
fn is_inside(source: &str) -> bool {
    !source.starts_with('/') && names(source, "", "task").is_some()
}

fn denied(field: &str, what: &str, setting: &str) -> String {
    format!("{field}: the agent does not allow {what} ({setting} of plugin \"docker\")")
}

/// The same, with what is allowed.
fn denied_beside<'a>(
    field: &str,
    what: &str,
    setting: &str,
    allowed: impl IntoIterator<Item = &'a str>,
) -> String {
    let allowed = listed(allowed);
    format!(
        "{field}: the agent does not allow {what} ({setting} of plugin \"docker\"; allowed: {allowed})"
    )
}

/// Where a volume comes from, where it is inside, and how: the parts of `source:target` and `source:target:mode`.
///
/// # Errors
/// It has other parts.
pub fn volume_parts(text: &str) -> Result<(&str, &str, &str), String> {
    let mut parts = text.split(':');
    let found = (parts.next(), parts.next(), parts.next(), parts.next());
    match found {
        (Some(source), Some(target), mode, None)
            if !source.is_empty() && target.starts_with('/') =>
        {
            Ok((source, target, mode.unwrap_or_default()))
        }
        _ => Err(format!(
            "volumes: SOURCE:/TARGET or SOURCE:/TARGET:MODE is needed, not {}",
            quote(text)
        )),
    }
}

#[cfg(test)]
mod tests;
