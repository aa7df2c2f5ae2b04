//! Who has which name now, and who is who.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drover_core::agent::names::Names;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::agent_handle::AgentHandle;

/// The core is asked again after this, or when a network was made, however many questions come.
const PACE: Duration = Duration::from_millis(100);

/// What the core said last.
#[derive(Debug)]
struct Known {
    at: Instant,
    /// How many networks were made before.
    made: u64,
    names: Arc<Names>,
}

/// The names, as the core knows them.
#[derive(Debug)]
pub(super) struct Table {
    agent_handle: AgentHandle,
    /// How many networks were made.
    made: Arc<AtomicU64>,
    known: Mutex<Option<Known>>,
}

impl Table {
    pub(super) fn new(agent_handle: AgentHandle, made: Arc<AtomicU64>) -> Table {
        Table {
            agent_handle,
            made,
            known: Mutex::default(),
        }
    }

    /// The names; none once the agent has stopped. An address that another allocation has now is never taken for that
    /// of the one before: its network was made in between.
    pub(super) async fn names(&self) -> Option<Arc<Names>> {
        let mut known = self.known.lock().await;
        let made = self.made.load(Ordering::Acquire);
        if let Some(last) = &*known
            && last.made == made
            && last.at.elapsed() < PACE
        {
            return Some(last.names.clone());
        }
        let names = Arc::new(self.agent_handle.ask(Names::of).await.ok()?);
        *known = Some(Known {
            at: Instant::now(),
            made,
            names: names.clone(),
        });
        Some(names)
    }
}
