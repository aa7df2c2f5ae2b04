//! One artifact: its fresh directory, the process that fetches it, and the way to its place.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use drover_core::model::artifact::{Artifact, GetterMode};
use drover_core::op::Failure;
use drover_core::paths::destination;
use drover_core::text::quote;
use rustix::fs::{AtFlags, Dir, Gid, Mode, Uid, chownat, fchmod, fchown, statat};

use super::place::{self, Owner};
use super::process::{self, Fetched};
use super::settings::Settings;
use super::source::{Holds, Source, Wanted};
use super::wire::{DOWNLOAD, Request, TREE};
use super::{Asked, Inner};
use crate::cancel::Cancel;
use crate::dirs::{NOBODY, enter, make};
use crate::transfers::Coming;
use crate::user;

/// One artifact, on a thread of its own.
pub(super) struct Job<'a> {
    inner: &'a Inner,
    asked: &'a Asked,
    artifact: &'a Artifact,
    wanted: Wanted,
    /// Where it goes, below the allocation's directory.
    place: String,
    owner: Owner,
}

impl Job<'_> {
    pub(super) fn new<'a>(
        inner: &'a Inner,
        asked: &'a Asked,
        nth: usize,
        wanted: Wanted,
    ) -> Result<Job<'a>, Failure> {
        let artifact = asked.artifacts.get(nth);
        let artifact = artifact.ok_or_else(|| Failure::fatal("there is no such artifact"))?;
        allowed(&inner.settings, &wanted.source).map_err(Failure::fatal)?;
        let dest = &artifact.relative_dest;
        let place = destination::task_path(dest, asked.task.as_str(), &asked.root);
        let place = place.map_err(|why| Failure::fatal(format!("destination: {why}")))?;
        let owner = match (artifact.chown, asked.user.as_str()) {
            (false, _) | (true, "") => None,
            (true, name) => {
                let found = user::find(name).map_err(|error| Failure::fatal(error.to_string()))?;
                Some((found.uid, found.gid))
            }
        };
        Ok(Job {
            inner,
            asked,
            artifact,
            wanted,
            place,
            owner,
        })
    }

    pub(super) fn run(&self, cancel: &Cancel, coming: &mut Coming) -> Result<Fetched, Failure> {
        let failed = |error: io::Error| Failure::recoverable(error.to_string());
        let scratch = Scratch::new(self.inner).map_err(failed)?;
        let there = self.is_in_cache(&scratch).map_err(failed)?;
        let settings = &self.inner.settings;
        let request = Request {
            wanted: self.wanted.clone(),
            headers: self.artifact.getter_headers.clone(),
            insecure: self.artifact.getter_insecure,
            there,
            limits: settings.limits,
            user: is_root().then_some(NOBODY),
            readable: (settings.extra_paths.iter())
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
            whole_filesystem: settings.whole_filesystem,
        };
        let variables = &settings.variables;
        let fetched = process::run(&scratch.dir, &request, variables, cancel, coming)?;
        // From here on only the agent can change what is in it.
        scratch.take_back().map_err(failed)?;
        if !there {
            self.keep(&scratch);
        }
        self.put(&scratch, fetched).map_err(failed)?;
        Ok(fetched)
    }

    fn is_in_cache(&self, scratch: &Scratch<'_>) -> io::Result<bool> {
        let Some(sum) = &self.wanted.checksum else {
            return Ok(false);
        };
        let there = self.inner.cache.get(sum, &scratch.dir, DOWNLOAD)?;
        if there && is_root() {
            let (user, group) = (Uid::from_raw(NOBODY.0), Gid::from_raw(NOBODY.1));
            let links = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&scratch.dir, DOWNLOAD, Some(user), Some(group), links)?;
        }
        Ok(there)
    }

    /// Keeps what came. If that fails, it is fetched again the next time. What is one packed file
    /// is not there any more as it came.
    fn keep(&self, scratch: &Scratch<'_>) {
        let as_it_came = (self.wanted.archive).is_none_or(|archive| archive.holds != Holds::File);
        if let Some(sum) = self.wanted.checksum.as_ref().filter(|_| as_it_came)
            && let Err(error) = self.inner.cache.put(sum, &scratch.dir, DOWNLOAD)
        {
            tracing::debug!(%error, "an artifact is not kept");
        }
    }

    /// Looks at what was fetched, and moves it to its place.
    fn put(&self, scratch: &Scratch<'_>, fetched: Fetched) -> io::Result<()> {
        let (from, name) = match fetched.tree {
            false => (scratch.dir.try_clone()?, Some(CString::new(DOWNLOAD)?)),
            true => self.part(scratch)?,
        };
        match &name {
            Some(name) => place::check_file(&from, name, self.owner)?,
            None => place::check(&from, self.owner)?,
        }
        let top = self.inner.dirs.open(self.asked.alloc, "")?;
        let owner = self.owner;
        match (self.artifact.getter_mode, name) {
            (GetterMode::File, name) => {
                let (dir, last) = self.place.rsplit_once('/').unwrap_or(("", &self.place));
                let name = name.map_or_else(|| only_file(&from), Ok)?;
                let into = place::make_dirs(&top, dir, owner)?;
                place::move_file(&from, &name, &into, &CString::new(last)?)
            }
            (GetterMode::Dir, Some(_)) => {
                let why = "mode is dir, and it is one file: give its archive, or another mode";
                Err(io::Error::other(why))
            }
            (GetterMode::Any, Some(name)) => {
                let into = place::make_dirs(&top, &self.place, owner)?;
                let as_named = CString::new(self.file_name())?;
                place::move_file(&from, &name, &into, &as_named)
            }
            (GetterMode::Any | GetterMode::Dir, None) => {
                place::merge(&from, &place::make_dirs(&top, &self.place, owner)?)
            }
        }
    }

    /// The part of a tree that is wanted: a directory, or a file in one.
    fn part(&self, scratch: &Scratch<'_>) -> io::Result<(OwnedFd, Option<CString>)> {
        let open = |path: &str| -> io::Result<OwnedFd> { Ok(enter(scratch.dir.as_fd(), path)?) };
        let part = &self.wanted.part;
        if part.is_empty() {
            return Ok((open(TREE)?, None));
        }
        if let Ok(dir) = open(&format!("{TREE}/{part}")) {
            return Ok((dir, None));
        }
        let (dir, name) = part.rsplit_once('/').unwrap_or(("", part));
        let missing = |_| io::Error::other(format!("there is no {} in it", quote(part)));
        let dir = open(&format!("{TREE}/{dir}")).map_err(missing)?;
        let name = CString::new(name)?;
        let stat = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW);
        stat.map_err(|error| missing(error.into()))?;
        Ok((dir, Some(name)))
    }

    fn file_name(&self) -> &str {
        let name = self.wanted.part.rsplit('/').next();
        name.filter(|name| !name.is_empty())
            .unwrap_or(&self.wanted.file_name)
    }
}

