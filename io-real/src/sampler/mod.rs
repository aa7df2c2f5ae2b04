//! Measuring tasks when somebody looks.
//!
//! A sample is good for a second, whoever asks. The first look at a task takes a tenth of a second,
//! because percentages need two samples; so does one after a minute in which nobody looked, since
//! what a task did an hour ago is not what it does. Whoever looks at one task usually looks at the
//! others next (a page, a collector of metrics): the first look at a task therefore measures the
//! others as well ([`Sampler::sample_among`]), so that not each of hundreds takes its tenth of a second.
//! Between looks nothing runs; files stay open until somebody looks at something and nobody has
//! looked at them for a minute.

mod devices;
mod task;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};
use std::time::Instant;

use drover_core::ids::LaunchId;
use drover_core::stats::board::Board;
use drover_core::stats::running::Running;
use drover_core::time::Span;
use futures::future::{join, join_all};
use tokio::sync::Mutex;
use tokio::time::sleep;

use self::task::{Outcome, Round, Watched, With};
use crate::clock;
use crate::driver::Driver;
use crate::driver::external::PluginDriver;
use crate::gate::Gate;
use crate::plugins::DevicePlugins;
use crate::stats::processes::Proc;
use crate::stats::read::Buffer;
use crate::stats::{RECENT, SHORT};

/// How many tasks that nobody asked for are measured beside one that was asked for.
const MOST_BESIDE: usize = 512;

/// How long it is kept what a task used that ended.
const KEPT: Span = Span::secs(3600);

/// How much is wanted to be known of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What all of it uses.
    Totals,
    /// What each of its processes uses as well.
    Processes,
}

/// Measures tasks. Cheap to clone; the clones are the same sampler.
#[derive(Clone)]
pub struct Sampler {
    drivers: Arc<BTreeMap<String, Arc<dyn Driver>>>,
    /// Who measures by itself, if somebody does.
    plugins: Option<DevicePlugins>,
    gate: Gate,
    board: Arc<Lock<Board>>,
    state: Arc<Mutex<State>>,
    /// When the board was last cleared of what is long over.
    swept: Arc<Lock<Option<Instant>>>,
}

/// What is being looked at. One pass at a time.
#[derive(Default)]
struct State {
    watched: BTreeMap<LaunchId, Watched>,
    proc: Option<Proc>,
    buffer: Buffer,
}

impl Sampler {
    /// Measures what these drivers run.
    pub fn new(drivers: impl IntoIterator<Item = Arc<dyn Driver>>, gate: Gate) -> Sampler {
        let named = drivers
            .into_iter()
            .map(|driver| (driver.name().to_owned(), driver));
        Sampler {
            drivers: Arc::new(named.collect()),
            plugins: None,
            gate,
            board: Arc::default(),
            state: Arc::default(),
            swept: Arc::default(),
        }
    }

    /// And what these plugins say of their devices, and those beside them of their tasks.
    #[must_use]
    pub fn listening_to(self, plugins: DevicePlugins) -> Sampler {
        Sampler {
            plugins: Some(plugins),
            ..self
        }
    }

    /// What was measured so far. Not to be held while waiting.
    pub fn board(&self) -> MutexGuard<'_, Board> {
        // Nothing that holds the lock leaves it half changed.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that what the board says of these tasks is not older than a second. Of a task whose
    /// driver stopped measuring it the board says nothing; of one that has just ended, what it said last.
    pub async fn refresh(&self, tasks: Vec<Running>, depth: Depth, mhz: Option<f64>) {
        let mut listened = Vec::new();
        let mut counted = Vec::new();
        for task in tasks {
            let plugins = self.plugins.as_ref();
            match plugins.and_then(|plugins| plugins.driver(&task.driver)) {
                Some(driver) => listened.push(self.listen(task, driver)),
                None => counted.push(task),
            }
        }
        join(join_all(listened), self.count(counted, depth, mhz)).await;
        self.sweep();
    }

    /// The same, where these other tasks run as well. If a first look at the tasks takes its time, the
    /// others that are not known yet are measured in the same time.
    pub async fn sample_among<E>(
        &self,
        mut tasks: Vec<Running>,
        depth: Depth,
        mhz: Option<f64>,
        others: impl Future<Output = Result<Vec<Running>, E>>,
    ) -> Result<(), E> {
        if !self.unknown(tasks.iter(), depth).await.is_empty() {
            let others = others.await?;
            let counted = others.iter().filter(|it| !self.has_plugin(it));
            let unknown = self.unknown(counted, depth).await;
            tasks.extend(unknown.into_iter().take(MOST_BESIDE));
        }
        self.refresh(tasks, depth, mhz).await;
        Ok(())
    }

