//! The world around the agent: everything but the agent itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::config::Timeouts;
use drover_core::effect::{Effect, HookEffect, ServerEffect, StoreEffect};
use drover_core::ids::{AllocId, LaunchId, NodeId, SessionId, TaskKey, VolumeId};
use drover_core::op::Op;
use drover_core::time::{Instant, Now, Span, Timestamp};

use crate::check::Violation;
use crate::choice::Choices;
use crate::dirs::Dirs;
use crate::disk::Disk;
use crate::engine::Engine;
use crate::faults::{Fault, Faults};
use crate::hooks::Asked;
use crate::identities::Tokens;
use crate::inbox::{Delivery, Inbox, Source};
use crate::later::{Due, Later};
use crate::machine::Machine;
use crate::names::Names;
use crate::network::Networks;
use crate::point::Point;
use crate::process::Process;
use crate::registry::Registry;
use crate::remote::Remotes;
use crate::sampler::Sampler;
use crate::search::Scheduler;
use crate::servers::Servers;
use crate::sessions::Session;
use crate::task_faults::TaskFaults;
use crate::templates::Templates;
use crate::trace::{Column, Trace, Way};

/// The boot clock when a machine has just started.
const BOOTED: Instant = Instant(1_000_000_000);

/// Everything but the agent.
#[derive(Clone, Debug)]
pub struct World {
    /// What chance decides.
    pub choices: Choices,
    /// What goes wrong.
    pub faults: Faults,
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
    /// The directories of volumes that were made.
    pub volumes: BTreeSet<VolumeId>,
    /// Where they are made.
    pub(crate) volumes_dir: String,
    /// What happened.
    pub trace: Trace,
    /// What everything is called.
    pub names: Names,
    /// What tasks do otherwise than their configuration says.
    pub(crate) task_faults: TaskFaults,
    pub(crate) scheduler: Scheduler,
    pub(crate) at: Instant,
    /// Time since the beginning, whatever the clocks say.
    pub(crate) elapsed: Span,
    pub(crate) wall_offset: i64,
    /// Whether the agent is to be called back because the wall clock was set.
    pub(crate) clock_was_set: bool,
    /// How often the wall's clock went otherwise than time.
    pub(crate) wall_jumps: u32,
    pub(crate) converging: bool,
    pub(crate) timeouts: Timeouts,
    pub(crate) life: u64,
    pub(crate) inbox: Inbox,
    pub(crate) later: BTreeMap<(Instant, u64), Due>,
    pub(crate) last_number: u64,
    pub(crate) machine: Machine,
    pub(crate) templates: Templates,
    /// What tasks prove who they are with.
    pub(crate) tokens: Tokens,
    /// Allocations of other nodes.
    pub remotes: Remotes,
    /// The servers of the node's cluster, if it is in one; in a fleet only while it is the node's turn.
    pub servers: Option<Servers>,
    pub(crate) node_id: NodeId,
    /// Whether there are other nodes, and somebody else hands on what servers answer late.
    pub(crate) in_fleet: bool,
    /// What the agent asks of servers, where somebody else carries it there.
    pub(crate) asked: Option<Vec<ServerEffect>>,
    /// Until when no call reaches the servers, since the beginning.
    pub(crate) cut_off_until: Span,
    /// Since when a counter counts that jumped back, by the name of what it counts.
    pub(crate) resets: BTreeMap<Arc<str>, Span>,
    /// Who looks at statistics.
    pub(crate) sampler: Sampler,
    pub(crate) processes: BTreeMap<LaunchId, Process>,
    pub(crate) living: BTreeSet<LaunchId>,
    pub(crate) launches: BTreeMap<TaskKey, Vec<LaunchId>>,
    pub(crate) latest: BTreeMap<TaskKey, LaunchId>,
    /// Programs beside tasks that somebody is connected to.
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// Until when the services of which allocations do not work, since the beginning.
    pub(crate) broken_services: BTreeMap<AllocId, Span>,
    /// The launches whose own health checks somebody looked at.
    pub(crate) looked_at: BTreeSet<LaunchId>,
    /// The same of all.
    pub(crate) services_broken_until: Span,
    pub(crate) cancelled: BTreeSet<Op>,
    /// Tasks of which an agent could not read what was saved.
    pub(crate) unread: BTreeSet<TaskKey>,
    pub(crate) broken: Option<Violation>,
}