/// The one file that a tree has if it stands for a file.
fn only_file(dir: &OwnedFd) -> io::Result<CString> {
    let mut found = None;
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        match entry.file_name().to_bytes() {
            b"." | b".." => {}
            _ if found.is_none() && entry.file_type().is_file() => {
                found = Some(entry.file_name().to_owned());
            }
            _ => {
                return Err(io::Error::other(
                    "mode is file, and there is more than one file in it",
                ));
            }
        }
    }
    found.ok_or_else(|| io::Error::other("mode is file, and there is no file in it"))
}

/// A fresh directory for one process, removed with everything in it in the end.
struct Scratch<'a> {
    work: &'a OwnedFd,
    name: String,
    dir: OwnedFd,
}

impl Scratch<'_> {
    fn new(inner: &Inner) -> io::Result<Scratch<'_>> {
        let name = inner.nth.fetch_add(1, Ordering::Relaxed).to_string();
        let dir = make(inner.work.as_fd(), &name, 0o700, None)?;
        let scratch = Scratch {
            work: &inner.work,
            name,
            dir,
        };
        if is_root() {
            scratch.give(NOBODY)?;
        }
        Ok(scratch)
    }

    fn take_back(&self) -> io::Result<()> {
        if is_root() {
            self.give((0, 0))?;
        }
        Ok(fchmod(&self.dir, Mode::RWXU)?)
    }

    fn give(&self, (user, group): (u32, u32)) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        Ok(fchown(&self.dir, Some(user), Some(group))?)
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if let Err(error) = crate::dirs::remove_tree(self.work.as_fd(), &self.name) {
            tracing::warn!(%error, "what an artifact left is not removed; the next start tries again");
        }
    }
}

/// Whether this machine's own files may be artifacts.
fn allowed(settings: &Settings, source: &Source) -> Result<(), String> {
    let path = match source {
        Source::File(path) => path.clone(),
        Source::Git { url, .. } if url.scheme() == "file" => {
            PathBuf::from(url.file_path().unwrap_or_default())
        }
        Source::Git { .. } | Source::Http(_) | Source::S3 { .. } => return Ok(()),
    };
    let extra = settings
        .extra_paths
        .iter()
        .any(|extra| path.starts_with(extra));
    if settings.whole_filesystem || extra {
        return Ok(());
    }
    Err(
        "files of the node are no artifacts unless the agent allows it: client { artifact { \
         filesystem_isolation_extra_paths or disable_filesystem_isolation } }"
            .to_owned(),
    )
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
