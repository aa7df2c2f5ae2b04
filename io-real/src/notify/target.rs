//! One target: a message at a time, tried again until it is taken, refused, or too old.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drover_core::model::notice::Notice;
use tokio::time::{Instant, sleep, sleep_until};

use super::message::{Message, NodeName};
use super::queue::Queue;
use super::sent_notices::SentNotices;
use super::settings::{TargetSettings, Way};
use super::{Counts, command, webhook};

/// The first pause after a failure; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// In words without secrets.
    pub(super) why: String,
    /// Whether the same, sent again, would fail again.
    pub(super) is_final: bool,
    /// How long the target wants to be left alone, if it said so.
    pub(super) pause: Option<Duration>,
}

impl Trouble {
    pub(super) fn passing(why: impl Into<String>) -> Trouble {
        Trouble {
            why: why.into(),
            is_final: false,
            pause: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Target {
    pub(super) settings: TargetSettings,
    pub(super) node: NodeName,
    pub(super) queue: Arc<Queue>,
    pub(super) counts: Arc<Counts>,
    pub(super) sent_notices: SentNotices,
}

impl Target {
    /// Tells whatever comes, for ever.
    pub(super) async fn run(mut self) {
        let mut rate = Rate::new(self.settings.per_minute);
        // Of how many the target does not know that it missed them.
        let mut missed = 0;
        loop {
            let notice = self.queue.next().await;
            rate.turn().await;
            missed += self.queue.take_unreported();
            if self.deliver(&notice, missed).await {
                self.counts.sent.fetch_add(1, Ordering::Relaxed);
                missed = 0;
            } else {
                self.counts.given_up.fetch_add(1, Ordering::Relaxed);
                missed += 1;
            }
            self = self.note(notice).await;
        }
    }

    /// Whether it was taken in the end.
    async fn deliver(&self, notice: &Notice, missed: u64) -> bool {
        let name = self.settings.name.as_str();
        let until = Instant::now() + self.settings.give_up;
        let mut pause = FIRST_PAUSE;
        loop {
            let message = Message::new(notice, &self.node, missed);
            let Err(trouble) = self.send(&message).await else {
                return true;
            };
            // One that hangs until its time is over is seen here at once, and not when it is given up.
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            let Trouble { why, is_final, .. } = &trouble;
            let wait = trouble.pause.unwrap_or(pause).clamp(pause, LONGEST_PAUSE);
            if *is_final || Instant::now() + wait > until {
                tracing::warn!(
                    notify = name,
                    id = notice.id,
                    "could not notify, and gave up: {why}"
                );
                return false;
            }
            if pause == FIRST_PAUSE {
                tracing::warn!(
                    notify = name,
                    id = notice.id,
                    "could not notify, and tries again: {why}"
                );
            } else {
                tracing::debug!(notify = name, id = notice.id, "could not notify: {why}");
            }
            sleep(wait).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn send(&self, message: &Message) -> Result<(), Trouble> {
        match &self.settings.way {
            Way::Webhook(webhook) => webhook::send(webhook, message).await,
            Way::Command(command) => command::run(&self.settings.name, command, message).await,
        }
    }

    /// Notes that this one is over, where the disk may block.
    async fn note(mut self, notice: Arc<Notice>) -> Target {
        let noted = tokio::task::spawn_blocking(move || {
            self.sent_notices.note(&notice);
            self
        });
        match noted.await {
            Ok(target) => target,
            // The runtime ends.
            Err(_) => std::future::pending().await,
        }
    }
}

/// So many in a minute: a minute's worth at once, then evenly.
#[derive(Debug)]
struct Rate {
    each: Duration,
    most: u32,
    /// When the last of what is left would be used up, if it was used evenly.
    full_at: Instant,
}

impl Rate {
    fn new(per_minute: u32) -> Rate {
        Rate {
            each: Duration::from_secs(60) / per_minute.max(1),
            most: per_minute.max(1),
            full_at: Instant::now(),
        }
    }

    async fn turn(&mut self) {
        let now = Instant::now();
        let next = self.full_at.max(now) + self.each;
        let ahead = self.each * self.most;
        sleep_until(next.checked_sub(ahead).unwrap_or(now)).await;
        self.full_at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rate_lets_a_minutes_worth_through_and_then_one_after_the_other() {
        let began = Instant::now();
        let mut rate = Rate::new(6);
        for _ in 0..6 {
            rate.turn().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        rate.turn().await;
        assert_eq!(began.elapsed().as_secs(), 10);
        rate.turn().await;
        assert_eq!(began.elapsed().as_secs(), 20);
        sleep(Duration::from_secs(3600)).await;
        let later = Instant::now();
        for _ in 0..6 {
            rate.turn().await;
        }
        assert_eq!(later.elapsed(), Duration::ZERO);
    }
}
