//! Clearing away what no launch needs any more.

use super::home::ShimHome;
use super::lock::{self, Content};
use super::record::State;
use rustix::fs::{AtFlags, unlinkat};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

/// How long a tombstone is kept. It stops a shim that is late, and no shim is late by that much.
const TOMBSTONE_RETENTION: Duration = Duration::from_secs(3600);

impl ShimHome {
    /// Removes tombstones of launches that never started, once they are old or of an earlier boot,
    /// and sockets without a record. For the start of an agent, before it starts anything. Returns
    /// how many files it removed.
    ///
    /// # Errors
    /// The directory cannot be listed. A file that cannot be removed is left for the next time.
    pub fn tidy(&self) -> io::Result<usize> {
        let boot = lock::boot_id()?;
        let mut removed = 0;
        for launch in self.list()? {
            // What cannot be read or removed now may be at the next start.
            removed += usize::from(self.tidy_record(&launch, &boot).unwrap_or(false));
        }
        for launch in self.named("s")? {
            let lone = lock::open(self.run.as_fd(), &launch, false)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            removed += usize::from(lone && self.remove(&launch, "s").is_ok());
        }
        Ok(removed)
    }

    fn tidy_record(&self, launch: &str, boot: &super::record::Id) -> io::Result<bool> {
        let file = lock::open(self.run.as_fd(), launch, false)?;
        // Who holds the lock is alive.
        if !lock::try_lock(&file)? {
            return Ok(false);
        }
        let over = match lock::read(&file)? {
            Content::Valid(record) if record.state == State::Abandoned => {
                record.boot != *boot || is_old(&file)?
            }
            // Somebody who looked for the launch died before it could bury it.
            Content::Empty => is_old(&file)?,
            Content::Valid(_) | Content::Damaged => false,
        };
        if over {
            self.forget(launch)?;
        }
        Ok(over)
    }

    pub(super) fn remove(&self, launch: &str, suffix: &str) -> rustix::io::Result<()> {
        unlinkat(&self.run, format!("{launch}.{suffix}"), AtFlags::empty())
    }
}

fn is_old(file: &File) -> io::Result<bool> {
    let written = file.metadata()?.modified()?;
    // A time yet to come was written under another clock, and says nothing.
    let age = SystemTime::now().duration_since(written);
    Ok(age.is_ok_and(|age| age > TOMBSTONE_RETENTION))
}
