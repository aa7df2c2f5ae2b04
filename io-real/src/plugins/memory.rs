//! What the next agent has to know of a plugin: what it is, and how to find its process again.

use std::io;
use std::os::fd::OwnedFd;

use drover_core::fingerprint::PluginKind;
use rustix::fs::Dir;
use serde::{Deserialize, Serialize};

use crate::plugin::Reattach;
use crate::small_files::SmallFiles;

/// A file is never larger.
const MAX_SIZE: u64 = 64 << 10;

/// More plugins than this are not looked at.
const MOST: usize = 4096;

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

/// Forgets a plugin that agents remember in `dir`.
///
/// # Errors
/// The disk says no.
pub(crate) fn forget(dir: OwnedFd, file: &str) -> io::Result<()> {
    Memory::new(dir).forget(file)
}

/// The processes of plugins that agents remember in `dir`, by the names of their programs.
///
/// # Errors
/// The directory cannot be listed. What cannot be read of it is left out.
pub(crate) fn remembered(dir: OwnedFd) -> io::Result<Vec<(String, Reattach)>> {
    let mut files = Vec::new();
    for entry in Dir::read_from(&dir)?.take(MOST) {
        let name = entry?.file_name().to_string_lossy().into_owned();
        files.extend(name.strip_suffix(".json").map(str::to_owned));
    }
    let memory = Memory::new(dir);
    let process = |file: String| Some((file.clone(), memory.read(&file)?.process?));
    Ok(files.into_iter().filter_map(process).collect())
}
