//! What the next agent has to know of a plugin: what it is, and how to find its process again.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use drover_core::fingerprint::PluginKind;
use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::plugin::Reattach;

/// A file is never larger.
const MAX_SIZE: u64 = 64 << 10;

/// What is remembered of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    /// What it is for.
    pub(super) kind: PluginKind,
    /// Its name, as it says itself.
    pub(super) name: String,
    /// Its version.
    pub(super) version: String,
    /// Its process, if one may run.
    pub(super) process: Option<Reattach>,
}

/// One small file for each plugin.
#[derive(Debug)]
pub(super) struct Memory(OwnedFd);

impl Memory {
    pub(super) fn new(dir: OwnedFd) -> Memory {
        Memory(dir)
    }

    /// Names of programs are plain, so these are too.
    fn names(file: &str) -> (String, String) {
        (format!("{file}.json"), format!("{file}.json.new"))
    }

    pub(super) fn write(&self, file: &str, what: &Remembered) -> io::Result<()> {
        let (name, new) = Memory::names(file);
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW;
        let opened = openat(
            &self.0,
            &new,
            flags | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )?;
        let mut opened = File::from(opened);
        opened.write_all(&serde_json::to_vec(what)?)?;
        opened.sync_all()?;
        renameat(&self.0, &new, &self.0, &name)?;
        Ok(fsync(self.0.as_fd())?)
    }

    /// None if nothing is remembered, or nothing that can be read: the plugin is a new one then.
    pub(super) fn read(&self, file: &str) -> Option<Remembered> {
        let (name, _) = Memory::names(file);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.0, &name, flags, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        File::from(opened)
            .take(MAX_SIZE)
            .read_to_end(&mut bytes)
            .ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub(super) fn forget(&self, file: &str) -> io::Result<()> {
        let (name, _) = Memory::names(file);
        match unlinkat(&self.0, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
