//! The properties: what holds after every step, whatever the order and whatever goes wrong.
//!
//! [`property`] names them all. Each has a method of its own named after it, in the file of its
//! theme. A step is followed by a look at what it touched; now and then, and after each restart
//! of the agent, everything is checked.
//!
//! A method says `self.holds(Property::ItsName, holds, || detail)`, which also counts that it had
//! something to check; a situation that searching must reach says `self.sometimes(..)`. What the
//! checker remembers over lives of the agent is in [`lives`]: a crash may forget what was shown,
//! never what was saved. After a step only what it touched is checked ([`touched`]); everything is
//! checked at each 32nd step, after a restart and at rest.

mod alone;
mod claims;
mod collected;
mod cut_off;
mod disks;
mod dispatch;
mod effects;
mod ending;
mod evals;
mod exits;
mod forward;
mod garbage;
mod groups;
mod identities;
mod lives;
mod machine;
mod preempted;
pub mod property;
mod reached;
mod records;
mod removals;
mod replies;
mod rest;
mod restarts;
mod rollout;
mod saves;
mod scripts;
mod services;
mod shown;
mod state;
mod statistics;
mod templates;
mod touched;
mod variables;
mod waits;
mod words;

use drover_core::agent::{Agent, Input};
use drover_core::config::{Config, Retention, RoomLimits};
use drover_core::effect::{DriverEffect, Effect, NodeEffect, Reply, StoreEffect, Told, request};
use drover_core::ids::RequestId;
use drover_core::model::node::Node;

pub use property::Property;
pub(crate) use replies::Facts;

use crate::check::claims::Claims;
use crate::check::disks::Disks;
use crate::check::ending::Ending;
use crate::check::evals::Evals;
use crate::check::exits::Exits;
use crate::check::identities::Identities;
use crate::check::lives::Lives;
use crate::check::machine::Devices;
use crate::check::reached::Reached;
use crate::check::records::Commits;
use crate::check::removals::Removals;
use crate::check::replies::Replies;
use crate::check::rollout::Rollouts;
use crate::check::services::Services;
use crate::check::statistics::Statistics;
use crate::check::templates::Templates;
use crate::check::touched::Touched;
use crate::check::variables::Variables;
use crate::check::words::Words;
use crate::coverage::Coverage;
use crate::world::World;

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name.
    pub invariant: &'static str,
    /// What was found instead.
    pub detail: String,
}

impl Violation {
    /// `invariant` does not hold, and why.
    pub fn new(invariant: impl Into<&'static str>, detail: impl Into<String>) -> Violation {
        Violation {
            invariant: invariant.into(),
            detail: detail.into(),
        }
    }

    /// Whether the same property is violated.
    pub fn is_like(&self, other: &Violation) -> bool {
        self.invariant == other.invariant
    }
}

/// What a check finds.
pub type Verdict = Result<(), Violation>;

/// `Err` with the named property unless `holds`.
pub(crate) fn ensure(
    holds: bool,
    invariant: impl Into<&'static str>,
    detail: impl FnOnce() -> String,
) -> Verdict {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(invariant, detail()))
    }
}

/// What the checks remember from step to step.
#[derive(Clone, Debug)]
pub struct Checker {
    touched: Touched,
    lives: Lives,
    exits: Exits,
    commits: Commits,
    replies: Replies,
    rollouts: Rollouts,
    ending: Ending,
    evals: Evals,
    devices: Devices,
    words: Words,
    templates: Templates,
    variables: Variables,
    services: Services,
    statistics: Statistics,
    identities: Identities,
    disks: Disks,
    removals: Removals,
    claims: Claims,
    /// Whether this life of the agent was not looked at yet.
    newborn: bool,
    /// How many ended allocations the agent keeps.
    keep_terminal: usize,
    kept_children: usize,
    /// How many records of collected allocations it keeps.
    kept_records: usize,
    /// How old it lets become what nothing depends on.
    retention: Option<Retention>,
    /// How full the disk may be, and whether the agent was told that it is fuller, and cleaned
    /// nothing away for it yet.
    room: Option<RoomLimits>,
    crowded: bool,
    /// Whether the agent was told to end and leave the tasks alone: it listens to nobody then.
    pub(crate) leaving: bool,
    reached: Reached,
    /// Which inputs reached which states.
    pub coverage: Coverage,
}