impl World {
    /// A world at rest.
    pub fn new(seed: u64, timeouts: Timeouts) -> World {
        World {
            choices: Choices::new(seed),
            faults: Faults::none(),
            disk: Disk::default(),
            registry: Registry::default(),
            engine: Engine::default(),
            dirs: Dirs::default(),
            networks: Networks::default(),
            volumes: BTreeSet::new(),
            volumes_dir: "/host_volumes".to_owned(),
            trace: Trace::default(),
            names: Names::default(),
            task_faults: TaskFaults::default(),
            scheduler: Scheduler::default(),
            at: BOOTED,
            elapsed: Span::ZERO,
            wall_offset: 1_700_000_000_000_000_000,
            clock_was_set: false,
            wall_jumps: 0,
            converging: false,
            timeouts,
            life: 0,
            inbox: Inbox::default(),
            later: BTreeMap::new(),
            last_number: 0,
            machine: Machine::default(),
            templates: Templates::default(),
            tokens: Tokens::new(),
            remotes: Remotes::default(),
            servers: None,
            node_id: NodeId::default(),
            in_fleet: false,
            asked: None,
            cut_off_until: Span::ZERO,
            resets: BTreeMap::new(),
            sampler: Sampler::default(),
            processes: BTreeMap::new(),
            living: BTreeSet::new(),
            launches: BTreeMap::new(),
            latest: BTreeMap::new(),
            sessions: BTreeMap::new(),
            broken_services: BTreeMap::new(),
            looked_at: BTreeSet::new(),
            services_broken_until: Span::ZERO,
            cancelled: BTreeSet::new(),
            unread: BTreeSet::new(),
            broken: None,
        }
    }

    /// The clocks.
    pub fn now(&self) -> Now {
        let at = i64::try_from(self.at.0).unwrap_or(i64::MAX);
        let wall = Timestamp(self.wall_offset.saturating_add(at));
        Now { at: self.at, wall }
    }

    /// Everything that was ever launched.
    pub fn processes(&self) -> impl Iterator<Item = (&LaunchId, &Process)> + Clone {
        self.processes.iter()
    }

    /// What lives.
    pub fn alive(&self) -> impl Iterator<Item = (&LaunchId, &Process)> {
        let living = self.living.iter();
        living.filter_map(|launch| self.processes.get_key_value(launch))
    }

    /// Every launch of a task, oldest first.
    pub fn launches_of(&self, key: &TaskKey) -> impl Iterator<Item = (&LaunchId, &Process)> {
        let launches = self.launches.get(key).into_iter().flatten();
        launches.filter_map(|launch| self.processes.get_key_value(launch))
    }

    /// How often a task of this name was started, in all allocations.
    pub fn starts_of(&self, task: &str) -> u32 {
        let of_task = self
            .processes
            .values()
            .filter(|process| process.key.task.as_str() == task);
        of_task.map(|process| process.starts).sum()
    }

    /// Time since the beginning, whatever the clocks say.
    pub fn elapsed(&self) -> Span {
        self.elapsed
    }

    /// Time passes, up to `to`.
    pub(crate) fn advance(&mut self, to: Instant) {
        self.elapsed.0 += (to - self.at).0;
        self.at = self.at.max(to);
    }

    /// The wall clock jumps.
    pub fn jump_wall(&mut self, by: Span) {
        self.wall_offset = self.wall_offset.saturating_add(by.0);
        self.wall_jumps += 1;
        self.clock_was_set = true;
        self.note(|| (Column::Agent, format!("the wall clock jumps by {by}")));
    }

    pub(crate) fn note(&mut self, write: impl FnOnce() -> (Column, String)) {
        self.trace.write(self.elapsed, Way::World, write);
    }

    /// The record of a launch, made if there is none.
    pub(crate) fn process(&mut self, key: &TaskKey, launch: LaunchId) -> &mut Process {
        let (names, launches) = (&mut self.names, &mut self.launches);
        self.processes.entry(launch).or_insert_with(|| {
            launches.entry(key.clone()).or_default().push(launch);
            Process::new(key.clone(), names.launch(key, launch))
        })
    }

    pub(crate) fn violated(&mut self, invariant: &'static str, detail: String) {
        self.broken.get_or_insert(Violation { invariant, detail });
    }

    /// Whether `fault` happens to `entity` now.
    pub(crate) fn fires(&mut self, fault: Fault, entity: &str) -> bool {
        let fires = !self.converging && self.faults.fires(&mut self.choices, fault, entity);
        if fires {
            let write = || (Column::named(entity), format!("{fault}"));
            self.trace.write(self.elapsed, Way::Fault, write);
        }
        fires
    }

