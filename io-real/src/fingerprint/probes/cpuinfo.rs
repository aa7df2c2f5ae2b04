//! `/proc/cpuinfo`: the processors' model, and little else that can be relied on.

use std::collections::BTreeMap;

use super::super::{ProbeError, Root};
use crate::ranges;

/// How long it is at most: a processor takes two kilobytes.
const LONGEST: usize = 32 << 20;

/// What it says.
#[derive(Debug, Default)]
pub(super) struct CpuInfo {
    /// The model; empty if it does not say.
    pub(super) model: String,
    /// The processors that programs run on.
    pub(super) processors: BTreeMap<u32, Processor>,
}

/// What it says of one processor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Processor {
    /// The socket that it is in.
    pub(super) socket: u32,
    /// MHz at which it counts its own time, or 0 if unknown: what it always reaches, or near it.
    pub(super) steady_mhz: u64,
    /// MHz at which it runs at this moment, or 0 if unknown.
    pub(super) mhz: u64,
}

/// Reads it.
pub(super) fn read(root: &Root) -> Result<CpuInfo, ProbeError> {
    let text = root.text("proc/cpuinfo", LONGEST)?;
    Ok(parse(&text.unwrap_or_default()))
}

fn parse(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let (mut number, mut maker, mut part) = (None, None, None);
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "processor" => {
                number = value.parse().ok().filter(|id| *id < ranges::BEYOND);
                if let Some(number) = number {
                    info.processors.entry(number).or_default();
                }
            }
            "model name" | "cpu model" | "uarch" if info.model.is_empty() => {
                info.model = value.to_owned();
            }
            "CPU implementer" => maker = maker.or(Some(value)),
            "CPU part" => part = part.or(Some(value)),
            "physical id" => {
                if let (Some(processor), Ok(socket)) = (at(&mut info, number), value.parse()) {
                    processor.socket = socket;
                }
            }
            "cpu MHz" => {
                if let (Some(processor), Some(mhz)) = (at(&mut info, number), whole(value)) {
                    processor.mhz = mhz;
                }
            }
            // Twice the clock's speed where it is written like this; elsewhere it means nothing.
            "bogomips" => {
                if let (Some(processor), Some(twice)) = (at(&mut info, number), whole(value)) {
                    processor.steady_mhz = twice / 2;
                }
            }
            _ => {}
        }
    }
    if info.model.is_empty()
        && let (Some("0x41"), Some(part)) = (maker, part)
    {
        info.model = arm(part).to_owned();
    }
    info
}

/// The whole part of a number with a fraction.
fn whole(value: &str) -> Option<u64> {
    value.split('.').next()?.parse().ok()
}

fn at(info: &mut CpuInfo, number: Option<u32>) -> Option<&mut Processor> {
    info.processors.get_mut(&number?)
}

/// Arm's own cores, which say a number instead of a name.
fn arm(part: &str) -> &'static str {
    match part {
        "0xd03" => "Cortex-A53",
        "0xd04" => "Cortex-A35",
        "0xd05" => "Cortex-A55",
        "0xd07" => "Cortex-A57",
        "0xd08" => "Cortex-A72",
        "0xd09" => "Cortex-A73",
        "0xd0a" => "Cortex-A75",
        "0xd0b" => "Cortex-A76",
        "0xd0c" => "Neoverse-N1",
        "0xd40" => "Neoverse-V1",
        "0xd41" => "Cortex-A78",
        "0xd49" => "Neoverse-N2",
        "0xd4f" => "Neoverse-V2",
        _ => "",
    }
}

/// The MHz in the name of a model such as `Some CPU @ 2.60GHz`.
pub(super) fn named_mhz(model: &str) -> Option<u64> {
    let (_, speed) = model.rsplit_once('@')?;
    let (whole, rest) = speed.trim().strip_suffix("GHz")?.split_once('.')?;
    let mut digits = rest.to_owned();
    digits.push_str("000");
    let whole: u64 = whole.parse().ok()?;
    let thousandths: u64 = digits.get(..3)?.parse().ok()?;
    whole.checked_mul(1000)?.checked_add(thousandths)
}
