//! The configuration of drivers that are built in: `plugin "raw_exec" { config { enabled = false }
//! }`. In Nomad raw_exec is off until this switches it on, or an option of the block `client` as in its older files.
//! Here it is on, except where the API needs tokens: a task of it may do everything on the machine, and so might
//! whoever may run a job.

use std::collections::BTreeMap;

use drover_core::text::quote;
use drover_io_real::driver::denied::DeniedIds;
use drover_io_real::plugins::PluginConfig;

use super::client::DRIVERS;
use super::exec::denied;
use super::literal::of_map;

/// The driver whose tasks are kept apart from nothing.
const RAW_EXEC: &str = "raw_exec";

/// Settings of the driver in Nomad that have no effect here.
const WITHOUT_EFFECT: &[&str] = &["denied_envvars", "no_cgroups"];

/// Drivers that are built into Nomad, and that this agent does not have.
const ELSEWHERE: [&str; 2] = ["java", "qemu"];

/// What is said of drivers that are built in.
#[derive(Debug, Default)]
pub(super) struct BuiltIn {
    /// Those that are switched off, with why.
    pub(super) disabled: BTreeMap<String, String>,
    /// As whom no task of `raw_exec` runs.
    pub(super) denied: DeniedIds,
    /// What is given and has no effect here.
    pub(super) ignored: Vec<String>,
}

/// Takes the blocks of drivers that are built in out of those of programs. `option` is what the block `client` says of
/// `raw_exec`.
pub(super) fn built_in(
    plugins: &mut Vec<PluginConfig>,
    needs_tokens: bool,
    option: Option<bool>,
) -> Result<BuiltIn, String> {
    let mut found = BuiltIn::default();
    match option {
        Some(true) => {}
        Some(false) => {
            let words = "options of the block client have driver.raw_exec.enable = false";
            let off = (RAW_EXEC.to_owned(), words.to_owned());
            found.disabled.extend([off]);
        }
        None if needs_tokens => {
            let words = format!(
                "off, since acl is on; plugin \"{RAW_EXEC}\" {{ config {{ enabled = true }} }} enables it"
            );
            found.disabled.insert(RAW_EXEC.to_owned(), words);
        }
        None => {}
    }
    let is_elsewhere = |plugin: &mut PluginConfig| ELSEWHERE.contains(&plugin.file.as_str());
    for plugin in plugins.extract_if(.., is_elsewhere) {
        found.ignored.push(format!("plugin.{}", plugin.file));
    }
    let is_built_in = |plugin: &mut PluginConfig| DRIVERS.contains(&plugin.file.as_str());
    for plugin in plugins.extract_if(.., is_built_in) {
        let name = plugin.file.clone();
        let otherwise = !found.disabled.contains_key(&name);
        let enabled = is_enabled(plugin, otherwise, &mut found);
        if enabled.map_err(|why| format!("plugin {}: {why}", quote(&name)))? {
            found.disabled.remove(&name);
        } else if otherwise {
            found.disabled.extend([off(&name)]);
        }
    }
    Ok(found)
}

/// A driver whose own block switches it off.
pub(super) fn off(name: &str) -> (String, String) {
    let words = format!("plugin \"{name}\" has enabled = false");
    (name.to_owned(), words)
}

