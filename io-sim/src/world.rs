//! The world around the agent: everything but the agent itself.

use drover_core::config::Timeouts;
use drover_core::effect::{Effect, HookEffect, NodeEffect, StoreEffect};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::stats::board::Board;
use drover_core::stats::running::Running;
use drover_core::store::Saved;
use drover_core::time::{Now, Span};

use crate::dirs::Dirs;
use crate::disk::Disk;
use crate::engine::Engine;
use crate::hooks::{Asked, leaves_half_a_network};
use crate::identities::Tokens;
use crate::later::Later;
use crate::machine::Machine;
use crate::network::Networks;
use crate::point::Point;
use crate::process::{Process, Processes};
use crate::registry::Registry;
use crate::remote::Remotes;
use crate::sampler::Sampler;
use crate::scene::Scene;
use crate::servers::link::Link;
use crate::services::Services;
use crate::sessions::Sessions;
use crate::task_faults::TaskFaults;
use crate::templates::Templates;
use crate::volumes::Volumes;

/// Everything but the agent.
#[derive(Clone, Debug)]
pub struct World {
    /// Time, chance, and what is on its way.
    pub scene: Scene,
    /// The disk.
    pub disk: Disk,
    /// The registry of images.
    pub registry: Registry,
    /// The engine of containers.
    pub engine: Engine,
    /// The directories.
    pub dirs: Dirs,
    /// The networks of allocations.
    pub networks: Networks,
    /// The directories of volumes.
    pub volumes: Volumes,
    /// What tasks do otherwise than their configuration says.
    pub(crate) task_faults: TaskFaults,
    pub(crate) machine: Machine,
    pub(crate) templates: Templates,
    /// What tasks prove who they are with.
    pub(crate) tokens: Tokens,
    /// Allocations of other nodes.
    pub remotes: Remotes,
    /// The way to the servers, if the node is in a cluster.
    pub link: Link,
    /// Who looks at statistics.
    pub(crate) sampler: Sampler,
    pub(crate) processes: Processes,
    pub(crate) sessions: Sessions,
    pub(crate) services: Services,
}

impl World {
    /// A world at rest.
    pub fn new(seed: u64, timeouts: Timeouts) -> World {
        World {
            scene: Scene::new(seed, timeouts),
            disk: Disk::default(),
            registry: Registry::default(),
            engine: Engine::default(),
            dirs: Dirs::default(),
            networks: Networks::default(),
            task_faults: TaskFaults::default(),
            machine: Machine::default(),
            templates: Templates::default(),
            tokens: Tokens::default(),
            volumes: Volumes::default(),
            link: Link::default(),
            processes: Processes::default(),
            sessions: Sessions::default(),
            services: Services::default(),
            remotes: Remotes::default(),
            sampler: Sampler::default(),
        }
    }

    /// The clocks.
    pub fn now(&self) -> Now {
        self.scene.now()
    }

    /// Time since the beginning, whatever the clocks say.
    pub fn elapsed(&self) -> Span {
        self.scene.elapsed
    }

    /// Everything that was ever launched.
    pub fn processes(&self) -> impl Iterator<Item = (&LaunchId, &Process)> + Clone {
        self.processes.all.iter()
    }

    /// What lives.
    pub fn alive(&self) -> impl Iterator<Item = (&LaunchId, &Process)> {
        self.processes.alive()
    }

    /// Every launch of a task, oldest first.
    pub fn launches_of(&self, key: &TaskKey) -> impl Iterator<Item = (&LaunchId, &Process)> {
        self.processes.launches_of(key)
    }

    /// How often a task of this name was started, in all allocations.
    pub fn starts_of(&self, task: &str) -> u32 {
        let all = self.processes.all.values();
        let of_task = all.filter(|process| process.key.task.as_str() == task);
        of_task.map(|process| process.starts).sum()
    }

    /// What people see of statistics.
    pub fn board(&self) -> &Board {
        &self.sampler.board
    }

    /// The latest tokens of all tasks.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Somebody moves the tag of an image to new content, which works or does not. Its digest.
    pub fn push_image(&mut self, image: &str, works: bool) -> String {
        self.registry.push(self.scene.now().wall, image, works)
    }

    /// No service works for so long from now.
    pub fn break_services(&mut self, span: Span) {
        self.services.all_broken_until = Span(self.scene.elapsed.0 + span.0);
    }

    /// For so long no call of this node reaches the servers.
    pub fn cut_off(&mut self, span: Span) {
        self.link.cut_off(&mut self.scene, span);
    }

    /// The state is brought to another data directory, in which no volume was made.
    pub(crate) fn brought_along(&mut self) {
        self.volumes.brought_along();
        self.disk.brought_along();
    }

