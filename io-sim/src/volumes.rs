//! Directories of volumes, as the simulated world makes and removes them.

use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::VolumeWork;
use drover_core::ids::VolumeId;
use drover_core::input::NodeInput;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

use crate::faults::Fault;
use crate::later::Later;
use crate::world::World;

impl World {
    /// Where a volume lies that is made now.
    pub(crate) fn volume_path(&self, volume: VolumeId) -> String {
        format!("{}/{volume}", self.volumes_dir)
    }

    /// The state is brought to another data directory, in which no volume was made.
    pub(crate) fn brought_along(&mut self) {
        self.volumes.clear();
        self.volumes_dir.push_str("/new");
        self.disk.brought_along();
    }

    /// Begins what is asked for a volume. It is done after what was asked for the same one before.
    pub(crate) fn begin_volume(&mut self, op: Op, volume: VolumeId, work: &VolumeWork) {
        let entity: Arc<str> = Arc::from(format!("volume {}", volume.short()));
        if self.fires(Fault::HangHook, &entity) {
            return;
        }
        let delay = self.latency(&entity, self.timeouts.hook);
        let before = self
            .later
            .iter()
            .filter_map(|((at, _), due)| match &due.what {
                Later::Volume { volume: other, .. } if *other == volume => Some(*at),
                _ => None,
            });
        let first = before
            .max()
            .map_or(0, |at| (at - self.at).0.saturating_add(1));
        let what = Later::Volume {
            op,
            volume,
            work: work.clone(),
            entity: entity.clone(),
        };
        self.after(delay.max(Span(first)), &entity, what);
    }

    pub(crate) fn end_volume(
        &mut self,
        life: u64,
        op: Op,
        volume: VolumeId,
        work: &VolumeWork,
        entity: &Arc<str>,
    ) {
        let result = if self.fires(Fault::FailHook, entity) {
            Err(Failure::recoverable("the disk says no"))
        } else {
            Ok(match work {
                VolumeWork::Make(_) => {
                    self.volumes.insert(volume);
                    self.volume_path(volume)
                }
                VolumeWork::Remove => {
                    self.volumes.remove(&volume);
                    self.volume_path(volume)
                }
                VolumeWork::Find { path } | VolumeWork::Leave { path } => path.clone(),
            })
        };
        let input = NodeInput::Volume { op, volume, result };
        self.answer(life, op, entity, self.timeouts.hook, Input::Node(input));
    }
}