impl Default for Checker {
    fn default() -> Checker {
        Checker::new(&Config {
            keep_terminal: usize::MAX,
            kept_children: usize::MAX,
            kept_records: usize::MAX,
            retention: None,
            parallel_destroys: usize::MAX,
            ..Config::new(0, Node::default(), "")
        })
    }
}

impl Checker {
    /// A checker of an agent with these settings.
    pub(crate) fn new(config: &Config) -> Checker {
        Checker {
            touched: Touched::default(),
            lives: Lives::default(),
            exits: Exits::default(),
            commits: Commits::default(),
            replies: Replies::default(),
            rollouts: Rollouts::default(),
            ending: Ending::default(),
            evals: Evals::default(),
            devices: Devices::default(),
            words: Words::default(),
            templates: Templates::default(),
            variables: Variables::default(),
            services: Services::default(),
            statistics: Statistics::default(),
            identities: Identities::default(),
            disks: Disks::default(),
            claims: Claims::default(),
            removals: Removals::new(config.parallel_destroys),
            newborn: true,
            keep_terminal: config.keep_terminal,
            kept_children: config.kept_children,
            kept_records: config.kept_records,
            retention: config.retention,
            room: config.room,
            crowded: false,
            leaving: false,
            reached: Reached::default(),
            coverage: Coverage::default(),
        }
    }

    /// Looks at an input before the agent takes it; none is a timeout.
    pub(crate) fn input(&mut self, world: &World, agent: &Agent, input: Option<&Input>) {
        self.awake(world);
        self.coverage.input(agent, input);
        self.disks.forget(agent);
        input
            .into_iter()
            .for_each(|input| self.services.heard(input));
        self.touched.input(agent, input, self.commits.in_flight());
        match input {
            Some(driver @ Input::Driver(key, said)) => {
                self.a_script_is_over(world, agent, key, said);
                self.templates.heard(driver);
                self.driver_says(world, agent, key, said);
            }
            Some(Input::Store(said)) => self.store_says(said),
            Some(Input::Shutdown(mode)) => self.ending.asked(agent, *mode),
            Some(Input::Request(request, asked)) => {
                self.replies.asked(*request, asked);
                self.variables.asked(agent, *request, asked);
                self.disks.asked(world, agent, *request, asked);
                self.operator_asks(agent, asked);
            }
            Some(Input::Node(said)) => {
                self.words.heard(agent, said);
                self.room_is_told(said);
            }
            Some(input @ Input::Hook(said)) => {
                self.removals.heard(said);
                self.templates.heard(input);
            }
            Some(input @ Input::Template(..)) => self.templates.heard(input),
            None => {}
        }
    }

