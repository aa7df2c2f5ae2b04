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
pub enum Bears {
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
    pub fn owner(&self, home: &Home, bears: &Bears) -> Owner {
        if let Home::Other(path) = home {
            return Owner::Another(path.clone());
        }
        match (self.known(bears), home) {
            (Some(owner), _) => owner,
            (None, Home::Ours) if self.whole => Owner::Leaked,
            (None, Home::Gone(_)) => Owner::Leaked,
            (None, Home::Ours | Home::Other(_) | Home::Unknown) => Owner::Unknown,
        }
    }

    fn known(&self, bears: &Bears) -> Option<Owner> {
        match bears {
            Bears::Agent => Some(Owner::Agent),
            Bears::Alloc(id) => self.allocs.get(id).copied().map(Owner::Alloc),
            Bears::Launch(id) => self.launches.get(id).cloned().map(Owner::Task),
            Bears::Plugin(name) => self.plugins.get(name).cloned().map(Owner::Plugin),
            Bears::Nobody => None,
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
    fn what_is_known_is_never_leaked() {
        let table = [
            (Bears::Agent, Owner::Agent),
            (Bears::Alloc(ALLOC), Owner::Alloc(ALLOC)),
            (Bears::Launch(LAUNCH), Owner::Task(web())),
            (Bears::Plugin("gpu".into()), Owner::Plugin("gpu".into())),
        ];
        for (bears, owner) in table {
            for whole in [true, false] {
                for home in [Home::Ours, gone(), Home::Unknown] {
                    assert_eq!(known(whole).owner(&home, &bears), owner, "{home:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_known_is_leaked_only_where_nobody_else_can_know_it() {
        let strangers = [
            Bears::Alloc(AllocId(7)),
            Bears::Launch(LaunchId(7)),
            Bears::Plugin("old".into()),
            Bears::Nobody,
        ];
        for bears in strangers {
            assert_eq!(known(true).owner(&Home::Ours, &bears), Owner::Leaked);
            assert_eq!(known(true).owner(&Home::Unknown, &bears), Owner::Unknown);
            let damaged = known(false);
            assert_eq!(damaged.owner(&Home::Ours, &bears), Owner::Unknown);
            assert_eq!(damaged.owner(&gone(), &bears), Owner::Leaked);
        }
    }

    #[test]
    fn what_another_agent_made_is_its_own() {
        let all = [Bears::Nobody, Bears::Launch(LAUNCH), Bears::Alloc(ALLOC)];
        for bears in all {
            let owner = known(true).owner(&other(), &bears);
            assert_eq!(owner, Owner::Another("/other".into()), "{bears:?}");
        }
    }
}
