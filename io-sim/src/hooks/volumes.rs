//! Links to the volumes of a task whose driver does not mount.

use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::LinkVolumes;

use super::{Of, Simulated};
use crate::world::World;

impl Simulated for LinkVolumes {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let key = of.key_with_dir(world)?;
        let links = self.links.iter();
        let links = links.map(|link| (link.path.path.clone(), link.target.clone()));
        let of_task = world.dirs.links.entry((key.alloc, key.task)).or_default();
        of_task.extend(links);
        Ok(HookOutput::default())
    }
}
