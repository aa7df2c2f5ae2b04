//! Removing what is leaked. Each thing is proved once more to be what the survey found.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use drover_core::host::{Home, NamedAfter};
use drover_core::ids::{AllocId, LaunchId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Signal, pidfd_send_signal};

use super::{Auditor, Inner, Kind, Thing, inside, shims};
use crate::shim::{Process, open_process};

/// How long something may take to die.
const KILL_TIME: Duration = Duration::from_secs(10);

impl Auditor {
    /// Removes a thing that is nobody's; says what was done. Blocks.
    ///
    /// # Errors
    /// It resists, or is not what it was.
    pub fn remove(&self, thing: &Thing) -> io::Result<&'static str> {
        let inner = &*self.0;
        match (thing.kind, &thing.named_after) {
            (Kind::Process, named_after) => inner.end(thing, named_after),
            (Kind::Container, _) => inner.remove_container(thing),
            (Kind::Image, _) => inner.remove_image(thing),
            (Kind::Cgroup, NamedAfter::Launch(launch)) => inner.remove_group(*launch),
            (Kind::Network, NamedAfter::Alloc(alloc)) => {
                inner.networks.remove(*alloc, None).map(|()| "removed")
            }
            (Kind::Network, NamedAfter::Nobody) => inner.remove_rule(&thing.name),
            (Kind::Mount, NamedAfter::Alloc(alloc)) => {
                inner.unmount(*alloc, Path::new(&thing.name))
            }
            (Kind::Directory, NamedAfter::Alloc(alloc)) => {
                inner.dirs.remove(*alloc).map(|()| "removed")
            }
            (Kind::Socket, named_after) => inner.remove_socket(Path::new(&thing.name), named_after),
            (Kind::Cgroup | Kind::Network | Kind::Mount | Kind::Directory, _) => {
                Err(io::Error::other("its name has no owner"))
            }
        }
    }
}

