//! The agent itself: what it is, and where it is reached.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let settings = &context.settings;
    let mut found = Fingerprint::default();
    put(&mut found, "drover.version", &settings.version);
    put(&mut found, "drover.revision", &settings.revision);
    put(&mut found, "nomad.version", &settings.nomad_version);
    put(&mut found, "nomad.service_discovery", true);
    put(&mut found, "unique.advertise.address", &settings.advertise);
    Ok(found)
}
