//! What happened, one line a step.

use std::hash::Hasher;

use drover_core::time::{Now, SECOND};

use crate::choice::Fnv;

/// The story of a run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    lines: Vec<String>,
    hash: Fnv,
}

impl Trace {
    /// One more line.
    pub fn line(&mut self, now: Now, text: &str) {
        let nanos = now.at.0;
        let second = SECOND.unsigned_abs();
        let line = format!("{:>6}.{:09} {text}", nanos / second, nanos % second);
        self.hash.write(line.as_bytes());
        self.lines.push(line);
    }

    /// A number that two runs share if and only if they went the same way.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// Every line.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The last `n` lines.
    pub fn tail(&self, n: usize) -> &[String] {
        &self.lines[self.lines.len().saturating_sub(n)..]
    }
}
