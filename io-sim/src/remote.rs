//! Other nodes: allocations there that jobs of this one replace, and what becomes of them.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::ids::AllocId;
use drover_core::input::HookOutput;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::Job;
use drover_core::model::remote::{Remote, RemotePrevious, Takeover};
use drover_core::op::Failure;

use crate::dirs::Dirs;
use crate::faults::Fault;
use crate::point::Point;
use crate::scene::Scene;
use crate::servers::Alloc;
use crate::servers::link::Link;

/// The first of their ids: nothing of this node has one like it.
const FIRST: u128 = 0xe000_0000_0000_4000_8000_0000_0000_0000;

/// Allocations of other nodes.
#[derive(Clone, Debug, Default)]
pub struct Remotes {
    allocs: BTreeMap<AllocId, RemoteAlloc>,
    /// Of which servers said that they are over.
    said_over: BTreeSet<AllocId>,
}

/// One of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteAlloc {
    /// Whether nothing of it runs any more.
    pub ended: bool,
    /// Whether its node knows nothing of it any more.
    pub forgotten: bool,
    /// Whether its disk was given away.
    pub given: bool,
    index: u64,
}

impl Remotes {
    /// What is known of one.
    pub fn get(&self, id: AllocId) -> RemoteAlloc {
        self.allocs.get(&id).copied().unwrap_or_default()
    }

    /// Whether servers said of one of theirs that it is over.
    pub(crate) fn was_said_over(&self, id: AllocId) -> bool {
        self.said_over.contains(&id)
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.allocs.is_empty()
    }

    /// A job ran on another node until now: each of its copies replaces an allocation there.
    pub fn hand(&mut self, job: &Job) -> Vec<Takeover> {
        let mut takeovers = Vec::new();
        for group in &job.task_groups {
            let count = u32::try_from(group.count.unwrap_or(1)).unwrap_or(0);
            for index in 0..count {
                let number = u128::try_from(self.allocs.len()).unwrap_or(0);
                let alloc = AllocId(FIRST + number);
                self.allocs.insert(alloc, RemoteAlloc::default());
                takeovers.push(Takeover {
                    group: group.name.as_str().into(),
                    index,
                    from: RemotePrevious {
                        alloc,
                        address: "http://other:4646".into(),
                        token: "secret".into(),
                        ended: false,
                        of_servers: false,
                    },
                });
            }
        }
        takeovers
    }
}

fn is_over(status: ClientStatus) -> bool {
    match status {
        ClientStatus::Complete
        | ClientStatus::Failed
        | ClientStatus::Lost
        | ClientStatus::Unknown => true,
        ClientStatus::Pending | ClientStatus::Running => false,
    }
}

impl Remotes {
    /// What another node says of an allocation.
    pub(crate) fn answer(
        &mut self,
        scene: &mut Scene,
        of: AllocId,
        entity: &str,
        index: u64,
    ) -> Result<Option<Remote>, Failure> {
        if scene.fires(Fault::SilentNode, entity) {
            return Err(Failure::recoverable("no route to host"));
        }
        let forgets = scene.fires(Fault::ForgetfulNode, entity);
        let old = scene.fires(Fault::OldNews, entity);
        let ends = scene.converging || scene.choices.below(3, Point::RemoteEnds, entity) == 0;
        let remote = self.allocs.entry(of).or_default();
        remote.forgotten |= forgets;
        if remote.forgotten {
            return Ok(Some(Remote::Unknown));
        }
        remote.ended |= ends;
        if remote.ended && !old {
            return Ok(Some(Remote::Ended));
        }
        remote.index += 1;
        let index = if old {
            index.saturating_sub(1)
        } else {
            remote.index
        };
        Ok(Some(Remote::Runs { index }))
    }

    /// What servers say of an allocation that they placed on another node.
    pub(crate) fn servers_say_of(
        &mut self,
        scene: &mut Scene,
        link: &Link,
        of: AllocId,
        entity: &str,
    ) -> Result<Remote, Failure> {
        let is_silent = scene.fires(Fault::SilentNode, entity) || link.is_cut_off(scene);
        let Some(servers) = link.servers.as_ref().filter(|_| !is_silent) else {
            return Err(Failure::recoverable("no server answers"));
        };
        Ok(match servers.alloc(of).and_then(Alloc::now) {
            None => Remote::Unknown,
            Some(placed) if is_over(placed.client_status) => {
                self.said_over.insert(of);
                Remote::Ended
            }
            Some(_) => Remote::Runs {
                index: servers.index(),
            },
        })
    }

    /// What another node of the cluster gives of a disk.
    pub(crate) fn node_gives(
        scene: &mut Scene,
        link: &Link,
        dirs: &mut Dirs,
        previous: &RemotePrevious,
        to: AllocId,
        entity: &str,
    ) -> Result<HookOutput, Failure> {
        if scene.fires(Fault::BrokenDisk, entity) || link.is_cut_off(scene) {
            return Err(Failure::recoverable("the connection broke"));
        }
        let has_token = !previous.token.expose().is_empty();
        let servers = link.servers.as_ref().filter(|_| has_token);
        // Nobody asks another node for what was on this one.
        let servers = servers.filter(|servers| {
            let alloc = servers.alloc(previous.alloc);
            alloc.is_none_or(|it| it.node != link.node_id)
        });
        let lies_with = servers.and_then(|servers| servers.disk_lies_with(previous.alloc));
        let given = servers.and_then(|servers| servers.disk_of(previous.alloc));
        let Some(given) = given.filter(|_| lies_with.is_none()) else {
            return Ok(HookOutput {
                remote: Some(Remote::Unknown),
                lies_with: lies_with.map(|it| Box::new(it.clone())),
                ..HookOutput::default()
            });
        };
        let given = given.clone();
        if !dirs.allocs.contains(&to) {
            return Err(Failure::fatal("the allocation has no directory"));
        }
        // What is there already stays.
        dirs.disks.entry(to).or_insert(given);
        Ok(HookOutput::default())
    }

    /// What another node gives of a disk.
    pub(crate) fn give(
        &mut self,
        scene: &mut Scene,
        dirs: &mut Dirs,
        of: AllocId,
        to: AllocId,
        entity: &str,
    ) -> Result<Option<Remote>, Failure> {
        if scene.fires(Fault::BrokenDisk, entity) {
            return Err(Failure::recoverable("the connection broke"));
        }
        let forgets = scene.fires(Fault::ForgetfulNode, entity);
        let remote = self.allocs.entry(of).or_default();
        remote.forgotten |= forgets;
        if remote.forgotten {
            return Ok(Some(Remote::Unknown));
        }
        if !dirs.allocs.contains(&to) {
            return Err(Failure::fatal("the allocation has no directory"));
        }
        remote.given = true;
        // What is there already stays.
        let disks = &mut dirs.disks;
        let disk = disks.entry(to).or_insert_with(|| [of].into());
        if !disk.contains(&of) {
            let detail = format!("{of} is for {to}, which has {disk:?}");
            scene.violated("fetched_disk_is_not_hidden_by_local_disk", detail);
        }
        Ok(None)
    }
}
