//! From counters of work to percentages.

use super::usage::Cpu;

/// What a task worked since it began, in nanoseconds. What was not measured is unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// For itself.
    pub user: Option<u64>,
    /// The kernel for it.
    pub system: Option<u64>,
    /// All together.
    pub total: Option<u64>,
    /// How often it was held back.
    pub throttled_periods: Option<u64>,
    /// For how long.
    pub throttled_time: Option<u64>,
}

impl Spent {
    /// What it worked since `before`, which was `elapsed` nanoseconds earlier. A counter that went
    /// back says nothing.
    pub fn since(&self, before: &Spent, elapsed: u64, mhz_of_a_core: Option<f64>) -> Cpu {
        let percent = |now: Option<u64>, before: Option<u64>| {
            let worked = now?.checked_sub(before?)?;
            (elapsed > 0).then(|| worked as f64 / elapsed as f64 * 100.0)
        };
        let all = percent(self.total, before.total);
        Cpu {
            system: percent(self.system, before.system),
            user: percent(self.user, before.user),
            total_ticks: all.zip(mhz_of_a_core).map(|(all, mhz)| all / 100.0 * mhz),
            percent: all,
            worked: self.total,
            throttled_periods: self.throttled_periods,
            throttled_time: self.throttled_time,
        }
    }
}

/// What a core of the machine did since it began, in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTimes {
    /// Work of programs.
    pub user: u64,
    /// Work of the kernel for them.
    pub system: u64,
    /// Nothing.
    pub idle: u64,
    /// Nothing, because of waiting for disks.
    pub waiting: u64,
    /// Everything else: nice programs, interrupts, other machines on this one.
    pub other: u64,
}

/// What a core did in a while, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreUse {
    /// Work of programs.
    pub user: f64,
    /// Work of the kernel for them.
    pub system: f64,
    /// Nothing.
    pub idle: f64,
    /// All but nothing.
    pub total: f64,
    /// What it worked since the machine started, in the kernel's ticks.
    pub worked: Option<u64>,
}

impl CoreTimes {
    fn total(&self) -> Option<u64> {
        let parts = [self.user, self.system, self.idle, self.waiting, self.other];
        parts.into_iter().try_fold(0, u64::checked_add)
    }

    fn worked(&self) -> Option<u64> {
        let parts = [self.user, self.system, self.other];
        parts.into_iter().try_fold(0, u64::checked_add)
    }

    /// What it did since `before`. Counters that stood still or went back are those of an idle core.
    pub fn since(&self, before: &CoreTimes) -> CoreUse {
        self.parts_since(before).unwrap_or(CoreUse {
            user: 0.0,
            system: 0.0,
            idle: 100.0,
            total: 0.0,
            worked: self.worked(),
        })
    }

    fn parts_since(&self, before: &CoreTimes) -> Option<CoreUse> {
        let all = self.total()?.checked_sub(before.total()?)?;
        let part = |now: u64, before: u64| {
            let ticks = now.checked_sub(before)?;
            (all > 0).then(|| (ticks as f64 / all as f64 * 100.0).min(100.0))
        };
        let idle = part(self.idle, before.idle)?;
        // The kernel lets this one go back a little now and then.
        let waiting = part(self.waiting, before.waiting).unwrap_or(0.0);
        Some(CoreUse {
            user: part(self.user, before.user)?,
            system: part(self.system, before.system)?,
            idle,
            total: (100.0 - idle - waiting).max(0.0),
            worked: self.worked(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn cpu_percent_is_of_one_core() {
        let at = |total, user| Spent {
            total: Some(total),
            user: Some(user),
            throttled_periods: Some(3),
            ..Spent::default()
        };
        let cpu = at(4 * SECOND, SECOND).since(&at(SECOND, SECOND), 2 * SECOND, Some(2700.0));
        assert_eq!((cpu.percent, cpu.user), (Some(150.0), Some(0.0)));
        assert_eq!((cpu.total_ticks, cpu.system), (Some(4050.0), None));
        assert_eq!(cpu.throttled_periods, Some(3));
    }

    #[test]
    fn counter_going_back_gives_no_value() {
        let at = |total| Spent {
            total: Some(total),
            ..Spent::default()
        };
        assert_eq!(at(1).since(&at(2), SECOND, None).percent, None);
        assert_eq!(at(2).since(&at(1), 0, None).percent, None);
        let busy = CoreTimes {
            user: 10,
            ..CoreTimes::default()
        };
        let idle = CoreTimes::default().since(&busy);
        assert_eq!((idle.idle, idle.total), (100.0, 0.0));
        let still = busy.since(&busy);
        assert_eq!((still.idle, still.user), (100.0, 0.0));
        let most = CoreTimes {
            user: u64::MAX,
            idle: u64::MAX,
            ..busy
        };
        assert_eq!(most.since(&busy).total, 0.0);
    }

    #[test]
    fn iowait_is_not_busy_time() {
        let now = CoreTimes {
            user: 20,
            system: 10,
            idle: 50,
            waiting: 15,
            other: 5,
        };
        let used = now.since(&CoreTimes::default());
        assert_eq!((used.user, used.system, used.idle), (20.0, 10.0, 50.0));
        assert_eq!((used.total, used.worked), (35.0, Some(35)));
    }
}
