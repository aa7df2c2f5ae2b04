//! Image updates: see `drover_core::agent` (`images`). What tags mean is asked of the world's registry itself.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::ids::JobKey;
use drover_core::model::image::ImageUpdate;
use drover_core::store::image::{JobTask, Look, tasks_of};
use drover_core::store::periodic::second_of;
use drover_core::store::record::JobRecord;
use drover_core::store::{Key, Record};

use super::periodic::fits;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// Within how many seconds after a look at an image its version is saved, when nothing is in the way.
const GRACE: i64 = 300;

/// What is remembered of versions that a moved tag made, over all lives of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    /// The latest version of each job that was on the disk: its number, and when the job was made.
    versions: BTreeMap<JobKey, (u64, u64)>,
    /// When each image had been looked at last.
    looked: BTreeMap<(JobKey, JobTask), Option<i64>>,
    /// How often the tag had been moved when a digest was tried last.
    tried: BTreeMap<(JobKey, JobTask, String), u32>,
}

impl Checker {
    /// Looks at the versions of jobs on the disk after a step.
    pub(super) fn image_updates(&mut self, world: &World) -> Verdict {
        if world.registry.is_unused() {
            return Ok(());
        }
        for (key, record) in world.disk.records() {
            if let (Key::Job(key), Record::Job(record)) = (key, record) {
                self.moved_tag_makes_one_version(world, key, record)?;
            }
        }
        Ok(())
    }

    /// A digest becomes the reason for a new version once, unless the tag was moved since.
    fn moved_tag_makes_one_version(
        &mut self,
        world: &World,
        key: &JobKey,
        record: &JobRecord,
    ) -> Verdict {
        let job = &record.job;
        let now = (job.version, job.create_index);
        let before = self.images.versions.insert(key.clone(), now);
        if before.is_some_and(|(_, made)| made != job.create_index) {
            self.images.tried.retain(|(of, ..), _| of != key);
        }
        let is_new = before.is_some_and(|before| before != now);
        let old = record.versions.last();
        for (at, task) in tasks_of(job) {
            let known = record.images.get(&at);
            let looked = known.and_then(|it| it.looked);
            let whose = (key.clone(), at.clone());
            let before = self.images.looked.insert(whose, looked);
            // A version that somebody else made says nothing of looks.
            if !is_new || before == Some(looked) {
                continue;
            }
            let updated =
                known.is_some_and(|it| it.last == Look::Updated && it.decided == task.image_digest);
            let same = old.and_then(|old| at.of(old));
            let changed = same.is_some_and(|old| old.image_digest != task.image_digest);
            let image = task.image().unwrap_or_default();
            let Some(tag) = world.registry.tag(image).filter(|_| updated && changed) else {
                continue;
            };
            let what = (key.clone(), at, task.image_digest.clone());
            let tried = self.images.tried.insert(what, tag.moves);
            let holds = tried.is_none_or(|moves| moves < tag.moves);
            self.holds(Property::MovedTagMakesOneVersion, holds, || {
                format!("{key} tries {} again", task.image_digest)
            })?;
        }
        Ok(())
    }

    /// Whoever follows a tag has decided about what it means, if a time of it has come since it was moved.
    pub(super) fn moved_tag_is_found(&mut self, world: &World, agent: &Agent) -> Verdict {
        if world.registry.is_unused() {
            return Ok(());
        }
        let now = second_of(world.now().wall) - GRACE;
        for record in agent.view().jobs().filter(|it| !it.job.stop) {
            let images = agent.view().images(&record.job.key());
            if images.iter().any(|image| image.awaits_zone.is_some()) {
                continue;
            }
            for (at, task) in tasks_of(&record.job) {
                let Some((image, update)) = task.followed_image() else {
                    continue;
                };
                let Some(tag) = world.registry.tag(image) else {
                    continue;
                };
                let known = record.images.get(&at);
                // Before the first look of it, times count from the version's on; later those that were missed, too.
                let submitted = second_of(record.job.submit_time);
                let was_looked_at =
                    known.is_some_and(|it| it.image == image && it.looked.is_some());
                let since = match was_looked_at {
                    true => tag.moved,
                    false => tag.moved.max(submitted),
                };
                if world.scene.wall_jumps > 0 || submitted > now || !has_time(update, since, now) {
                    continue;
                }
                // Another look makes up for it.
                let excused = known.is_some_and(|it| it.last.is_void());
                let found = known.is_some_and(|it| it.image == image && it.decided == tag.digest);
                self.holds(Property::MovedTagIsFound, found || excused, || {
                    format!("{image} of {} means {}", record.job.key(), tag.digest)
                })?;
            }
        }
        Ok(())
    }
}

fn has_time(update: &ImageUpdate, since: i64, until: i64) -> bool {
    let times = update.times();
    (since + 1..=until).any(|at| fits(&times, at))
}
