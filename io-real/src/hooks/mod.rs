//! The work of hooks: an adapter for each payload, in a file named as its hook in `core/src/task/hooks/` or
//! `core/src/alloc/hooks/`. The table of payloads (`core/src/work.rs`) declares these files.

use std::io;
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, HookEffect};
use drover_core::ids::{AllocId, TaskKey, TaskName};
use drover_core::input::{HookInput, HookOutput, NodeInput};
use drover_core::op::{Failure, Op};
use drover_core::work::HookWork;

use crate::agent_handle::AgentHandle;
use crate::artifact::Artifacts;
use crate::cancel::UnderWay;
use crate::cgroup::Moves;
use crate::cluster::ServeTasks;
use crate::dir_locks::DirLocks;
use crate::dirs::AllocDirs;
use crate::driver::Inbox;
use crate::gate::Gate;
use crate::identity::Issuer;
use crate::migrate::Migration;
use crate::network::Networks;
use crate::plugins::DevicePlugins;
use crate::templates::Templates;

/// Whose hook it is.
struct Of {
    op: Op,
    alloc: AllocId,
    task: Option<TaskName>,
}

impl Of {
    fn key(&self) -> io::Result<TaskKey> {
        let task = self.task.clone();
        let task = task.ok_or_else(|| io::Error::other("no task was named"))?;
        let alloc = self.alloc;
        Ok(TaskKey { alloc, task })
    }
}

/// What a hook answers; none if somebody else answers for it.
type Answer = Option<Result<HookOutput, Failure>>;

/// How the work of a hook is done.
trait Work: Send + 'static {
    /// Before anything else may happen: makes known what can be cancelled.
    fn begin(&self, _hooks: &Hooks, _of: &Of) {}

    /// Does it. What can be cancelled ends soon after that.
    fn run(self, hooks: &Hooks, of: &Of) -> impl Future<Output = Answer> + Send;
}

/// Whoever does the work of hooks. Cheap to clone.
#[derive(Clone)]
pub struct Hooks {
    dirs: AllocDirs,
    inbox: Inbox,
    gate: Gate,
    dir_locks: DirLocks,
    networks: Networks,
    /// The same for networks.
    network_locks: DirLocks,
    devices: DevicePlugins,
    templates: Templates,
    artifacts: Artifacts,
    migration: Migration,
    issuer: Issuer,
    /// Those of the cluster, if the node is in one.
    servers: Option<Arc<dyn ServeTasks>>,
    /// The tokens that they are asked for.
    signing: Arc<UnderWay>,
    /// Those of tasks to their groups, if they have some.
    moves: Option<Moves>,
}

impl Hooks {
    /// Works in `dirs`, makes `networks`, asks `devices`, fetches with `artifacts` and `migration`, has tokens made by
    /// `issuer`, asks at `agent_handle` for what templates want to know of the state, and answers to `inbox`.
    pub fn new(
        (dirs, networks): (AllocDirs, Networks),
        inbox: Inbox,
        devices: DevicePlugins,
        artifacts: Artifacts,
        migration: Migration,
        issuer: Issuer,
        agent_handle: AgentHandle,
    ) -> Hooks {
        let gate = Gate::default();
        Hooks {
            artifacts,
            migration,
            issuer,
            servers: None,
            signing: Arc::default(),
            moves: None,
            devices,
            templates: Templates::new(dirs.clone(), inbox.clone(), gate.clone(), agent_handle),
            dirs,
            inbox,
            gate,
            dir_locks: DirLocks::default(),
            networks,
            network_locks: DirLocks::default(),
        }
    }

    /// What these placed turns to them.
    #[must_use]
    pub fn with_servers(self, servers: Option<Arc<dyn ServeTasks>>) -> Hooks {
        Hooks {
            templates: self.templates.clone().with_servers(servers.clone()),
            servers,
            ..self
        }
    }

    /// Prepares for tasks that are moved to groups soon.
    #[must_use]
    pub fn with_moves(self, moves: Option<Moves>) -> Hooks {
        Hooks { moves, ..self }
    }

    /// A start is about to leave: what was made for it and nobody else may know goes with it.
    pub fn complete(&self, key: &TaskKey, effect: &mut DriverEffect) {
        self.issuer.complete(key, effect);
    }

    /// Begins what is asked, without blocking; exactly one answer follows.
    pub fn carry_out(&self, effect: HookEffect) {
        match effect {
            HookEffect::Run {
                op,
                alloc,
                task,
                work,
            } => self.run(Of { op, alloc, task }, work),
            // All other work answers by itself: most of it is short, and a removal waits for it.
            HookEffect::Cancel { op } => {
                self.templates.cancel(op);
                self.artifacts.cancel(op);
                self.migration.cancel(op);
                self.signing.cancel(op);
            }
        }
    }

    fn start(&self, of: Of, work: impl Work) {
        work.begin(self, &of);
        let hooks = self.clone();
        tokio::spawn(async move {
            let Some(result) = work.run(&hooks, &of).await else {
                return;
            };
            let Of { op, alloc, task } = of;
            hooks.inbox.deliver(Input::Hook(HookInput {
                op,
                alloc,
                task,
                result,
            }));
        });
    }

    /// Does what blocks, and may take as long as the disk does.
    async fn on_disk(
        &self,
        work: impl FnOnce(&Hooks) -> io::Result<HookOutput> + Send + 'static,
    ) -> Answer {
        let hooks = self.clone();
        Some(blocking(&self.gate, move || work(&hooks)).await)
    }

    /// Finds out how full the disk of the allocations' directories is; one answer follows.
    pub fn measure_disk_usage(&self, op: Op) {
        let (gate, inbox, dirs) = (self.gate.clone(), self.inbox.clone(), self.dirs.clone());
        tokio::spawn(async move {
            let result = blocking(&gate, move || dirs.disk_usage()).await;
            inbox.deliver(Input::Node(NodeInput::DiskUsage { op, result }));
        });
    }

    /// Finds out how much the directories of these allocations take; one answer follows.
    pub fn measure_dirs(&self, op: Op, allocs: Vec<AllocId>) {
        let (gate, inbox, dirs) = (self.gate.clone(), self.inbox.clone(), self.dirs.clone());
        tokio::spawn(async move {
            let result = blocking(&gate, move || dirs.sizes(&allocs)).await;
            inbox.deliver(Input::Node(NodeInput::DirUsage { op, result }));
        });
    }
}

/// The table of payloads as adapters: the file of each hook, and how each work begins.
macro_rules! adapters {
    ($($hook:ident { $($name:ident($payload:ty) $words:literal,)* })*) => {
        $(mod $hook;)*

        impl Hooks {
            fn run(&self, of: Of, work: HookWork) {
                match work {
                    $($(HookWork::$name(work) => self.start(of, work),)*)*
                }
            }
        }
    };
}

drover_core::payloads!(adapters);

/// Waits for work that blocks.
async fn blocking<T: Send + 'static>(
    gate: &Gate,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    match gate.run(work).await {
        Ok(done) => done.map_err(|error| Failure::recoverable(error.to_string())),
        Err(lost) => Err(Failure::recoverable(format!("its work was lost: {lost}"))),
    }
}
