//! The architecture, by the name that job files use.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    put(&mut found, "cpu.arch", name(&context.kernel.name().machine));
    Ok(found)
}

fn name(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i486" | "i586" | "i686" => "386",
        "loongarch64" => "loong64",
        arm if arm.starts_with("armv") => "arm",
        other => other,
    }
}
