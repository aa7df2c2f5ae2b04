//! The configuration of the GPUs that are built in. Its settings have the names that they have in
//! Nomad, where a plugin knows them.

use std::path::Path;
use std::time::Duration;

use drover_core::text::parse_duration;
use drover_io_real::device::nvidia::NvidiaSettings;
use drover_io_real::plugins::PluginConfig;

use super::literal::of_map;

/// GPUs are not looked for more often than this.
const SHORTEST: Duration = Duration::from_secs(1);

/// How GPUs are looked for; `None`: not at all.
pub(super) fn settings(plugin: PluginConfig) -> Result<Option<NvidiaSettings>, String> {
    if !plugin.args.is_empty() {
        return Err("it is built in and takes no arguments".to_owned());
    }
    let mut given = of_map(plugin.config);
    let mut settings = NvidiaSettings::default();
    let enabled = given.flag("enabled")?.unwrap_or(true);
    settings.ignored.extend(given.texts("ignored_gpu_ids")?);
    if let Some(text) = given.text("fingerprint_period")? {
        settings.period = period(&text)?;
    }
    if let Some(path) = given.text("library")? {
        if !Path::new(&path).is_absolute() {
            return Err("library: an absolute path is needed".to_owned());
        }
        settings.library = Some(path.into());
    }
    given.nothing_else("config")?;
    Ok(enabled.then_some(settings))
}

fn period(text: &str) -> Result<Duration, String> {
    let describe = |why: String| format!("fingerprint_period: {why}");
    let span = parse_duration(text).map_err(|error| describe(error.to_string()))?;
    let period = Duration::from_nanos(u64::try_from(span.0).unwrap_or(0));
    match period >= SHORTEST {
        true => Ok(period),
        false => Err(describe("it is to be at least 1s".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn nvidia(inner: &str) -> Result<Option<NvidiaSettings>, String> {
        let config = parse(&format!("plugin \"nvidia-gpu\" {{\n{inner}\n}}"))?;
        assert!(config.plugins.is_empty(), "it is no program");
        Ok(config.nvidia)
    }

    #[test]
    fn nvidia_plugin_is_enabled_by_default() {
        let usual = NvidiaSettings::default();
        assert_eq!(parse("").unwrap().nvidia, Some(usual.clone()));
        assert_eq!(nvidia(""), Ok(Some(usual)));
        assert_eq!(nvidia("config { enabled = false }"), Ok(None));
    }

    #[test]
    fn nvidia_settings_are_read() {
        let text = r#"config {
            ignored_gpu_ids    = ["GPU-1"]
            fingerprint_period = "5s"
            library            = "/x/libnvidia-ml.so.1"
        }"#;
        let wanted = NvidiaSettings {
            ignored: ["GPU-1".to_owned()].into(),
            period: Duration::from_secs(5),
            library: Some("/x/libnvidia-ml.so.1".into()),
        };
        assert_eq!(nvidia(text), Ok(Some(wanted)));
    }

    #[test]
    fn invalid_setting_error_names_valid_form() {
        for (text, expected) in [
            ("args = [\"x\"]", "takes no arguments"),
            ("config { enable = true }", "did you mean enabled?"),
            ("config { enabled = 1 }", "true or false is needed"),
            ("config { ignored_gpu_ids = [1] }", "a string is needed"),
            (
                "config { fingerprint_period = \"soon\" }",
                "fingerprint_period: ",
            ),
            ("config { fingerprint_period = \"10ms\" }", "at least 1s"),
            ("config { library = \"lib.so\" }", "an absolute path"),
        ] {
            let why = nvidia(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
