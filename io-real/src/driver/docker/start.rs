//! A container is made and started. That of an earlier agent is found by [`super::recover`].

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use drover_core::driver::config::{DockerConfig, IoLimits};
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::model::alloc::DriverNetwork;
use drover_core::model::task::LogConfig;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use tokio::sync::watch;
use tokio::time::timeout;

use super::containers::Known;
use super::cores::{self, Cores};
use super::create::{self, Making};
use super::engine::Engine;
use super::files::{self, Dirs, Mounted};
use super::free_space::FreeSpace;
use super::image::{self, Found, Need};
use super::join::Joined;
use super::logs::Output;
use super::records::{Ours, Shown};
use super::settings::Credentials;
use super::starting::Start;
use super::taken::Taken;
use super::trouble::Trouble;
use super::{World, credentials, devices, exit, link, network, usage};
use crate::cgroup::Disk;
use crate::driver::answer::Answer;

/// How long a start waits for an engine that may just be coming up.
const START_TIME: Duration = Duration::from_secs(2);

/// How often an image is looked for that is removed whenever it is there.
const IMAGE_TRIES: usize = 3;

/// What to do about an engine that does not answer.
const NO_ENGINE: &str = "the docker engine does not answer";

impl World {
    /// The engine, if it answers within a while.
    pub(super) async fn engine_within(&self, limit: Duration) -> Result<Engine, Failure> {
        if let Some(engine) = self.link.borrow().engine() {
            return Ok(engine.clone());
        }
        let mut link = self.link.subscribe();
        self.wanted.notify_one();
        let engine = timeout(limit, link::next(&mut link)).await;
        let why = || self.link.borrow().info().description;
        let silent = || Failure::recoverable(format!("{NO_ENGINE}: {}", why()));
        engine.ok().flatten().ok_or_else(silent)
    }

    /// The engine, if it answers now.
    pub(super) fn engine(&self) -> Result<Engine, Failure> {
        let link = self.link.borrow();
        let engine = link.engine().cloned();
        engine.ok_or_else(|| {
            Failure::recoverable(format!("{NO_ENGINE}: {}", link.info().description))
        })
    }

    pub(super) async fn start(
        self: Arc<Self>,
        start: Start,
        owed: Answer,
        task: TaskKey,
        op: Op,
        launch: LaunchId,
        config: Arc<TaskConfig>,
    ) {
        let started = self.try_start(&start, &task, launch, config).await;
        let started = match started {
            Ok(started) if self.held.runs(launch) => Ok(started),
            Ok((id, ..)) => {
                self.remove_quietly(&id).await;
                Err(Failure::fatal("it was destroyed while it started"))
            }
            Err(failure) => {
                self.held.start_failed(launch);
                Err(failure)
            }
        };
        if started.is_err() {
            self.give_cores_back(launch).await;
        }
        drop(start);
        match started {
            Ok((_, network, runs)) => {
                owed.give(DriverInput::Started {
                    op,
                    launch,
                    network,
                });
                if !runs {
                    self.ended(launch).await;
                }
            }
            Err(failure) => owed.give(DriverInput::StartFailed {
                op,
                launch,
                failure,
            }),
        }
    }

    /// Starts it. Its id, what only the engine knows of its network, and whether it still runs.
    async fn try_start(
        self: &Arc<Self>,
        start: &Start,
        task: &TaskKey,
        launch: LaunchId,
        config: Arc<TaskConfig>,
    ) -> Result<(String, Option<DriverNetwork>, bool), Failure> {
        let asked = DockerConfig::decode(&config.config).map_err(|problems| {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::fatal(texts.join("; "))
        })?;
        let asked = Arc::new(asked);
        let engine = self.engine_within(START_TIME).await?;
        let given_up = || Failure::fatal("it was given up while it started");
        let image = tokio::select! {
            image = self.image_in_use(&engine, task, launch, &asked, &config) => image?,
            () = start.given_up() => return Err(given_up()),
        };
        let ours = self.remember(task, launch, &asked, &config).await?;
        if start.is_given_up() {
            return Err(given_up());
        }
        let named = asked.cpuset_cpus.as_deref();
        let cores = self.take_cores(task, launch, &config, named).await?;
        let joined = self
            .join(
                &engine,
                (task.alloc, launch),
                &ours,
                &image,
                // What the job says goes first.
                config
                    .network
                    .as_ref()
                    .filter(|_| asked.network_mode.is_none()),
            )
            .await?;
        let (id, _held) = self
            .make(
                &engine,
                (task, launch),
                (&ours, &image, cores),
                &asked,
                &config,
                joined.as_ref(),
            )
            .await?;
        if start.is_given_up() {
            self.remove_quietly(&id).await;
            return Err(given_up());
        }
        let output = self
            .files(task, launch, config.logs, &id, asked.tty)
            .await?;
        engine
            .start(&id)
            .await
            .map_err(|trouble| trouble.failure("cannot start the container"))?;
        drop(joined);
        let drained = self.collect(output);
        let found = engine.inspect(&id).await;
        let found =
            found.map_err(|trouble| trouble.failure("the container was started, and is gone"))?;
        let network = network::of(&found, &ours.network);
        let runs = exit::runs(&found);
        self.known(task, launch, id.clone(), &found, drained);
        // Others may have reserved some of its cores since it was made. That waits for all who are moved.
        let world = self.clone();
        tokio::spawn(async move { world.move_to_shared_cores().await });
        Ok((id, network, runs))
    }

