//! What an archive brings that is the agent's to remove: images that were not there before, and names that were not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::super::engine::Engine;
use super::super::records::{Brought, Records};
use super::super::users::{Hold, Uses};
use super::images::{Images, familiar};
use super::mentions::Brings;

/// More images of an archive than this are not remembered, or looked at.
const MOST: usize = 1000;

/// What an archive brings. It is written down before the engine has its end.
pub(super) struct Bringing {
    engine: PathBuf,
    records: Records,
    uses: Arc<Uses>,
    before: watch::Receiver<Option<Arc<Images>>>,
    /// What comes, which is kept until it is clear who uses it.
    held: Mutex<BTreeMap<String, Arc<Hold>>>,
}

impl Bringing {
    pub(super) fn new(
        engine: &Engine,
        records: &Records,
        uses: Arc<Uses>,
        before: watch::Receiver<Option<Arc<Images>>>,
    ) -> Arc<Bringing> {
        Arc::new(Bringing {
            engine: engine.socket().to_owned(),
            records: records.clone(),
            uses,
            before,
            held: Mutex::default(),
        })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Hold>>> {
        // Nothing that holds the lock can panic half way.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down which images come, with these names.
    ///
    /// # Errors
    /// The disk refuses.
    pub(super) fn note(&self, images: Brings) -> io::Result<()> {
        let before = self.before.borrow().clone().unwrap_or_default();
        for (id, names) in images.into_iter().take(MOST) {
            self.add(&before, id, names)?;
        }
        Ok(())
    }

    fn add(&self, before: &Images, id: String, names: BTreeSet<String>) -> io::Result<()> {
        // Also one that is there: it is not removed while the archive is loaded.
        let held = Arc::new(self.uses.hold(&id));
        self.all().insert(id.clone(), held);
        let owns = !before.ids.contains(&id);
        let is_new = |name: &String| before.meant(name).as_ref() != Some(&id);
        let names: BTreeSet<String> = names.into_iter().filter(is_new).collect();
        if !owns && names.is_empty() {
            return Ok(());
        }
        let what = Brought {
            owns,
            names: Some(names),
            engine: self.engine.clone(),
        };
        self.records.add_loaded(&id, what)
    }

    /// Sees what came of it: `after` is what the engine has now, and it says that it gave the tags in `named`. Not
    /// every engine calls images as archives do.
    pub(super) fn came(&self, after: &Images, named: &BTreeSet<String>) {
        let before = self.before.borrow().clone().unwrap_or_default();
        for tag in named.iter().take(MOST) {
            let is_new = |id: &&String| !before.ids.contains(*id) && !self.all().contains_key(*id);
            let Some(id) = after.tags.get(tag).filter(is_new) else {
                continue;
            };
            if let Err(error) = self.add(&before, id.clone(), [familiar(tag).to_owned()].into()) {
                tracing::warn!(%tag, %error, "cannot remember what an archive brought");
            }
        }
        self.all().retain(|id, _| {
            let is_there = after.ids.contains(id);
            if !is_there && let Err(error) = self.forget(id) {
                tracing::warn!(image = id, %error, "cannot forget what an archive did not bring");
            }
            is_there
        });
    }

    fn forget(&self, id: &str) -> io::Result<()> {
        match self.records.brought(id)? {
            Some(brought) if brought.engine == self.engine => self.records.remove_image(id),
            Some(_) | None => Ok(()),
        }
    }

    /// What came is kept for as long as this is.
    pub(super) fn held(&self) -> Vec<Arc<Hold>> {
        let all = std::mem::take(&mut *self.all());
        all.into_values().collect()
    }
}
