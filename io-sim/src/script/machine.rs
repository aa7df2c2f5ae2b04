//! What happens to the machine and its agent, which no request asks for.

use drover_core::claims::resources::Amounts;
use drover_core::input::ShutdownMode;
use drover_core::time::Span;
use serde::{Deserialize, Serialize};

use super::{ActKind, Jobs};
use crate::check::Verdict;
use crate::sim::Sim;

/// The driver's condition changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Whether it is healthy from now on.
    pub healthy: bool,
}

impl ActKind for Driver {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.driver(self.healthy);
        Ok(())
    }
}

/// The machine has more or less of counted resources from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resize {
    /// What it has.
    pub has: Amounts,
}

impl ActKind for Resize {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.machine_has(self.has);
        Ok(())
    }
}

/// What some template is made of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeTemplate;

impl ActKind for ChangeTemplate {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.a_template_changes();
        Ok(())
    }
}

/// The agent is told to end; five minutes later another one begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shutdown {
    /// How it ends.
    pub mode: ShutdownMode,
}

impl ActKind for Shutdown {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.shutdown(self.mode);
        sim.run(Span::secs(300))?;
        sim.restart()
    }
}

/// The agent is killed, and another one begins at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replace;

impl ActKind for Replace {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.restart()
    }
}