    /// Sees to it that the image is there, and stays as long as the launch may need it.
    async fn image_in_use(
        self: &Arc<Self>,
        engine: &Engine,
        task: &TaskKey,
        launch: LaunchId,
        asked: &Arc<DockerConfig>,
        config: &TaskConfig,
    ) -> Result<Taken, Failure> {
        let most = self.settings.image_max_size;
        for _ in 0..IMAGE_TRIES {
            let image = self.image(engine, task, launch, asked, config).await?;
            let taken = self.images.take(engine, &image.id, launch, most).await;
            if matches!(taken, Err(Trouble::Refused(_))) {
                // Nobody will use it.
                self.collect_image(image.id.clone());
            }
            if let Some(taken) = taken.map_err(|trouble| trouble.failure("the image"))? {
                return Ok(taken);
            }
        }
        let image = &asked.image;
        let why = format!("image {image:?} is removed by somebody as soon as it is there");
        Err(Failure::recoverable(why))
    }

    /// Sees to it that the image is there.
    async fn image(
        &self,
        engine: &Engine,
        task: &TaskKey,
        launch: LaunchId,
        asked: &Arc<DockerConfig>,
        config: &TaskConfig,
    ) -> Result<Found, Failure> {
        self.images.loads.settle(engine, &self.records).await?;
        let reference = image::reference(&asked.image);
        let Span(nanos) = config
            .container
            .as_ref()
            .map_or(Span::ZERO, |it| it.pull_time);
        let limit = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        if let Some(load) = asked.load.clone() {
            let (dirs, task) = (self.dirs.clone(), task.clone());
            let opened = self
                .blocking(move || Ok(files::archive(&dirs, &task, &load)))
                .await??;
            let (loads, uses) = (&self.images.loads, &self.images.uses);
            let most = FreeSpace::of(engine, self.settings.image_max_size).of_archive();
            let archive = (opened, most);
            let known = (&self.records, uses);
            return loads.load(engine, known, &reference, archive, limit).await;
        }
        let need = Need {
            reference: &reference,
            force: asked.force_pull,
            credentials: self.credentials(asked).await?,
            limit,
            silence: self.settings.pull_activity_timeout,
            most: self.settings.image_max_size,
        };
        let emit_event = |words| self.emit_event(task, launch, words);
        self.images
            .fetch(engine, &self.records, need, emit_event)
            .await
    }

    pub(super) async fn credentials(
        &self,
        asked: &Arc<DockerConfig>,
    ) -> Result<Credentials, Failure> {
        if let Some(auth) = &asked.auth {
            return Ok(Some(credentials::of_task(auth)));
        }
        if self.settings.credentials.is_empty() {
            return Ok(None);
        }
        let (sources, asked) = (self.settings.credentials.clone(), asked.clone());
        let soft = asked.auth_soft_fail;
        let found = self
            .blocking(move || Ok(credentials::of_agent(&sources, &asked.image)))
            .await?;
        match found {
            Err(why) if soft => {
                tracing::warn!(why, "a registry is asked without a password");
                Ok(None)
            }
            found => found.map_err(|why| Failure::recoverable(format!("auth: {why}"))),
        }
    }

    /// Remembers, before it is made, which container is ours.
    async fn remember(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        asked: &DockerConfig,
        config: &TaskConfig,
    ) -> Result<Ours, Failure> {
        let (records, name) = (self.records.clone(), create::name(task, launch));
        let ports = config.container.iter().flat_map(|it| &it.ports);
        let network = Shown {
            prefers_v6: asked.advertise_ipv6_address,
            ports: ports
                .map(|port| (port.label.clone(), create::inside(port)))
                .collect(),
        };
        let socket = self.socket.clone();
        self.blocking(move || records.begin(launch, name, network, &socket))
            .await
    }

    /// How fast a container reads and writes, if somebody limits that.
    fn io_limits(&self, config: &TaskConfig) -> Result<Option<(Disk, IoLimits)>, Failure> {
        let wanted = IoLimits::of(&config.config);
        match &self.groups {
            Some(groups) => groups.io_limits(wanted),
            None if wanted.is_none() => Ok(None),
            None => Err(io::Error::other(
                "reading and writing cannot be limited without control groups; leave out `io`",
            )),
        }
        .map_err(|error| Failure::fatal(error.to_string()))
    }

