//! The configuration of drivers that are built in: `plugin "raw_exec" { config { enabled = false }
//! }`. In Nomad raw_exec is off until this switches it on; here it is on.

use std::collections::BTreeSet;

use drover_core::text::quote;
use drover_io_real::plugins::PluginConfig;

use super::client::DRIVERS;
use super::literal::of_map;

/// Takes the blocks of drivers that are built in out of those of programs. Returns the drivers that
/// are switched off.
pub(super) fn disabled(plugins: &mut Vec<PluginConfig>) -> Result<BTreeSet<String>, String> {
    let is_built_in = |plugin: &mut PluginConfig| DRIVERS.contains(&plugin.file.as_str());
    let mut disabled = BTreeSet::new();
    for plugin in plugins.extract_if(.., is_built_in) {
        let name = plugin.file.clone();
        if !is_enabled(plugin).map_err(|why| format!("plugin {}: {why}", quote(&name)))? {
            disabled.insert(name);
        }
    }
    Ok(disabled)
}

fn is_enabled(plugin: PluginConfig) -> Result<bool, String> {
    if !plugin.args.is_empty() {
        return Err("it is built in and takes no arguments".to_owned());
    }
    let mut given = of_map(plugin.config);
    let enabled = given.flag("enabled")?.unwrap_or(true);
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
