//! The status of each plugin's program: whether it runs, as which process, and how often it was
//! started.

use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use drover_core::fingerprint::PluginKind;
use drover_core::time::{Span, Timestamp};

use crate::clock;
use crate::plugin::{Identity, Plugin};

/// Nanoseconds of the ticks in which `/proc` tells when a process started: 100 in a second on every
/// architecture that this runs on.
const TICK: u64 = 10_000_000;

/// A plugin's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name of the program.
    pub file: String,
    /// What the plugin calls itself, once it was asked.
    pub named: Option<Named>,
    /// Its process, if it runs.
    pub process: Option<Runs>,
    /// How often this agent started it.
    pub starts: u64,
    /// Why it is not wanted, if it is not.
    pub denied: Option<String>,
}

/// What a plugin says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What it is for.
    pub kind: PluginKind,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A process that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Its number.
    pub pid: i32,
    /// Since when.
    pub since: Timestamp,
}

/// What was noted of one plugin.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    named: Option<Named>,
    plugin: Weak<Plugin>,
    starts: u64,
}

impl Notes {
    /// It was started.
    pub(super) fn started(&self) {
        let mut noted = self.noted();
        noted.starts = noted.starts.saturating_add(1);
    }

    /// This is it from now on.
    pub(super) fn runs(&self, plugin: Weak<Plugin>) {
        self.noted().plugin = plugin;
    }

    /// It said who it is, now or to an earlier agent.
    pub(super) fn named(&self, named: Named) {
        self.noted().named = Some(named);
    }

    /// Who it is.
    pub(super) fn name(&self) -> Option<Named> {
        self.noted().named.clone()
    }

    pub(super) fn status(&self, file: &str) -> Status {
        let noted = self.noted();
        let plugin = noted.plugin.upgrade().filter(|plugin| plugin.is_alive());
        Status {
            file: file.to_owned(),
            named: noted.named.clone(),
            process: plugin.map(|plugin| runs(&plugin.remember().process)),
            starts: noted.starts,
            denied: None,
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn runs(process: &Identity) -> Runs {
    let now = clock::now();
    let age = now
        .at
        .0
        .saturating_sub(process.start_time.saturating_mul(TICK));
    let age = Span(i64::try_from(age).unwrap_or(i64::MAX));
    Runs {
        pid: process.pid,
        since: Timestamp(now.wall.0.saturating_sub(age.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_start_time_is_known() {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        let stat = crate::proc_stat::Stat::of(pid).ok();
        let start_time = stat.map_or(0, |stat| stat.start_time);
        let runs = runs(&Identity {
            pid,
            start_time,
            boot_id: String::new(),
        });
        let now = clock::now().wall;
        assert_eq!(runs.pid, pid);
        assert!(runs.since <= now, "{runs:?} {now:?}");
        assert!(now - runs.since < Span::secs(3600), "{runs:?} {now:?}");
    }
}
