//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use super::put_variable::{Expect, the_variable};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// The variable is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteVariable {
    /// What must be there.
    pub expect: Expect,
}

impl ActKind for DeleteVariable {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let (key, expect) = (the_variable(), self.expect.index(sim));
        sim.ask(requests::DeleteVariable { key, expect });
        Ok(())
    }
}

impl Simulated for requests::DeleteVariable {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        let saved = facts.variable(&self.key);
        Some(saved.is_none_or(|saved| saved.meta.create_index > *index))
    }
}
