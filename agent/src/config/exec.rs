//! The driver `exec`, which is built in: `plugin "exec"` and `chroot_env`.
//!
//! ```hcl
//! plugin "exec" {
//!   config {
//!     allow_caps        = ["chown", "net_raw"]   # what tasks may have of root's power; "all"
//!     default_pid_mode  = "private"              # or "host"
//!     default_ipc_mode  = "private"
//!     denied_host_uids  = "0,10-20"              # as whom no task runs
//!     denied_host_gids  = "0"
//!     allow_host_pid    = false                  # whether a job may say pid_mode = "host"
//!     allow_host_ipc    = false
//!     no_new_privileges = true                   # sudo and the like do not work in tasks
//!     seccomp           = true                   # calls for administrators are refused
//!   }
//! }
//! client {
//!   chroot_env = { "/usr" = "/usr", "/srv/tools" = "/tools" }   # what of the host tasks see
//! }
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use drover_core::driver::capabilities::Capabilities;
use drover_core::driver::isolation::{ExecPolicy, Sharing};
use drover_core::text::quote;
use drover_io_real::driver::denied::DeniedIds;
use drover_io_real::driver::exec::{ExecSettings, HostPart};
use drover_io_real::plugins::PluginConfig;

use super::literal::{Fields, of_map};

/// Where a task has directories of its own, so that nothing of the host can be there.
const TAKEN: [&str; 6] = ["alloc", "dev", "local", "proc", "secrets", "sys"];

/// Many parts would use up the descriptors of one message to a shim.
const MOST_PARTS: usize = 64;

/// What is said of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecConfig {
    /// Whether tasks may use it.
    pub enabled: bool,
    /// What tasks are allowed.
    pub policy: ExecPolicy,
    /// What their roots have, and who they may be.
    pub settings: ExecSettings,
}

impl Default for ExecConfig {
    fn default() -> ExecConfig {
        ExecConfig {
            enabled: true,
            policy: ExecPolicy::default(),
            settings: ExecSettings::default(),
        }
    }
}

/// Reads the block of the plugin.
pub(super) fn config(plugin: PluginConfig) -> Result<ExecConfig, String> {
    if !plugin.args.is_empty() {
        return Err("it is built in and takes no arguments".to_owned());
    }
    let mut given = of_map(plugin.config);
    let mut config = ExecConfig {
        enabled: given.flag("enabled")?.unwrap_or(true),
        ..ExecConfig::default()
    };
    if given.flag("no_pivot_root")? == Some(true) {
        return Err(
            "no_pivot_root: tasks would reach the host's root; only false is possible".to_owned(),
        );
    }
    let policy = &mut config.policy;
    let caps = given.texts("allow_caps")?;
    if !caps.is_empty() {
        let named = Capabilities::named(caps);
        policy.allow_caps = named.map_err(|why| format!("allow_caps: {why}"))?;
    }
    policy.default_pid_mode = sharing(&mut given, "default_pid_mode")?;
    policy.default_ipc_mode = sharing(&mut given, "default_ipc_mode")?;
    policy.allow_host_pid = given.flag("allow_host_pid")?.unwrap_or(false);
    policy.allow_host_ipc = given.flag("allow_host_ipc")?.unwrap_or(false);
    policy.no_new_privileges = given.flag("no_new_privileges")?.unwrap_or(true);
    policy.seccomp = given.flag("seccomp")?.unwrap_or(true);
    config.settings.denied = denied(&mut given)?;
    given.nothing_else("config")?;
    Ok(config)
}

fn sharing(given: &mut Fields, name: &'static str) -> Result<Sharing, String> {
    match given.text(name)?.as_deref() {
        None | Some("") => Ok(Sharing::Private),
        Some(text) => Sharing::of(text).ok_or_else(|| {
            let known = Sharing::NAMES.join(" or ");
            format!("{name}: {known} is needed, not {}", quote(text))
        }),
    }
}

/// As whom of this machine no task runs.
pub(super) fn denied(given: &mut Fields) -> Result<DeniedIds, String> {
    Ok(DeniedIds {
        users: ranges(given, "denied_host_uids")?,
        groups: ranges(given, "denied_host_gids")?,
    })
}

/// Numbers and ranges of numbers with commas between them.
fn ranges(given: &mut Fields, name: &'static str) -> Result<Vec<(u32, u32)>, String> {
    let text = given.text(name)?.unwrap_or_default();
    let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (range.0 <= range.1).then_some(range)
    };
    parts
        .map(|part| {
            let wrong = || {
                format!(
                    "{name}: {} is no number or range such as 10-20",
                    quote(part)
                )
            };
            range(part).ok_or_else(wrong)
        })
        .collect()
}

