//! The configuration of drivers that are built in: `plugin "raw_exec" { config { enabled = false }
//! }`. In Nomad raw_exec is off until this switches it on. Here it is on, except where the API needs tokens: a task of
//! it may do everything on the machine, and so might whoever may run a job.

use std::collections::BTreeMap;

use drover_core::text::quote;
use drover_io_real::plugins::PluginConfig;

use super::client::DRIVERS;
use super::literal::of_map;

/// The driver whose tasks are kept apart from nothing.
const RAW_EXEC: &str = "raw_exec";

/// Takes the blocks of drivers that are built in out of those of programs. Returns the drivers that
/// are switched off, with why.
pub(super) fn disabled(
    plugins: &mut Vec<PluginConfig>,
    needs_tokens: bool,
) -> Result<BTreeMap<String, String>, String> {
    let is_built_in = |plugin: &mut PluginConfig| DRIVERS.contains(&plugin.file.as_str());
    let mut disabled = BTreeMap::new();
    if needs_tokens {
        let words = format!(
            "off, since acl is on; plugin \"{RAW_EXEC}\" {{ config {{ enabled = true }} }} enables it"
        );
        disabled.insert(RAW_EXEC.to_owned(), words);
    }
    for plugin in plugins.extract_if(.., is_built_in) {
        let name = plugin.file.clone();
        let enabled = is_enabled(plugin, !disabled.contains_key(&name));
        if enabled.map_err(|why| format!("plugin {}: {why}", quote(&name)))? {
            disabled.remove(&name);
        } else {
            disabled.extend([off(&name)]);
        }
    }
    Ok(disabled)
}

/// A driver whose own block switches it off.
pub(super) fn off(name: &str) -> (String, String) {
    let words = format!("plugin \"{name}\" has enabled = false");
    (name.to_owned(), words)
}

fn is_enabled(plugin: PluginConfig, otherwise: bool) -> Result<bool, String> {
    if !plugin.args.is_empty() {
        return Err("it is built in and takes no arguments".to_owned());
    }
    let mut given = of_map(plugin.config);
    let enabled = given.flag("enabled")?.unwrap_or(otherwise);
    given.nothing_else("config")?;
    Ok(enabled)
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn denied(inner: &str) -> Result<Vec<(&'static str, String)>, String> {
        let config = parse(&format!("plugin \"raw_exec\" {{\n{inner}\n}}"))?;
        assert!(config.plugins.is_empty(), "no program");
        Ok(config.client.denied_drivers().collect())
    }

    #[test]
    fn built_in_driver_is_enabled_by_default() {
        assert_eq!(denied(""), Ok(vec![]));
        assert_eq!(denied("config { enabled = true }"), Ok(vec![]));
        let why = "plugin \"raw_exec\" has enabled = false".to_owned();
        assert_eq!(
            denied("config { enabled = false }"),
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
    fn invalid_setting_error_names_valid_form() {
        for (inner, expected) in [
            ("config { enabeld = true }", "did you mean enabled?"),
            ("config { enabled = \"no\" }", "true or false is needed"),
            ("args = [\"-v\"]", "takes no arguments"),
        ] {
            let why = denied(inner).unwrap_err();
            assert!(why.starts_with("plugin \"raw_exec\": "), "{why}");
            assert!(why.contains(expected), "{why}");
        }
    }
}
