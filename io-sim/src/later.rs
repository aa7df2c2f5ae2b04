//! What the world does by itself, later: the answer to what it was asked for, the end of a task, an engine's return. Each
//! has its time and its place in the order of things; the search picks among those that are due.

use std::sync::Arc;

use drover_core::cluster::{Call, Credentials};
use drover_core::effect::VolumeWork;
use drover_core::ids::{LaunchId, SessionId, TaskKey, VolumeId};
use drover_core::model::alloc::ExitResult;
use drover_core::op::Op;
use drover_core::store::{Batch, CommitId};
use drover_core::time::{Instant, Span};
use drover_core::work::HookWork;
use serde::Serialize;

use crate::hooks::{self, Asked};
use crate::templates::Templates;
use crate::world::World;

/// Something that the world does by itself, later.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum Later {
    Start {
        op: Op,
        launch: LaunchId,
    },
    Recover {
        op: Op,
        launch: LaunchId,
    },
    Signal {
        launch: LaunchId,
    },
    Destroy {
        op: Op,
        launch: LaunchId,
    },
    End {
        launch: LaunchId,
        result: ExitResult,
    },
    OpenSession {
        op: Op,
        launch: LaunchId,
        session: SessionId,
    },
    EndSession {
        session: SessionId,
    },
    PluginGone {
        launch: LaunchId,
    },
    FalseEnd {
        launch: LaunchId,
        result: ExitResult,
    },
    ContainerGone {
        launch: LaunchId,
    },
    EngineReturns,
    Driver {
        healthy: bool,
    },
    Hook(Asked),
    TemplateData {
        op: Op,
        key: TaskKey,
        entity: Arc<str>,
    },
    Volume {
        op: Op,
        volume: VolumeId,
        work: VolumeWork,
        entity: Arc<str>,
    },
    Commit {
        id: CommitId,
        batch: Arc<Batch>,
    },
    Call {
        op: Op,
        credentials: Credentials,
        call: Box<Call>,
    },
}

/// What the world does by itself, with its place in the order of things.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Due {
    /// In which life of the agent it was asked for.
    pub(crate) life: u64,
    pub(crate) rank: u32,
    #[serde(skip)]
    pub(crate) entity: Arc<str>,
    pub(crate) what: Later,
}

impl World {
    /// Whether nobody but the disk or a directory notices when this happens, before it is told.
    pub(crate) fn is_unseen(&self, which: (Instant, u64)) -> bool {
        let due = self.scene.later.get(&which);
        due.is_some_and(|due| {
            let what = &due.what;
            matches!(
                what,
                Later::Hook(_) | Later::Volume { .. } | Later::Commit { .. }
            )
        })
    }

    /// Does this thing, which is due.
    pub(crate) fn act(&mut self, which: (Instant, u64)) {
        let Some(due) = self.scene.later.remove(&which) else {
            return;
        };
        match self.work_before(&due.what) {
            Some(at) => {
                // Later than that, whatever the order of what happens at one time.
                let number = self.scene.number();
                self.scene.later.insert((at + Span(1), number), due);
            }
            None => self.do_later(due.life, due.what),
        }
    }

    /// When the last work in a directory or at a network ends that is to be removed: removing it waits for that.
    fn work_before(&self, removal: &Later) -> Option<Instant> {
        let removed = match removal {
            Later::Hook(asked) => asked,
            _ => return None,
        };
        let works_there = |due: &Due| match (&due.what, &removed.work) {
            (Later::Hook(it), HookWork::RemoveAllocDir(_)) => {
                it.alloc == removed.alloc && hooks::of(&it.work).delays_removal()
            }
            (Later::Hook(it), HookWork::RemoveNetwork(_)) => {
                it.alloc == removed.alloc && matches!(it.work, HookWork::BuildNetwork(_))
            }
            _ => false,
        };
        let there = self.scene.later.iter().filter(|(_, due)| works_there(due));
        there.map(|((at, _), _)| *at).max()
    }

    /// Does this, which was asked for in this life of the agent.
    pub(crate) fn do_later(&mut self, life: u64, later: Later) {
        match later {
            Later::Start { op, launch } => self.start(life, op, launch),
            Later::Recover { op, launch } => self.recover(life, op, launch),
            Later::Signal { launch } => self.signal_lands(launch),
            Later::Destroy { op, launch } => self.destroy(life, op, launch),
            Later::End { launch, result } => self.end(launch, result),
            Later::OpenSession {
                op,
                launch,
                session,
            } => {
                let processes = &self.processes;
                let asked = (op, launch, session);
                self.sessions.opens(&mut self.scene, processes, life, asked);
            }
            Later::EndSession { session } => self.sessions.ends(&mut self.scene, session),
            Later::PluginGone { launch } => self.plugin_gone(launch),
            Later::FalseEnd { launch, result } => self.false_end(launch, result),
            Later::ContainerGone { launch } => self.container_gone(launch),
            Later::EngineReturns => self.engine_returns(),
            Later::Driver { healthy } => {
                let (scene, engine) = (&mut self.scene, &mut self.engine);
                self.machine.driver_is(scene, engine, healthy);
            }
            Later::Hook(asked) => self.end_hook(life, &asked),
            Later::TemplateData { op, key, entity } => {
                Templates::lacks_nothing(&mut self.scene, life, op, &key, &entity);
            }
            Later::Volume {
                op,
                volume,
                work,
                entity,
            } => {
                let scene = &mut self.scene;
                self.volumes.end(scene, life, op, volume, &work, &entity);
            }
            Later::Commit { id, batch } => self.disk.end_commit(&mut self.scene, life, id, batch),
            Later::Call {
                op,
                credentials,
                call,
            } => {
                let scene = &mut self.scene;
                self.link.call_arrives(scene, life, op, &credentials, *call);
            }
        }
    }
}