/// The parts of the host that tasks see; the usual ones if none are given.
pub(super) fn parts(given: &BTreeMap<String, String>) -> Result<Option<Vec<HostPart>>, String> {
    if given.is_empty() {
        return Ok(None);
    }
    if given.len() > MOST_PARTS {
        return Err(format!(
            "client: chroot_env: no more than {MOST_PARTS} entries are possible"
        ));
    }
    given.iter().map(part).collect::<Result<_, _>>().map(Some)
}

fn part((source, place): (&String, &String)) -> Result<HostPart, String> {
    let about = format!("client: chroot_env: {}", quote(source));
    if !Path::new(source).is_absolute() {
        return Err(format!("{about}: an absolute path is needed"));
    }
    let names: Vec<&str> = place
        .split('/')
        .filter(|it| !matches!(*it, "" | "."))
        .collect();
    let Some(first) = names.first() else {
        return Err(format!("{about}: a place below the task's root is needed"));
    };
    if names.contains(&"..") || place.contains('\0') {
        return Err(format!(
            "{about}: {} leads out of the task's root",
            quote(place)
        ));
    }
    if TAKEN.contains(first) {
        return Err(format!("{about}: /{first} is the task's own"));
    }
    Ok(HostPart {
        source: source.into(),
        place: names.join("/"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn exec(inner: &str) -> Result<ExecConfig, String> {
        let config = parse(&format!("plugin \"exec\" {{\nconfig {{\n{inner}\n}}\n}}"))?;
        assert!(config.plugins.is_empty(), "it is no program");
        Ok(config.exec)
    }

    #[test]
    fn default_is_closed() {
        assert_eq!(parse("").map(|it| it.exec), Ok(ExecConfig::default()));
        assert_eq!(exec(""), Ok(ExecConfig::default()));
        let off = parse("plugin \"exec\" {\nconfig {\nenabled = false\n}\n}").unwrap();
        assert!(!off.client.drivers.allows("exec") && off.client.drivers.allows("raw_exec"));
    }

    #[test]
    fn settings_are_read() {
        let config = exec(
            "allow_caps = [\"kill\", \"CAP_NET_RAW\"]\ndefault_ipc_mode = \"host\"\n\
             denied_host_uids = \"0, 10-20\"\ndenied_host_gids = \"7\"\nno_pivot_root = false\n\
             allow_host_pid = true\nno_new_privileges = false\nseccomp = false",
        )
        .unwrap();
        let names: Vec<&str> = config.policy.allow_caps.names().collect();
        assert_eq!(names, ["kill", "net_raw"]);
        let policy = &config.policy;
        assert_eq!(policy.default_ipc_mode, Sharing::Host);
        assert!(policy.allow_host_pid && !policy.allow_host_ipc);
        assert!(!policy.no_new_privileges && !policy.seccomp);
        assert_eq!(config.settings.denied.users, [(0, 0), (10, 20)]);
        assert_eq!(config.settings.denied.groups, [(7, 7)]);
    }

    #[test]
    fn chroot_env_replaces_parts_of_host() {
        let text =
            "client {\nchroot_env = { \"/usr\" = \"/usr\", \"/srv/tools/\" = \"tools//x\" }\n}";
        let parts = parse(text).unwrap().exec.settings.parts;
        let part = |source: &str, place: &str| HostPart {
            source: source.into(),
            place: place.to_owned(),
        };
        assert_eq!(parts, [part("/srv/tools/", "tools/x"), part("/usr", "usr")]);
    }

    #[test]
    fn invalid_setting_error_names_valid_form() {
        for (inner, expected) in [
            ("no_pivot_root = true", "only false is possible"),
            ("allow_caps = [\"kil\"]", "did you mean kill?"),
            ("default_pid_mode = \"hots\"", "private or host is needed"),
            ("denied_host_uids = \"20-10\"", "no number or range"),
            ("denied_host_gids = \"x\"", "no number or range"),
            ("secomp = true", "did you mean seccomp?"),
        ] {
            let why = exec(inner).unwrap_err();
            assert!(why.starts_with("plugin \"exec\": "), "{why}");
            assert!(why.contains(expected), "{why}");
        }
        for (map, expected) in [
            ("\"usr\" = \"/usr\"", "an absolute path is needed"),
            ("\"/usr\" = \"/\"", "below the task's root"),
            ("\"/usr\" = \"/a/../../b\"", "leads out"),
            ("\"/usr\" = \"/proc/x\"", "/proc is the task's own"),
        ] {
            let why = parse(&format!("client {{\nchroot_env = {{ {map} }}\n}}")).unwrap_err();
            assert!(why.contains(expected), "{map}: {why}");
        }
        let block = parse("client {\nchroot_env {\n \"/usr\" = \"/\"\n}\n}").unwrap_err();
        assert!(block.contains("below the task's root"), "{block}");
    }
}
