//! Who wants to know when files change: one inotify instance for all templates of the agent,
//! because a user may have few. Tasks of the same user may take all that there are: whom the kernel cannot notify
//! looks again every now and then, and asks the kernel again each time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::op::Op;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::dirs::FileStamp;

/// How often they look again whom the kernel does not tell.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// Everything that is watched. Cheap to clone; the clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Watcher(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    /// Made when somebody watches first.
    kernel: Option<Arc<OwnedFd>>,
    /// Who is notified of each watch.
    subscribers: BTreeMap<i32, BTreeMap<Op, Subscriber>>,
    /// Whom the kernel does not notify.
    unwatched: BTreeMap<Op, Arc<Notify>>,
    /// Whether somebody wakes these.
    is_waking: bool,
}

#[derive(Debug)]
struct Subscriber {
    notify: Arc<Notify>,
    /// Of a directory, the names that matter; all of what happens to a file.
    names: BTreeSet<String>,
}

/// What happens to a file that is written or goes, and to the names in a directory.
const CHANGES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

impl Watcher {
    /// `op` is notified of changes of these from now, and of no others. Returns whether any is new: what
    /// was read before may be old then. If the kernel has no more watches to give, it is woken to look itself.
    pub(super) fn watch(&self, op: Op, notify: &Arc<Notify>, glimpses: &[FileStamp]) -> bool {
        let mut watched = self.lock();
        if glimpses.is_empty() && watched.kernel.is_none() {
            return false;
        }
        match self.watch_by_kernel(&mut watched, op, notify, glimpses) {
            Ok(fresh) => {
                watched.unwatched.remove(&op);
                fresh
            }
            Err(error) => self.unwatched(&mut watched, op, notify, &error),
        }
    }

    /// Has the kernel notify of changes.
    fn watch_by_kernel(
        &self,
        watched: &mut Watched,
        op: Op,
        notify: &Arc<Notify>,
        glimpses: &[FileStamp],
    ) -> io::Result<bool> {
        let kernel = match &watched.kernel {
            Some(kernel) => kernel.clone(),
            None => self.begin(watched)?,
        };
        let mut wanted: BTreeMap<i32, BTreeSet<String>> = BTreeMap::new();
        for glimpse in glimpses {
            // The directory or file itself, wherever it is by now.
            let path = format!("/proc/self/fd/{}", glimpse.handle.as_raw_fd());
            let watch = match inotify::add_watch(&kernel, path, CHANGES) {
                Ok(watch) => watch,
                Err(error) => {
                    watched.give_back(wanted.into_keys());
                    return Err(error.into());
                }
            };
            let names = wanted.entry(watch).or_default();
            names.extend(glimpse.name.clone());
        }
        let mut fresh = false;
        for (watch, names) in &wanted {
            let subscribers = watched.subscribers.entry(*watch).or_default();
            fresh |= subscribers.get(&op).is_none_or(|one| one.names != *names);
            let (notify, names) = (notify.clone(), names.clone());
            subscribers.insert(op, Subscriber { notify, names });
        }
        watched.forget(op, |watch| wanted.contains_key(&watch));
        Ok(fresh)
    }

    /// Has it look itself. Whether that is new.
    fn unwatched(
        &self,
        watched: &mut Watched,
        op: Op,
        notify: &Arc<Notify>,
        error: &io::Error,
    ) -> bool {
        watched.forget(op, |_| false);
        let fresh = watched.unwatched.insert(op, notify.clone()).is_none();
        if !watched.is_waking {
            tracing::warn!(
                %error,
                "the kernel watches no more files for this user: source files of templates are read every \
                 {POLL_INTERVAL:?} instead (raise fs.inotify.max_user_watches and max_user_instances, or let tasks be \
                 other users)"
            );
            watched.is_waking = true;
            tokio::spawn(self.clone().wake());
        }
        fresh
    }

    /// Wakes whom the kernel does not notify, as long as there is anybody.
    async fn wake(self) {
        loop {
            sleep(POLL_INTERVAL).await;
            let mut watched = self.lock();
            if watched.unwatched.is_empty() {
                watched.is_waking = false;
                return;
            }
            watched.unwatched.values().for_each(|one| one.notify_one());
        }
    }

    /// `op` is notified no more.
    pub(super) fn forget(&self, op: Op) {
        let mut watched = self.lock();
        watched.unwatched.remove(&op);
        watched.forget(op, |_| false);
    }

    fn begin(&self, watched: &mut Watched) -> io::Result<Arc<OwnedFd>> {
        let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let kernel = Arc::new(kernel);
        let (fd, all) = (kernel.clone(), self.clone());
        // SAFETY: the descriptor is owned by the registration, which never replaces it.
        let events = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        tokio::spawn(async move {
            if let Err(error) = all.listen(events).await {
                tracing::warn!(%error, "template source files are not watched any more");
            }
        });
        watched.kernel = Some(kernel.clone());
        Ok(kernel)
    }

    async fn listen(&self, events: AsyncFd<Arc<OwnedFd>>) -> io::Result<()> {
        loop {
            let mut ready = events.readable().await?;
            self.pass_on(events.get_ref())?;
            ready.clear_ready();
        }
    }

    fn pass_on(&self, events: &OwnedFd) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(events, &mut buffer);
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_string_lossy());
                    self.lock()
                        .on_change(event.wd(), event.events(), name.as_deref());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        // Whoever panicked left whole entries behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn on_change(&mut self, watch: i32, what: ReadFlags, name: Option<&str>) {
        let lost = what.contains(ReadFlags::QUEUE_OVERFLOW);
        let is_affected = |subscriber: &&Subscriber| {
            lost || name
                .is_none_or(|name| subscriber.names.is_empty() || subscriber.names.contains(name))
        };
        let subscribers = self
            .subscribers
            .iter()
            .filter(|(of, _)| lost || **of == watch);
        let subscribers = subscribers.flat_map(|(_, subscribers)| subscribers.values());
        subscribers
            .filter(is_affected)
            .for_each(|subscriber| subscriber.notify.notify_one());
        if what.contains(ReadFlags::IGNORED) {
            self.subscribers.remove(&watch);
        }
    }

    /// Gives watches back that nobody hears of.
    fn give_back(&self, watches: impl Iterator<Item = i32>) {
        let Some(kernel) = &self.kernel else { return };
        for watch in watches.filter(|watch| !self.subscribers.contains_key(watch)) {
            let _ = inotify::remove_watch(kernel, watch);
        }
    }

    fn forget(&mut self, op: Op, but: impl Fn(i32) -> bool) {
        let Some(kernel) = &self.kernel else { return };
        self.subscribers.retain(|watch, subscribers| {
            if !but(*watch) {
                subscribers.remove(&op);
            }
            if subscribers.is_empty() {
                // What is gone is not watched any more either.
                let _ = inotify::remove_watch(kernel, *watch);
            }
            !subscribers.is_empty()
        });
    }
}
