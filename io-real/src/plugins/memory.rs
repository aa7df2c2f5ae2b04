//! What the next agent has to know of a plugin: what it is, and how to find its process again.

use std::io;
use std::os::fd::OwnedFd;

use drover_core::fingerprint::PluginKind;
use serde::{Deserialize, Serialize};

use crate::plugin::Reattach;
use crate::small_files::SmallFiles;

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
pub(super) struct Memory(SmallFiles);

impl Memory {
    pub(super) fn new(dir: OwnedFd) -> Memory {
        Memory(SmallFiles::new(dir, MAX_SIZE))
    }

    /// Names of programs are plain, so these are too.
    fn name(file: &str) -> String {
        format!("{file}.json")
    }

    pub(super) fn write(&self, file: &str, what: &Remembered) -> io::Result<()> {
        self.0
            .write(&Memory::name(file), &serde_json::to_vec(what)?)
    }

    /// None if nothing is remembered, or nothing that can be read: the plugin is a new one then.
    pub(super) fn read(&self, file: &str) -> Option<Remembered> {
        let bytes = self.0.read(&Memory::name(file)).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    pub(super) fn forget(&self, file: &str) -> io::Result<()> {
        self.0.remove(&Memory::name(file))
    }
}
