//! The properties: what holds after every step, whatever the order and whatever goes wrong.
//!
//! [`property`] names them all. Each has a method of its own named after it, in the file of its theme.
//!
//! A method says `self.holds(Property::ItsName, holds, || detail)`, which also counts that it had
//! something to check; a situation that searching must reach says `self.sometimes(..)`. What the
//! checker remembers over lives of the agent is in [`lives`]: a crash may forget what was shown,
//! never what was saved. After a step only what it touched is checked ([`touched`]); everything is
//! checked at each 32nd step, after a restart and at rest.
//!
//! What a job file demands is read from the file as it was handed in ([`policy`]), never from what the agent made of it.

mod acl;
mod after;
pub(crate) mod agreement;
mod alone;
mod canaries;
mod checks;
mod claims;
mod cluster;
mod collected;
mod cut_off;
mod delays;
mod dir_usage;
mod disks;
mod dispatch;
mod draining;
mod driver_reports;
mod dry_run;
mod effects;
mod ending;
mod engine;
mod evals;
mod exits;
mod forward;
mod garbage;
mod groups;
mod health;
mod history;
mod identities;
mod images;
mod in_time;
mod killing;
mod limits;
mod machine;
mod namespaces;
mod networks;
mod node_meta;
mod notices;
mod pace;
mod periodic;
mod policy;
mod preempted;
mod probes;
pub mod property;
mod reached;
mod records;
mod removals;
mod replacing;
mod replies;
mod resources;
mod rest;
mod restarts;
mod rollout;
mod saves;
mod scaling;
mod scheduler;
mod scripts;
mod services;
mod sessions;
mod settled;
mod shown;
mod signals;
mod started;
mod state;
mod statistics;
mod story;
mod streams;
mod templates;
mod touched;
mod turns;
mod variables;
mod versions;
mod volumes;
mod wait_for;
mod waits;

use std::collections::BTreeMap;

use drover_core::agent::{Agent, Input};
use drover_core::config::{Config, DiskUsageLimits, Retention};
use drover_core::effect::{Effect, NodeEffect, Notification, Reply, StoreEffect};
use drover_core::ids::RequestId;
use drover_core::model::node::Node;
use drover_core::model::volume::HostVolume;
use drover_core::time::{Instant, Span};

pub use property::Property;
pub(crate) use replies::Facts;

