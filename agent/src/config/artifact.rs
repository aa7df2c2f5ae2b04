//! What tasks may fetch: the block `artifact` of the block `client`.
//!
//! ```hcl
//! artifact {
//!   http_read_timeout              = "30m"
//!   http_max_size                  = "100GB"     # of anything that is fetched
//!   git_timeout                    = "30m"
//!   s3_timeout                     = "30m"
//!   decompression_size_limit       = "100GB"     # what an archive may become
//!   decompression_file_count_limit = 4096
//!   decompression_ratio_limit      = 250         # how many times its size, above 64 MiB
//!   disable_filesystem_isolation   = false       # whether files of the node may be artifacts
//!   filesystem_isolation_extra_paths = ["d:r:/srv/files"]   # these may
//!   set_environment_variables      = "https_proxy,no_proxy" # what whoever fetches knows of ours
//!   max_parallel                   = 32          # on this node
//!   cache_size                     = "1GB"       # kept of what has a strong checksum
//! }
//! ```
//!
//! A limit of zero is none.

use std::path::PathBuf;
use std::time::Duration;

use drover_core::text::{parse_duration, quote};
use drover_io_real::artifact::settings::Settings;
use hcl_edit::structure::Block;

use super::literal::{Fields, fields};
use super::unknown;
use crate::sizes;

/// Settings of Nomad for what is not fetched here.
const WITHOUT_EFFECT: [&str; 2] = ["gcs_timeout", "hg_timeout"];

/// Reads the block.
pub(super) fn artifact(block: &Block) -> Result<Settings, String> {
    let about = |why: String| format!("client: artifact: {why}");
    let mut given = fields(&block.body).map_err(about)?;
    let settings = read(&mut given).map_err(about)?;
    given.nothing_else("client: artifact")?;
    match block.body.blocks().next() {
        None => Ok(settings),
        Some(inner) => Err(about(unknown("block", inner.ident.as_str(), &[]))),
    }
}

fn read(given: &mut Fields) -> Result<Settings, String> {
    let mut settings = Settings::default();
    let limits = &mut settings.limits;
    for (name, time) in [
        ("http_read_timeout", &mut limits.http_time),
        ("git_timeout", &mut limits.git_time),
        ("s3_timeout", &mut limits.s3_time),
    ] {
        if let Some(text) = given.text(name)? {
            *time = duration(name, &text)?;
        }
    }
    for name in WITHOUT_EFFECT {
        given
            .text(name)?
            .map(|text| duration(name, &text))
            .transpose()?;
    }
    for (name, size) in [
        ("http_max_size", &mut limits.http_bytes),
        ("decompression_size_limit", &mut limits.unpacked_bytes),
        ("cache_size", &mut settings.cache),
    ] {
        if let Some(text) = given.text(name)? {
            *size = bytes(name, &text)?;
        }
    }
    for (name, number) in [
        ("decompression_file_count_limit", &mut limits.unpacked_files),
        ("decompression_ratio_limit", &mut limits.unpacked_ratio),
    ] {
        if let Some(given) = given.number(name)? {
            *number = u64::try_from(given).map_err(|_| format!("{name}: {given} is too few"))?;
        }
    }
    if let Some(number) = given.number("max_parallel")? {
        let parallel = usize::try_from(number).ok();
        let parallel = parallel.filter(|number| (1..=512).contains(number));
        let wrong = || format!("max_parallel: {number} is not between 1 and 512");
        settings.parallel = parallel.ok_or_else(wrong)?;
    }
    if let Some(whole) = given.flag("disable_filesystem_isolation")? {
        settings.whole_filesystem = whole;
    }
    for text in given.texts("filesystem_isolation_extra_paths")? {
        settings.extra_paths.push(extra_path(&text)?);
    }
    if let Some(names) = given.text("set_environment_variables")? {
        let names = names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        settings.variables = names.map(str::to_owned).collect();
    }
    // Nomad looks at what was fetched here or not; it is always looked at.
    given.flag("disable_artifact_inspection")?;
    Ok(settings)
}

