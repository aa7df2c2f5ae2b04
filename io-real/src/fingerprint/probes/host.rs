//! The host: its name, its kernel, its distribution.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

const RELEASE: usize = 64 * 1024;

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
    put(&mut found, "os.version", field(&release, "VERSION_ID"));
    Ok(found)
}

/// A field of an `os-release`; the last of a name counts, as in a shell.
fn field<'a>(release: &'a str, name: &str) -> &'a str {
    let mut lines = release.lines().rev();
    let value = lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().trim_matches(['"', '\''])
}
