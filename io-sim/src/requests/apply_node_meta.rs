//! See the core's request of the same name.

use std::collections::BTreeMap;

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Keys of the node get values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyNodeMeta {
    /// Keys with their values; none for a key that the node shall not have.
    pub meta: BTreeMap<String, Option<String>>,
}

impl ActKind for ApplyNodeMeta {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let meta = self.meta.clone();
        sim.ask(requests::ApplyNodeMeta { meta });
        Ok(())
    }
}

impl Simulated for requests::ApplyNodeMeta {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        let node = facts.node().cloned().unwrap_or_default();
        let mut pairs = self.meta.iter();
        let same = pairs.all(|(key, value)| match (value, node.meta.get(key)) {
            (Some(value), Some(Some(known))) => value == known,
            (None, None | Some(None)) => true,
            (Some(_), _) | (None, Some(Some(_))) => false,
        });
        Some(same || node.modify_index > *index)
    }
}
