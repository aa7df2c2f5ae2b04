//! The root machine: routes an input to its owner, lets everything settle, hands out effects,
//! and knows the next timeout.

mod acl;
pub mod audit;
mod awaited_services;
mod cluster;
mod collected;
mod collection;
mod dir_usage;
mod disk_pressure;
mod explain;
mod granting;
mod hand_over;
mod images;
mod input;
mod machine;
pub mod names;
mod namespaces;
mod node_life;
mod pending;
mod periodic;
mod plugins;
pub mod requests;
mod restore;
mod scheduler_config;
mod scheduling;
mod services;
mod shown;
mod timers;
mod view;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::acl::Acl;
use self::collected::Collected;
use self::collection::CollectionState;
use self::images::FollowedImages;
use self::node_life::NodeLife;
use self::periodic::Launches;
pub use crate::scheduler::PREEMPTION_MARGIN;
pub use explain::{AllocExplanation, JobExplanation, RestartsLeft, TaskExplanation, Waiting};
pub use images::{APART, IMAGE_TIMEOUT, ImageView};
pub use input::Input;
pub use machine::Machine;
pub use pending::{AllocWait, Awaiting, JobWait, Pending, ServersWait, TaskWait, Wait};
pub use periodic::{LaunchResult, ON_TIME, PeriodicView};
pub use plugins::{Condition, Listened};
pub use services::{Registration, choose};
pub use shown::{ShownAlloc, ShownKey};
pub use timers::TimerName;
pub use view::{AllocView, View};

use crate::alloc::runner::{AllocRunner, Phase, Update};
use crate::config::Config;
use crate::cx::{Cx, Rng, Shared};
use crate::effect::{Effect, Notification, Refusal, Reply};
use crate::ids::{AllocId, JobKey};
use crate::input::{NodeInput, ShutdownMode, StoreInput};
use crate::ledger::{Delays, Ledger};
use crate::local::Local;
use crate::operations::{Operation, Owner};
use crate::server::Server;
use crate::store::Saved;
use crate::store::record::AllocRecord;
use crate::time::{Instant, Now};

/// The whole of the decisions of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Agent {
    config: Config,
    shared: Shared,
    local: Local,
    allocs: BTreeMap<AllocId, AllocRunner>,
    /// What stays of allocations whose directories are gone.
    #[serde(default, skip_serializing_if = "Collected::is_empty")]
    collected: Collected,
    /// Each allocation's next timer, twice: by allocation and by time.
    timers: BTreeMap<AllocId, Instant>,
    queue: BTreeSet<(Instant, AllocId)>,
    shutdown: Option<ShutdownMode>,
    stopped: bool,
    notified_index: u64,
    collection: CollectionState,
    #[serde(default)]
    machine: Machine,
    #[serde(default, skip_serializing_if = "Launches::is_empty")]
    launches: Launches,
    /// The images whose tags are followed.
    #[serde(default, skip_serializing_if = "FollowedImages::is_empty")]
    images: FollowedImages,
    #[serde(default, skip_serializing_if = "NodeLife::is_default")]
    node_life: NodeLife,
    /// Who may use the API.
    #[serde(default, skip_serializing_if = "Acl::is_empty")]
    acl: Acl,
    /// The node's life in a cluster, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
    /// Whether the servers may have to know something else of the node.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    node_changed: bool,
}

impl Agent {
    /// An agent that goes on where `saved` ends. What ran is looked for, what should run is
    /// started. Damaged or missing parts cost what they belong to, and nothing else.
    pub fn restore(config: Config, mut saved: Saved, now: Now) -> Agent {
        let mut ledger = Ledger::of(restore::records(&saved));
        for (key, record) in saved.migrate() {
            ledger.put(key, record);
        }
        let shared = Shared {
            rng: Rng::new(config.seed),
            index: restore::last_index(&saved),
            disks: saved.disks.clone(),
            ledger,
            ..Shared::default()
        };
        let mut agent = Agent {
            config,
            shared,
            local: Local::default(),
            allocs: BTreeMap::new(),
            collected: Collected::default(),
            timers: BTreeMap::new(),
            queue: BTreeSet::new(),
            shutdown: None,
            stopped: false,
            notified_index: 0,
            collection: CollectionState::default(),
            machine: Machine::default(),
            launches: Launches::default(),
            images: FollowedImages::default(),
            node_life: NodeLife::default(),
            acl: Acl::default(),
            server: None,
            node_changed: false,
        };
        agent.machine = Machine::new(&mut cx(&agent.config, &mut agent.shared, now));
        agent.check_machine(now);
        agent.restore_records(&saved, now);
        agent
    }

