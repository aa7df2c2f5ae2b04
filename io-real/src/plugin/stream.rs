//! Streams of messages from a plugin: what is not asked for waits at the plugin, and who sends too
//! much is found out.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Streaming;

use super::error::PluginError;
use super::wire::refused;

/// A stream of messages.
#[derive(Debug)]
pub(super) struct Messages<T> {
    call: &'static str,
    stream: Streaming<T>,
    pace: Pace,
}

impl<T> Messages<T> {
    pub(super) fn new(call: &'static str, stream: Streaming<T>, per_second: u32) -> Messages<T> {
        Messages {
            call,
            stream,
            pace: Pace::new(per_second),
        }
    }

    /// The next message; `None` when the plugin ended the stream. Can be given up and asked again.
    pub(super) async fn next(&mut self) -> Result<Option<T>, PluginError> {
        let next = self.stream.message().await;
        let next = next.map_err(|status| refused(self.call, &status))?;
        self.pace.one(Instant::now())?;
        Ok(next)
    }
}

/// Counts messages in windows of a second.
#[derive(Debug)]
struct Pace {
    limit: u32,
    since: Instant,
    count: u32,
}

impl Pace {
    fn new(limit: u32) -> Pace {
        Pace {
            limit,
            since: Instant::now(),
            count: 0,
        }
    }

    fn one(&mut self, now: Instant) -> Result<(), PluginError> {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        if self.count > self.limit {
            return Err(PluginError::Flood(self.limit));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_rate_is_limited_per_second() {
        let mut pace = Pace::new(2);
        let start = pace.since;
        let after = |millis| start + Duration::from_millis(millis);
        assert!(pace.one(after(0)).is_ok());
        assert!(pace.one(after(900)).is_ok());
        assert!(matches!(pace.one(after(950)), Err(PluginError::Flood(2))));
        assert!(pace.one(after(1000)).is_ok());
        assert!(pace.one(after(5000)).is_ok());
    }
}
