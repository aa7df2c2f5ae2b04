//! The host: its name, its kernel, its distribution.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

const RELEASE: usize = 64 * 1024;
const VERSION: usize = 4 * 1024;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let name = context.kernel.name();
    let mut found = Fingerprint::default();
    put(&mut found, "kernel.name", name.kernel.to_ascii_lowercase());
    put(&mut found, "kernel.version", &name.release);
    put(&mut found, "kernel.arch", &name.machine);
    put(&mut found, "unique.hostname", &name.host);
    let release = match context.root.text("etc/os-release", RELEASE)? {
        Some(release) => Some(release),
        None => context.root.text("usr/lib/os-release", RELEASE)?,
    };
    let release = release.unwrap_or_default();
    put(&mut found, "os.name", field(&release, "ID"));
    let point = context.root.text("etc/debian_version", VERSION)?;
    let version = version(&release, point.as_deref().unwrap_or_default().trim());
    put(&mut found, "os.version", version);
    Ok(found)
}

/// Debian's `os-release` has only the first number of its version; the file beside it has both, unless it names a
/// release to come.
fn version<'a>(release: &'a str, point: &'a str) -> &'a str {
    let known = field(release, "VERSION_ID");
    let is_point = point
        .split_once('.')
        .is_some_and(|(first, _)| first == known);
    match field(release, "ID") == "debian" && is_point {
        true => point,
        false => known,
    }
}

/// A field of an `os-release`; the last of a name counts, as in a shell.
fn field<'a>(release: &'a str, name: &str) -> &'a str {
    let mut lines = release.lines().rev();
    let value = lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn version_of_debian_has_both_numbers_where_they_are_known() {
        let debian = "ID=debian\nVERSION_ID=\"12\"\n";
        assert_eq!(version(debian, "12.11"), "12.11");
        assert_eq!(version(debian, "13.1"), "12");
        assert_eq!(version(debian, "bookworm/sid"), "12");
        assert_eq!(version(debian, ""), "12");
        let ubuntu = "ID=ubuntu\nVERSION_ID=\"24.04\"\n";
        assert_eq!(version(ubuntu, "24.04.1"), "24.04");
    }
}
