//! What operators are told of the disk.

use drover_core::model::notice::{Event, Notice};

use super::{Checker, Property, Verdict};

impl Checker {
    /// Operators are told once that the disk fills up, and once that it is over, however the looks between went.
    pub(super) fn disk_pressure_is_told_once(&mut self, notice: &Notice) -> Verdict {
        let begins = match notice.event {
            Event::DiskPressure => true,
            Event::DiskPressureOver => false,
            _ => return Ok(()),
        };
        let before = core::mem::replace(&mut self.disk_pressure_told, begins);
        self.holds(Property::DiskPressureIsToldOnce, before != begins, || {
            format!("{} once more", notice.event)
        })
    }
}
