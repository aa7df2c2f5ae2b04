//! What others packed, unpacked as an enemy's: below one directory, through handles, within bounds.
//!
//! Artifacts and disks of other nodes come this way. Nothing here knows which.

mod links;
mod plain;
mod sink;
mod tar;
mod trouble;

pub(crate) use links::stays_inside;
pub(crate) use plain::{gz, xz, zst};
pub(crate) use sink::{Attributes, Bound, Bounds, Keep, Sink, refused};
pub(crate) use tar::{End, tar};
pub(crate) use trouble::Trouble;
