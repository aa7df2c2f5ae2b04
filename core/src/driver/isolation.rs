//! Which drivers keep their tasks apart from the host, and how `exec` does it: what a job asks for, within what the
//! agent allows. What `docker` is allowed is in [`super::docker`].

use serde::{Deserialize, Serialize};

use super::capabilities::Capabilities;
use super::config::ExecConfig;
use crate::model::task::Task;
use crate::text::listed;

/// The driver whose tasks are isolated.
pub const EXEC: &str = "exec";

/// The driver whose tasks are containers of an engine.
pub const DOCKER: &str = "docker";

/// As whom tasks of `exec` run that name nobody.
pub const NOBODY: &str = "nobody";

/// Where an isolated task sees what its allocation shares, its own files and its secrets.
pub const DIRS: [&str; 3] = ["/alloc", "/local", "/secrets"];

/// The capabilities that a task of root has without asking: those of Nomad, but for `mknod`, since no file system
/// of a task has devices.
const USUAL: [&str; 12] = [
    "audit_write",
    "chown",
    "dac_override",
    "fowner",
    "fsetid",
    "kill",
    "net_bind_service",
    "setfcap",
    "setgid",
    "setpcap",
    "setuid",
    "sys_chroot",
];

/// Whether the tasks of a driver have a root of their own.
pub fn isolates(driver: &str) -> bool {
    driver == EXEC || driver == DOCKER
}

/// Whether a task's user is one of its own root, of whom this machine knows nothing.
pub fn has_own_users(driver: &str) -> bool {
    driver == DOCKER
}

/// Whether a driver's tasks are an engine's, which may be away while they run.
pub fn has_engine(driver: &str) -> bool {
    driver == DOCKER
}

/// Whether tasks of a driver can run in a network of their group's own.
pub fn joins_networks(driver: &str) -> bool {
    // Those of mock drivers run nowhere at all, so anywhere.
    matches!(driver, EXEC | DOCKER | "raw_exec" | "mock" | "mock_driver")
}

/// A path of a job for the agent, which sees what an allocation shares below `root`, the allocation's directory.
pub fn on_host(driver: &str, root: &str, path: String) -> String {
    let shared = path == DIRS[0] || path.starts_with("/alloc/");
    match isolates(driver) && shared {
        true => format!("{root}{path}"),
        false => path,
    }
}

/// To whom of this machine a task's files belong, as whom it runs unless it has users of its own: empty for the
/// agent's own user.
pub fn account(task: &Task) -> &str {
    match (task.driver.as_str(), task.user.as_str()) {
        (DOCKER, _) => "",
        (EXEC, "") => NOBODY,
        (_, user) => user,
    }
}

/// Whose processes, or whose shared memory, a task sees.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Sharing {
    /// Its own.
    #[default]
    Private,
    /// The host's.
    Host,
}

impl Sharing {
    /// How they are written.
    pub const NAMES: [&'static str; 2] = ["private", "host"];

    /// What is written so.
    pub fn of(name: &str) -> Option<Sharing> {
        match name {
            "private" => Some(Sharing::Private),
            "host" => Some(Sharing::Host),
            _ => None,
        }
    }
}

/// What the agent's configuration allows isolated tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecPolicy {
    /// The capabilities that a task may have.
    pub allow_caps: Capabilities,
    /// Whose processes a task sees that does not say it.
    pub default_pid_mode: Sharing,
    /// Whose shared memory a task sees that does not say it.
    pub default_ipc_mode: Sharing,
    /// Whether a task may see the host's processes.
    pub allow_host_pid: bool,
    /// Whether a task may see the host's shared memory.
    pub allow_host_ipc: bool,
    /// Whether nothing that tasks execute may gain privileges, as `sudo` does.
    pub no_new_privileges: bool,
    /// Whether system calls that tasks have no business with are refused.
    pub seccomp: bool,
}

impl Default for ExecPolicy {
    fn default() -> ExecPolicy {
        let usual = usual();
        ExecPolicy {
            allow_caps: usual.and(Capabilities::named(["mknod"]).unwrap_or_default()),
            default_pid_mode: Sharing::Private,
            default_ipc_mode: Sharing::Private,
            allow_host_pid: false,
            allow_host_ipc: false,
            no_new_privileges: true,
            seccomp: true,
        }
    }
}

fn usual() -> Capabilities {
    Capabilities::named(USUAL).unwrap_or_default()
}

/// How one task is isolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Profile {
    /// Whose processes it sees.
    pub pid: Sharing,
    /// Whose shared memory it sees.
    pub ipc: Sharing,
    /// The capabilities that it may have. A task of root has them; one of another user has none of them, unless
    /// they are `added`.
    pub capabilities: Capabilities,
    /// Those of them that the job asks for.
    pub added: Capabilities,
    /// Whether nothing that it executes may gain privileges.
    pub no_new_privileges: bool,
    /// Whether its system calls are filtered.
    pub seccomp: bool,
}