    /// A new agent reads what the disk holds, as far as that can be read.
    pub(crate) fn read_disk(&mut self) -> Saved {
        self.disk.read(&mut self.scene)
    }

    /// What a template of some task is made of changes; who watches is told.
    pub(crate) fn a_template_changes(&mut self) {
        self.templates.some_change(&mut self.scene);
    }

    /// What was due at the servers happens, and this node hears what they answer to calls that waited.
    pub(crate) fn servers_go_on(&mut self) {
        self.link.go_on(&mut self.scene);
    }

    /// Everything of the machine works again, and whoever is listened to says so.
    pub(crate) fn machine_is_whole(&mut self) {
        self.machine.is_whole(&mut self.scene, &mut self.engine);
    }

    /// How full the disk is, in percent.
    pub(crate) fn fullness(&self) -> u8 {
        self.machine.fullness(&self.dirs)
    }

    /// Somebody looks at what these tasks use, and at the machine.
    pub(crate) fn sample_statistics(&mut self, running: Vec<Running>) {
        let living = &self.processes.living;
        let (scene, machine) = (&mut self.scene, &mut self.machine);
        self.sampler.sample(scene, machine, living, running);
    }

    /// Carries out what the agent asks for.
    pub(crate) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Driver(driver, key, effect) => self.drive(&driver, key, effect),
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task,
                work,
            }) => self.begin_hook(Asked {
                op,
                alloc,
                task,
                work,
            }),
            Effect::Forget(_, launch) => {
                if let Some(process) = self.processes.get_mut(launch) {
                    process.forgotten = true;
                }
            }
            Effect::Hook(HookEffect::Cancel { op }) => self.cancel_hook(op),
            Effect::Check(effect) => {
                let processes = &self.processes;
                self.services.ask(&mut self.scene, processes, &effect);
            }
            Effect::Node(effect) => self.ask_machine(&effect),
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                self.disk.begin_commit(&mut self.scene, id, batch);
            }
            Effect::Server(effect) => self.link.carry(&mut self.scene, effect),
            Effect::Reply(..) | Effect::Notify(_) | Effect::Stopped => {}
        }
    }

    fn ask_machine(&mut self, effect: &NodeEffect) {
        let scene = &mut self.scene;
        match effect {
            NodeEffect::LookUpImage { op, query } => {
                let living = &self.processes.living;
                self.registry.look_up(scene, living, *op, query);
            }
            NodeEffect::Volume { op, volume, work } => Volumes::begin(scene, *op, *volume, work),
            NodeEffect::Probe { .. }
            | NodeEffect::MeasureDiskUsage { .. }
            | NodeEffect::MeasureDirs { .. }
            | NodeEffect::LookUpTimeZone { .. }
            | NodeEffect::WatchDriver { .. }
            | NodeEffect::WatchDevices { .. } => {
                let (dirs, engine) = (&self.dirs, &mut self.engine);
                self.machine.ask(scene, dirs, engine, effect);
            }
        }
    }

    /// The agent died: what was under way happened, or did not.
    pub(crate) fn agent_died(&mut self) {
        let life = self.scene.life;
        self.scene.life += 1;
        self.sessions = Sessions::default();
        self.processes.agent_died();
        for (at, due) in core::mem::take(&mut self.scene.later) {
            let by_itself = matches!(
                due.what,
                Later::End { .. }
                    | Later::PluginGone { .. }
                    | Later::FalseEnd { .. }
                    | Later::ContainerGone { .. }
                    | Later::EngineReturns
                    | Later::Driver { .. }
            );
            if by_itself {
                self.scene.later.insert(at, due);
            } else if due.life == life {
                let forgotten = self.scene.choices.either(Point::LostAtCrash, &due.entity);
                match due.what {
                    _ if forgotten => {}
                    Later::Hook(asked)
                        if leaves_half_a_network(&mut self.scene, &mut self.networks, &asked) => {}
                    // A shim may be made and not have begun yet.
                    Later::Start { .. } => {
                        self.scene.later.insert(at, due);
                    }
                    _ => self.do_later(life, due.what),
                }
            }
        }
        self.processes.forget_signals();
        self.scene.cancelled.clear();
        self.machine.agent_died();
        self.engine.agent_died();
        self.sampler = Sampler::default();
        self.templates.agent_died();
        self.templates.change_unseen(&mut self.scene);
        self.disk.agent_died();
        let _ = self.link.hang_up();
    }

    /// The machine starts again: nothing that lived lives, and nobody knows how it ended.
    pub(crate) fn rebooted(&mut self) {
        self.dirs.rebooted();
        self.networks.rebooted();
        self.engine.rebooted();
        self.processes.rebooted();
        self.scene.rebooted();
    }
}