fn is_enabled(plugin: PluginConfig, otherwise: bool, found: &mut BuiltIn) -> Result<bool, String> {
    if !plugin.args.is_empty() {
        return Err("it is built in and takes no arguments".to_owned());
    }
    let mut given = of_map(plugin.config);
    let enabled = given.flag("enabled")?.unwrap_or(otherwise);
    if plugin.file == RAW_EXEC {
        found.denied = denied(&mut given)?;
        let names = given.ignore(WITHOUT_EFFECT).into_iter();
        let names = names.map(|name| format!("plugin.{RAW_EXEC}.{name}"));
        found.ignored.extend(names);
    }
    given.nothing_else("config")?;
    Ok(enabled)
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn off(inner: &str) -> Result<Vec<(&'static str, String)>, String> {
        let config = parse(&format!("plugin \"raw_exec\" {{\n{inner}\n}}"))?;
        assert!(config.plugins.is_empty(), "no program");
        Ok(config.client.denied_drivers().collect())
    }

    #[test]
    fn built_in_driver_is_enabled_by_default() {
        assert_eq!(off(""), Ok(vec![]));
        assert_eq!(off("config { enabled = true }"), Ok(vec![]));
        let why = "plugin \"raw_exec\" has enabled = false".to_owned();
        assert_eq!(
            off("config { enabled = false }"),
            Ok(vec![("raw_exec", why)])
        );
    }

    #[test]
    fn raw_exec_is_off_where_tokens_are_needed_unless_its_block_enables_it() {
        let denied = |text: &str| {
            let config = parse(&format!("acl {{\n enabled = true\n}}\n{text}")).unwrap();
            let denied = config.client.denied_drivers();
            denied.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(denied(""), ["raw_exec"]);
        assert_eq!(denied("plugin \"raw_exec\" {}"), ["raw_exec"]);
        let on = "plugin \"raw_exec\" {\n config {\n enabled = true\n}\n}";
        assert!(denied(on).is_empty());
    }

    #[test]
    fn option_of_older_files_switches_raw_exec_unless_its_block_does() {
        let denied = |value: &str, more: &str| {
            let options = format!("options {{\n \"driver.raw_exec.enable\" = {value}\n}}");
            let config = parse(&format!("client {{\n{options}\n}}\n{more}")).unwrap();
            let denied = config.client.denied_drivers();
            denied.map(|(name, _)| name).collect::<Vec<_>>()
        };
        let on = "plugin \"raw_exec\" {\n config {\n enabled = true\n}\n}";
        assert_eq!(denied("\"0\"", ""), ["raw_exec"]);
        assert!(denied("\"0\"", on).is_empty());
        assert!(denied("\"1\"", "acl {\n enabled = true\n}").is_empty());
        assert!(denied("true", "").is_empty());
    }

    #[test]
    fn unsupported_driver_plugin_setting_is_ignored_and_named() {
        let text = "plugin \"java\" {}\nplugin \"raw_exec\" {\n config {\n no_cgroups = true\n}\n}";
        let config = parse(text).unwrap();
        assert_eq!(
            config.ignored,
            ["plugin.java", "plugin.raw_exec.no_cgroups"]
        );
        assert!(config.plugins.is_empty());
    }

    #[test]
    fn users_and_groups_that_raw_exec_denies_are_read() {
        let inner = "config {\n denied_host_uids = \"0,10-20\"\n denied_host_gids = \"7\"\n}";
        let config = parse(&format!("plugin \"raw_exec\" {{\n{inner}\n}}")).unwrap();
        assert!(config.ignored.is_empty(), "{:?}", config.ignored);
        let denied = &config.exec.settings.denied_raw;
        assert_eq!(denied.users, [(0, 0), (10, 20)]);
        assert_eq!(denied.groups, [(7, 7)]);
    }

    #[test]
    fn users_that_raw_exec_denies_are_denied_whatever_exec_is_set_to() {
        let raw = "plugin \"raw_exec\" {\n config {\n denied_host_uids = \"5\"\n}\n}";
        for (more, of_exec) in [
            (
                "plugin \"exec\" {\n config {\n denied_host_uids = \"6\"\n}\n}",
                vec![(6, 6)],
            ),
            (
                "plugin \"exec\" {\n config {\n seccomp = false\n}\n}",
                vec![],
            ),
            ("client {\n chroot_env = { \"/usr\" = \"/usr\" }\n}", vec![]),
        ] {
            let settings = parse(&format!("{raw}\n{more}")).unwrap().exec.settings;
            assert_eq!(settings.denied_raw.users, [(5, 5)], "{more}");
            assert_eq!(settings.denied.users, of_exec, "{more}");
        }
    }

    #[test]
    fn invalid_setting_error_names_valid_form() {
        for (inner, expected) in [
            ("config { enabeld = true }", "did you mean enabled?"),
            ("config { enabled = \"no\" }", "true or false is needed"),
            ("args = [\"-v\"]", "takes no arguments"),
            ("config { denied_host_uids = \"x\" }", "no number or range"),
        ] {
            let why = off(inner).unwrap_err();
            assert!(why.starts_with("plugin \"raw_exec\": "), "{why}");
            assert!(why.contains(expected), "{why}");
        }
    }
}
