//! Directories of volumes, as the simulated world makes and removes them.

use std::collections::BTreeSet;
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::VolumeWork;
use drover_core::ids::VolumeId;
use drover_core::input::NodeInput;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

use crate::faults::Fault;
use crate::later::Later;
use crate::scene::Scene;

/// The directories of volumes, and where new ones are made.
#[derive(Clone, Debug)]
pub struct Volumes {
    made: BTreeSet<VolumeId>,
    dir: String,
}

impl Default for Volumes {
    fn default() -> Volumes {
        Volumes {
            made: BTreeSet::new(),
            dir: "/host_volumes".to_owned(),
        }
    }
}

impl Volumes {
    /// Those that were made and not removed.
    pub fn made(&self) -> &BTreeSet<VolumeId> {
        &self.made
    }

    /// Where a volume lies that is made now.
    pub(crate) fn path(&self, volume: VolumeId) -> String {
        format!("{}/{volume}", self.dir)
    }

    /// The state is brought to another data directory, in which no volume was made.
    pub(crate) fn brought_along(&mut self) {
        self.made.clear();
        self.dir.push_str("/new");
    }

    /// Begins what is asked for a volume. It is done after what was asked for the same one before.
    pub(crate) fn begin(scene: &mut Scene, op: Op, volume: VolumeId, work: &VolumeWork) {
        let entity: Arc<str> = Arc::from(format!("volume {}", volume.short()));
        if scene.fires(Fault::HangHook, &entity) {
            return;
        }
        let delay = scene.latency(&entity, scene.timeouts.hook);
        let before = scene
            .later
            .iter()
            .filter_map(|((at, _), due)| match &due.what {
                Later::Volume { volume: other, .. } if *other == volume => Some(*at),
                _ => None,
            });
        let first = before
            .max()
            .map_or(0, |at| (at - scene.at).0.saturating_add(1));
        let what = Later::Volume {
            op,
            volume,
            work: work.clone(),
            entity: entity.clone(),
        };
        scene.after(delay.max(Span(first)), &entity, what);
    }

    pub(crate) fn end(
        &mut self,
        scene: &mut Scene,
        life: u64,
        op: Op,
        volume: VolumeId,
        work: &VolumeWork,
        entity: &Arc<str>,
    ) {
        let result = if scene.fires(Fault::FailHook, entity) {
            Err(Failure::recoverable("the disk says no"))
        } else {
            Ok(match work {
                VolumeWork::Make(_) => {
                    self.made.insert(volume);
                    self.path(volume)
                }
                VolumeWork::Remove => {
                    self.made.remove(&volume);
                    self.path(volume)
                }
                VolumeWork::Find { path } | VolumeWork::Leave { path } => path.clone(),
            })
        };
        let input = NodeInput::Volume { op, volume, result };
        scene.answer(life, op, entity, scene.timeouts.hook, Input::Node(input));
    }
}
