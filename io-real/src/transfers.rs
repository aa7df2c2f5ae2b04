//! Progress of what is fetched for allocations, shown to people who wait. Nothing depends on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use drover_core::ids::AllocId;
use tokio::sync::watch;

/// No news of less than this, in bytes.
const STEP: u64 = 1 << 20;

/// Everything that is on its way. Cheap to clone; the clones are the same.
#[derive(Clone, Debug)]
pub struct Transfers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    coming: Mutex<(u64, BTreeMap<u64, Item>)>,
    changed: watch::Sender<()>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    alloc: AllocId,
    amount: Amount,
}

/// How much came, and how much it will be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes that are here.
    pub bytes: u64,
    /// Bytes in all; none if nobody knows.
    pub total: Option<u64>,
}

impl Amount {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Amount) -> Amount {
        let totals = self.total.zip(other.total);
        Amount {
            bytes: self.bytes.saturating_add(other.bytes),
            total: totals.map(|(one, other)| one.saturating_add(other)),
        }
    }
}

/// Bytes for people, such as `3.5` mebibytes.
pub fn mib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// What came, and how long that took, for people.
pub(crate) fn in_all(bytes: u64, time: Duration) -> String {
    let millis = time.as_millis();
    let (seconds, tenths) = (millis / 1000, millis % 1000 / 100);
    format!("{} MiB in {seconds}.{tenths} s", mib(bytes))
}

/// One thing on its way; it is here, or will not come, when this is dropped.
#[derive(Debug)]
pub struct Coming {
    number: u64,
    reported_bytes: u64,
    all: Transfers,
}

impl Default for Transfers {
    fn default() -> Transfers {
        Transfers(Arc::new(Inner {
            coming: Mutex::default(),
            changed: watch::Sender::new(()),
        }))
    }
}

impl Transfers {
    /// Something begins to come.
    pub fn begin(&self, alloc: AllocId) -> Coming {
        let mut coming = self.lock();
        coming.0 += 1;
        let number = coming.0;
        let amount = Amount::default();
        coming.1.insert(number, Item { alloc, amount });
        Coming {
            number,
            reported_bytes: 0,
            all: self.clone(),
        }
    }

    /// What comes for an allocation, all of it together.
    pub fn of(&self, alloc: AllocId) -> Option<Amount> {
        let coming = self.lock();
        let own = coming.1.values().filter(|item| item.alloc == alloc);
        own.map(|item| item.amount).reduce(Amount::and)
    }

    /// Tells when there is news.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Item>)> {
        self.0
            .coming
            .lock()
            .unwrap_or_else(|lock| lock.into_inner())
    }
}

impl Coming {
    /// So much is here now.
    pub fn is(&mut self, amount: Amount) {
        if let Some(item) = self.all.lock().1.get_mut(&self.number) {
            item.amount = amount;
        }
        if amount.bytes >= self.reported_bytes.saturating_add(STEP) {
            self.reported_bytes = amount.bytes;
            self.all.0.changed.send_replace(());
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.all.lock().1.remove(&self.number);
        self.all.0.changed.send_replace(());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn transfer_progress_is_summed_and_removed() {
        let all = Transfers::default();
        let (one, other) = (AllocId(1), AllocId(2));
        let amount = |bytes, total| Amount { bytes, total };
        let mut first = all.begin(one);
        let mut second = all.begin(one);
        let changes = all.changes();
        first.is(amount(3, Some(10)));
        assert!(!changes.has_changed().unwrap(), "so little is no news");
        second.is(amount(STEP, Some(STEP)));
        assert!(changes.has_changed().unwrap());
        assert_eq!(all.of(one), Some(amount(STEP + 3, Some(STEP + 10))));
        second.is(amount(STEP, None));
        assert_eq!(all.of(one), Some(amount(STEP + 3, None)));
        assert_eq!(all.of(other), None);
        drop((first, second));
        assert_eq!(all.of(one), None);
    }
}
