//! Putting an agent together: its directory, its store, its drivers, its core.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use drover_core::config::ProbeConfig;
use drover_core::ids::{AllocId, LaunchId, NodeId};
use drover_core::model::node::Node as NodeModel;
use drover_core::model::processors::Processors;
use drover_core::store::{self, Saved};
use drover_io_real::agent_handle::{AgentHandle, RequestInbox};
use drover_io_real::artifact::Artifacts;
use drover_io_real::audit::Auditor;
use drover_io_real::cgroup::Moves;
use drover_io_real::cluster::{CallServers, KnowAllocs, ServeTasks};
use drover_io_real::core_dumps;
use drover_io_real::data_dir::{DataDir, DataDirError};
use drover_io_real::device::DevicePlugin;
use drover_io_real::device::declared::DeclaredDevices;
use drover_io_real::device::nvidia::Nvidia;
use drover_io_real::dirs::{AllocDirs, Quotas};
use drover_io_real::driver::exec::Exec;
use drover_io_real::driver::external::Collectors;
use drover_io_real::driver::mock::Mock;
use drover_io_real::driver::raw_exec::RawExec;
use drover_io_real::driver::{Driver, Inbox, Orphans};
use drover_io_real::facts;
use drover_io_real::fingerprint::{self, Context, Prober};
use drover_io_real::forward::Forwarders;
use drover_io_real::gate::Gate;
use drover_io_real::hard_links;
use drover_io_real::hooks::Hooks;
use drover_io_real::identity::{Issuer, Key};
use drover_io_real::keyring::root::RootKey;
use drover_io_real::memory;
use drover_io_real::migrate::Migration;
use drover_io_real::migrate::receive::Limits;
use drover_io_real::migrate::token::NodeSecret;
use drover_io_real::node::{Dependencies, Node};
use drover_io_real::notify::{NodeName, Notifier};
use drover_io_real::open_files;
use drover_io_real::plugins::{DevicePlugins, PluginSettings, Plugins};
use drover_io_real::recorder::Recorder;
use drover_io_real::sampler::Sampler;
use drover_io_real::shim::ShimHome;
use drover_io_real::stats::{Disks, HostSampler};
use drover_io_real::store::{Store, StoreError, StoreKeys};
use drover_io_real::transfers::Transfers;
use drover_io_real::volumes::{VOLUMES, VolumeDirs};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::core_config::config;
use super::isolation::{cgroups, docker, networks, throttled};
use super::{Recording, Settings, cluster, log};
use crate::cluster::inbound::Inbound;
use crate::config::FileConfig;
use crate::config::host_volume::{check_directories, nested};
use crate::http::Events;
use crate::http::ForServers;
use crate::http::Measures;
use crate::http::{StatusServers, TokenServers};

/// What is wrong where `disk_quota` is wanted and nobody can.
const NO_QUOTAS: &str = "client: disk_quota is on, and the file system of the data directory does not enforce \
                         project quotas: mount it with prjquota (ext4: after tune2fs -O quota,project \
                         -Q prjquota), or turn disk_quota off";

/// What is wrong where the kernel does not take the limit of core dumps.
const NO_LIMIT_OF_DUMPS: &str = "forbid dumps of the agent's memory, which holds secrets, by its limit RLIMIT_CORE \
                                 (let the agent call prlimit64: a filter of system calls may stand in its way)";

/// What whoever wants to run a program beside a task is told where nobody may.
const NO_REMOTE_EXEC: &str = "no program runs beside tasks of this node: its agent's configuration has client { \
                              disable_remote_exec = true }";