    /// Takes one input. Afterwards [`Agent::poll_effect`] is drained, then comes the next. After
    /// [`Effect::Stopped`] nothing is done any more but refusing requests.
    pub fn handle(&mut self, now: Now, input: Input) {
        self.shared.counters.steps += 1;
        if self.stopped {
            return self.refuse(&input);
        }
        self.note_clocks(now);
        let mut touched = BTreeSet::new();
        match input {
            Input::Store(input) => self.on_store(now, input),
            input if self.keeps_tasks() => self.refuse(&input),
            Input::Driver(key, input) => {
                let mut cx = cx(&self.config, &mut self.shared, now);
                match self.allocs.get_mut(&key.alloc) {
                    Some(alloc) => alloc.on_driver(&mut cx, &key.task, input),
                    None => cx.count_stale(),
                }
                touched.insert(key.alloc);
            }
            Input::Hook(input) => {
                let mut cx = cx(&self.config, &mut self.shared, now);
                match self.allocs.get_mut(&input.alloc) {
                    Some(alloc) => {
                        alloc.on_hook(&mut cx, input.task.as_ref(), input.op, input.result);
                    }
                    None => cx.count_stale(),
                }
                touched.insert(input.alloc);
            }
            Input::Template(key, input) => {
                let mut cx = cx(&self.config, &mut self.shared, now);
                match self.allocs.get_mut(&key.alloc) {
                    Some(alloc) => alloc.on_template(&mut cx, &key.task, input),
                    None => cx.count_stale(),
                }
                touched.insert(key.alloc);
            }
            Input::Check(input) => {
                let id = input.alloc;
                let mut cx = cx(&self.config, &mut self.shared, now);
                match self.allocs.get_mut(&id) {
                    Some(alloc) => alloc.on_check(&mut cx, input),
                    None => cx.count_stale(),
                }
                touched.insert(id);
            }
            Input::Request(request, what) => touched = self.on_request(now, request, &what),
            Input::Node(input) => touched = self.on_node(now, input),
            Input::Server(input) => touched = self.on_server(now, input),
            Input::Shutdown(mode) => touched = self.on_shutdown(now, mode),
        }
        self.settle(now, touched);
    }

    /// Whether it ends and leaves its tasks alone.
    fn keeps_tasks(&self) -> bool {
        self.shutdown == Some(ShutdownMode::KeepTasks)
    }

    /// Answers a request that comes too late; anything else is nothing to an agent that ends.
    fn refuse(&mut self, input: &Input) {
        let Input::Request(request, _) = input else {
            return;
        };
        let why = "the agent is shutting down".to_owned();
        let refused = Reply::Refused(Refusal::Conflict(why));
        self.shared.out.push_back(Effect::Reply(*request, refused));
    }