impl ExecPolicy {
    /// How a task is isolated that asks for this.
    ///
    /// # Errors
    /// It asks for what is not allowed; what, and which setting would allow it.
    pub fn profile(&self, asked: &ExecConfig) -> Result<Profile, String> {
        let pid = asked.pid_mode.unwrap_or(self.default_pid_mode);
        let ipc = asked.ipc_mode.unwrap_or(self.default_ipc_mode);
        for (mode, default, allowed, name, what) in [
            (
                pid,
                self.default_pid_mode,
                self.allow_host_pid,
                "pid",
                "processes",
            ),
            (
                ipc,
                self.default_ipc_mode,
                self.allow_host_ipc,
                "ipc",
                "shared memory",
            ),
        ] {
            if mode == Sharing::Host && default != Sharing::Host && !allowed {
                return Err(format!(
                    "{name}_mode: the agent allows no task the host's {what} (allow_host_{name} of \
                     plugin \"exec\")"
                ));
            }
        }
        let at = |field: &str, why: String| format!("{field}: {why}");
        let dropped = Capabilities::named(&asked.cap_drop).map_err(|why| at("cap_drop", why))?;
        let added = self
            .added(&asked.cap_add)
            .map_err(|why| at("cap_add", why))?;
        let usual = usual().within(self.allow_caps).without(dropped);
        Ok(Profile {
            pid,
            ipc,
            capabilities: usual.and(added),
            added,
            no_new_privileges: self.no_new_privileges,
            seccomp: self.seccomp,
        })
    }

    fn added(&self, names: &[String]) -> Result<Capabilities, String> {
        let mut added = Capabilities::default();
        for name in names {
            let one = Capabilities::named([name])?;
            // Whoever asks for all gets all that there is to get.
            let one = match one == Capabilities::ALL {
                true => self.allow_caps,
                false => one,
            };
            if let Some(denied) = one.without(self.allow_caps).names().next() {
                return Err(format!(
                    "the agent does not allow {denied} (allow_caps of plugin \"exec\"; allowed: {})",
                    listed(self.allow_caps.names())
                ));
            }
            added = added.and(one);
        }
        Ok(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: Capabilities) -> Vec<&'static str> {
        set.names().collect()
    }

    fn asked(add: &[&str], drop: &[&str]) -> ExecConfig {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ExecConfig {
            cap_add: texts(add),
            cap_drop: texts(drop),
            ..ExecConfig::default()
        }
    }

    #[test]
    fn profile_is_closed_by_default() {
        let profile = ExecPolicy::default().profile(&asked(&[], &[]));
        let expected = Profile {
            pid: Sharing::Private,
            ipc: Sharing::Private,
            capabilities: Capabilities::named(USUAL).unwrap_or_default(),
            added: Capabilities::default(),
            no_new_privileges: true,
            seccomp: true,
        };
        assert_eq!(profile, Ok(expected));
        assert_eq!(names(expected.capabilities).len(), USUAL.len());
        assert!(!expected.capabilities.has("mknod"));
    }

    #[test]
    fn capabilities_stay_within_allowed_ones() {
        let policy = ExecPolicy {
            allow_caps: Capabilities::named(["kill", "chown", "net_raw"]).unwrap_or_default(),
            ..ExecPolicy::default()
        };
        let of = |add: &[&str], drop: &[&str]| {
            let profile = policy.profile(&asked(add, drop));
            profile.map(|it| (names(it.capabilities), names(it.added)))
        };
        assert_eq!(of(&[], &[]), Ok((vec!["chown", "kill"], vec![])));
        let added = Ok((vec!["chown", "net_raw"], vec!["net_raw"]));
        assert_eq!(of(&["CAP_NET_RAW"], &["kill"]), added);
        assert_eq!(of(&["kill"], &["all"]), Ok((vec!["kill"], vec!["kill"])));
        let all = vec!["chown", "kill", "net_raw"];
        assert_eq!(of(&["all"], &[]), Ok((all.clone(), all)));
        for (add, drop, words) in [
            (
                "sys_admin",
                "",
                "cap_add: the agent does not allow sys_admin",
            ),
            ("sys_admn", "", "cap_add: there is no capability"),
            ("kill", "kil", "cap_drop: there is no capability"),
        ] {
            let drop: Vec<&str> = [drop].into_iter().filter(|it| !it.is_empty()).collect();
            let why = of(&[add], &drop).err().unwrap_or_default();
            assert!(why.starts_with(words), "{why}");
        }
    }

    #[test]
    fn host_namespaces_need_permission() {
        let mut policy = ExecPolicy::default();
        let wants = |pid, ipc| ExecConfig {
            pid_mode: pid,
            ipc_mode: ipc,
            ..ExecConfig::default()
        };
        let host = Some(Sharing::Host);
        let why = policy.profile(&wants(host, None)).err().unwrap_or_default();
        assert!(why.contains("allow_host_pid"), "{why}");
        let why = policy.profile(&wants(None, host)).err().unwrap_or_default();
        assert!(why.contains("allow_host_ipc"), "{why}");
        policy.allow_host_pid = true;
        policy.default_ipc_mode = Sharing::Host;
        let profile = policy.profile(&wants(host, None));
        assert_eq!(
            profile.map(|it| (it.pid, it.ipc)),
            Ok((Sharing::Host, Sharing::Host))
        );
        let private = policy.profile(&wants(None, Some(Sharing::Private)));
        assert_eq!(private.map(|it| it.ipc), Ok(Sharing::Private));
    }
}
