//! Whose a thing on this host is that Drover made: a process, a control group, a mount, a
//! directory, a socket.
//!
//! Everything that is made in the world bears an id that was saved first, and is gone before its id
//! is forgotten. So whoever surveys the host, then reads the agent's state, and then surveys the
//! host again knows what is nobody's: what was there both times and was not known between. Ids are
//! never used again, so it never will be. Only where a thing was made decides whose state counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::View;
use crate::ids::{AllocId, LaunchId, TaskKey};

/// Which agent made a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// The one that asks.
    Ours,
    /// One with this data directory, whether it runs now or not.
    Other(String),
    /// One whose data directory was this and is gone, so that nobody will ever ask for the thing.
    Gone(String),
    /// Nobody can tell.
    Unknown,
}

/// What a thing is called after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedAfter {
    /// The agent itself.
    Agent,
    /// An allocation.
    Alloc(AllocId),
    /// One launch of a task.
    Launch(LaunchId),
    /// A plugin, by the name of its program.
    Plugin(String),
    /// Nobody in particular.
    Nobody,
}

/// Whose a thing is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The agent's own.
    Agent,
    /// An allocation's.
    Alloc(AllocId),
    /// A task's.
    Task(TaskKey),
    /// A plugin's.
    Plugin(String),
    /// Another agent's, which has its data there.
    Another(String),
    /// Somebody's or nobody's: it is left alone.
    Unknown,
    /// Nobody's: no agent will ever ask for it.
    Leaked,
}

/// What an agent has to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    allocs: BTreeSet<AllocId>,
    launches: BTreeMap<LaunchId, TaskKey>,
    plugins: BTreeSet<String>,
    whole: bool,
}

impl Known {
    /// What the agent knows now, with the programs of its `plugins`. `whole` says whether it could
    /// read all of its state when it started: what it could not read may be about anything.
    pub fn of(view: View<'_>, plugins: impl IntoIterator<Item = String>, whole: bool) -> Known {
        let mut launches = BTreeMap::new();
        for alloc in view.allocs() {
            let record = alloc.record();
            for (task, launch) in &record.launches {
                let (alloc, task) = (record.id, task.clone());
                launches.insert(*launch, TaskKey { alloc, task });
            }
            for task in alloc.tasks() {
                if let Some(launch) = &task.record().launch {
                    launches.insert(launch.id, task.spec().key.clone());
                }
            }
        }
        Known {
            allocs: view.allocs().map(|alloc| alloc.record().id).collect(),
            launches,
            plugins: plugins.into_iter().collect(),
            whole,
        }
    }

    /// Whose a thing is that was found *before* this was asked for.
    pub fn owner(&self, home: &Home, named_after: &NamedAfter) -> Owner {
        if let Home::Other(path) = home {
            return Owner::Another(path.clone());
        }
        match (self.known(named_after), home) {
            (Some(owner), _) => owner,
            (None, Home::Ours) if self.whole => Owner::Leaked,
            (None, Home::Gone(_)) => Owner::Leaked,
            (None, Home::Ours | Home::Other(_) | Home::Unknown) => Owner::Unknown,
        }
    }

    fn known(&self, named_after: &NamedAfter) -> Option<Owner> {
        match named_after {
            NamedAfter::Agent => Some(Owner::Agent),
            NamedAfter::Alloc(id) => self.allocs.get(id).copied().map(Owner::Alloc),
            NamedAfter::Launch(id) => self.launches.get(id).cloned().map(Owner::Task),
            NamedAfter::Plugin(name) => self.plugins.get(name).cloned().map(Owner::Plugin),
            NamedAfter::Nobody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TaskName;

    const ALLOC: AllocId = AllocId(1);
    const LAUNCH: LaunchId = LaunchId(2);

    fn web() -> TaskKey {
        TaskKey {
            alloc: ALLOC,
            task: TaskName::from("web"),
        }
    }

    fn known(whole: bool) -> Known {
        Known {
            allocs: [ALLOC].into(),
            launches: [(LAUNCH, web())].into(),
            plugins: ["gpu".to_owned()].into(),
            whole,
        }
    }

    fn other() -> Home {
        Home::Other("/other".to_owned())
    }

    fn gone() -> Home {
        Home::Gone("/gone".to_owned())
    }

    #[test]
    fn known_thing_is_never_leaked() {
        let table = [
            (NamedAfter::Agent, Owner::Agent),
            (NamedAfter::Alloc(ALLOC), Owner::Alloc(ALLOC)),
            (NamedAfter::Launch(LAUNCH), Owner::Task(web())),
            (
                NamedAfter::Plugin("gpu".into()),
                Owner::Plugin("gpu".into()),
            ),
        ];
        for (named_after, owner) in table {
            for whole in [true, false] {
                for home in [Home::Ours, gone(), Home::Unknown] {
                    assert_eq!(known(whole).owner(&home, &named_after), owner, "{home:?}");
                }
            }
        }
    }

    #[test]
    fn unknown_thing_is_leaked_only_without_other_owner() {
        let strangers = [
            NamedAfter::Alloc(AllocId(7)),
            NamedAfter::Launch(LaunchId(7)),
            NamedAfter::Plugin("old".into()),
            NamedAfter::Nobody,
        ];
        for named_after in strangers {
            assert_eq!(known(true).owner(&Home::Ours, &named_after), Owner::Leaked);
            assert_eq!(
                known(true).owner(&Home::Unknown, &named_after),
                Owner::Unknown
            );
            let damaged = known(false);
            assert_eq!(damaged.owner(&Home::Ours, &named_after), Owner::Unknown);
            assert_eq!(damaged.owner(&gone(), &named_after), Owner::Leaked);
        }
    }

    #[test]
    fn thing_of_another_agent_is_not_leaked() {
        let all = [
            NamedAfter::Nobody,
            NamedAfter::Launch(LAUNCH),
            NamedAfter::Alloc(ALLOC),
        ];
        for named_after in all {
            let owner = known(true).owner(&other(), &named_after);
            assert_eq!(owner, Owner::Another("/other".into()), "{named_after:?}");
        }
    }
}
