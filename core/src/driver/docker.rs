//! What containers are allowed: what a job asks of the driver `docker`, within what the agent's configuration allows.
//!
//! A task that asks for more is refused before anything is made for it; the refusal names the setting that would
//! allow it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::capabilities::Capabilities;
use super::config::{DockerConfig, MountKind};
use crate::paths::task_path::names;
use crate::store::record::AssignedPort;
use crate::text::{glob_match, quote};
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
    /// Namespaces of the host, and of others, that a container may have, by `pid`, `ipc`, `userns` and `uts`, as
    /// patterns.
    pub allowed_modes: BTreeMap<String, Vec<String>>,
    /// The most processes and threads of a container; 0 for no limit.
    pub pids_limit: u64,
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
            allowed_modes: BTreeMap::new(),
            pids_limit: 0,
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
    /// Whether it may have devices that are disks or memory of the host.
    pub raw_devices: bool,
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
            return Err(denied("runtime", &what, "allow_runtimes"));
        }
        if self.pids_limit > 0 && asked.pids_limit > self.pids_limit {
            let what = format!("more than {} processes", self.pids_limit);
            return Err(denied("pids_limit", &what, "pids_limit"));
        }
        for option in &asked.security_opt {
            self.security_option(option)?;
        }
        for (_, _, permissions) in &asked.devices {
            if permissions.is_empty() || permissions.contains(|it| !matches!(it, 'r' | 'w' | 'm')) {
                let given = quote(permissions);
                return Err(format!(
                    "devices: cgroup_permissions may be r, w and m, not {given}"
                ));
            }
        }
        for (name, value) in &asked.ulimit {
            ulimit(value).ok_or_else(|| {
                let value = quote(value);
                format!(
                    "ulimit[{}]: a number or soft:hard is needed, not {value}",
                    quote(name)
                )
            })?;
        }
        Ok(())
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
        let port = |label: &String| {
            let port = ports.iter().find(|port| port.label == *label);
            port.cloned().ok_or_else(|| {
                let label = quote(label);
                format!(
                    "ports: the group's network has no port {label}; add port {label} {{ }} there"
                )
            })
        };
        Ok(Container {
            capabilities: self.capabilities(asked)?,
            ports: asked.ports.iter().map(port).collect::<Result<_, _>>()?,
            cores: String::new(),
            pids_limit: match asked.pids_limit {
                0 => self.pids_limit,
                limit => limit,
            },
            pull_time: asked.image_pull_timeout.unwrap_or(self.image_pull_timeout),
            raw_devices: self.allow_privileged,
        })
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
            return Err(denied(
                "cap_add",
                &format!("the capability {name}"),
                "allow_caps",
            ));
        }
        let usual = usual().and(Capabilities::named(["net_raw"]).unwrap_or_default());
        Ok(usual.within(self.allow_caps).without(dropped).and(added))
    }

    fn modes(&self, asked: &DockerConfig) -> Result<(), String> {
        for (kind, mode) in [
            ("pid", &asked.pid_mode),
            ("ipc", &asked.ipc_mode),
            ("userns", &asked.userns_mode),
            ("uts", &asked.uts_mode),
        ] {
            let Some(mode) = mode else { continue };
            let own = matches!((kind, mode.as_str()), ("ipc", "private" | "none"));
            let patterns = self.allowed_modes.get(kind).into_iter().flatten();
            if own || self.allow_privileged || patterns.into_iter().any(|it| glob_match(it, mode)) {
                continue;
            }
            let what = format!("the mode {}", quote(mode));
            let setting = format!("allowed_modes {{ {kind} }}");
            return Err(denied(&format!("{kind}_mode"), &what, &setting));
        }
        Ok(())
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

    fn security_option(&self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once(['=', ':']).unwrap_or((option, ""));
        match (name, value) {
            ("seccomp", "unconfined") | ("apparmor" | "label" | "no-new-privileges", _) => Ok(()),
            ("seccomp", _) => Err(
                "security_opt: files with system calls are not supported; seccomp=unconfined, or the engine's own"
                    .to_owned(),
            ),
            ("systempaths", _) if self.allow_privileged => Ok(()),
            ("systempaths", _) => {
                Err(denied("security_opt", "the host's settings in /proc", "allow_privileged"))
            }
            _ => Err(format!("security_opt: {} is not known", quote(option))),
        }
    }
}

