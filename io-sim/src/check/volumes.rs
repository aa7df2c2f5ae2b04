//! Host volumes: whoever uses one finds it on the node, and may write only where that is allowed.

use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{TaskConfig, VolumeWork};
use drover_core::ids::{TaskKey, VolumeId};
use drover_core::model::group::TaskGroup;
use drover_core::model::placement::PlacementFailure;
use drover_core::model::volume::VolumeRequest;
use drover_core::store::volume::{VolumeRecord, VolumeState};
use drover_core::store::{Key, Record};

use super::{Checker, Property, Verdict};
use crate::engine;
use crate::world::World;

/// The record of a volume that the disk holds.
pub(super) fn saved_volume(world: &World, id: VolumeId) -> Option<&VolumeRecord> {
    match world.disk.records().get(&Key::Volume(id)) {
        Some(Record::Volume(saved)) => Some(saved),
        _ => None,
    }
}

/// Whether a copy of a group asks for the volume of this name.
fn asks_for(alloc: &AllocRunner, name: &str) -> bool {
    let record = alloc.record();
    let group = alloc.job().group(record.group.as_str());
    let mut wanted = group.iter().flat_map(|group| group.volumes.values());
    wanted.any(|wanted| *wanted.source_for(record.index) == *name)
}

impl Checker {
    /// Something is asked of the world for a volume.
    pub(super) fn volume_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        id: VolumeId,
        work: &VolumeWork,
    ) -> Verdict {
        let saved = saved_volume(world, id);
        let wanted = match work {
            VolumeWork::Make(_) | VolumeWork::Find { .. } => VolumeState::Pending,
            VolumeWork::Leave { .. } | VolumeWork::Remove => VolumeState::Deleting,
        };
        let is_saved = saved.is_some_and(|saved| saved.state == wanted);
        self.holds(Property::VolumeIsSavedBeforeWork, is_saved, || {
            format!("{id} {work:?} {saved:?}")
        })?;
        let (Some(saved), VolumeWork::Remove) = (saved, work) else {
            return Ok(());
        };
        let name = &saved.spec.name;
        let user = world.alive().find(|(_, process)| {
            let alloc = agent.view().alloc(process.key.alloc);
            alloc.is_some_and(|alloc| asks_for(alloc, name))
        });
        self.holds(Property::VolumeInUseIsNotRemoved, user.is_none(), || {
            format!("{name} {:?}", user.map(|(_, process)| &process.key))
        })
    }

    /// What was made for volumes belongs to volumes that are remembered, and those that are ready have it.
    pub(super) fn volumes_have_directories(&mut self, world: &World, agent: &Agent) -> Verdict {
        let volumes = agent.view().machine().volumes();
        let orphan = world
            .volumes
            .made()
            .iter()
            .find(|id| volumes.record(**id).is_none());
        self.holds(Property::NoVolumeIsOrphaned, orphan.is_none(), || {
            format!("{orphan:?}")
        })?;
        for volume in volumes.records() {
            let made =
                volume.spec.registered.is_some() || world.volumes.made().contains(&volume.id);
            // One that was brought along, and whose directory could not be made, waits for the next agent.
            if volume.state == VolumeState::Pending && !volume.host_path.is_empty() {
                continue;
            }
            let rests = volume.state != VolumeState::Pending;
            let has = rests && (made || volume.state == VolumeState::Deleting);
            self.holds(Property::VolumeHasItsDirectory, has, || {
                format!("{volume:?}")
            })?;
        }
        Ok(())
    }

    /// Where the volume lies that the copy of this index gets, if there is one for it: one of the configuration,
    /// or one that is ready by its saved record and has its directory.
    fn volume_for(&self, world: &World, wanted: &VolumeRequest, index: u32) -> Option<String> {
        let name = match wanted.per_alloc {
            true => format!("{}[{index}]", wanted.source),
            false => wanted.source.clone(),
        };
        if let Some(found) = self.host_volumes.get(&name) {
            let fits = wanted.read_only || !found.read_only;
            return fits.then(|| found.path.clone());
        }
        let mut made = world
            .disk
            .records()
            .values()
            .filter_map(|record| match record {
                Record::Volume(volume)
                    if volume.spec.name == name && volume.state != VolumeState::Deleting =>
                {
                    Some(volume)
                }
                _ => None,
            });
        let exists = |it: &&Arc<VolumeRecord>| match it.spec.registered {
            Some(_) => true,
            None => world.volumes.made().contains(&it.id),
        };
        let found = made.find(exists)?;
        Some(match &found.spec.registered {
            Some(path) => path.clone(),
            None => world.volumes.path(found.id),
        })
    }

    /// The volumes that a copy of a group asks for and cannot have.
    fn missing_volumes<'a>(&self, world: &World, group: &'a TaskGroup, index: u32) -> Vec<&'a str> {
        let missing = |wanted: &&VolumeRequest| self.volume_for(world, wanted, index).is_none();
        let missing = group.volumes.values().filter(missing);
        missing.map(|wanted| wanted.source.as_str()).collect()
    }

    /// An allocation is placed only on a node that has its volumes as it needs them.
    pub(super) fn placed_alloc_has_its_volumes(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        let Some(group) = alloc.job().group(record.group.as_str()) else {
            return Ok(());
        };
        if group.volumes.is_empty() {
            return Ok(());
        }
        let missing = self.missing_volumes(world, group, record.index);
        let property = Property::PlacedAllocHasItsVolumes;
        self.holds(property, missing.is_empty(), || {
            format!("{} lacks {missing:?}", record.name)
        })
    }

    /// A task starts only when the node has its volumes as it needs them, and knows where they are.
    pub(super) fn start_has_its_volumes(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
        config: &TaskConfig,
    ) -> Verdict {
        let record = alloc.record();
        let group = alloc.job().group(record.group.as_str());
        let task = group.and_then(|group| {
            let mut tasks = group.tasks.iter();
            Some((group, tasks.find(|task| task.name == key.task.as_str())?))
        });
        let Some((group, task)) = task else {
            return Ok(());
        };
        let links = world.dirs.links.get(&(key.alloc, key.task.clone()));
        for mount in &task.volume_mounts {
            let wanted = group.volumes.get(&mount.volume);
            let path = wanted.and_then(|wanted| self.volume_for(world, wanted, record.index));
            let place = mount.destination.trim_start_matches('/');
            let link = links.and_then(|links| links.get(place));
            let variable = config.env.get(&format!("NOMAD_VOLUME_{}", mount.volume));
            // A container gets it mounted, others get a link.
            let has = match task.driver == engine::DRIVER {
                true => {
                    let mut mounts = config.reserved.mounts.iter();
                    let at = mounts.find(|it| it.task_path == mount.destination);
                    let from = at.map(|it| &it.host_path);
                    from == path.as_ref() && variable == Some(&mount.destination)
                }
                false => path.as_ref() == variable && path.as_ref() == link,
            };
            let has = has && path.is_some();
            self.holds(Property::StartHasItsVolumes, has, || {
                format!("{key:?} {}: {path:?} {variable:?} {link:?}", mount.volume)
            })?;
        }
        Ok(())
    }

    /// No job waits for a volume that the node has.
    pub(super) fn no_wait_for_present_volume(&mut self, world: &World, agent: &Agent) -> Verdict {
        let view = agent.view();
        for job in view.jobs() {
            for (name, why) in view.blocked(&job.job.key()) {
                let PlacementFailure::HostVolume(_) = why else {
                    continue;
                };
                let copies = job.job.group(name).map_or(0, TaskGroup::wanted);
                let copies = u32::try_from(copies).unwrap_or(0);
                let group = job.job.group(name);
                let waits = group.is_some_and(|group| {
                    (0..copies).any(|index| !self.missing_volumes(world, group, index).is_empty())
                });
                self.holds(Property::NoWaitForPresentVolume, waits, || {
                    format!("{} {why}", job.job.id)
                })?;
            }
        }
        Ok(())
    }
}