impl Inner {
    fn end(&self, thing: &Thing, named_after: &NamedAfter) -> io::Result<&'static str> {
        let Some(process) = thing.process else {
            return Err(io::Error::other("it is not known which process it was"));
        };
        match (named_after, thing.shim_of, &thing.home) {
            (NamedAfter::Launch(launch), Some(_), Home::Ours) => {
                self.raw_exec.end(*launch).map(|()| "ended")
            }
            (NamedAfter::Launch(launch), Some(task), _) => self.end_orphan(process, task, *launch),
            (NamedAfter::Plugin(file), _, _) => {
                let done = kill(process)?;
                self.forget_plugin(file)?;
                Ok(done)
            }
            (NamedAfter::Launch(_), None, _) => kill(process),
            (NamedAfter::Agent | NamedAfter::Alloc(_) | NamedAfter::Nobody, _, _) => {
                Err(io::Error::other("its name has no owner"))
            }
        }
    }

    /// Ends a shim whose agent is gone, by way of its task, so that it cleans up itself.
    fn end_orphan(
        &self,
        shim: Process,
        task: Process,
        launch: LaunchId,
    ) -> io::Result<&'static str> {
        let Some(handle) = open(shim)? else {
            return Ok(GONE);
        };
        if !shims::is_shim_of(shim, launch) {
            return Err(io::Error::other("it is not the shim that it was"));
        }
        kill(task)?;
        if let Some(cgroups) = &self.cgroups {
            cgroups.kill(&launch.to_string(), KILL_TIME)?;
        }
        if !dies(&handle)? {
            send_kill(&handle)?;
            dies(&handle)?;
        }
        Ok("ended")
    }

    fn remove_container(&self, thing: &Thing) -> io::Result<&'static str> {
        match (self.containers.get(), &thing.container) {
            (Some(containers), Some(found)) => containers.remove(found).map(|()| "removed"),
            (None, _) | (_, None) => Err(io::Error::other("it is no container")),
        }
    }

    fn remove_image(&self, thing: &Thing) -> io::Result<&'static str> {
        match (self.containers.get(), &thing.image) {
            (Some(containers), Some(found)) => containers.remove_image(found),
            (None, _) | (_, None) => Err(io::Error::other("it is no image")),
        }
    }

    fn remove_group(&self, launch: LaunchId) -> io::Result<&'static str> {
        let Some(cgroups) = &self.cgroups else {
            return Err(io::Error::other("there are no control groups"));
        };
        let name = launch.to_string();
        if cgroups.remove_empty(&name)? {
            return Ok("removed");
        }
        if !cgroups.kill(&name, KILL_TIME)? {
            return Err(io::Error::other("processes in it do not die"));
        }
        cgroups.remove(&name).map(|()| "removed")
    }

    fn remove_rule(&self, name: &str) -> io::Result<&'static str> {
        let rule = name.strip_prefix(inside::RULE);
        let rule = rule.ok_or_else(|| io::Error::other("it is no rule of the packet filter"))?;
        self.networks.remove_stale_rule(rule).map(|()| "removed")
    }

    /// Takes a mount away, as soon as nobody uses it any more.
    fn unmount(&self, alloc: AllocId, point: &Path) -> io::Result<&'static str> {
        let wrong = || io::Error::other("it is no path of an allocation");
        let own = self.mark.path.join("alloc").join(alloc.to_string());
        let rest = point.strip_prefix(&own).map_err(|_| wrong())?;
        let name = rest
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(wrong)?;
        let above = rest.parent().and_then(Path::to_str).ok_or_else(wrong)?;
        let way = Path::new("alloc").join(alloc.to_string()).join(above);
        let way = way.to_str().ok_or_else(wrong)?;
        let Some(above) = inside::dir(self.data.as_fd(), way)? else {
            return Ok(GONE);
        };
        let path = format!("/proc/self/fd/{}/{name}", above.as_raw_fd());
        match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => Ok("unmounted"),
            Err(Errno::INVAL | Errno::NOENT) => Ok(GONE),
            Err(error) => Err(error.into()),
        }
    }

    fn remove_socket(&self, path: &Path, named_after: &NamedAfter) -> io::Result<&'static str> {
        if let NamedAfter::Launch(launch) = named_after {
            // Whatever holds it ends with the launch, and no late shim makes it again.
            self.raw_exec.end(*launch)?;
            let name = format!("{launch}.s");
            return unlink(self.home.run_dir(), Path::new(&name));
        }
        let (Some(name), Some(dir)) = (
            path.file_name(),
            inside::dir(self.data.as_fd(), inside::SOCKETS)?,
        ) else {
            return Ok(GONE);
        };
        unlink(dir.as_fd(), Path::new(name))
    }

    fn forget_plugin(&self, file: &str) -> io::Result<()> {
        match inside::dir(self.data.as_fd(), inside::PLUGINS)? {
            Some(dir) => crate::plugins::forget(dir, file),
            None => Ok(()),
        }
    }
}

/// What is said of what was not there any more.
const GONE: &str = "gone already";

fn unlink(dir: BorrowedFd<'_>, name: &Path) -> io::Result<&'static str> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok("removed"),
        Err(error) => Err(error.into()),
    }
}

/// A process, if it is still that one.
fn open(process: Process) -> io::Result<Option<OwnedFd>> {
    match open_process(process) {
        Ok(handle) => Ok(Some(handle)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Kills a process, if it is still that one, and waits for its end.
fn kill(process: Process) -> io::Result<&'static str> {
    let Some(handle) = open(process)? else {
        return Ok(GONE);
    };
    send_kill(&handle)?;
    match dies(&handle)? {
        true => Ok("killed"),
        false => Err(io::Error::other("it does not die")),
    }
}

fn send_kill(handle: &OwnedFd) -> io::Result<()> {
    match pidfd_send_signal(handle, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn dies(handle: &OwnedFd) -> io::Result<bool> {
    let time = Timespec::try_from(KILL_TIME).map_err(io::Error::other)?;
    loop {
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&time)) {
            Err(Errno::INTR) => {}
            ended => return Ok(ended? > 0),
        }
    }
}