    /// Does what is due at `now`. A call when nothing is due changes nothing. To be called too when the wall
    /// clock was set: what waits for a time of it may be due at once, or not any more.
    pub fn handle_timeout(&mut self, now: Now) {
        let clock_was_set = !self.stopped && self.note_clocks(now);
        if !clock_was_set && self.poll_timeout().is_none_or(|(at, _)| at > now.at) {
            return;
        }
        self.shared.counters.steps += 1;
        let mut out = core::mem::take(&mut self.shared.out);
        self.shared.ledger.handle_timeout(now, &mut out);
        self.shared.out = out;
        if self.keeps_tasks() {
            return self.settle(now, BTreeSet::new());
        }
        // Before the jobs that are due are taken off their list: who is on it is not dead, and holds up a launch.
        self.launch_due(now);
        self.look_at_due_images(now);
        let due: Vec<JobKey> = (self.local.re_evaluate_at.iter())
            .filter(|(_, at)| **at <= now.at)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            self.local.re_evaluate_at.remove(&key);
            self.local.mark(&key);
        }
        self.node_life.handle_timeout(now);
        self.remove_expired_tokens(now);
        self.rollouts_are_overdue(now);
        let mut touched = self.operations_are_overdue(now);
        touched.extend(self.check_machine(now));
        touched.extend(self.stop_out_of_contact(now));
        while let Some((at, id)) = self.queue.first().copied()
            && at <= now.at
        {
            self.set_timer(id, None);
            if let Some(alloc) = self.allocs.get_mut(&id) {
                alloc.handle_timeout(&mut cx(&self.config, &mut self.shared, now));
                touched.insert(id);
            }
        }
        self.settle(now, touched);
    }

    /// The next effect; none when the step is done.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.shared.out.pop_front()
    }

    /// Read-only questions.
    pub fn view(&self) -> View<'_> {
        View::of(self)
    }

    fn on_store(&mut self, now: Now, input: StoreInput) {
        let retry = now.at + self.config.timeouts.commit_retry;
        let Shared { ledger, out, .. } = &mut self.shared;
        let awaited = match input {
            StoreInput::Saved(id) => ledger.saved(id, out),
            StoreInput::Failed(id, why) => ledger.failed(id, why, retry),
        };
        if !awaited {
            self.shared.counters.stale += 1;
        }
    }

    /// Reports operations whose time is over to their owners. Returns the allocations among these.
    fn operations_are_overdue(&mut self, now: Now) -> BTreeSet<AllocId> {
        let mut touched = BTreeSet::new();
        while let Some((op, operation)) = self.shared.operations.overdue(now.at) {
            self.shared.counters.overdue += 1;
            let (owner, purpose) = (&operation.owner, &operation.purpose);
            let mut cx = cx(&self.config, &mut self.shared, now);
            let alloc = owner.alloc().and_then(|id| self.allocs.get_mut(&id));
            touched.extend(owner.alloc());
            match owner {
                Owner::Task(key) => {
                    if let Some(task) = alloc.and_then(|alloc| alloc.task_mut(&key.task)) {
                        task.on_overdue(&mut cx, op, purpose);
                    }
                }
                Owner::Alloc(_) => {
                    if let Some(alloc) = alloc {
                        alloc.on_overdue(&mut cx, op, purpose);
                    }
                }
                Owner::Machine => {
                    let change = self.machine.on_overdue(&mut cx, op, purpose);
                    touched.extend(self.learn(now, change));
                }
                Owner::Server => self.call_is_overdue(now, purpose),
                Owner::Job(key) => self.image_is_overdue(now, key, op),
            }
        }
        touched
    }

    fn on_node(&mut self, now: Now, input: NodeInput) -> BTreeSet<AllocId> {
        if let NodeInput::Image { op, result } = input {
            self.on_image(now, op, result);
            return BTreeSet::new();
        }
        let mut cx = cx(&self.config, &mut self.shared, now);
        let change = self.machine.on_input(&mut cx, input);
        let mut touched = self.learn(now, change);
        touched.extend(self.tell_dir_usage(now));
        touched
    }

    /// Asks about the machine what is due. Returns the allocations that may go on.
    fn check_machine(&mut self, now: Now) -> BTreeSet<AllocId> {
        if self.machine.deadline().is_none_or(|at| at > now.at) {
            return BTreeSet::new();
        }
        let mut cx = cx(&self.config, &mut self.shared, now);
        let change = self.machine.handle_timeout(&mut cx);
        self.learn(now, change)
    }

    /// Reports on the machine are written down, and whoever waits for them goes on.
    fn learn(&mut self, now: Now, change: machine::MachineChange) -> BTreeSet<AllocId> {
        let differs = change.places || change.visible || change.fingerprinted;
        self.node_changed |= differs && self.server.is_some();
        if change.places {
            self.machine.describe(&mut self.config.node);
            self.local.mark_blocked();
        }
        if change.zones {
            self.zones_changed(now);
            self.set_next_looks(now);
        }
        if !self.machine.awaits_first_report() {
            self.local.mark_unknown();
        }
        if change.visible {
            // People see the change: its index is acknowledged to them, and must outlive the agent.
            cx(&self.config, &mut self.shared, now).next_index_without_a_record();
        }
        if change.fingerprinted {
            self.allocs.keys().copied().collect()
        } else if change.places {
            self.waiting()
        } else {
            BTreeSet::new()
        }
    }

    fn on_shutdown(&mut self, now: Now, mode: ShutdownMode) -> BTreeSet<AllocId> {
        self.shutdown = Some(mode);
        let mut touched = BTreeSet::new();
        if mode == ShutdownMode::StopTasks {
            let mut cx = cx(&self.config, &mut self.shared, now);
            for (id, alloc) in &mut self.allocs {
                if alloc.record().finished {
                    continue;
                }
                alloc.update(&mut cx, Update::Stop("the agent is shutting down"));
                touched.insert(*id);
            }
        }
        touched
    }

    /// Lets everything that was touched come to rest, then hands out what may leave.
    fn settle(&mut self, now: Now, mut touched: BTreeSet<AllocId>) {
        loop {
            let mut changed = BTreeSet::new();
            while let Some(id) = touched.pop_first() {
                self.settle_alloc(now, id);
                if !self.shared.service_waits.is_empty() {
                    changed.insert(id);
                }
            }
            touched.extend(self.grant_services(&changed));
            touched.extend(core::iter::from_fn(|| self.shared.broadcasts.next_woken()));
            let places = self.config.parallel_destroys;
            if touched.is_empty() {
                touched.extend(self.shared.destroys.grant(places));
            }
            if !touched.is_empty() {
                continue;
            }
            let known = !self.shared.fingerprint_pending;
            let due = if known {
                self.local.take_marked()
            } else {
                Vec::new()
            };
            if !due.is_empty() {
                if self.shutdown.is_none() {
                    touched = self.schedule(now, due);
                }
            } else if self.shutdown.is_none() && self.node_life.take_due() {
                touched = self.drain_on(now);
            } else if known && self.collection_is_due(now) {
                // What jobs still need of what ended is known when they were planned.
                touched = self.collect(now);
            } else {
                break;
            }
        }
        self.measure_dirs(now);
        self.call_servers(now);
        self.end_step(now);
    }

    fn end_step(&mut self, now: Now) {
        if self.notified_index != self.shared.index {
            self.notified_index = self.shared.index;
            self.shared
                .out
                .push_back(Effect::Notify(Notification::Index(self.notified_index)));
        }
        let timeouts = &self.config.timeouts;
        let lazy = match self.shutdown {
            Some(_) => crate::time::Span::ZERO,
            None => timeouts.lazy_commit,
        };
        let soon = timeouts.soon_commit;
        let mut out = core::mem::take(&mut self.shared.out);
        // What was to wait for changes that were all taken back leaves as well.
        self.shared.ledger.open_empty_gate(&mut out);
        self.shared
            .ledger
            .settle(now, Delays { lazy, soon }, &mut out);
        // What does not wait for the store leaves now, and the time for its answer begins.
        for op in out.iter().filter_map(Effect::op) {
            self.shared.operations.on_sent(now.at, op);
        }
        if self.may_stop() {
            self.stopped = true;
            out.push_back(Effect::Stopped);
        }
        self.shared.out = out;
    }

    fn may_stop(&self) -> bool {
        let over = match self.shutdown {
            None => false,
            Some(ShutdownMode::KeepTasks) => true,
            Some(ShutdownMode::StopTasks) => {
                let ended =
                    |alloc: &AllocRunner| alloc.record().finished && !alloc.removes_network();
                self.allocs.values().all(ended)
            }
        };
        // What is not saved is found again by the next agent, and a disk that is full keeps nobody.
        let ledger = &self.shared.ledger;
        let given_up = self.keeps_tasks() && ledger.last_error().is_some();
        over && !self.stopped && (ledger.is_clean() || given_up)
    }

    fn settle_alloc(&mut self, now: Now, id: AllocId) {
        self.find_disk_here(now, id);
        self.grant(id);
        let Some(alloc) = self.allocs.get_mut(&id) else {
            return;
        };
        let before = alloc.record().clone();
        let (had_remains, was_gone) = (alloc.unclean, alloc.is_gone());
        alloc.settle(&mut cx(&self.config, &mut self.shared, now));
        if before.of_servers {
            self.note_services(now, id);
        }
        let Some(alloc) = self.allocs.get_mut(&id) else {
            return;
        };
        let (deadline, gone) = (alloc.deadline(), matches!(alloc.phase(), Phase::Destroyed));
        let cleaned = had_remains && !alloc.unclean;
        let concerns_job = cleaned || affects_job(&before, alloc.record());
        if gone {
            if let Some(alloc) = self.allocs.remove(&id) {
                self.keep_record(&alloc);
            }
            let of_it = |one: &Operation| one.owner.alloc() == Some(id);
            self.shared.operations.end_all(of_it);
            self.machine.disk_pressure.on_removed(id);
            self.machine.dir_usage.on_removed(id);
            self.set_timer(id, None);
            if before.of_servers {
                self.placed_is_removed(now, &before);
            }
        } else {
            self.set_timer(id, deadline.map(|(at, _)| at));
            if before.of_servers {
                self.note_placed(now, id);
            }
        }
        match gone {
            true if was_gone => self.directory_removed(now, &before),
            true => self.alloc_gone(now, &before),
            false if concerns_job => self.alloc_changed(now, &before),
            false => {}
        }
    }
}

/// Whether the scheduling side has to look at the job again.
fn affects_job(before: &AllocRecord, after: &AllocRecord) -> bool {
    before.status.is_terminal() != after.status.is_terminal()
        || before.finished != after.finished
        || before.health != after.health
        || before.desired != after.desired
}

fn cx<'a>(config: &'a Config, shared: &'a mut Shared, now: Now) -> Cx<'a> {
    Cx {
        now,
        config,
        shared,
    }
}
