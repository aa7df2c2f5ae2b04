//! What a group may use.

use std::collections::BTreeSet;

use drover_core::driver::config::IoLimits;

/// The limits of a group. What is not set is left to the kernel's default: none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Share of the processor relative to other groups, in version 1's measure (1024 = normal).
    pub cpu_shares: Option<u64>,
    /// So many microseconds of processors in each period of so many, and never more.
    pub cpu_quota: Option<(i64, u64)>,
    /// Bytes of memory at which the kernel kills.
    pub memory_max: Option<u64>,
    /// Bytes of memory that are taken away last when the machine is short.
    pub memory_reserved: Option<u64>,
    /// Processes and threads; what holds for all groups if none.
    pub processes: Option<u64>,
    /// None of its memory is swapped out, if that has a limit.
    pub no_swap: bool,
    /// Cores that it has for itself; none if it shares those that are left.
    pub cores: BTreeSet<u32>,
    /// How fast it reads and writes; within what holds for all groups.
    pub io: IoLimits,
}

/// The version 2 weight (1 to 10000) that stands for a number of version 1 shares.
///
/// The usual conversion of container runtimes: 2 shares become 1, 1024 become 100, 262144 become
/// 10000, and in between the logarithms follow a parabola through these points.
pub fn weight(shares: u64) -> u64 {
    if shares <= 2 {
        return 1;
    }
    if shares >= 262_144 {
        return 10_000;
    }
    let l = (shares as f64).log2();
    let exponent = (l * l + 125.0 * l) / 612.0 - 7.0 / 34.0;
    10_f64.powf(exponent).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::weight;

    #[test]
    fn cpu_weights_match_reference_and_rise() {
        assert_eq!(
            [0, 2, 1024, 262_144, u64::MAX].map(weight),
            [1, 1, 100, 10_000, 10_000]
        );
        assert!(
            (2..262_143)
                .step_by(97)
                .all(|shares| weight(shares) <= weight(shares + 97))
        );
    }
}
