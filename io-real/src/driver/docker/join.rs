//! Leading a container into the network of its allocation.
//!
//! An engine starts a container in a network of its own making, or in that of another container's process. So that
//! other container is made for the time of a start. Its program is the shim's second use: it enters the
//! allocation's network, says so through a pipe, and ends when the pipe is closed, after which the engine removes it. The task's container
//! stays in the allocation's network, which is the same that tasks of other drivers are in; nothing stays beside it.
//!
//! The pipe's end is open in the agent alone, so that container ends with an agent that is killed, too. It is made of the task's own image,
//! of which nothing is executed.

use std::io;
use std::path::Path;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount};
use drover_core::effect::TaskNetwork;
use drover_core::ids::{AllocId, LaunchId};
use drover_core::op::Failure;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::World;
use super::engine::Engine;
use super::files::bind;
use super::records::Ours;
use super::taken::Taken;
use super::trouble::Trouble;
use crate::network::JoinPipe;

/// The label with the word that only the agent knows. It is not that of tasks' containers, for which nobody shall
/// take it.
pub(super) const TOKEN_LABEL: &str = "drover.network";

/// What the shim is called with to do this.
const ARGUMENT: &str = "join-network";

/// How long it may take from being started to being in the network.
const JOIN_TIME: Duration = Duration::from_secs(20);

/// Where a task's container is started, until this is dropped.
pub(super) struct Joined {
    container: String,
    _open: Receiver,
    _pipe: JoinPipe,
}

impl Joined {
    /// The network mode of the task's container.
    pub(super) fn mode(&self) -> String {
        format!("container:{}", self.container)
    }
}

/// The name of such a container.
pub(super) fn name(ours: &Ours) -> String {
    format!("{}-network", ours.name)
}

impl World {
    /// Makes the way into the network of an allocation, if it has its own.
    pub(super) async fn join(
        &self,
        engine: &Engine,
        (alloc, launch): (AllocId, LaunchId),
        ours: &Ours,
        image: &Taken,
        network: Option<&TaskNetwork>,
    ) -> Result<Option<Joined>, Failure> {
        let Some(network) = network.filter(|network| network.own) else {
            return Ok(None);
        };
        let failed =
            |why: String| Failure::recoverable(format!("cannot join the group's network: {why}"));
        let networks = self.networks.clone();
        let networks = networks.ok_or_else(|| failed("there are none here".to_owned()))?;
        let wanted = network.clone();
        let (pipe, reader) = self
            .blocking(move || {
                // It is there, or what is to be done is said.
                networks.entrance(alloc, Some(&wanted))?;
                networks.join_pipe(alloc, launch)
            })
            .await?;
        let open = Receiver::from_owned_fd(reader);
        let mut open = open.map_err(|error| failed(error.to_string()))?;
        let body = self.joining(ours, image, network, &pipe);
        let container = engine.create(&name(ours), body).await;
        let container = container.map_err(|trouble| failed(trouble.to_string()))?;
        let joined = self.start_joining(engine, &container, &mut open).await;
        if let Err(why) = joined {
            self.remove_quietly(&container).await;
            return Err(failed(why));
        }
        Ok(Some(Joined {
            container,
            _open: open,
            _pipe: pipe,
        }))
    }

    async fn start_joining(
        &self,
        engine: &Engine,
        container: &str,
        open: &mut Receiver,
    ) -> Result<(), String> {
        let started = engine.start(container).await;
        started.map_err(|trouble| trouble.to_string())?;
        match timeout(JOIN_TIME, open.read_u8()).await {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(errno)) => Err(io::Error::from_raw_os_error(i32::from(errno)).to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it took longer than {} s", JOIN_TIME.as_secs())),
        }
    }

    /// What the container is made of.
    fn joining(
        &self,
        ours: &Ours,
        image: &Taken,
        network: &TaskNetwork,
        pipe: &JoinPipe,
    ) -> ContainerCreateBody {
        let mount = |from: &Path, to: &str, readonly| -> Mount {
            bind(&from.to_string_lossy(), to, readonly, None)
        };
        let options = ["no-new-privileges", "label=disable"];
        let mut labels = image.silenced();
        labels.insert(TOKEN_LABEL.to_owned(), ours.token.clone());
        ContainerCreateBody {
            image: Some(image.id.clone()),
            entrypoint: Some(vec!["/.drover/join".to_owned()]),
            cmd: Some(vec![ARGUMENT.to_owned()]),
            user: Some("0:0".to_owned()),
            // The task's container gets its name, too.
            hostname: Some(network.hostname.clone()).filter(|name| !name.is_empty()),
            labels: Some(labels),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(vec![
                    mount(&self.shim, "/.drover/join", true),
                    mount(pipe.network(), "/.drover/network", true),
                    mount(pipe.path(), "/.drover/pipe", false),
                ]),
                cap_drop: Some(vec!["ALL".to_owned()]),
                // It takes this to enter a network; the program gives it away then.
                cap_add: Some(vec!["CAP_SYS_ADMIN".to_owned()]),
                security_opt: Some(options.map(str::to_owned).into()),
                userns_mode: Some("host".to_owned()),
                readonly_rootfs: Some(true),
                pids_limit: Some(4),
                log_config: Some(HostConfigLogConfig {
                    typ: Some("none".to_owned()),
                    ..HostConfigLogConfig::default()
                }),
                auto_remove: Some(true),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        }
    }

    /// Removes what a start that was interrupted left of it. It takes nobody else's for its own.
    pub(super) async fn remove_joining(&self, engine: &Engine, ours: &Ours) -> Result<(), Trouble> {
        let found = match engine.inspect(&name(ours)).await {
            Err(Trouble::Unknown(_)) => return Ok(()),
            found => found?,
        };
        let labels = found.config.as_ref().and_then(|it| it.labels.as_ref());
        let token = labels.and_then(|labels| labels.get(TOKEN_LABEL));
        let Some(id) = found.id.filter(|_| token == Some(&ours.token)) else {
            return Ok(());
        };
        match engine.remove(&id).await {
            // The engine is about to.
            Err(Trouble::Conflict(_)) => Ok(()),
            removed => removed,
        }
    }
}
