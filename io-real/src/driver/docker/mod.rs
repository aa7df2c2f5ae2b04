//! The driver `docker`: tasks are containers of an engine on this machine.
//!
//! | dies | what holds |
//! |------|------------|
//! | agent | containers go on, and the engine keeps their output; the next agent finds each by its [`records`] |
//! | engine | a container goes on if the engine is set up for that (`live-restore`); the next engine is asked for each, and missed exits are reported |
//! | both | the same, by the next agent |
//! | machine | a launch of an earlier boot whose end its engine did not see is `Rebooted` |
//! | agent in the middle of a start | the launch is `Gone`, and its half-made container is found by name and word, and removed |
//!
//! A container joins the network of its group by a second container, which is there while it starts ([`join`]).
//!
//! One connection receives the events of all exits ([`link`]), one for each container carries its output ([`logs`]);
//! there is no process and no thread for either. Nothing is asked again and again.

mod arrival;
mod bounded;
mod brought;
mod containers;
mod cores;
mod create;
mod credentials;
mod cursor;
mod decoded;
mod devices;
mod digest;
mod end;
mod engine;
mod entries;
mod exit;
#[cfg(test)]
mod fake;
mod files;
mod frames;
mod free_space;
mod health;
mod helper;
mod image;
mod inventory;
mod join;
mod lines;
mod link;
mod load;
mod logs;
mod network;
mod pins;
mod processes;
mod progress;
mod proof;
mod pull;
mod records;
mod recover;
mod sessions;
mod settings;
mod sink;
mod start;
mod starting;
mod taken;
mod trouble;
mod usage;
mod users;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::driver::isolation::DOCKER;
use drover_core::effect::{DriverEffect, ImageQuery, request};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, ImageDigests};
use drover_core::model::node::DriverInfo;
use drover_core::op::Failure;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};

pub use self::credentials::CredentialSource;
pub use self::decoded::{DecodedLines, DecodedOutput, read_frames, read_lines, read_output};
pub use self::devices::admit_devices;
pub use self::engine::socket_path;
pub use self::inventory::{Fate, Found, FoundContainer, FoundImage, Inventory};
pub use self::pins::Pins;
pub use self::records::Records;
pub use self::settings::DockerSettings;

use self::containers::Containers;
use self::image::Images;
use self::link::Link;
use self::starting::Starts;
use super::answer::Answer;
use super::external::Held;
use super::session::Opening;
use super::{Driver, DriverStream, Inbox, Orphans};
use crate::cgroup::Cgroups;
use crate::dirs::AllocDirs;
use crate::gate::Gate;
use crate::network::Networks;
use crate::one_task::OneTask;
use crate::stats::StatsSource;

/// The driver. Cheap to clone.
#[derive(Clone)]
pub struct Docker {
    world: Arc<World>,
    keeper: Arc<OneTask>,
}

struct World {
    settings: DockerSettings,
    socket: Arc<Path>,
    records: Records,
    pins: Pins,
    dirs: AllocDirs,
    /// Where allocations' directories are, for the engine.
    root: PathBuf,
    /// The networks of allocations that have their own.
    networks: Option<Networks>,
    /// The program that leads containers into them.
    shim: PathBuf,
    /// Where it stands which cores are whose.
    groups: Option<Cgroups>,
    /// Held by whoever moves containers to the cores that are shared.
    moving: tokio::sync::Mutex<()>,
    inbox: Inbox,
    link: watch::Sender<Link>,
    /// Notified by whoever needs the engine now.
    wanted: Arc<Notify>,
    stream: Mutex<Option<DriverStream>>,
    held: Held,
    starts: Arc<Starts>,
    containers: Containers,
    images: Arc<Images>,
    /// Of whom there is a record, and nobody knows.
    orphans: Mutex<BTreeSet<LaunchId>>,
    /// Whether somebody looks for the engine.
    kept: AtomicBool,
    gate: Gate,
}

impl Docker {
    /// A driver whose tasks see the directories of `dirs`, which are below `root`, and join `networks` with the help of
    /// the program `shim`. They share cores with the tasks of `groups`.
    pub fn new(
        settings: DockerSettings,
        records: Records,
        pins: Pins,
        (dirs, root): (AllocDirs, PathBuf),
        (networks, shim): (Option<Networks>, PathBuf),
        groups: Option<Cgroups>,
        inbox: Inbox,
    ) -> Docker {
        let world = World {
            socket: settings.socket.clone().into(),
            settings,
            records,
            pins,
            dirs,
            root,
            networks,
            shim,
            groups,
            moving: tokio::sync::Mutex::default(),
            inbox,
            link: watch::Sender::new(Link::New),
            wanted: Arc::default(),
            stream: Mutex::default(),
            held: Held::default(),
            starts: Arc::default(),
            containers: Containers::default(),
            images: Arc::default(),
            orphans: Mutex::default(),
            kept: AtomicBool::new(false),
            gate: Gate::default(),
        };
        let world = Arc::new(world);
        let weak = Arc::downgrade(&world);
        world.images.uses.on_freed(move |image| {
            if let Some(world) = weak.upgrade() {
                world.collect_image(image);
            }
        });
        Docker {
            world,
            keeper: Arc::default(),
        }
    }

