//! Signals that tasks can be sent.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use crate::driver::signal_names;

pub(in super::super) fn query(_: &Context) -> Result<Fingerprint, ProbeError> {
    let mut names: Vec<String> = signal_names().collect();
    names.sort_unstable();
    let mut found = Fingerprint::default();
    put(&mut found, "os.signals", names.join(","));
    Ok(found)
}