    /// How long something takes that the core awaits for `timeout`.
    pub(crate) fn latency(&mut self, entity: &str, timeout: Span) -> Span {
        let near = [
            Span::ZERO,
            Span::ZERO,
            Span::ZERO,
            Span::millis(1),
            Span::secs(1),
        ];
        let far = [
            Span(timeout.0 - 1),
            timeout,
            Span(timeout.0 + 1),
            Span::secs(3600),
        ];
        let grid: &[Span] = if self.converging {
            &near[..4]
        } else if self.engine.is_slow(self.elapsed, entity) || self.fires(Fault::SlowAnswer, entity)
        {
            &far
        } else {
            &near
        };
        let span = self.choices.one_of(grid, Point::Latency, entity);
        span.unwrap_or(Span::ZERO)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Says `input`, which is about `entity`, to the agent from `at` on.
    pub(crate) fn deliver(&mut self, source: Source, at: Instant, entity: &Arc<str>, input: Input) {
        let delivery = Delivery {
            at,
            number: self.number(),
            rank: self.scheduler.rank(&mut self.choices, entity),
            entity: Arc::clone(entity),
            input,
        };
        self.inbox.push(source, delivery);
    }

    /// Says `input`, in answer to `op`, to the agent that asked.
    pub(crate) fn answer(
        &mut self,
        life: u64,
        op: Op,
        entity: &Arc<str>,
        timeout: Span,
        input: Input,
    ) {
        if life != self.life {
            return;
        }
        let at = self.at + self.latency(entity, timeout);
        if self.fires(Fault::DoubledAnswer, entity) {
            let again = self.at + self.latency(entity, timeout);
            self.deliver(Source::Answer(op, 1), again, entity, input.clone());
        }
        self.deliver(Source::Answer(op, 0), at, entity, input);
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
                if let Some(process) = self.processes.get_mut(&launch) {
                    process.forgotten = true;
                }
            }
            Effect::Hook(HookEffect::Cancel { op }) => self.cancel_hook(op),
            Effect::Check(effect) => self.ask_service(&effect),
            Effect::Node(effect) => self.query_machine(&effect),
            Effect::Store(StoreEffect::Commit(id, batch)) => self.begin_commit(id, batch),
            Effect::Server(effect) => self.ask_servers(effect),
            Effect::Reply(..) | Effect::Notify(_) | Effect::Stopped => {}
        }
    }

    /// The agent died: what was under way happened, or did not.
    pub(crate) fn agent_died(&mut self) {
        let life = self.life;
        self.life += 1;
        self.sessions.clear();
        for launch in &self.living {
            if let Some(process) = self.processes.get_mut(launch) {
                process.watched = false;
            }
        }
        for (at, due) in core::mem::take(&mut self.later) {
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
                self.later.insert(at, due);
            } else if due.life == life {
                let forgotten = self.choices.either(Point::LostAtCrash, &due.entity);
                match due.what {
                    _ if forgotten => {}
                    Later::Hook(asked) if self.leaves_half_a_network(&asked) => {}
                    // A shim may be made and not have begun yet.
                    Later::Start { .. } => {
                        self.later.insert(at, due);
                    }
                    _ => self.do_later(life, due.what),
                }
            }
        }
        // The next agent did not ask for the end of what lives, and is owed the news of it, also
        // where a signal of this one has only just arrived.
        for launch in &self.living {
            if let Some(process) = self.processes.get_mut(launch) {
                process.stopping = false;
            }
        }
        self.cancelled.clear();
        self.machine.agent_died();
        self.engine.agent_died();
        self.sampler = Sampler::default();
        self.templates.agent_died();
        self.templates_change_unseen();
        self.disk.agent_died();
        let _ = self.hang_up();
    }

    /// The machine starts again: nothing that lived lives, and nobody knows how it ended.
    pub(crate) fn rebooted(&mut self) {
        self.later.clear();
        self.dirs.rebooted();
        self.networks.rebooted();
        self.engine.rebooted();
        for process in self.processes.values_mut() {
            if process.alive {
                process.alive = false;
                process.rebooted = true;
                process.unknowable = true;
            } else if process.starts == 0 && process.claims > 0 {
                process.tombstone = true;
            }
        }
        self.living.clear();
        let wall = self.now().wall;
        self.at = BOOTED;
        self.wall_offset = wall.0 - 1_000_000_000;
    }
}
