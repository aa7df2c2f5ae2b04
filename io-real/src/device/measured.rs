//! The way of measurements to the board that answers come from.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::device::reported_stats::ReportedStats;
use drover_core::stats::board::Board;

/// Where what is measured of one plugin's devices goes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Measured {
    plugin: Arc<str>,
    board: Arc<Mutex<Board>>,
}

impl Measured {
    /// This plugin's way to this board.
    pub fn new(plugin: &str, board: Arc<Mutex<Board>>) -> Measured {
        Measured {
            plugin: plugin.into(),
            board,
        }
    }

    /// All that is known by now of the plugin's devices.
    ///
    /// # Errors
    /// The first thing that cannot be so. Nothing is known of its devices then.
    pub fn report(&self, reported: Vec<ReportedStats>) -> Result<(), String> {
        self.board().devices.report(&self.plugin, reported)
    }

    /// Nothing is known of the plugin's devices any more.
    pub fn lose(&self) {
        self.board().devices.lose(&self.plugin);
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
