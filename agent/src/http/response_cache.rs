//! A cache of encoded answers, which are kept for as long as they are fresh.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use drover_core::ids::AllocId;
use drover_io_real::stats::FRESH;

/// How many are kept.
const MOST: usize = 1024;

/// What an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    Host,
    Alloc(AllocId),
    /// In the text form of Prometheus, or not.
    Metrics(bool),
}

#[derive(Debug)]
struct Answer {
    until: Instant,
    index: u64,
    text: Bytes,
}

/// The answers.
#[derive(Debug, Default)]
pub(super) struct ResponseCache(Mutex<BTreeMap<About, Answer>>);

impl ResponseCache {
    /// An answer that is fresh, and not older than the state of this index.
    pub(super) fn get(&self, about: About, index: u64) -> Option<Bytes> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.get(&about)?;
        let fresh = answer.index == index && Instant::now() < answer.until;
        fresh.then(|| answer.text.clone())
    }

    /// Keeps an answer of the state of this index for a second.
    pub(super) fn put(&self, about: About, index: u64, text: Bytes) {
        self.put_for(about, index, text, FRESH);
    }

    /// Keeps an answer of the state of this index for so long.
    pub(super) fn put_for(&self, about: About, index: u64, text: Bytes, how_long: Duration) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST {
            let now = Instant::now();
            answers.retain(|_, answer| now < answer.until);
        }
        // Rather not keep this one than look through very many for the oldest.
        if answers.len() < MOST {
            let until = Instant::now() + how_long;
            answers.insert(about, Answer { until, index, text });
        }
    }
}