    /// Those of which there is no sample yet that the next one could be compared with.
    async fn unknown<'a>(
        &self,
        tasks: impl Iterator<Item = &'a Running>,
        depth: Depth,
    ) -> Vec<Running> {
        let (state, now) = (self.state.lock().await, Instant::now());
        let known = |it: &Watched| it.has_recent(now, depth);
        let unknown = tasks.filter(|it| !state.watched.get(&it.launch).is_some_and(known));
        unknown.cloned().collect()
    }

    fn has_plugin(&self, sampled: &Running) -> bool {
        let plugins = self.plugins.as_ref();
        plugins.is_some_and(|plugins| plugins.driver(&sampled.driver).is_some())
    }

    /// Clears the board of what is long over, now and then.
    fn sweep(&self) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.is_none_or(|at| at.elapsed() > RECENT) {
            *swept = Some(Instant::now());
            self.board()
                .forget_before(clock::now().wall + Span(-KEPT.0));
        }
    }

    /// Notes what a plugin says of its task.
    async fn listen(&self, sampled: Running, driver: PluginDriver) {
        match driver.usage(sampled.launch).await {
            Some(usage) => self.board().note(sampled.task, sampled.launch, usage),
            None if driver.runs(sampled.launch) => self.board().lose(&sampled.task, sampled.launch),
            None => {}
        }
    }

    /// What the kernel counts.
    async fn count(&self, tasks: Vec<Running>, depth: Depth, mhz: Option<f64>) {
        let again = self.pass(tasks, depth, mhz, Round::First).await;
        if !again.is_empty() {
            sleep(SHORT).await;
            self.pass(again, depth, mhz, Round::Second).await;
        }
    }

    /// One pass over those that are not fresh. Returns those that need a second sample.
    async fn pass(
        &self,
        tasks: Vec<Running>,
        depth: Depth,
        mhz: Option<f64>,
        round: Round,
    ) -> Vec<Running> {
        // Held to the end of the pass, also if who asked goes away meanwhile.
        let mut state = self.state.clone().lock_owned().await;
        let now = Instant::now();
        if tasks.iter().all(|it| state.is_fresh(it, depth, now)) {
            return Vec::new();
        }
        let (board, drivers) = (self.board.clone(), self.drivers.clone());
        let work = move || {
            state.open(&tasks, &drivers);
            state.sample(tasks, depth, mhz, round, &board)
        };
        self.gate.run(work).await.unwrap_or_default()
    }
}

impl State {
    /// Finds what is looked at for the first time, and lets go what nobody looks at any more.
    fn open(&mut self, tasks: &[Running], drivers: &BTreeMap<String, Arc<dyn Driver>>) {
        let now = Instant::now();
        for sampled in tasks {
            if let Some(watched) = self.watched.get_mut(&sampled.launch) {
                watched.last_used = now;
                continue;
            }
            let driver = drivers.get(&*sampled.driver);
            let stats_source = driver.and_then(|driver| driver.stats_source(sampled.launch));
            let watched = stats_source.and_then(|stats_source| Watched::open(&stats_source, now));
            if let Some(watched) = watched {
                self.watched.insert(sampled.launch, watched);
            }
        }
        self.watched.retain(|_, it| now - it.last_used < RECENT);
    }

    fn is_fresh(&self, sampled: &Running, depth: Depth, now: Instant) -> bool {
        let watched = self.watched.get(&sampled.launch);
        watched.is_some_and(|it| it.is_fresh(now, depth))
    }

    /// Measures what is not fresh. Returns those that need a second sample.
    fn sample(
        &mut self,
        tasks: Vec<Running>,
        depth: Depth,
        mhz: Option<f64>,
        round: Round,
        board: &Lock<Board>,
    ) -> Vec<Running> {
        let State {
            watched,
            proc,
            buffer,
        } = self;
        if proc.is_none() {
            *proc = Proc::open();
        }
        let mut with = With {
            proc: proc.as_ref(),
            buffer,
            depth,
            mhz,
            wall: clock::now().wall,
        };
        let mut again = Vec::new();
        for sampled in tasks {
            let Some(it) = watched.get_mut(&sampled.launch) else {
                continue;
            };
            match it.measure(&mut with, round) {
                Outcome::Fresh => {}
                Outcome::Again => again.push(sampled),
                Outcome::Gone => {
                    watched.remove(&sampled.launch);
                }
                Outcome::Measured(usage) => {
                    let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
                    board.note(sampled.task, sampled.launch, usage);
                }
            }
        }
        again
    }
}
