//! Whether what was fetched is what was meant.

use std::fs::File;

use drover_core::model::artifact::Checksum;

use crate::artifact::sum::sum_of;
use crate::artifact::wire::DOWNLOAD;
use crate::unpack::Trouble;

/// Compares the file of downloads.
///
/// # Errors
/// It sums up to something else: another try may find the right one.
pub(super) fn verify(expected: &Checksum) -> Result<(), Trouble> {
    let mut file = File::open(DOWNLOAD).map_err(Trouble::disk)?;
    let found = sum_of(expected.kind, &mut file).map_err(Trouble::disk)?;
    if found == expected.hex {
        return Ok(());
    }
    Err(Trouble::passing(format!(
        "checksums do not match: expected {expected}, got {found}"
    )))
}
