//! How a download goes, in a few words.

use std::collections::BTreeMap;
use std::fmt;

use bollard::models::CreateImageInfo;

/// The most layers that are counted.
const LAYERS: usize = 1024;

/// What is known of a download.
#[derive(Debug, Default)]
pub(super) struct Progress {
    layers: BTreeMap<String, Layer>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Layer {
    here: u64,
    whole: u64,
    done: bool,
}

impl Progress {
    /// How many bytes come over the wire, as far as that is known.
    pub(super) fn bytes(&self) -> u64 {
        let layers = self.layers.values();
        layers.fold(0, |sum, layer| {
            sum.saturating_add(layer.whole.max(layer.here))
        })
    }

    /// Takes what the engine says.
    pub(super) fn note(&mut self, info: &CreateImageInfo) {
        let Some(id) = info.id.as_ref().filter(|id| id.len() <= 64) else {
            return;
        };
        let status = info.status.as_deref().unwrap_or_default();
        let begins = ["Pulling fs layer", "Downloading", "Already exists"].contains(&status);
        if !self.layers.contains_key(id) && (!begins || self.layers.len() >= LAYERS) {
            return;
        }
        let layer = self.layers.entry(id.clone()).or_default();
        let detail = info.progress_detail.as_ref();
        let number = |number: Option<i64>| number.and_then(|it| u64::try_from(it).ok());
        if status == "Downloading" {
            layer.here = detail
                .and_then(|it| number(it.current))
                .unwrap_or(layer.here);
            layer.whole = detail
                .and_then(|it| number(it.total))
                .unwrap_or(layer.whole);
        }
        if ["Download complete", "Already exists", "Pull complete"].contains(&status) {
            layer.done = true;
            layer.here = layer.here.max(layer.whole);
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        let done = self.layers.values().filter(|layer| layer.done).count();
        let sum = |of: fn(&Layer) -> u64| self.layers.values().map(of).fold(0, u64::saturating_add);
        let (here, whole) = (sum(|layer| layer.here), sum(|layer| layer.whole));
        let layers = self.layers.len();
        write!(
            f,
            "{done} of {layers} layers, {} of {} MiB",
            here / MIB,
            whole / MIB
        )
    }
}
