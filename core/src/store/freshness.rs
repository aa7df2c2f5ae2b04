//! Whether a store is as young as its data directory: an earlier state must not pass for the
//! present one.
//!
//! A damaged database may open as what it was some commits ago, and a directory that was removed
//! opens as an empty one. Whoever goes on from there ends every task that was started since. So the
//! number of the last commit is also kept in a file beside the store, and what both say is compared
//! before anything is done.
//!
//! Each batch has a number. The number of the last one is also in `last-commit`, beside the store
//! (`io-real/src/store/counter.rs`); it may lag behind the store and is never ahead of it. A store
//! that is behind it is refused. With `-accept-state-loss` it is used nevertheless, goes on with
//! higher numbers, and leaves launches that it does not know alone until there are none
//! (`Opened::lossy`).

/// What the file beside the store says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// There is none: nothing was ever saved here, or by a version that did not write it.
    Missing,
    /// It is there and cannot be read.
    Unreadable,
    /// It was read.
    Read {
        /// The number of the last commit that is known to be saved. The store may be ahead of it.
        last: u64,
        /// Whether a loss was accepted, and tasks of the lost state may still run.
        lost: bool,
    },
}

/// What is found in a data directory before its state is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The number of the store's last commit; none if there is no store.
    pub store: Option<u64>,
    /// The file beside it.
    pub counter: Counter,
    /// Whether there are records of launches, which only an agent with a store makes.
    pub launches: bool,
}

/// What to do with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that was acknowledged is in it.
    Complete,
    /// The operator accepted that something is lost. Tasks that the store does not know may be of
    /// the lost state: they are not to be ended.
    Lossy,
    /// It is not to be used.
    Refused(Refusal),
}

/// Why a store is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is an earlier state.
    Behind {
        /// The number of its last commit.
        store: u64,
        /// The number that was acknowledged.
        last: u64,
    },
    /// It is not there, and was; with the number that was acknowledged, if that is known.
    Missing(Option<u64>),
    /// Nobody can tell, with the number of its last commit.
    Unknown(u64),
}

impl Evidence {
    /// Decides. `accept_loss` is the operator's word that something may be lost.
    pub fn check_freshness(self, accept_loss: bool) -> Verdict {
        let refused = |refusal| match accept_loss {
            true => Verdict::Lossy,
            false => Verdict::Refused(refusal),
        };
        match (self.counter, self.store) {
            (Counter::Read { last, .. }, Some(store)) if store < last => {
                refused(Refusal::Behind { store, last })
            }
            (Counter::Read { last, .. }, None) if last > 0 => refused(Refusal::Missing(Some(last))),
            (Counter::Read { lost, .. }, _) => match lost {
                true => Verdict::Lossy,
                false => Verdict::Complete,
            },
            (Counter::Unreadable, store) => refused(Refusal::Unknown(store.unwrap_or(0))),
            (Counter::Missing, None) if self.launches => refused(Refusal::Missing(None)),
            (Counter::Missing, _) => Verdict::Complete,
        }
    }

    /// The number from which a store goes on whose loss is accepted just now: beyond all that was
    /// acknowledged before. None if nothing is missing.
    pub fn resumes_at(self) -> Option<u64> {
        let store = self.store.unwrap_or(0);
        let last = match self.counter {
            Counter::Read { last, .. } => last,
            Counter::Missing | Counter::Unreadable => store,
        };
        match self.check_freshness(false) {
            Verdict::Refused(_) => Some(store.max(last).saturating_add(1)),
            Verdict::Complete | Verdict::Lossy => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(store: Option<u64>, counter: Counter, launches: bool) -> Evidence {
        Evidence {
            store,
            counter,
            launches,
        }
    }

    fn at(last: u64) -> Counter {
        Counter::Read { last, lost: false }
    }

    #[test]
    fn store_at_or_ahead_of_counter_is_complete() {
        for (store, counter) in [
            (Some(7), at(7)),
            (Some(9), at(7)),
            (Some(0), at(0)),
            (None, at(0)),
            // What a version left that wrote no file.
            (Some(0), Counter::Missing),
            (Some(7), Counter::Missing),
            (None, Counter::Missing),
        ] {
            for accept in [false, true] {
                let evidence = found(store, counter, store.is_some());
                assert_eq!(
                    evidence.check_freshness(accept),
                    Verdict::Complete,
                    "{evidence:?}"
                );
                assert_eq!(evidence.resumes_at(), None, "{evidence:?}");
            }
        }
    }

    #[test]
    fn store_behind_counter_is_refused_until_loss_is_accepted() {
        let behind = Refusal::Behind { store: 6, last: 7 };
        for (store, counter, launches, why, resumes) in [
            (Some(6), at(7), false, behind, 8),
            (None, at(7), false, Refusal::Missing(Some(7)), 8),
            (None, Counter::Missing, true, Refusal::Missing(None), 1),
            (Some(6), Counter::Unreadable, false, Refusal::Unknown(6), 7),
            (None, Counter::Unreadable, false, Refusal::Unknown(0), 1),
        ] {
            let evidence = found(store, counter, launches);
            assert_eq!(
                evidence.check_freshness(false),
                Verdict::Refused(why),
                "{evidence:?}"
            );
            assert_eq!(
                evidence.check_freshness(true),
                Verdict::Lossy,
                "{evidence:?}"
            );
            assert_eq!(evidence.resumes_at(), Some(resumes), "{evidence:?}");
        }
    }

    #[test]
    fn accepted_loss_is_remembered_and_a_second_one_is_refused() {
        let lost = Counter::Read {
            last: 8,
            lost: true,
        };
        assert_eq!(
            found(Some(8), lost, true).check_freshness(false),
            Verdict::Lossy
        );
        let behind = Refusal::Behind { store: 7, last: 8 };
        let again = found(Some(7), lost, true);
        assert_eq!(again.check_freshness(false), Verdict::Refused(behind));
    }
}
