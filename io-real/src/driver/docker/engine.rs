//! An engine that answers: what it is, and the calls, each with a deadline of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerUpdateBody, ExecConfig,
    ExecInspectResponse, SystemInfo, SystemVersion,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, KillContainerOptionsBuilder,
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use drover_core::model::node::DriverInfo;
use tokio::time::timeout;

use super::trouble::Trouble;
use super::wire;

/// The least version that has all that is asked for.
const LEAST: (usize, usize) = (1, 40);

/// The first version of Docker whose filter keeps containers from the kernel's cryptography.
const FILTERS_CRYPTOGRAPHY: (u32, u32, u32) = (29, 4, 3);

/// How long an engine may take to say what it is.
const HELLO: Duration = Duration::from_secs(10);

/// How long it may take for what is soon done.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// How long it may take to make or start a container: an image's layers may be many, and a disk slow.
pub(super) const START: Duration = Duration::from_secs(120);

/// An engine that answered. Cheap to clone.
#[derive(Clone)]
pub(super) struct Engine {
    socket: Arc<Path>,
    docker: Docker,
    prefix: String,
    about: Arc<About>,
}

/// What an engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub(super) version: String,
    pub(super) os: String,
    pub(super) runtimes: Vec<String>,
    /// The one of containers that name none.
    pub(super) default_runtime: String,
    pub(super) is_rootless: bool,
    /// Whether it is Docker's; others have filters of their own.
    is_docker: bool,
    /// Where it keeps its data, on this machine.
    pub(super) root: PathBuf,
}

impl Engine {
    /// Finds out what is behind a socket, and which version both speak.
    ///
    /// # Errors
    /// Nothing answers, or what answers speaks no version that is understood here.
    pub(super) async fn connect(socket: &Arc<Path>) -> Result<Engine, Trouble> {
        let hello = timeout(HELLO, Engine::hello(socket)).await;
        hello.unwrap_or_else(|_| Err(Trouble::Silent(slow(HELLO))))
    }

    async fn hello(socket: &Arc<Path>) -> Result<Engine, Trouble> {
        let docker = wire::client(socket.clone(), API_DEFAULT_VERSION)?;
        let theirs = docker.version().await?;
        let (major, minor) = common(&theirs)?;
        let version = ClientVersion {
            major_version: major,
            minor_version: minor,
        };
        let docker = wire::client(socket.clone(), &version)?;
        let info = docker.info().await?;
        Ok(Engine {
            socket: socket.clone(),
            docker,
            prefix: format!("/v{major}.{minor}"),
            about: Arc::new(about(theirs, info)),
        })
    }

    /// What it says of itself.
    pub(super) fn about(&self) -> &About {
        &self.about
    }

    /// bollard's calls.
    pub(super) fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Where it listens.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The path of a request that is not written by bollard.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    /// Waits for an answer, and no longer than that.
    ///
    /// # Errors
    /// What the engine says, or that it says nothing.
    pub(super) async fn within<T>(
        limit: Duration,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Trouble> {
        match timeout(limit, call).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Trouble::Silent(slow(limit))),
        }
    }

    /// Makes a container. Its id.
    pub(super) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<String, Trouble> {
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let made = self.docker.create_container(Some(options), body);
        Ok(Engine::within(START, made).await?.id)
    }

    /// Starts a container; one that runs already is fine.
    pub(super) async fn start(&self, id: &str) -> Result<(), Trouble> {
        let started = self
            .docker
            .start_container(id, None::<StartContainerOptions>);
        Engine::within(START, started).await
    }

    /// What the engine knows of a container.
    pub(super) async fn inspect(&self, id: &str) -> Result<ContainerInspectResponse, Trouble> {
        let inspected = self
            .docker
            .inspect_container(id, None::<InspectContainerOptions>);
        Engine::within(SOON, inspected).await
    }

    /// Keeps a container that runs to these cores.
    pub(super) async fn keep_to_cores(&self, id: &str, cores: &str) -> Result<(), Trouble> {
        let body = ContainerUpdateBody {
            cpuset_cpus: Some(cores.to_owned()),
            ..ContainerUpdateBody::default()
        };
        Engine::within(SOON, self.docker.update_container(id, body)).await
    }

    /// Sends a signal to the main process of a container.
    pub(super) async fn kill(&self, id: &str, signal: &str) -> Result<(), Trouble> {
        let options = KillContainerOptionsBuilder::new().signal(signal).build();
        Engine::within(SOON, self.docker.kill_container(id, Some(options))).await
    }

    /// Removes a container with its volumes that have no name; one that is not there is removed already.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Trouble> {
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        match Engine::within(SOON, self.docker.remove_container(id, Some(options))).await {
            Err(Trouble::Unknown(_)) => Ok(()),
            removed => removed,
        }
    }

    /// The ids of all containers with this label and value.
    pub(super) async fn labelled(&self, label: &str) -> Result<Vec<String>, Trouble> {
        let filters = [("label".to_owned(), vec![label.to_owned()])].into();
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        let found = Engine::within(SOON, self.docker.list_containers(Some(options))).await?;
        Ok(found.into_iter().filter_map(|it| it.id).collect())
    }

    /// Prepares a program beside the main process of a container. Its id.
    pub(super) async fn prepare_exec(
        &self,
        container: &str,
        program: ExecConfig,
    ) -> Result<String, Trouble> {
        let made = self.docker.create_exec(container, program);
        Ok(Engine::within(SOON, made).await?.id)
    }

    /// What the engine knows of such a program.
    pub(super) async fn inspect_exec(&self, id: &str) -> Result<ExecInspectResponse, Trouble> {
        Engine::within(SOON, self.docker.inspect_exec(id)).await
    }
}