/// Whether a source is relative, and in the directory of the task or in that which its allocation shares.
fn is_inside(source: &str) -> bool {
    !source.starts_with('/') && names(source, "", "task").is_some()
}

fn denied(field: &str, what: &str, setting: &str) -> String {
    format!("{field}: the agent does not allow {what} ({setting} of plugin \"docker\")")
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

/// The soft and the hard limit of `n` or `soft:hard`; -1 for none.
pub fn ulimit(text: &str) -> Option<(i64, i64)> {
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|it| *it >= -1);
    Some((number(soft)?, number(hard)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::config::DockerMount;

    fn asked(change: impl FnOnce(&mut DockerConfig)) -> DockerConfig {
        let mut asked = DockerConfig {
            image: "busybox:1".to_owned(),
            ..DockerConfig::default()
        };
        change(&mut asked);
        asked
    }

    fn refusal(change: impl FnOnce(&mut DockerConfig)) -> String {
        let refused = DockerPolicy::default().admit(&asked(change));
        refused.err().unwrap_or_default()
    }

    #[test]
    fn refusal_names_setting_that_allows_it() {
        let bind = |source: &str| DockerMount {
            target: "/x".to_owned(),
            readonly: true,
            kind: MountKind::Bind {
                source: source.to_owned(),
                propagation: None,
            },
        };
        for (why, words) in [
            (refusal(|it| it.privileged = true), "allow_privileged"),
            (
                refusal(|it| it.cap_add = vec!["sys_admin".to_owned()]),
                "allow_caps",
            ),
            (
                refusal(|it| it.pid_mode = Some("host".to_owned())),
                "allowed_modes { pid }",
            ),
            (
                refusal(|it| it.ipc_mode = Some("container:x".to_owned())),
                "allowed_modes { ipc }",
            ),
            (
                refusal(|it| it.runtime = Some("sysbox".to_owned())),
                "allow_runtimes",
            ),
            (
                refusal(|it| it.volumes = vec!["/etc:/x".to_owned()]),
                "volumes { enabled }",
            ),
            (
                refusal(|it| it.volumes = vec!["local/../../..:/x".to_owned()]),
                "volumes { enabled }",
            ),
            (
                refusal(|it| it.volumes = vec!["data".to_owned()]),
                "SOURCE:/TARGET",
            ),
            (
                refusal(|it| it.mounts = vec![bind("/etc")]),
                "volumes { enabled }",
            ),
            (
                refusal(|it| it.security_opt = vec!["systempaths=unconfined".to_owned()]),
                "allow_privileged",
            ),
            (
                refusal(|it| it.security_opt = vec!["seccomp=/x.json".to_owned()]),
                "not supported",
            ),
            (
                refusal(|it| drop(it.ulimit.insert("nofile".to_owned(), "many".to_owned()))),
                "soft:hard",
            ),
        ] {
            assert!(why.contains(words), "{words}: {why:?}");
        }
        assert_eq!(
            refusal(|it| it.volumes = vec!["local/x:/x:ro".to_owned()]),
            ""
        );
        assert_eq!(refusal(|it| it.mounts = vec![bind("local/x")]), "");
    }

    #[test]
    fn container_has_capabilities_and_ports_that_it_may_have() {
        let policy = DockerPolicy::default();
        let port = AssignedPort {
            label: "http".to_owned(),
            value: 20_000,
            to: 80,
            host_ip: "127.0.0.1".to_owned(),
            ..AssignedPort::default()
        };
        let wanted = asked(|it| {
            it.ports = vec!["http".to_owned()];
            it.cap_drop = vec!["all".to_owned()];
            it.cap_add = vec!["chown".to_owned()];
        });
        let container = policy
            .container(&wanted, std::slice::from_ref(&port))
            .unwrap_or_default();
        assert_eq!(container.ports, [port]);
        assert_eq!(
            container.capabilities.names().collect::<Vec<_>>(),
            ["chown"]
        );
        let usual = policy.container(&asked(|_| {}), &[]).unwrap_or_default();
        assert_eq!(usual.capabilities.names().count(), USUAL.len());
        let why = policy.container(&wanted, &[]).err().unwrap_or_default();
        assert!(why.contains("no port \"http\""), "{why}");
    }
}
