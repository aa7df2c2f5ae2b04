//! Units of attributes, as Nomad's plugins write them.

use serde::{Deserialize, Serialize};

/// What is measured. Numbers of one measure can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Measure {
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    Rate,
    /// Megahertz.
    Frequency,
    /// Milliwatts.
    Power,
}

/// A unit: its name, what it measures, and how many of the smallest it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// As it is written.
    pub name: &'static str,
    /// What it measures.
    pub measure: Measure,
    /// How many bytes, bytes in a second, MHz or mW it is.
    pub multiplier: u64,
}

const fn unit(name: &'static str, measure: Measure, multiplier: u64) -> Unit {
    Unit {
        name,
        measure,
        multiplier,
    }
}

const K: u64 = 1000;

/// Every unit that is known.
pub const UNITS: &[Unit] = &[
    unit("KiB", Measure::Bytes, 1 << 10),
    unit("MiB", Measure::Bytes, 1 << 20),
    unit("GiB", Measure::Bytes, 1 << 30),
    unit("TiB", Measure::Bytes, 1 << 40),
    unit("PiB", Measure::Bytes, 1 << 50),
    unit("EiB", Measure::Bytes, 1 << 60),
    unit("kB", Measure::Bytes, K),
    unit("KB", Measure::Bytes, K),
    unit("MB", Measure::Bytes, K * K),
    unit("GB", Measure::Bytes, K * K * K),
    unit("TB", Measure::Bytes, K * K * K * K),
    unit("PB", Measure::Bytes, K * K * K * K * K),
    unit("EB", Measure::Bytes, K * K * K * K * K * K),
    unit("KiB/s", Measure::Rate, 1 << 10),
    unit("MiB/s", Measure::Rate, 1 << 20),
    unit("GiB/s", Measure::Rate, 1 << 30),
    unit("TiB/s", Measure::Rate, 1 << 40),
    unit("PiB/s", Measure::Rate, 1 << 50),
    unit("EiB/s", Measure::Rate, 1 << 60),
    unit("kB/s", Measure::Rate, K),
    unit("KB/s", Measure::Rate, K),
    unit("MB/s", Measure::Rate, K * K),
    unit("GB/s", Measure::Rate, K * K * K),
    unit("TB/s", Measure::Rate, K * K * K * K),
    unit("PB/s", Measure::Rate, K * K * K * K * K),
    unit("EB/s", Measure::Rate, K * K * K * K * K * K),
    unit("MHz", Measure::Frequency, 1),
    unit("GHz", Measure::Frequency, K),
    unit("mW", Measure::Power, 1),
    unit("W", Measure::Power, K),
    unit("kW", Measure::Power, K * K),
    unit("MW", Measure::Power, K * K * K),
    unit("GW", Measure::Power, K * K * K * K),
];

/// The unit of this name.
pub fn find(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.name == name)
}

/// The number's text and the longest unit at the end of `text`.
pub fn split(text: &str) -> Option<(&str, &'static Unit)> {
    let ends = UNITS
        .iter()
        .filter_map(|unit| Some((text.strip_suffix(unit.name)?, unit)));
    let (number, unit) = ends.max_by_key(|(_, unit)| unit.name.len())?;
    Some((number.trim_end(), unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn multiplier(name: &str) -> Option<u64> {
        find(name).map(|unit| unit.multiplier)
    }

    #[test]
    fn each_prefix_is_a_thousand_or_1024_times_the_one_before() {
        for end in ["", "/s"] {
            for (power, prefix) in (1..).zip(["K", "M", "G", "T", "P", "E"]) {
                let (decimal, binary) = (1000_u64.pow(power), 1024_u64.pow(power));
                assert_eq!(
                    multiplier(&format!("{prefix}B{end}")),
                    Some(decimal),
                    "{prefix}"
                );
                assert_eq!(
                    multiplier(&format!("{prefix}iB{end}")),
                    Some(binary),
                    "{prefix}"
                );
            }
            assert_eq!(multiplier(&format!("kB{end}")), Some(1000));
        }
        for (power, name) in (0..).zip(["mW", "W", "kW", "MW", "GW"]) {
            assert_eq!(multiplier(name), Some(1000_u64.pow(power)), "{name}");
        }
        assert_eq!(
            (multiplier("MHz"), multiplier("GHz")),
            (Some(1), Some(1000))
        );
    }
}