    /// Looks at one effect before it is carried out.
    pub(crate) fn effect(&mut self, world: &World, agent: &Agent, effect: &Effect) -> Verdict {
        self.awake(world);
        self.touched.effect(effect);
        self.coverage.effect(effect);
        self.services.asked(effect);
        self.nothing_follows_the_stop(effect)?;
        match effect {
            Effect::Driver(_, key, effect) => self.driver_effect(world, agent, key, effect),
            Effect::Forget(_, launch) => self.a_launch_is_forgotten_last(world, *launch),
            Effect::Hook(hook) => {
                self.only_so_many_go_at_once(hook)?;
                self.hook_effect(world, agent, hook)
            }
            Effect::Node(NodeEffect::MeasureRoom { .. }) => {
                self.the_first_look_at_the_disk_has_time(world)
            }
            Effect::Node(
                NodeEffect::Probe { .. }
                | NodeEffect::WatchDriver { .. }
                | NodeEffect::WatchDevices { .. },
            ) => Ok(()),
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                self.commit_effect(world, agent, *id, batch)
            }
            Effect::Tell(Told::Event(key, event)) => self.told_event(world, agent, key, event),
            Effect::Tell(Told::Index(index)) => self.what_is_told_is_never_older(*index),
            Effect::Reply(RequestId(0), _) => Ok(()),
            Effect::Reply(request, reply) => self.reply_effect(world, *request, reply),
            Effect::Stopped => self.stopped(world, agent),
        }
    }

    /// How often each property had something to look at, those only that had.
    pub fn reached(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let times = Property::ALL
            .iter()
            .map(|one| (*one, self.reached.of(*one)));
        times
            .filter(|(_, times)| *times > 0)
            .map(|(one, times)| (one.name(), times))
    }

    /// The answer to a request, once there is one.
    pub fn reply(&self, request: RequestId) -> Option<&Reply> {
        self.replies.of(request)
    }

    pub(crate) fn agent_died(&mut self) {
        self.touched.everything();
        self.lives.agent_died();
        self.exits.agent_died();
        self.evals.agent_died();
        self.devices.agent_died();
        self.removals.agent_died();
        self.claims.agent_died();
        self.commits.agent_died();
        self.replies.agent_died();
        self.disks.agent_died();
        self.services = Services::default();
        self.statistics = Statistics::default();
        self.ending = Ending::default();
        self.words = Words::default();
        self.leaving = false;
        self.newborn = true;
    }

    /// The first look at a new life of the agent: what the disk holds is what counts.
    fn awake(&mut self, world: &World) {
        if core::mem::take(&mut self.newborn) {
            self.removals.awake(world.at);
            self.lives.awake(world);
            self.evals.awake(world);
            self.templates.awake(world);
            self.variables.awake(world);
            let unread = world
                .alive()
                .any(|(_, one)| world.unread.contains(&one.key));
            self.sometimes(Property::SometimesTheUnreadLives, unread);
            self.rollouts.awake(&self.lives);
        }
    }

    /// Notes that `property` had something to look at, and fails unless it `holds`.
    fn holds(
        &mut self,
        property: Property,
        holds: bool,
        detail: impl FnOnce() -> String,
    ) -> Verdict {
        self.reached.note(property);
        ensure(holds, property, detail)
    }

    /// Notes a situation that searching has to reach.
    fn sometimes(&mut self, property: Property, reached: bool) {
        if reached {
            self.reached.note(property);
        }
    }

    fn driver_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        key: &drover_core::ids::TaskKey,
        effect: &DriverEffect,
    ) -> Verdict {
        let alloc = agent.view().alloc(key.alloc);
        self.holds(Property::EffectsHaveAnOwner, alloc.is_some(), || {
            format!("{key:?} {effect:?}")
        })?;
        let Some(alloc) = alloc else { return Ok(()) };
        self.a_kept_task_is_left_alone(key, effect)?;
        match effect {
            DriverEffect::Start(request::Start { launch, config, .. }) => {
                self.devices_of_a_start(alloc, key, config)?;
                self.a_start_is_told_its_ports(alloc, key, config)?;
                self.a_start_is_told_its_dispatch(alloc, key, config)?;
                if let Some(task) = alloc.task(&key.task) {
                    self.a_start_finds_its_templates(task, config)?;
                    self.a_start_finds_its_tokens(world, task)?;
                }
                self.start_effect(world, agent, alloc, key, *launch)
            }
            DriverEffect::Stop(request::Stop { launch, grace, .. }) => {
                self.ending.stop_left(*launch, world.at + *grace);
                self.a_finished_allocation_is_quiet(alloc, key)?;
                self.a_stop_is_remembered_first(world, key, *launch)?;
                self.kills_follow_their_order(world, alloc, key)
            }
            DriverEffect::Destroy(request::Destroy { launch, .. }) => {
                let asked = self.ending.destroy_left(*launch);
                let alive = (world.processes.get(launch)).is_some_and(|process| process.alive);
                self.sometimes(Property::SometimesForceIsNeeded, asked && alive);
                self.a_destroy_is_remembered_first(world, key, *launch)
            }
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
            }) => {
                self.a_finished_allocation_is_quiet(alloc, key)?;
                match alloc.task(&key.task) {
                    Some(task) => {
                        let runs = scripts::runs_until_now(agent, world, task);
                        self.script_effect(world, task, runs, *op, *launch, program)
                    }
                    None => Ok(()),
                }
            }
            DriverEffect::Recover(request::Recover { launch, .. }) => {
                self.lives.to_find.remove(launch);
                Ok(())
            }
            _ => self.a_finished_allocation_is_quiet(alloc, key),
        }
    }
}
