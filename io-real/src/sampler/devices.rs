//! Measuring devices when somebody looks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use drover_core::model::device::AssignedDevices;
use futures::future::join_all;
use tokio::time::timeout;

use super::Sampler;
use crate::device::Measured;

/// How long who looks waits for who measures.
const TIMEOUT: Duration = Duration::from_millis(250);

impl Sampler {
    /// Sees to it that what the board says of these devices is not older than a second, as far as
    /// who has them measures them in a moment.
    pub async fn refresh_devices(&self, held: &[AssignedDevices]) {
        let mut wanted: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for held in held {
            let ids = wanted.entry(&held.plugin).or_default();
            ids.extend(held.ids.iter().cloned());
        }
        let samples = wanted
            .iter()
            .map(|(plugin, ids)| self.measure(plugin, Some(ids)));
        join_all(samples).await;
    }

    /// The same for all devices.
    pub async fn refresh_all_devices(&self) {
        let plugins = self.plugins.as_ref();
        let names = plugins.map(|plugins| plugins.all_names());
        let names = names.unwrap_or_default();
        join_all(names.iter().map(|name| self.measure(name, None))).await;
    }

    async fn measure(&self, plugin: &str, ids: Option<&BTreeSet<String>>) {
        let plugins = self.plugins.as_ref();
        let Some(found) = plugins.and_then(|plugins| plugins.get(plugin)) else {
            return;
        };
        let to = Measured::new(plugin, self.board.clone());
        // Whether it came or not: what is known is what is told.
        let _ = timeout(TIMEOUT, found.measure(ids, &to)).await;
    }
}