impl About {
    /// Whether containers of this engine reach the kernel's cryptography (`AF_ALG`), through which page caches of files
    /// were written to that a container may only read: filters of earlier versions let them.
    pub(super) fn reaches_cryptography(&self) -> bool {
        let number = |part: &str| {
            part.split(|it: char| !it.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        };
        let mut parts = self.version.split('.').map(number);
        let mut next = || parts.next().flatten().unwrap_or(0_u32);
        self.is_docker && (next(), next(), next()) < FILTERS_CRYPTOGRAPHY
    }

    /// The driver's condition while this engine answers.
    pub(super) fn info(&self) -> DriverInfo {
        let why = match (self.os.as_str(), self.is_rootless) {
            ("linux", false) => None,
            ("linux", true) => Some("the engine is rootless, and could not mount a task's secrets"),
            _ => Some("the engine runs no Linux containers"),
        };
        DriverInfo {
            detected: true,
            healthy: why.is_none(),
            description: why.unwrap_or("Healthy").to_owned(),
        }
    }
}

fn slow(limit: Duration) -> String {
    format!("it took longer than {} s", limit.as_secs())
}

/// The highest version that both speak.
fn common(theirs: &SystemVersion) -> Result<(usize, usize), Trouble> {
    let read = |text: &Option<String>| {
        let (major, minor) = text.as_deref()?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let strange =
        || Trouble::Failed("what answers does not say which version it speaks".to_owned());
    let highest: (usize, usize) = read(&theirs.api_version).ok_or_else(strange)?;
    let lowest: (usize, usize) = read(&theirs.min_api_version).unwrap_or(LEAST);
    let ours = (
        API_DEFAULT_VERSION.major_version,
        API_DEFAULT_VERSION.minor_version,
    );
    let version = highest.min(ours);
    if version < LEAST || version < lowest {
        return Err(Trouble::Failed(format!(
            "the engine speaks {}.{} to {}.{} of its API, and this program {}.{} to {}.{}",
            lowest.0, lowest.1, highest.0, highest.1, LEAST.0, LEAST.1, ours.0, ours.1
        )));
    }
    Ok(version)
}

fn about(version: SystemVersion, info: SystemInfo) -> About {
    let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
    runtimes.sort();
    let options = info.security_options.unwrap_or_default();
    let components = version.components.unwrap_or_default();
    About {
        is_docker: components.iter().any(|it| it.name == "Engine"),
        version: version.version.unwrap_or_default(),
        os: info.os_type.unwrap_or_default(),
        runtimes,
        default_runtime: info.default_runtime.unwrap_or_default(),
        is_rootless: options.iter().any(|it| it.contains("rootless")),
        root: info.docker_root_dir.unwrap_or_default().into(),
    }
}

/// The path of a socket that a setting names: `unix:///run/docker.sock`, or the path alone.
///
/// # Errors
/// It is something else.
pub fn socket_path(endpoint: &str) -> Result<PathBuf, String> {
    let path = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
    match path.starts_with('/') {
        true => Ok(path.into()),
        false => Err(format!(
            "endpoint: a Unix socket such as unix:///var/run/docker.sock is needed, not {endpoint:?}: tasks need \
             the directories of this machine"
        )),
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::SystemVersionComponents;

    use super::*;

    #[test]
    fn versions_are_negotiated_both_ways() {
        let of = |highest: &str, lowest: &str| {
            common(&SystemVersion {
                api_version: Some(highest.to_owned()),
                min_api_version: Some(lowest.to_owned()),
                ..SystemVersion::default()
            })
            .ok()
        };
        let ours = (
            API_DEFAULT_VERSION.major_version,
            API_DEFAULT_VERSION.minor_version,
        );
        assert_eq!(of("1.41", "1.12"), Some((1, 41)));
        assert_eq!(of("1.52", "1.44"), Some((1, 52)));
        assert_eq!(of("1.99", "1.44"), Some(ours));
        assert_eq!(of("1.99", "1.98"), None);
        assert_eq!(of("1.24", "1.12"), None);
        assert_eq!(of("x", ""), None);
    }

    #[test]
    fn early_docker_lets_containers_reach_the_kernels_cryptography() {
        let of = |name: &str, number: &str| {
            let component = SystemVersionComponents {
                name: name.to_owned(),
                ..SystemVersionComponents::default()
            };
            let version = SystemVersion {
                version: Some(number.to_owned()),
                components: Some(vec![component]),
                ..SystemVersion::default()
            };
            about(version, SystemInfo::default()).reaches_cryptography()
        };
        for early in [
            "20.10.24+dfsg1",
            "28.2.2",
            "29.4.2",
            "29.4.2-rc.1",
            "29.4",
            "",
        ] {
            assert!(of("Engine", early), "{early}");
        }
        for later in ["29.4.3", "29.5.0", "30.0.0-beta"] {
            assert!(!of("Engine", later), "{later}");
        }
        assert!(!of("Podman Engine", "5.0.0"));
    }

    #[test]
    fn endpoint_is_a_unix_socket() {
        let of = |text| socket_path(text).ok();
        assert_eq!(of("unix:///run/d.sock"), Some(PathBuf::from("/run/d.sock")));
        assert_eq!(of("/run/d.sock"), Some(PathBuf::from("/run/d.sock")));
        assert_eq!(of("tcp://1.2.3.4:2375"), None);
    }
}
