//! The hard limit of processors, `cpu_hard_limit`: a task then never gets more than its share, also while nobody else
//! wants the rest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::{CpuLimit, cpu_limit};
use crate::model::value::Value;

/// The kernel's usual period, in microseconds.
const USUAL_PERIOD: i64 = 100_000;
/// The kernel takes no less, in microseconds.
const LEAST_QUOTA: i64 = 1_000;

/// So much of processors in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CpuQuota {
    /// Microseconds of processors; more than the period for more than one.
    pub quota: i64,
    /// The period, in microseconds.
    pub period: i64,
}

/// What a machine has of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// MHz of all cores together.
    pub mhz: u64,
    /// Its cores.
    pub cores: u64,
}

impl CpuQuota {
    /// The limit of a task with this driver's configuration and `mhz` of the machine; none if it does not want one.
    ///
    /// # Errors
    /// It wants one, and nobody knows how fast the machine is.
    pub fn of(
        config: &BTreeMap<String, Value>,
        mhz: u64,
        machine: Option<Compute>,
    ) -> Result<Option<CpuQuota>, String> {
        let CpuLimit { is_hard, period } = cpu_limit(config);
        if !is_hard {
            return Ok(None);
        }
        let quota = machine.and_then(|machine| share(mhz, machine, period));
        let unknown = "cpu_hard_limit: it is not known how fast this machine is";
        quota.map(Some).ok_or_else(|| unknown.to_owned())
    }
}

fn share(mhz: u64, machine: Compute, period: Option<i64>) -> Option<CpuQuota> {
    let period = period.filter(|it| *it > 0).unwrap_or(USUAL_PERIOD);
    let whole = i128::from(mhz) * i128::from(machine.cores) * i128::from(period);
    let quota = whole.checked_div(i128::from(machine.mhz))?;
    Some(CpuQuota {
        quota: i64::try_from(quota).ok()?.max(LEAST_QUOTA),
        period,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mhz: u64, all: u64, cores: u64, period: Option<i64>) -> Option<(i64, i64)> {
        let machine = Compute { mhz: all, cores };
        share(mhz, machine, period).map(|it| (it.quota, it.period))
    }

    #[test]
    fn cpu_quota_is_share_of_all_cores() {
        assert_eq!(of(1_000, 8_000, 4, None), Some((50_000, 100_000)));
        assert_eq!(of(4_000, 8_000, 4, None), Some((200_000, 100_000)));
        assert_eq!(of(1_000, 8_000, 4, Some(50_000)), Some((25_000, 50_000)));
        assert_eq!(of(1, 8_000, 4, Some(50_000)), Some((1_000, 50_000)));
        assert_eq!(of(1, 0, 4, None), None);
    }

    #[test]
    fn task_without_hard_limit_has_no_quota() {
        let wants = |hard: bool| [("cpu_hard_limit".to_owned(), Value::Bool(hard))].into();
        let machine = Some(Compute {
            mhz: 4_000,
            cores: 2,
        });
        assert_eq!(CpuQuota::of(&BTreeMap::new(), 500, machine), Ok(None));
        assert_eq!(CpuQuota::of(&wants(false), 500, machine), Ok(None));
        let quota = CpuQuota {
            quota: 25_000,
            period: 100_000,
        };
        assert_eq!(CpuQuota::of(&wants(true), 500, machine), Ok(Some(quota)));
        assert!(CpuQuota::of(&wants(true), 500, None).is_err());
    }
}
