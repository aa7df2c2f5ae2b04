//! Who uses which image: launches, those who are about to start one, and those who wait before they remove one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use drover_core::ids::LaunchId;

/// Hears of an image that nobody uses any more.
type Freed = Box<dyn Fn(String) + Send + Sync>;

/// Who uses which image.
#[derive(Default)]
pub(super) struct Uses {
    all: Mutex<All>,
    freed: OnceLock<Freed>,
}

#[derive(Default)]
struct All {
    /// The image that each launch uses.
    launches: BTreeMap<LaunchId, String>,
    /// How many hold an image that was just brought.
    held: BTreeMap<String, usize>,
    /// Which removal of an image is the last that was thought of.
    waiting: BTreeMap<String, u64>,
    count: u64,
}

/// Keeps an image that was brought, until a launch uses it or it is clear that none will.
pub(super) struct Hold {
    uses: Arc<Uses>,
    image: String,
}

/// The turn of somebody who waits before an image is removed.
pub(super) struct Turn(u64);

/// What becomes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// This launch uses it.
    By(LaunchId),
    /// It was just brought, or will be removed by itself.
    Soon,
    /// Nobody here has to do with it.
    None,
}

impl Uses {
    fn all(&self) -> MutexGuard<'_, All> {
        // Nothing that holds the lock can panic half way.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says who hears of images that nobody uses any more: once.
    pub(super) fn on_freed(&self, freed: impl Fn(String) + Send + Sync + 'static) {
        let _ = self.freed.set(Box::new(freed));
    }

    /// Notes that a launch uses an image.
    pub(super) fn used(&self, image: &str, launch: LaunchId) {
        self.all().launches.insert(launch, image.to_owned());
    }

    /// The image that a launch uses, if it uses one.
    pub(super) fn used_by(&self, launch: LaunchId) -> Option<String> {
        self.all().launches.get(&launch).cloned()
    }

    /// Notes that a launch uses none any more. The image that nobody uses since then.
    pub(super) fn released(&self, launch: LaunchId) -> Option<String> {
        let mut all = self.all();
        let image = all.launches.remove(&launch)?;
        (!all.is_used(&image)).then_some(image)
    }

    /// Keeps an image for who may use it.
    pub(super) fn hold(self: &Arc<Self>, image: &str) -> Hold {
        *self.all().held.entry(image.to_owned()).or_default() += 1;
        Hold {
            uses: self.clone(),
            image: image.to_owned(),
        }
    }

    /// Whether somebody uses an image, or is about to.
    pub(super) fn is_used(&self, image: &str) -> bool {
        self.all().is_used(image)
    }

    /// What becomes of an image.
    pub(super) fn of(&self, image: &str) -> Use {
        let all = self.all();
        let mut launches = all.launches.iter().filter(|(_, used)| *used == image);
        match launches.next() {
            Some((launch, _)) => Use::By(*launch),
            None if all.held.contains_key(image) || all.waiting.contains_key(image) => Use::Soon,
            None => Use::None,
        }
    }

    /// Notes that somebody waits before an image is removed; whoever did before gives it up.
    pub(super) fn wait(&self, image: &str) -> Turn {
        let mut all = self.all();
        all.count += 1;
        let turn = all.count;
        all.waiting.insert(image.to_owned(), turn);
        Turn(turn)
    }

    /// Whether nobody began to wait since then.
    pub(super) fn is_last(&self, image: &str, turn: &Turn) -> bool {
        self.all().waiting.get(image) == Some(&turn.0)
    }

    /// Notes that the wait is over.
    pub(super) fn waited(&self, image: &str, turn: &Turn) {
        let mut all = self.all();
        if all.waiting.get(image) == Some(&turn.0) {
            all.waiting.remove(image);
        }
    }
}

impl All {
    fn is_used(&self, image: &str) -> bool {
        self.held.contains_key(image) || self.launches.values().any(|used| used == image)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut all = self.uses.all();
        if let Some(count) = all.held.get_mut(&self.image) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                all.held.remove(&self.image);
            }
        }
        let is_free = !all.is_used(&self.image);
        drop(all);
        if is_free && let Some(freed) = self.uses.freed.get() {
            freed(std::mem::take(&mut self.image));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_free_when_its_last_user_is_gone() {
        let uses = Arc::new(Uses::default());
        let freed: Arc<Mutex<Vec<String>>> = Arc::default();
        let received = freed.clone();
        uses.on_freed(move |image| {
            received
                .lock()
                .into_iter()
                .for_each(|mut all| all.push(image.clone()))
        });
        let first = uses.hold("a");
        let second = uses.hold("a");
        drop(first);
        assert_eq!((uses.of("a"), uses.is_used("a")), (Use::Soon, true));
        uses.used("a", LaunchId(1));
        drop(second);
        assert_eq!(uses.of("a"), Use::By(LaunchId(1)));
        assert_eq!(uses.released(LaunchId(1)).as_deref(), Some("a"));
        assert_eq!(uses.of("a"), Use::None);
        drop(uses.hold("b"));
        let freed = freed.lock().map(|all| all.clone());
        assert!(
            freed.is_ok_and(|all| all == ["b"]),
            "and the first was not, as a launch used it"
        );
    }

    #[test]
    fn removal_that_was_thought_of_later_counts() {
        let uses = Uses::default();
        let first = uses.wait("a");
        let second = uses.wait("a");
        assert!(!uses.is_last("a", &first) && uses.is_last("a", &second));
        uses.waited("a", &first);
        assert_eq!(uses.of("a"), Use::Soon);
        uses.waited("a", &second);
        assert_eq!(uses.of("a"), Use::None);
    }
}