/// An agent that runs.
#[derive(Debug)]
pub struct Running {
    /// The handle to it.
    pub agent_handle: AgentHandle,
    /// Its loop; over when the agent has stopped.
    pub core: JoinHandle<()>,
    /// What the operator should know of this machine.
    pub remarks: Vec<String>,
    /// Who measures what its tasks and the machine use.
    pub measures: Measures,
    /// Held for as long as the agent runs.
    pub data_dir: DataDir,
    /// What is fetched for its allocations.
    pub transfers: Transfers,
    /// What changes.
    pub events: Events,
    /// Who tells operators what happens.
    pub notifier: Notifier,
    /// What sends logs elsewhere.
    pub forwarders: Forwarders,
    /// What makes the tokens for its allocations' disks.
    pub secret: NodeSecret,
    /// What tasks prove who they are with.
    pub issuer: Issuer,
    /// The keys with which variables are encrypted.
    pub keys: StoreKeys,
    /// What runs beside the agent and serves it.
    pub plugins: Plugins,
    /// Who looks at what bears our mark on this host.
    pub auditor: Auditor,
    /// Who knows the tokens of the cluster, if it is in one.
    pub token_servers: Option<Arc<dyn TokenServers>>,
    /// Who asks the servers of the cluster who they are, if it is in one.
    pub status_servers: Option<Arc<dyn StatusServers>>,
    /// Told, once there is an API, whose a token is that servers pass on.
    pub for_servers: ForServers,
}