use crate::check::canaries::Canaries;
use crate::check::checks::Checks;
use crate::check::claims::Claims;
use crate::check::cluster::Cluster;
use crate::check::dir_usage::DirUsage;
use crate::check::disks::Disks;
use crate::check::draining::Draining;
use crate::check::driver_reports::DriverReports;
use crate::check::dry_run::Foretold;
use crate::check::ending::Ending;
use crate::check::evals::Evals;
use crate::check::exits::Exits;
use crate::check::health::Health;
use crate::check::history::History;
use crate::check::identities::Identities;
use crate::check::images::Images;
use crate::check::killing::Killing;
use crate::check::machine::Devices;
use crate::check::namespaces::Namespaces;
use crate::check::node_meta::NodeMeta;
use crate::check::notices::Notices;
use crate::check::periodic::Launched;
use crate::check::policy::JobFiles;
use crate::check::probes::Probes;
use crate::check::reached::Reached;
use crate::check::records::Commits;
use crate::check::removals::Removals;
use crate::check::replacing::Replacing;
use crate::check::replies::Replies;
use crate::check::rollout::Rollouts;
use crate::check::scaling::Scaling;
use crate::check::scheduler::Scheduler;
use crate::check::services::Services;
use crate::check::signals::Signals;
use crate::check::started::Started;
use crate::check::statistics::Statistics;
use crate::check::story::Story;
use crate::check::templates::Templates;
use crate::check::touched::Touched;
use crate::check::variables::Variables;
use crate::check::versions::Versions;
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
    files: JobFiles,
    lives: History,
    story: Story,
    started: Started,
    signals: Signals,
    killing: Killing,
    health: Health,
    replacing: Replacing,
    exits: Exits,
    commits: Commits,
    replies: Replies,
    rollouts: Rollouts,
    ending: Ending,
    delays: delays::Delays,
    in_time: in_time::InTime,
    /// How long a driver or plugin may take for its first report.
    first_report: Span,
    evals: Evals,
    devices: Devices,
    driver_reports: DriverReports,
    streams: streams::Streams,
    dispatches: dispatch::Dispatches,
    templates: Templates,
    variables: Variables,
    namespaces: Namespaces,
    acl: acl::Acl,
    versions: Versions,
    scaling: Scaling,
    canaries: Canaries,
    services: Services,
    statistics: Statistics,
    identities: Identities,
    disks: Disks,
    draining: Draining,
    probes: Probes,
    node_meta: NodeMeta,
    notices: Notices,
    scheduler: Scheduler,
    /// The operator's keys, as the node is configured.
    configured_meta: BTreeMap<String, String>,
    /// The volumes of the node, as this life of the agent is configured.
    pub(crate) host_volumes: BTreeMap<String, HostVolume>,
    removals: Removals,
    claims: Claims,
    cluster: Cluster,
    checks: Checks,
    foretold: Option<Foretold>,
    launched: Launched,
    images: Images,
    /// The longest time that a task gets to end, as the node is configured.
    max_kill_timeout: Span,
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
    disk_limits: Option<DiskUsageLimits>,
    disk_under_pressure: bool,
    /// When it was last found not to be so, if nothing else was found since.
    disk_was_fine_at: Option<Instant>,
    dir_usage: DirUsage,
    /// Whether operators of this agent were told that there is too little space.
    disk_pressure_told: bool,
    /// Whether the agent was told to end and leave the tasks alone: it listens to nobody then.
    pub(crate) leaving: bool,
    /// Whether the agent was asked to end all tasks, and then itself.
    pub(crate) ends_tasks: bool,
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
            files: JobFiles::default(),
            lives: History::default(),
            story: Story::default(),
            started: Started::default(),
            signals: Signals::default(),
            killing: Killing::default(),
            health: Health::default(),
            replacing: Replacing::default(),
            max_kill_timeout: config.max_kill_timeout,
            exits: Exits::default(),
            commits: Commits::default(),
            replies: Replies::default(),
            rollouts: Rollouts::default(),
            ending: Ending::default(),
            delays: delays::Delays::default(),
            in_time: in_time::InTime::default(),
            first_report: config.timeouts.first_report,
            evals: Evals::default(),
            devices: Devices::default(),
            driver_reports: DriverReports::default(),
            streams: streams::Streams::default(),
            dispatches: dispatch::Dispatches::default(),
            templates: Templates::default(),
            variables: Variables::default(),
            namespaces: Namespaces::of(config),
            acl: acl::Acl::default(),
            versions: Versions::default(),
            scaling: Scaling::default(),
            canaries: Canaries::default(),
            services: Services::default(),
            statistics: Statistics::default(),
            identities: Identities::default(),
            disks: Disks::default(),
            draining: Draining::default(),
            probes: Probes::default(),
            node_meta: NodeMeta::new(),
            notices: Notices::default(),
            scheduler: Scheduler::default(),
            configured_meta: config.node.meta.clone(),
            host_volumes: config.node.host_volumes.clone(),
            claims: Claims::of(config),
            cluster: Cluster::default(),
            checks: Checks::default(),
            foretold: None,
            launched: Launched::default(),
            images: Images::default(),
            removals: Removals::new(config.parallel_destroys),
            newborn: true,
            keep_terminal: config.keep_terminal,
            kept_children: config.kept_children,
            kept_records: config.kept_records,
            retention: config.retention,
            disk_limits: config.disk_limits,
            disk_under_pressure: false,
            disk_was_fine_at: None,
            dir_usage: DirUsage::new(config.dir_usage),
            disk_pressure_told: false,
            leaving: false,
            ends_tasks: false,
            reached: Reached::default(),
            coverage: Coverage::default(),
        }
    }

    /// Looks at an input before the agent takes it; none is a timeout.
    pub(crate) fn input(&mut self, world: &World, agent: &Agent, input: Option<&Input>) {
        self.agent_restored(world);
        self.coverage.input(agent, input);
        self.disks.forget(agent);
        self.dir_usage.begin();
        input
            .into_iter()
            .for_each(|input| self.services.delivered(input));
        self.check_answered(world, agent, input);
        self.touched
            .input(world.scene.at, agent, input, self.commits.in_flight());
        match input {
            Some(driver @ Input::Driver(key, reported)) => {
                self.change_script_ended(world, agent, key, reported);
                self.templates.delivered(driver);
                self.killing.driver_reports(reported);
                self.driver_reports(world, agent, key, reported);
            }
            Some(Input::Store(reported)) => self.store_reported(world.elapsed(), reported),
            Some(Input::Shutdown(mode)) => self.ending.asked(agent, *mode),
            Some(Input::Request(request, asked)) => {
                self.replies.asked(*request, asked);
                self.files.asked(asked);
                self.scheduler.asked(agent, *request, asked);
                self.namespaces.asked(agent, *request, asked);
                if self.scheduler.forbids(*request) || self.namespaces.forbids(*request) {
                    // Nothing comes of it.
                    return;
                }
                self.launched.asked(asked);
                self.delays.asked(agent, asked);
                self.rollouts.asked(asked);
                self.variables.asked(agent, *request, asked);
                self.disks.asked(world, agent, *request, asked);
                self.operator_asks(agent, asked);
                self.foretell(world, agent, asked);
                self.versions.asked(agent, *request, asked);
                self.dispatches.asked(agent, *request, asked);
                self.signals.asked(world, agent, *request, asked);
                self.scaling.asked(agent, *request, asked);
                self.draining.asked(world, agent, asked);
                self.meta_is_applied(agent, asked);
            }
            Some(Input::Node(reported)) => {
                self.driver_reports.delivered(agent, reported);
                self.streams.delivered(world, agent, reported);
                self.engine_reports(world, agent, reported);
                self.disk_usage_reported(world.scene.at, reported);
                self.dirs_measured(world, agent, reported);
            }
            Some(input @ Input::Hook(reported)) => {
                self.removals.delivered(reported);
                self.disks.node_answered(reported);
                self.identities.delivered(world, agent, reported);
                self.templates.delivered(input);
            }
            Some(input @ Input::Template(..)) => self.templates.delivered(input),
            None => {
                self.launched.called_back(agent);
                self.draining.called_back(world);
                self.driver_reports.called_back(world, agent);
                self.streams.called_back(world, agent);
            }
            Some(Input::Server(reported)) => {
                self.cluster.delivered(world, agent, reported);
                self.files.delivered(reported);
            }
            Some(Input::Check(_)) => {}
        }
    }

    /// Looks at one effect before it is carried out.
    pub(crate) fn effect(&mut self, world: &World, agent: &Agent, effect: &Effect) -> Verdict {
        self.agent_restored(world);
        self.touched.effect(effect);
        self.coverage.effect(effect);
        self.services.asked(effect);
        if let Effect::Node(effect) = effect {
            self.streams.asked(effect);
        }
        self.stopped_agent_has_no_effects(effect)?;
        match effect {
            Effect::Driver(_, key, effect) => self.driver_effect(world, agent, key, effect),
            Effect::Forget(_, launch) => {
                self.end_of_forgotten_launch_was_told(world, *launch)?;
                self.launch_is_forgotten_after_destroy(world, *launch)
            }
            Effect::Hook(hook) => {
                self.parallel_removals_are_bounded(hook)?;
                self.hook_effect(world, agent, hook)?;
                self.in_time.hook(hook);
                Ok(())
            }
            Effect::Check(effect) => self.check_effect(world, agent, effect),
            Effect::Node(NodeEffect::Volume { volume, work, .. }) => {
                self.volume_effect(world, agent, *volume, work)
            }
            Effect::Node(NodeEffect::MeasureDiskUsage { .. }) => {
                self.first_disk_usage_check_waits_interval(world)
            }
            Effect::Node(measure @ NodeEffect::MeasureDirs { .. }) => {
                self.dirs_are_measured_in_intervals(world, measure)
            }
            Effect::Node(
                NodeEffect::Probe { .. }
                | NodeEffect::LookUpTimeZone { .. }
                | NodeEffect::LookUpImage { .. }
                | NodeEffect::WatchDriver { .. }
                | NodeEffect::WatchDevices { .. },
            ) => Ok(()),
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                self.commit_effect(world, agent, *id, batch)
            }
            Effect::Notify(Notification::Event(key, event)) => {
                self.event_emitted(world, agent, key, event)
            }
            Effect::Notify(Notification::Index(index)) => self.broadcast_never_goes_back(*index),
            Effect::Notify(Notification::Notice(notice)) => self.disk_pressure_is_told_once(notice),
            Effect::Server(effect) => self.server_effect(world, agent, effect),
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
        self.foretold = None;
        self.launched.agent_died();
        self.lives.agent_died();
        self.killing.agent_died();
        self.delays.agent_died();
        self.in_time.agent_died();
        self.health.agent_died();
        self.identities.agent_died();
        self.exits.agent_died();
        self.evals.agent_died();
        self.devices.agent_died();
        self.removals.agent_died();
        self.claims.agent_died();
        self.cluster.agent_died();
        self.commits.agent_died();
        self.replies.agent_died();
        self.disks.agent_died();
        self.dir_usage.agent_died();
        self.versions.agent_died();
        self.scaling.agent_died();
        self.canaries.agent_died();
        self.services = Services::default();
        self.checks = Checks::default();
        self.statistics = Statistics::default();
        self.ending = Ending::default();
        self.driver_reports = DriverReports::default();
        self.streams.agent_died();
        (self.leaving, self.ends_tasks) = (false, false);
        // The next agent says it again.
        self.disk_pressure_told = false;
        self.newborn = true;
    }

    /// The first look at a new life of the agent: what the disk holds is what counts.
    fn agent_restored(&mut self, world: &World) {
        if core::mem::take(&mut self.newborn) {
            self.removals.agent_restored(world.scene.at);
            self.lives.agent_restored(world);
            self.story.agent_restored(world);
            self.evals.agent_restored(world);
            self.templates.agent_restored(world);
            self.variables.agent_restored(world);
            self.namespaces.agent_restored(world);
            self.acl.agent_restored(world);
            self.cluster.agent_restored(world);
            self.draining.agent_restored(world);
            self.probes = Probes::default();
            self.disk_was_fine_at = None;
            self.notices.agent_restored(world);
            self.meta_of_new_agent(world);
            self.scheduler.agent_restored(world);
            let unread = world
                .alive()
                .any(|(_, one)| world.disk.unread.contains(&one.key));
            self.sometimes(Property::SometimesTaskWithUnreadableRecordLives, unread);
            self.rollouts.agent_restored(&self.lives);
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
}
