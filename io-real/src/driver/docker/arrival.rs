//! An engine that begins is seen at once: the directory of its socket is watched, or, as long as that is not there, the
//! nearest one above it that is.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What happens to a directory itself, so that it is to be looked for anew.
const GONE: ReadFlags = ReadFlags::IGNORED
    .union(ReadFlags::DELETE_SELF)
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::QUEUE_OVERFLOW);

/// A directory that is watched.
pub(super) struct Arrival {
    events: AsyncFd<OwnedFd>,
    /// What in it leads to the socket, or is it.
    name: OsString,
}

impl Arrival {
    /// Watches from now on. To be made within a runtime.
    ///
    /// # Errors
    /// The kernel watches no more.
    pub(super) fn of(socket: &Path) -> io::Result<Arrival> {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let changes = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let watch = |dir: &Path| match inotify::add_watch(&events, dir, changes) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error),
        };
        let mut wanted = socket;
        let name = loop {
            let (Some(dir), Some(name)) = (wanted.parent(), wanted.file_name()) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            if !watch(dir)? {
                wanted = dir;
            } else if wanted != socket && watch(wanted)? {
                // It came since it was looked for, before anybody would have seen that; what is in it, too, perhaps.
                wanted = socket;
            } else {
                break name.to_owned();
            }
        };
        // SAFETY: an owned descriptor stays open and the same as long as it is owned.
        let events = unsafe { AsyncFd::register_with_interest(events, Interest::READABLE) }?;
        Ok(Arrival { events, name })
    }

    /// Waits until something comes that may be the engine, or leads to it.
    pub(super) async fn comes(&self) {
        loop {
            let Ok(mut ready) = self.events.readable().await else {
                return std::future::pending().await;
            };
            if self.came() {
                return;
            }
            ready.clear_ready();
        }
    }

    /// Whether one of the changes that were not looked at yet is it.
    fn came(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut changes = Reader::new(self.events.get_ref(), &mut buffer);
        loop {
            match changes.next() {
                Ok(change) => {
                    let name = change
                        .file_name()
                        .map(|name| OsStr::from_bytes(name.to_bytes()));
                    if name == Some(&self.name) || change.events().intersects(GONE) {
                        return true;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn socket_created_with_its_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("run/engine/sock");
        for made in [dir.path().join("run"), dir.path().join("run/engine")] {
            let arrival = Arrival::of(&socket).unwrap();
            fs::write(dir.path().join(made.with_extension("other")), "").unwrap();
            assert!(!arrival.came(), "something else came");
            fs::create_dir(&made).unwrap();
            arrival.comes().await;
        }
        let arrival = Arrival::of(&socket).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        arrival.comes().await;
    }

    #[tokio::test]
    async fn removed_socket_directory_is_watched_again() {
        let dir = tempfile::tempdir().unwrap();
        let engine = dir.path().join("engine");
        fs::create_dir(&engine).unwrap();
        let arrival = Arrival::of(&engine.join("sock")).unwrap();
        fs::remove_dir(&engine).unwrap();
        arrival.comes().await;
    }
}
