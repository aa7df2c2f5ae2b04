//! What a driver reports that its task uses, once it was validated: what cannot be true is refused
//! whole, and what was not measured stays unset.

use std::collections::BTreeMap;

use super::usage::{Cpu, Memory, TaskUsage, Usage};
use crate::driver::reported::{ReportedCpu, ReportedMemory, ReportedProcess, ReportedUsage};
use crate::model::float::Float;
use crate::time::Timestamp;

/// How many processes of one task are told apart.
pub const MAX_PROCESSES: usize = 256;

/// What a driver says of a task. `now` is when it was heard: drivers may not say when they measured, and
/// cannot have measured later.
///
/// # Errors
/// The first thing that cannot be so.
pub fn usage(reported: &ReportedUsage, now: Timestamp) -> Result<TaskUsage, String> {
    let mut processes = BTreeMap::new();
    for (pid, it) in reported.by_pid.iter().take(MAX_PROCESSES) {
        let number = pid.parse::<u32>().ok().filter(|number| *number > 0);
        let number = number.ok_or("a process that has no number")?;
        processes.insert(number, process(it)?);
    }
    Ok(TaskUsage {
        usage: process(&reported.total)?,
        processes,
        at: reported.time.map_or(now, |time| time.min(now)),
    })
}

fn process(reported: &ReportedProcess) -> Result<Usage, String> {
    let cpu = reported.cpu.as_ref().map(cpu).transpose()?;
    Ok(Usage {
        memory: reported.memory.as_ref().map(memory).unwrap_or_default(),
        cpu: cpu.unwrap_or_default(),
    })
}

fn cpu(reported: &ReportedCpu) -> Result<Cpu, String> {
    Ok(Cpu {
        system: part("system", reported.system)?,
        user: part("user", reported.user)?,
        total_ticks: part("ticks", reported.ticks)?,
        percent: part("percent", reported.percent)?,
        // Drivers tell how fast, and not how much in all.
        worked: None,
        throttled_periods: reported.throttled_periods,
        throttled_time: reported.throttled_time,
    })
}

fn part(name: &str, reported: Option<Float>) -> Result<Option<f64>, String> {
    let value = reported.map(Float::get);
    match value {
        Some(value) if !value.is_finite() || value < 0.0 => {
            Err(format!("{name} of the processor is {value}"))
        }
        value => Ok(value),
    }
}

fn memory(reported: &ReportedMemory) -> Memory {
    Memory {
        rss: reported.rss,
        cache: reported.cache,
        swap: reported.swap,
        // The protocol has no word for it.
        mapped_file: None,
        usage: reported.usage,
        max_usage: reported.max_usage,
        kernel_usage: reported.kernel,
        kernel_max_usage: reported.kernel_max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(percent: f64) -> ReportedProcess {
        ReportedProcess {
            cpu: Some(ReportedCpu {
                percent: Some(Float::new(percent)),
                ..ReportedCpu::default()
            }),
            memory: Some(ReportedMemory {
                rss: Some(0),
                ..ReportedMemory::default()
            }),
        }
    }

    #[test]
    fn unmeasured_value_stays_unset() {
        let reported = ReportedUsage {
            total: busy(0.0),
            by_pid: [("7".to_owned(), busy(150.0))].into(),
            ..ReportedUsage::default()
        };
        let usage = usage(&reported, Timestamp(5)).unwrap_or_default();
        assert_eq!(usage.at, Timestamp(5));
        assert_eq!(usage.usage.cpu.percent, Some(0.0));
        assert_eq!(usage.usage.memory.rss, Some(0));
        assert_eq!(
            (usage.usage.cpu.user, usage.usage.memory.cache),
            (None, None)
        );
        assert_eq!(usage.processes[&7].cpu.percent, Some(150.0));
    }

    #[test]
    fn future_measurement_counts_as_current() {
        let at = |time| {
            let reported = ReportedUsage {
                time: Some(Timestamp(time)),
                ..ReportedUsage::default()
            };
            usage(&reported, Timestamp(5)).map(|usage| usage.at)
        };
        assert_eq!(at(9), Ok(Timestamp(5)));
        assert_eq!(at(4), Ok(Timestamp(4)));
    }

    #[test]
    fn invalid_stats_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            let reported = ReportedUsage {
                total: busy(bad),
                ..ReportedUsage::default()
            };
            assert!(usage(&reported, Timestamp(0)).is_err(), "{bad}");
        }
        for pid in ["", "0", "-1", "x", "99999999999"] {
            let reported = ReportedUsage {
                by_pid: [(pid.to_owned(), busy(1.0))].into(),
                ..ReportedUsage::default()
            };
            assert!(usage(&reported, Timestamp(0)).is_err(), "{pid}");
        }
    }
}
