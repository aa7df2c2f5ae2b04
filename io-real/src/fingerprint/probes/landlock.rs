//! Landlock: whether programs can shut themselves in.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    if let Some(version) = context.kernel.landlock() {
        put(&mut found, "kernel.landlock", format!("v{version}"));
    }
    Ok(found)
}