fn duration(name: &str, text: &str) -> Result<Duration, String> {
    let span = parse_duration(text).ok();
    let nanos = span.and_then(|span| u64::try_from(span.0).ok());
    let wrong = || format!("{name}: {} is no time, as \"30m\" is", quote(text));
    nanos.map(Duration::from_nanos).ok_or_else(wrong)
}

/// A size, as [`sizes::bytes`] reads it.
fn bytes(name: &str, text: &str) -> Result<u64, String> {
    let wrong = || format!("{name}: {} is no size, as \"100GB\" is", quote(text));
    sizes::bytes(text).ok_or_else(wrong)
}

/// `d:r:/path`: what it is, what may be done there, where it is; the path alone is enough.
fn extra_path(text: &str) -> Result<PathBuf, String> {
    let name = "filesystem_isolation_extra_paths";
    let path = match text.split(':').collect::<Vec<_>>().as_slice() {
        ["f" | "d", "r", path] | [path] => *path,
        ["f" | "d", rights, _] if rights.contains(['w', 'c', 'x']) => {
            return Err(format!(
                "{name}: {}: artifacts are only read there",
                quote(text)
            ));
        }
        _ => "",
    };
    if !path.starts_with('/') {
        return Err(format!(
            "{name}: {} is not written as \"d:r:/path\"",
            quote(text)
        ));
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn artifact_limits_are_configurable() {
        let text = r#"
            client {
              artifact {
                http_read_timeout                = "5m"
                http_max_size                    = "2GiB"
                decompression_size_limit         = "0"
                decompression_file_count_limit   = 10
                decompression_ratio_limit        = 0
                filesystem_isolation_extra_paths = ["d:r:/srv", "/opt/x"]
                set_environment_variables        = "https_proxy, no_proxy"
                cache_size                       = "500kB"
                max_parallel                     = 2
                hg_timeout                       = "1m"
              }
            }"#;
        let settings = parse(text).unwrap().client.artifact;
        assert_eq!(settings.limits.http_time, Duration::from_secs(300));
        assert_eq!(
            settings.limits.git_time,
            Duration::from_secs(1800),
            "as in Nomad"
        );
        assert_eq!(settings.limits.http_bytes, 2 << 30);
        assert_eq!(settings.limits.unpacked_bytes, 0);
        assert_eq!(settings.limits.unpacked_files, 10);
        assert_eq!(settings.limits.unpacked_ratio, 0);
        assert_eq!(settings.extra_paths, ["/srv", "/opt/x"].map(PathBuf::from));
        assert_eq!(settings.variables, ["https_proxy", "no_proxy"]);
        assert_eq!((settings.cache, settings.parallel), (500_000, 2));
        assert!(!settings.whole_filesystem);
        assert_eq!(parse("").unwrap().client.artifact, Settings::default());
    }

    #[test]
    fn invalid_setting_is_refused_by_name() {
        for (setting, expected) in [
            (
                "http_max_size = \"much\"",
                "http_max_size: \"much\" is no size",
            ),
            ("http_max_size = 5", "a string is needed"),
            ("git_timeout = \"soon\"", "git_timeout: \"soon\" is no time"),
            ("git_timeout = \"-1s\"", "is no time"),
            ("hg_timeout = \"soon\"", "is no time"),
            ("max_parallel = 0", "is not between"),
            ("decompression_file_count_limit = -1", "is too few"),
            ("http_max_sise = \"1\"", "did you mean http_max_size?"),
            (
                "filesystem_isolation_extra_paths = [\"d:rw:/srv\"]",
                "only read",
            ),
            (
                "filesystem_isolation_extra_paths = [\"srv\"]",
                "is not written as",
            ),
        ] {
            let why = parse(&format!("client {{\nartifact {{\n{setting}\n}}\n}}")).unwrap_err();
            assert!(why.contains(expected), "{setting}: {why}");
        }
        let twice = "client {\nartifact {}\nartifact {}\n}";
        assert!(parse(twice).unwrap_err().contains("twice"));
    }
}
