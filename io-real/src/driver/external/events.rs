//! Events that a driver reports of its tasks, such as images that are being fetched, passed on to
//! the core as they come (type `Driver`).
//!
//! The plugin is not believed: it may report on launches that are in its own hands and on no
//! others, its texts are cut, and what is too much is dropped. When its stream ends it is asked
//! again, after a pause that grows, for as long as the plugin is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use drover_core::agent::Input;
use drover_core::driver::reported::ReportedTaskEvent;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;

use super::World;
use crate::plugin::Plugin;

/// The pause after a first failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The most bytes of a message, and of a detail's name or text.
const MESSAGE: usize = 1024;
const DETAIL: usize = 256;

/// The most details of one event.
const DETAILS: usize = 16;

/// So many events pass at once, and one more each [`REFILL`].
const BURST: u32 = 20;
const REFILL: Duration = Duration::from_millis(500);

/// Listens for as long as the plugin and the driver are there.
pub(super) async fn listen(world: Weak<World>, plugin: Arc<Plugin>) {
    let (mut pause, longest) = PAUSES;
    loop {
        match plugin.task_events().await {
            Ok(mut events) => {
                let mut measure = Measure::default();
                while let Ok(Some(event)) = events.next().await {
                    let Some(world) = world.upgrade() else { return };
                    pause = PAUSES.0;
                    if measure.allows() {
                        world.pass_on(event);
                    }
                }
            }
            Err(error) if error.is_unimplemented() => return,
            Err(error) => tracing::debug!(%error, "a driver sends no task events"),
        }
        if !plugin.is_alive() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(longest);
    }
}

impl World {
    fn pass_on(&self, event: ReportedTaskEvent) {
        let launch = event.task_id.parse::<LaunchId>().ok();
        let Some(launch) = launch.filter(|launch| self.held.is_in_hand(*launch)) else {
            return;
        };
        let Ok(alloc) = event.alloc_id.parse() else {
            return;
        };
        let task = TaskKey {
            alloc,
            task: event.task_name.into(),
        };
        let details = event.annotations.iter().take(DETAILS);
        let details: BTreeMap<String, String> = details
            .map(|(name, text)| (cut(name, DETAIL), cut(text, DETAIL)))
            .collect();
        let reported = DriverInput::Event {
            launch,
            message: cut(&event.message, MESSAGE),
            details,
        };
        self.inbox.deliver(Input::Driver(task, reported));
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    text.get(..text.floor_char_boundary(most))
        .unwrap_or_default()
        .to_owned()
}

/// How many events may pass.
struct Measure {
    left: u32,
    since: Instant,
}

impl Default for Measure {
    fn default() -> Measure {
        Measure {
            left: BURST,
            since: Instant::now(),
        }
    }
}

impl Measure {
    fn allows(&mut self) -> bool {
        let due = self.since.elapsed().as_millis() / REFILL.as_millis();
        let due = u32::try_from(due).unwrap_or(BURST);
        if due > 0 {
            self.left = self.left.saturating_add(due).min(BURST);
            self.since = Instant::now();
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}