    /// Makes the container. Its id, and what must stay open until it runs.
    async fn make(
        self: &Arc<Self>,
        engine: &Engine,
        (task, launch): (&TaskKey, LaunchId),
        (ours, image, cores): (&Ours, &Taken, Cores),
        asked: &Arc<DockerConfig>,
        config: &Arc<TaskConfig>,
        joined: Option<&Joined>,
    ) -> Result<(String, Mounted), Failure> {
        let network_mode = joined.map(Joined::mode);
        let shares = matches!(cores, Cores::Shared(_));
        let (world, task, ours_, asked, config) = (
            self.clone(),
            task.clone(),
            ours.clone(),
            asked.clone(),
            config.clone(),
        );
        let (image, default_runtime) = (image.clone(), engine.about().default_runtime.clone());
        let made = self.blocking(move || {
            let made = || -> Result<_, Failure> {
                let container = config.container.clone().unwrap_or_default();
                let dirs = Dirs {
                    dirs: &world.dirs,
                    root: &world.root,
                    pins: &world.pins,
                    launch,
                    selinux_label: &world.settings.selinux_label,
                    network: world.network_dir(&task, &asked, &config),
                };
                let mounted = Mounted::of(&dirs, &task, &asked, &config)?;
                let devices = devices::of(&asked, &config.reserved.nodes, &container)?;
                let io = world.io_limits(&config)?;
                let making = Making {
                    settings: &world.settings,
                    task: &task,
                    launch,
                    ours: &ours_,
                    asked: &asked,
                    config: &config,
                    container: &container,
                    image: &image,
                    cores: &cores,
                    default_runtime: &default_runtime,
                    io,
                    network_mode,
                };
                Ok((making.body(&mounted, devices)?, mounted))
            };
            Ok(made())
        });
        let (body, mounted) = made.await??;
        let created = cores::create(engine, &ours.name, body, shares).await;
        let id = created.map_err(|trouble| trouble.failure("cannot create the container"))?;
        let (records, made) = (self.records.clone(), id.clone());
        let remembered = self.blocking(move || records.made(launch, made)).await;
        if let Err(failure) = remembered {
            self.remove_quietly(&id).await;
            return Err(failure);
        }
        Ok((id, mounted))
    }

    /// Opens the files for what a container writes; none if the engine keeps it.
    pub(super) async fn files(
        self: &Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        logs: LogConfig,
        id: &str,
        has_terminal: bool,
    ) -> Result<Option<Output>, Failure> {
        if logs.disabled || self.settings.disable_log_collection {
            return Ok(None);
        }
        let (world, key, id) = (self.clone(), task.clone(), id.to_owned());
        let output = self.blocking(move || world.output(&key, launch, logs, &id, has_terminal));
        output.await.map(Some)
    }

    /// Begins to collect what a container writes that runs, or ran. Told when all is written.
    pub(super) fn collect(self: &Arc<Self>, output: Option<Output>) -> watch::Receiver<bool> {
        let (done, drained) = watch::channel(output.is_none());
        if let Some(output) = output {
            tokio::spawn(self.clone().follow(output, done));
        }
        drained
    }

    /// Notes what runs.
    pub(super) fn known(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        id: String,
        found: &ContainerInspectResponse,
        drained: watch::Receiver<bool>,
    ) {
        let host = found.host_config.as_ref();
        let memory = host.and_then(|it| it.memory);
        let labels = found.config.as_ref().and_then(|it| it.labels.as_ref());
        let label = labels.and_then(|labels| labels.get(cores::LABEL));
        let set = host.and_then(|it| it.cpuset_cpus.clone());
        let known = Known {
            task: task.clone(),
            stats: usage::source(found),
            id,
            memory_limit: memory
                .and_then(|it| u64::try_from(it).ok())
                .unwrap_or_default(),
            shared_cores: (label.map(String::as_str) == Some(cores::SHARED))
                .then(|| set.unwrap_or_default()),
            drained,
        };
        self.containers.add(launch, known);
    }

    /// The directory of the network that was made for a task's allocation. A container that its job puts elsewhere has
    /// nothing of it.
    fn network_dir(
        &self,
        task: &TaskKey,
        asked: &DockerConfig,
        config: &TaskConfig,
    ) -> Option<PathBuf> {
        let is_there = config.network.is_some() && asked.network_mode.is_none();
        let networks = self.networks.as_ref().filter(|_| is_there);
        networks.map(|networks| networks.path(task.alloc))
    }

    pub(super) async fn remove_quietly(&self, id: &str) {
        let removed = match self.engine() {
            Ok(engine) => engine.remove(id).await.map_err(|it| it.to_string()),
            Err(failure) => Err(failure.message),
        };
        if let Err(why) = removed {
            tracing::warn!(
                container = id,
                why,
                "cannot remove a container that was given up"
            );
        }
    }
}
