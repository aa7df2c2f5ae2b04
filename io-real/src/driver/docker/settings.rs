//! What the agent's configuration says of containers, beside what the core decides.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bollard::auth::DockerCredentials;

use super::credentials::CredentialSource;

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DockerSettings {
    /// The engine's socket.
    pub socket: PathBuf,
    /// Who makes the containers: the mark of the agent's data directory.
    pub mark: String,
    /// The engine's logging driver for tasks that name none, and its options.
    pub logging: (String, BTreeMap<String, String>),
    /// Whether what tasks write stays with the engine.
    pub disable_log_collection: bool,
    /// Whether images that the agent fetched are removed when no task uses them.
    pub collect_images: bool,
    /// How long after the last use.
    pub image_delay: Duration,
    /// Whether containers are removed when their tasks are over.
    pub collect_containers: bool,
    /// Which facts of tasks become labels, as patterns over their names.
    pub extra_labels: Vec<String>,
    /// The label of SELinux for what is mounted; none if empty.
    pub selinux_label: String,
    /// The runtime for tasks with GPUs of NVIDIA.
    pub nvidia_runtime: String,
    /// The most bytes of an image; none for what fits on the engine's disk.
    pub image_max_size: Option<u64>,
    /// How long a download may make no progress.
    pub pull_activity_timeout: Duration,
    /// The most processes and threads of a task that says nothing else; none for no limit.
    pub pids_limit: Option<u64>,
    /// How readily the kernel kills tasks that say nothing else.
    pub oom_score_adj: i64,
    /// What the driver reports of what it allows, beside what the engine is.
    pub attributes: Vec<(String, String)>,
    /// Where passwords for registries are, in the order of asking.
    pub credentials: Vec<CredentialSource>,
}

impl Default for DockerSettings {
    fn default() -> DockerSettings {
        let logging = [("max-file", "2"), ("max-size", "2m")];
        let logging = logging.map(|(key, value)| (key.to_owned(), value.to_owned()));
        DockerSettings {
            socket: "/var/run/docker.sock".into(),
            mark: String::new(),
            logging: ("json-file".to_owned(), logging.into()),
            disable_log_collection: false,
            collect_images: true,
            image_delay: Duration::from_secs(180),
            collect_containers: true,
            extra_labels: Vec::new(),
            selinux_label: String::new(),
            nvidia_runtime: "nvidia".to_owned(),
            image_max_size: None,
            pull_activity_timeout: Duration::from_secs(120),
            pids_limit: None,
            oom_score_adj: 0,
            attributes: Vec::new(),
            credentials: Vec::new(),
        }
    }
}

/// Whoever asks a registry.
pub(super) type Credentials = Option<DockerCredentials>;