    /// Ends, as soon as there is an engine, every container of which there is a record but of which nobody knows any
    /// more: `known` are those that somebody does. For the start of an agent, before it starts anything. Returns how
    /// many were left alone.
    ///
    /// # Errors
    /// The records cannot be listed.
    pub fn end_unknown(&self, known: &BTreeSet<LaunchId>, orphans: Orphans) -> io::Result<usize> {
        let launches = self.world.records.launches()?.into_iter();
        let unknown: BTreeSet<LaunchId> = launches.filter(|it| !known.contains(it)).collect();
        match orphans {
            Orphans::Leave => Ok(unknown.len()),
            Orphans::End => {
                *self.world.orphans_mut() = unknown;
                Ok(0)
            }
        }
    }

    /// What looks for its containers, for who looks at this host.
    pub fn inventory(&self) -> Inventory {
        let world = &self.world;
        Inventory::new(&world.settings, &world.records, Some(world.images.clone()))
    }

    /// Begins to look for the engine, if nobody did.
    fn keep(&self) {
        if !self.world.kept.swap(true, Ordering::Relaxed) {
            let world = Arc::downgrade(&self.world);
            let keep = futures::future::join(link::keep(world.clone()), cores::follow(world));
            self.keeper.begin(async {
                let ((), ()) = keep.await;
            });
        }
    }
}

impl Driver for Docker {
    fn name(&self) -> &str {
        DOCKER
    }

    fn fingerprint(&self) -> DriverInfo {
        self.world.link.borrow().info()
    }

    fn watch(&self, report: DriverStream) {
        *self.world.stream() = Some(report);
        self.keep();
        self.world.report();
    }

    fn carry_out(&self, task: TaskKey, effect: DriverEffect) {
        self.keep();
        let world = self.world.clone();
        let owed = Answer::owed(&world.inbox, &task, &effect);
        match effect {
            DriverEffect::Start(request::Start { op, launch, config }) => {
                // Before anything that comes later can be begun.
                if world.held.begin(launch) {
                    let start = world.starts.begin(launch);
                    tokio::spawn(world.start(start, owed, task, op, launch, config));
                } else {
                    owed.give(DriverInput::StartFailed {
                        op,
                        launch,
                        failure: Failure::fatal("the launch was started or given up before"),
                    });
                }
            }
            DriverEffect::Recover(request::Recover { op, launch, logs }) => {
                // Whoever destroys it meanwhile ends the search first.
                let start = world.starts.begin(launch);
                tokio::spawn(world.recover(start, owed, task, op, launch, logs));
            }
            DriverEffect::Stop(request::Stop {
                op, launch, signal, ..
            }) => {
                tokio::spawn(async move {
                    let result = world.stop(launch, &signal).await;
                    owed.give(DriverInput::Stopped { op, launch, result });
                });
            }
            DriverEffect::Signal(request::Signal { op, launch, signal }) => {
                tokio::spawn(async move {
                    let result = world.signal(launch, &signal).await;
                    owed.give(DriverInput::Signaled { op, launch, result });
                });
            }
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                ..
            }) => {
                tokio::spawn(async move {
                    let ended = world.exec(launch, &program).await;
                    owed.give(DriverInput::executed(op, launch, ended));
                });
            }
            DriverEffect::Health(request::Health { op, launch }) => {
                tokio::spawn(async move {
                    let ended = world.health(launch).await;
                    owed.give(DriverInput::executed(op, launch, ended));
                });
            }
            DriverEffect::OpenSession(asked) => {
                if let Some((opening, server)) = Opening::take(&world.inbox, &task, owed, &asked) {
                    tokio::spawn(world.open_session(asked, opening, server));
                }
            }
            DriverEffect::Destroy(request::Destroy { op, launch }) => {
                tokio::spawn(async move {
                    let result = world.destroy(&task, launch).await;
                    owed.give(DriverInput::Destroyed { op, launch, result });
                });
            }
        }
    }

    fn look_up_image(
        &self,
        query: Arc<ImageQuery>,
    ) -> BoxFuture<'static, Result<ImageDigests, Failure>> {
        self.keep();
        let world = self.world.clone();
        async move { world.look_up_image(&query).await }.boxed()
    }

    fn stats_source(&self, launch: LaunchId) -> Option<StatsSource> {
        self.world.containers.get(launch)?.stats
    }

    fn forget(&self, launch: LaunchId) {
        let world = self.world.clone();
        tokio::spawn(async move { world.forget(launch).await });
    }
}

impl World {
    fn stream(&self) -> MutexGuard<'_, Option<DriverStream>> {
        // Nothing that holds the lock can panic half way.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn orphans_mut(&self) -> MutexGuard<'_, BTreeSet<LaunchId>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn orphans(&self) -> Vec<LaunchId> {
        self.orphans_mut().iter().copied().collect()
    }

    /// Emits an event of a task.
    fn emit_event(&self, task: &TaskKey, launch: LaunchId, message: String) {
        let details = BTreeMap::new();
        self.inbox.send(
            task,
            DriverInput::Event {
                launch,
                message,
                details,
            },
        );
    }

    /// Runs work that touches the disk where it hurts nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.gate.run(work).await;
        let done = done.unwrap_or_else(|lost| Err(io::Error::other(lost)));
        done.map_err(|error| Failure::recoverable(error.to_string()))
    }
}
