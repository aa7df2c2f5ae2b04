//! Disks that go from one allocation to the next.

use drover_core::input::HookOutput;
use drover_core::work::InheritDisk;

use super::{Answer, Hooks, Of, Work};

impl Work for InheritDisk {
    /// What it moves goes nowhere else once the directory is gone, and is not lost with it: a removal need
    /// not wait.
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let alloc = of.alloc;
        let inherit = move |hooks: &Hooks| {
            hooks.dirs.inherit(alloc, &self.from, &self.tasks)?;
            Ok(HookOutput::default())
        };
        hooks.on_disk(inherit).await
    }
}
