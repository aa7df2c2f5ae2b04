//! What a driver reports that its task uses, once it was validated: what cannot be true is refused
//! whole, and what was not measured stays unset.

use std::collections::BTreeMap;

use super::usage::{Cpu, Memory, TaskUsage, Usage};
use crate::driver::said::{SaidCpu, SaidMemory, SaidProcess, SaidUsage};
use crate::model::float::Float;
use crate::time::Timestamp;

/// How many processes of one task are told apart.
pub const MAX_PROCESSES: usize = 256;

/// What a driver says of a task. `now` is when it was heard: drivers may not say when they measured, and
/// cannot have measured later.
///
/// # Errors
/// The first thing that cannot be so.
pub fn usage(said: &SaidUsage, now: Timestamp) -> Result<TaskUsage, String> {
    let mut processes = BTreeMap::new();
    for (pid, it) in said.by_pid.iter().take(MAX_PROCESSES) {
        let number = pid.parse::<u32>().ok().filter(|number| *number > 0);
        let number = number.ok_or("a process that has no number")?;
        processes.insert(number, process(it)?);
    }
    Ok(TaskUsage {
        usage: process(&said.total)?,
        processes,
        at: said.time.map_or(now, |time| time.min(now)),
    })
}

fn process(said: &SaidProcess) -> Result<Usage, String> {
    let cpu = said.cpu.as_ref().map(cpu).transpose()?;
    Ok(Usage {
        memory: said.memory.as_ref().map(memory).unwrap_or_default(),
        cpu: cpu.unwrap_or_default(),
    })
}

fn cpu(said: &SaidCpu) -> Result<Cpu, String> {
    Ok(Cpu {
        system: part("system", said.system)?,
        user: part("user", said.user)?,
        total_ticks: part("ticks", said.ticks)?,
        percent: part("percent", said.percent)?,
        // Drivers tell how fast, and not how much in all.
        worked: None,
        throttled_periods: said.throttled_periods,
        throttled_time: said.throttled_time,
    })
}

fn part(name: &str, said: Option<Float>) -> Result<Option<f64>, String> {
    let value = said.map(Float::get);
    match value {
        Some(value) if !value.is_finite() || value < 0.0 => {
            Err(format!("{name} of the processor is {value}"))
        }
        value => Ok(value),
    }
}

fn memory(said: &SaidMemory) -> Memory {
    Memory {
        rss: said.rss,
        cache: said.cache,
        swap: said.swap,
        // The protocol has no word for it.
        mapped_file: None,
        usage: said.usage,
        max_usage: said.max_usage,
        kernel_usage: said.kernel,
        kernel_max_usage: said.kernel_max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(percent: f64) -> SaidProcess {
        SaidProcess {
            cpu: Some(SaidCpu {
                percent: Some(Float::new(percent)),
                ..SaidCpu::default()
            }),
            memory: Some(SaidMemory {
                rss: Some(0),
                ..SaidMemory::default()
            }),
        }
    }

    #[test]
    fn what_was_not_measured_stays_unset() {
        let said = SaidUsage {
            total: busy(0.0),
            by_pid: [("7".to_owned(), busy(150.0))].into(),
            ..SaidUsage::default()
        };
        let usage = usage(&said, Timestamp(5)).unwrap_or_default();
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
    fn measurement_of_the_future_is_of_now() {
        let at = |time| {
            let said = SaidUsage {
                time: Some(Timestamp(time)),
                ..SaidUsage::default()
            };
            usage(&said, Timestamp(5)).map(|usage| usage.at)
        };
        assert_eq!(at(9), Ok(Timestamp(5)));
        assert_eq!(at(4), Ok(Timestamp(4)));
    }

    #[test]
    fn what_cannot_be_so_is_refused() {
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            let said = SaidUsage {
                total: busy(bad),
                ..SaidUsage::default()
            };
            assert!(usage(&said, Timestamp(0)).is_err(), "{bad}");
        }
        for pid in ["", "0", "-1", "x", "99999999999"] {
            let said = SaidUsage {
                by_pid: [(pid.to_owned(), busy(1.0))].into(),
                ..SaidUsage::default()
            };
            assert!(usage(&said, Timestamp(0)).is_err(), "{pid}");
        }
    }
}
