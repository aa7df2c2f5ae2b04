//! What a job asks of the kernel for its container: namespaces of others, filters that are left out, settings.

use super::{DockerPolicy, denied, denied_beside};
use crate::driver::config::DockerConfig;
use crate::text::{glob_match, quote};

/// Names of settings of the kernel that each container has for itself, or the group whose network it joins.
const OWN_SYSCTLS: [&str; 6] = [
    "net.*",
    "fs.mqueue.*",
    "kernel.shm*",
    "kernel.msg*",
    "kernel.sem",
    "kernel.domainname",
];

impl DockerPolicy {
    /// Whether a container may have the namespaces that are not its own.
    pub(super) fn modes(&self, asked: &DockerConfig) -> Result<(), String> {
        for (kind, field, mode) in [
            ("pid", "pid_mode", &asked.pid_mode),
            ("ipc", "ipc_mode", &asked.ipc_mode),
            ("userns", "userns_mode", &asked.userns_mode),
            ("uts", "uts_mode", &asked.uts_mode),
            ("network", "network_mode", &asked.network_mode),
            ("cgroupns", "cgroupns", &asked.cgroupns),
        ] {
            let Some(mode) = mode else { continue };
            if kind == "cgroupns" && !matches!(mode.as_str(), "host" | "private") {
                return Err(format!(
                    "cgroupns: private or host is needed, not {}",
                    quote(mode)
                ));
            }
            let patterns = self.allowed_modes.get(kind).into_iter().flatten();
            if is_own(kind, mode)
                || self.allow_privileged
                || patterns.into_iter().any(|it| glob_match(it, mode))
            {
                continue;
            }
            let what = format!("the mode {}", quote(mode));
            let setting = format!("allowed_modes {{ {kind} }}");
            let allowed = self.allowed_modes.get(kind).into_iter().flatten();
            let allowed = allowed.map(String::as_str);
            return Err(denied_beside(field, &what, &setting, allowed));
        }
        Ok(())
    }

    /// Whether a container may do without what the engine keeps it in.
    pub(super) fn security_option(&self, option: &str) -> Result<(), String> {
        let (name, value) = security_parts(option);
        let is_allowed = self.allow_unconfined || self.allow_privileged;
        match (name, value.unwrap_or_default()) {
            ("no-new-privileges", "" | "true") | ("apparmor", "docker-default") => Ok(()),
            ("seccomp", "unconfined") | ("apparmor" | "label" | "no-new-privileges", _) if is_allowed => Ok(()),
            ("seccomp", "unconfined") | ("apparmor" | "label" | "no-new-privileges", _) => {
                Err(denied("security_opt", &quote(option), "allow_unconfined"))
            }
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

/// Whether a namespace is the container's own, or one that every job may have.
fn is_own(kind: &str, mode: &str) -> bool {
    match kind {
        "ipc" => matches!(mode, "private" | "none"),
        "cgroupns" => mode == "private",
        // Networks of the engine, and the host's, which a group may have, too. `container:` and `ns:` are others'.
        "network" => !mode.contains(':'),
        _ => false,
    }
}

/// The name and the value of an option that is written with `=` or, as ever, with `:`.
pub fn security_parts(option: &str) -> (&str, Option<&str>) {
    match option.split_once(['=', ':']) {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    }
}

/// Whether these are settings of the container's own.
pub(super) fn sysctls(asked: &DockerConfig) -> Result<(), String> {
    for (name, value) in &asked.sysctl {
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        let is_name = name
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(plain));
        if !is_name || !OWN_SYSCTLS.iter().any(|it| glob_match(it, name)) {
            return Err(format!(
                "sysctl: {} is the host's, not the container's own: {} may be set",
                quote(name),
                OWN_SYSCTLS.join(", ")
            ));
        }
        if value.contains(['\n', '\r', '\0']) {
            return Err(format!(
                "sysctl[{}]: the value must be one line, not {}",
                quote(name),
                quote(value)
            ));
        }
    }
    Ok(())
}