/// Why an agent cannot start. Each says what to do.
#[derive(Debug)]
pub enum SetupError {
    /// Its directory cannot be used.
    DataDir(DataDirError),
    /// Its configuration names what is not there.
    Config(String),
    /// Its store cannot be read.
    Store(StoreError),
    /// Something else of the machine says no.
    Io(&'static str, io::Error),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::DataDir(error) => error.fmt(f),
            SetupError::Config(why) => f.write_str(why),
            SetupError::Store(error) => error.fmt(f),
            SetupError::Io(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<DataDirError> for SetupError {
    fn from(error: DataDirError) -> SetupError {
        SetupError::DataDir(error)
    }
}

impl From<StoreError> for SetupError {
    fn from(error: StoreError) -> SetupError {
        SetupError::Store(error)
    }
}

/// Starts an agent. It finds again what it ran before.
///
/// # Errors
/// See [`SetupError`]; there is no agent then, and tasks that it knows run on. What is wrong with host volumes and with
/// the region is said before anything is opened or changed.
pub fn start(settings: &Settings) -> Result<Running, SetupError> {
    memory::share_heaps();
    core_dumps::forbid().map_err(|error| SetupError::Io(NO_LIMIT_OF_DUMPS, error.into()))?;
    check_directories(&settings.file.client.node.host_volumes).map_err(SetupError::Config)?;
    let nodes_of_cluster = cluster::nodes_of_cluster(settings).map_err(SetupError::Config)?;
    let data_dir = DataDir::open(&settings.data_dir)?;
    let root = RootKey::find(
        settings.file.agent.root_key_file.as_deref(),
        settings.credentials.as_deref(),
    )
    .map_err(StoreError::from)?;
    let mut opened = Store::open_with(data_dir.path(), settings.accept_state_loss, root)?;
    if opened.lossy || opened.restored {
        forget_no_first_token(&mut opened.saved);
    }
    let keys = opened.store.keys();
    let mut remarks: Vec<String> = opened
        .damaged
        .iter()
        .map(|what| format!("a record of the state cannot be read and is left alone: {what}"))
        .collect();
    if opened.restored {
        let words =
            "the state was restored from a snapshot: tasks that it does not know are left running";
        remarks.push(words.to_owned());
    }
    let home = ShimHome::open(data_dir.path())
        .map_err(|error| SetupError::Io("install the task shim", error))?;
    remarks.extend(home.remark());
    let node = &settings.file.client.node;
    remarks.extend(nested(&node.host_volumes, node.host_volumes_dir.as_deref()));
    remarks.extend(hard_links::remark());
    if let Err(error) = home.tidy() {
        remarks.push(format!("cannot clear away what old launches left: {error}"));
    }
    let open_files = open_files::raise()
        .map_err(|error| SetupError::Io("raise the limit of open files", error.into()))?;
    let reserved = &settings.file.client.node.reserved.cores;
    let cgroups = cgroups(&data_dir, reserved, &mut remarks)
        .map_err(|error| SetupError::Io("use control groups", error))?;
    let most = settings.file.client.node.most_processes();
    let cgroups = cgroups.map(|groups| groups.with_most_processes(Some(most).filter(|it| *it > 0)));
    let cgroups = throttled(cgroups, &data_dir, settings)
        .map_err(|error| SetupError::Io("limit reading and writing", error))?;
    if cgroups.is_none() {
        remarks.push("no cgroups are available (not root?): tasks run without limits".to_owned());
    }
    let (answers_in, answers) = mpsc::unbounded_channel();
    let inbox = Inbox::new(answers_in);
    let dirs = AllocDirs::new(data_dir.allocs());
    if settings.file.client.gc.disk_quota && dirs.quotas() != Quotas::Enforced {
        return Err(SetupError::Io(
            "limit disk space",
            io::Error::other(NO_QUOTAS),
        ));
    }
    let (own, shims, groups) = (home.clone(), home.clone(), cgroups.clone());
    let of_containers = cgroups.clone();
    let moves = cgroups.as_ref().and_then(Moves::to);
    let shim = home.program().to_owned();
    let isolation = settings.file.exec.settings.clone();
    let (of_tasks, to) = (dirs.clone(), inbox.clone());
    let (networks, resolver) = networks(
        settings,
        &data_dir,
        &opened.saved,
        !opened.lossy,
        &mut remarks,
    )
    .map_err(|error| SetupError::Io("prepare for networks of allocations", error))?;
    let within = Some(networks.clone());
    let raw_exec = RawExec::isolating(home, of_tasks, cgroups, open_files, to, isolation, within);
    let whole = opened.damaged.is_empty();
    let auditor = Auditor::new(
        &data_dir,
        own,
        groups,
        raw_exec.clone(),
        networks.clone(),
        whole,
    )
    .map_err(|error| SetupError::Io("inspect this host", error))?;
    let wanted = &settings.file.client;
    // What a driver runs that is not wanted any more is nobody's.
    let known = known_launches(&opened.saved, |driver| wanted.drivers.allows(driver));
    let orphans = match opened.lossy {
        true => Orphans::Leave,
        false => Orphans::End,
    };
    let left = raw_exec.end_unknown(&known, orphans);
    if let Err(error) = &left {
        remarks.push(format!("cannot look for orphaned tasks: {error}"));
    }
    let exec = Exec::beside(&raw_exec);
    let to = inbox.clone();
    let docker = docker(
        settings,
        &data_dir,
        &dirs,
        (&networks, shim),
        of_containers,
        to,
    )
    .map_err(|error| SetupError::Io("remember containers", error))?;
    let auditor = auditor.with_containers(docker.inventory());
    if let Err(error) = docker.end_unknown(&known, orphans) {
        remarks.push(format!("cannot look for orphaned containers: {error}"));
    }
    let mut drivers: Vec<Arc<dyn Driver>> = vec![
        Arc::new(raw_exec),
        Arc::new(exec),
        Arc::new(docker),
        Arc::new(Mock::new("mock_driver", dirs.clone(), inbox.clone())),
        Arc::new(Mock::new("mock", dirs.clone(), inbox.clone())),
    ];
    drivers.retain(|driver| wanted.drivers.allows(driver.name()));
    let collectors = Collectors::open(&shims, data_dir.path(), dirs.clone())
        .map_err(|error| SetupError::Io("collect the output of plugins' tasks", error))?;
    let known = known_launches(&opened.saved, |_| true);
    if opened.lossy {
        let collecting = collectors.end_unknown(&known, orphans);
        remarks.extend(loss(&opened.store, left, collecting));
    } else {
        end_collecting_for_nobody(collectors.clone(), known);
    }
    let plugins = plugins(settings, &data_dir, collectors, &inbox)?;
    let devices = DevicePlugins::new(own_devices(&settings.file), plugins.clone());
    let transfers = Transfers::default();
    let artifacts = artifacts(settings, &data_dir, &dirs, transfers.clone())
        .map_err(|error| SetupError::Io("prepare for artifacts", error))?;
    let secret = data_dir
        .secret()
        .map_err(|error| SetupError::Io("keep the node's secret", error))?;
    let issuer =
        issuer(&data_dir).map_err(|error| SetupError::Io("keep the key for identities", error))?;
    let gate = Gate::default();
    let measures = Measures::new(
        Sampler::new(drivers.iter().cloned(), gate.clone()).listening_to(devices.clone()),
        HostSampler::new(Disks::new(data_dir.alloc_root())),
    );
    let probe_settings = fingerprint::Settings {
        alloc_dir: data_dir.alloc_root(),
        version: crate::http::agent::VERSION.to_owned(),
        nomad_version: crate::http::agent::NOMAD_VERSION.to_owned(),
        advertise: settings.file.agent.advertised(&settings.http_addr),
        host_networks: wanted.node.host_networks.clone(),
        network_interface: wanted.node.network_interface.clone(),
        bridge: wanted.node.bridge.clone(),
        bridge_hairpin: true,
        reserved_cores: wanted.node.reserved.cores.clone(),
        reserved_compute: wanted.node.reserved.mhz,
        ..wanted.node.machine.probe_settings()
    };
    let context = Context::with_networks(probe_settings, networks.clone())
        .map_err(|error| SetupError::Io("inspect this machine", error))?;
    let (agent_handle, mut request_inbox) = AgentHandle::new(data_dir.allocs());
    let agent_handle = agent_handle.with_sessions(inbox.sessions().clone());
    let agent_handle = match wanted.node.disable_remote_exec {
        true => agent_handle.without_sessions(NO_REMOTE_EXEC),
        false => agent_handle,
    };
    let events = Events::default();
    let nomad_version = crate::http::agent::NOMAD_VERSION;
    request_inbox.on_commit(events.recorder(nomad_version, wanted));
    let id = opened
        .saved
        .meta
        .as_ref()
        .map_or_else(|| NodeId(facts::random()), |meta| meta.node);
    let mut config = config(settings, id, &data_dir);
    let notifier = notifier(
        settings,
        &data_dir,
        &config.node,
        &opened.saved,
        &mut request_inbox,
    )
    .map_err(|error| SetupError::Io("read which notices were sent", error))?;
    config.notices = !notifier.is_idle();
    config
        .probes
        .extend(plugins.probes().map(|name| ProbeConfig {
            name: name.into(),
            every: None,
            essential: false,
        }));
    let recorder = recorder(settings, &data_dir).unwrap_or_else(|error| {
        remarks.push(format!("nothing is recorded: {error}"));
        Recorder::off()
    });
    let home = || data_dir.own("log-forward", None);
    let (to, name) = (&settings.file.log_forward, &config.node.name);
    let forwarders = Forwarders::start(to.clone(), &agent_handle, &home, name)
        .map_err(|error| SetupError::Io("send logs elsewhere", error))?;
    let volumes_dir = settings.file.client.node.host_volumes_dir.clone();
    let volumes_dir = volumes_dir.unwrap_or_else(|| data_dir.path().join(VOLUMES));
    let for_servers = ForServers::default();
    let inbound = Inbound {
        agent_handle: agent_handle.clone(),
        access: for_servers.clone(),
        measures: measures.clone(),
        log: log::followed(),
        data_dir: data_dir.path().display().to_string(),
        inbox: inbox.clone(),
    };
    let servers = cluster::calls(settings, id, &secret, inbound).map_err(SetupError::Config)?;
    let token_servers = servers.clone();
    let token_servers = token_servers.map(|servers| Arc::new(servers) as Arc<dyn TokenServers>);
    let status_servers = servers.clone();
    let status_servers = status_servers.map(|servers| Arc::new(servers) as Arc<dyn StatusServers>);
    let of_disks = servers.clone();
    let of_disks = of_disks.map(|servers| Arc::new(servers) as Arc<dyn KnowAllocs>);
    let migration = Migration::new(dirs.clone(), Limits::default(), transfers.clone())
        .in_cluster(of_disks, nodes_of_cluster)
        .from_named(cluster::named_nodes(settings));
    let of_tasks = servers.clone();
    let of_tasks = of_tasks.map(|servers| Arc::new(servers) as Arc<dyn ServeTasks>);
    let node = Node::new(Dependencies {
        config,
        saved: opened.saved,
        store: opened.store,
        drivers,
        plugins: plugins.clone(),
        prober: Prober::new(context, gate),
        volumes: VolumeDirs::new(volumes_dir),
        hooks: Hooks::new(
            (dirs, networks),
            inbox.clone(),
            devices.clone(),
            artifacts,
            migration,
            issuer.clone(),
            agent_handle.clone(),
        )
        .with_moves(moves)
        .with_servers(of_tasks),
        servers: servers.map(|servers| Box::new(servers) as Box<dyn CallServers>),
        devices,
        answers,
        inbox,
        request_inbox,
        recorder,
    });
    let core = tokio::spawn(node.run());
    if let Some(resolver) = resolver {
        tokio::spawn(resolver.answer(agent_handle.clone()));
    }
    Ok(Running {
        agent_handle,
        core,
        remarks,
        measures,
        data_dir,
        transfers,
        secret,
        events,
        notifier,
        forwarders,
        issuer,
        keys,
        plugins,
        auditor,
        token_servers,
        status_servers,
        for_servers,
    })
}

/// Who tells operators what happens; what happens reaches it from here on.
fn notifier(
    settings: &Settings,
    data_dir: &DataDir,
    node: &NodeModel,
    saved: &Saved,
    inbox: &mut RequestInbox,
) -> io::Result<Notifier> {
    let targets = settings.file.notify.clone();
    let node = NodeName {
        name: node.name.clone(),
        id: node.id.to_string(),
    };
    let home = || data_dir.own("notify", None);
    let (notifier, listener) = Notifier::start(targets, &home, &node, saved)?;
    if !notifier.is_idle() {
        inbox.on_commit(listener);
        let to = notifier.clone();
        inbox.on_notice(move |notice| to.notify(&notice));
    }
    Ok(notifier)
}

/// Whoever makes the tokens of tasks.
fn issuer(data_dir: &DataDir) -> io::Result<Issuer> {
    let home = data_dir.own("identity", None)?;
    Ok(Issuer::new(Key::of(home.as_fd())?))
}

/// Who fetches what tasks need.
fn artifacts(
    settings: &Settings,
    data_dir: &DataDir,
    dirs: &AllocDirs,
    transfers: Transfers,
) -> io::Result<Artifacts> {
    let home = data_dir.own("artifacts", None)?;
    let wanted = settings.file.client.artifact.clone();
    Artifacts::new(wanted, dirs.clone(), home, transfers)
}

/// What has devices in this program.
fn own_devices(file: &FileConfig) -> Vec<Arc<dyn DevicePlugin>> {
    let mut own: Vec<Arc<dyn DevicePlugin>> = Vec::new();
    if !file.devices.is_empty() {
        own.push(Arc::new(DeclaredDevices::new(file.devices.clone())));
    }
    if let Some(settings) = &file.nvidia {
        own.push(Arc::new(Nvidia::new(settings.clone())));
    }
    own
}

/// What collects the output of plugins' tasks that nobody knows is ended, in the background.
fn end_collecting_for_nobody(collectors: Collectors, known: BTreeSet<LaunchId>) {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = collectors.end_unknown(&known, Orphans::End) {
            tracing::error!(%error, "cannot look for orphaned log collectors");
        }
    });
}

/// A part of the state was lost: what to tell of the tasks that it does not know, and that were left
/// running. As soon as there are none, the loss is over.
fn loss(store: &Store, left: io::Result<usize>, collecting: io::Result<usize>) -> Option<String> {
    match (left, collecting) {
        (Ok(0), Ok(0)) => {
            store.end_loss();
            None
        }
        (Ok(left), Ok(_)) => Some(format!(
            "a part of the state was lost; tasks that it does not know and that were left running: \
             {left}. `drover system audit` lists them, `drover system audit -fix` ends them"
        )),
        (Err(error), _) | (_, Err(error)) => Some(format!(
            "a part of the state was lost; tasks that it does not know were left running, and cannot \
             be counted: {error}"
        )),
    }
}

/// The plugins that the configuration names.
fn plugins(
    settings: &Settings,
    data_dir: &DataDir,
    collectors: Collectors,
    inbox: &Inbox,
) -> Result<Plugins, SetupError> {
    if settings.file.plugins.is_empty() {
        return Ok(Plugins::none());
    }
    let dir = settings.file.plugin_dir.clone();
    let own = |name| {
        let made = data_dir.own(name, None);
        made.map_err(|error| SetupError::Io("make a directory for plugins", error))
    };
    // What an earlier agent's plugins left there is of no use to anybody.
    drop(own("sockets")?);
    let place = PluginSettings {
        dir: dir.unwrap_or_else(|| data_dir.path().join("plugins")),
        memory: own("plugin-state")?,
        handles: own("plugin-tasks")?,
        sockets: data_dir.path().join("sockets"),
        collectors,
        root: data_dir.alloc_root(),
        processors: Processors::default(),
        inbox: inbox.clone(),
        drivers: settings.file.client.drivers.clone(),
    };
    Plugins::new(settings.file.plugins.clone(), place)
        .map_err(|error| SetupError::Io("use plugins", error))
}

/// The flight recorder, or why there is none.
fn recorder(settings: &Settings, data_dir: &DataDir) -> io::Result<Recorder> {
    let Recording { size, dir } = &settings.recording;
    if *size == 0 {
        return Ok(Recorder::off());
    }
    Recorder::open(data_dir.own("recording", dir.as_deref())?, *size)
}

/// The launches that the core will look for: those of allocations whose job it knows, and of drivers that are wanted.
fn known_launches(saved: &Saved, wanted: impl Fn(&str) -> bool) -> BTreeSet<LaunchId> {
    let known = |alloc: &AllocId, task: &str| {
        let alloc = saved.allocs.get(alloc)?;
        let job = saved.job_of(alloc)?;
        let mut tasks = job.group(alloc.group.as_str())?.tasks.iter();
        tasks.find(|it| it.name == *task && wanted(&it.driver))
    };
    let of_tasks = saved.tasks.iter().filter_map(|((alloc, name), task)| {
        known(alloc, name.as_str())?;
        task.launch.as_ref().map(|launch| launch.id)
    });
    // Where a task's record cannot be read.
    let of_allocs = saved.allocs.iter().flat_map(|(id, alloc)| {
        let launches = alloc.launches.iter();
        launches.filter_map(|(name, launch)| known(id, name.as_str()).map(|_| *launch))
    });
    of_tasks.chain(of_allocs).collect()
}

/// Whether there was a first token is lost, or older than it could be: then there was one. Else it would be made again
/// for whoever reaches the API and comes first.
fn forget_no_first_token(saved: &mut Saved) {
    if saved.acl_bootstrap.is_none() {
        saved.unreadable.insert(store::Key::AclBootstrap);
    }
}
