//! What is known of a GPU. Plain values: what a GPU does not report stays unset.

/// A GPU, or a part of one (a MIG instance) that tasks get as a GPU of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gpu {
    /// Its UUID.
    pub(super) id: String,
    /// Its model.
    pub(super) name: String,
    /// Where it is plugged in.
    pub(super) pci_bus_id: Option<String>,
    /// Why it cannot be used, if so.
    pub(super) trouble: Option<String>,
    /// What it is and has.
    pub(super) facts: Facts,
}

/// What a GPU is and has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// MiB of memory.
    pub(super) memory: Option<i64>,
    /// Watts that it may take.
    pub(super) power: Option<i64>,
    /// MiB of memory that the machine can reach at a time.
    pub(super) bar1: Option<i64>,
    /// The driver's version.
    pub(super) driver_version: Option<String>,
    /// MHz of its cores at most.
    pub(super) cores_clock: Option<i64>,
    /// MHz of its memory at most.
    pub(super) memory_clock: Option<i64>,
    /// MB/s of its way to the machine at most.
    pub(super) pci_bandwidth: Option<i64>,
    /// Whether a display is drawn by it.
    pub(super) display: Option<bool>,
    /// Whether the driver keeps it ready while nobody uses it.
    pub(super) persistence: Option<bool>,
}

/// So much of so much; either may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// What is used.
    pub(super) used: Option<i64>,
    /// All that there is.
    pub(super) total: Option<i64>,
}

/// What a GPU uses at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// Watts.
    pub(super) power: Part,
    /// Percent of the time in which its cores worked.
    pub(super) cores: Option<i64>,
    /// Percent of the time in which its memory was read or written.
    pub(super) memory_busy: Option<i64>,
    /// Percent of what its encoders can do.
    pub(super) encoder: Option<i64>,
    /// Percent of what its decoders can do.
    pub(super) decoder: Option<i64>,
    /// Degrees Celsius.
    pub(super) temperature: Option<i64>,
    /// MiB.
    pub(super) memory: Part,
    /// MiB.
    pub(super) bar1: Part,
    /// Errors that could not be corrected since the driver was loaded, in the first cache.
    pub(super) ecc_l1: Option<i64>,
    /// The same in the second cache.
    pub(super) ecc_l2: Option<i64>,
    /// The same in its memory.
    pub(super) ecc_memory: Option<i64>,
}

/// MB/s of a PCIe link of so many lanes, after its encoding. `None` for a generation of which
/// nothing is known.
pub(super) fn pci_bandwidth(generation: u32, lanes: u32) -> Option<i64> {
    let of_a_lane: i64 = match generation {
        1 => 250,
        2 => 500,
        3 => 985,
        4 => 1969,
        5 => 3938,
        6 => 7563,
        _ => return None,
    };
    of_a_lane.checked_mul(i64::from(lanes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcie_bandwidth_is_sum_of_lanes() {
        assert_eq!(pci_bandwidth(3, 16), Some(15_760));
        assert_eq!(pci_bandwidth(4, 8), Some(15_752));
        assert_eq!(pci_bandwidth(0, 16), None);
        assert_eq!(pci_bandwidth(99, 1), None);
    }
}
