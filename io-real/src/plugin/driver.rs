//! Plugins that are drivers.

use std::time::Duration;

use drover_core::driver::reported::{ReportedTaskEvent, ReportedUsage};
use drover_core::driver::spec::Spec;
use drover_core::input::DriverFingerprint;
use drover_core::model::alloc::{DriverNetwork, ExitResult};
use prost::Message;

use super::error::PluginError;
use super::proto::driver as proto;
use super::proto::driver::driver_client::DriverClient;
use super::stream::Messages;
use super::wire::Channel;
use super::{Plugin, driver_reported, spec};

/// How much is kept of what a program in a task prints, in bytes.
const MAX_PRINTED: usize = 4 * 1024;

pub(crate) use super::proto::driver::{
    AllocatedCpuResources, AllocatedMemoryResources, AllocatedTaskResources, Device,
    LinuxResources, Mount, Resources, TaskConfig as TaskSetup,
};

/// What a driver can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Send signals to tasks.
    pub send_signals: bool,
    /// Run further programs in tasks.
    pub exec: bool,
    /// Which part of the file system tasks see.
    pub fs_isolation: FsIsolation,
    /// It wants to make tasks' networks itself.
    pub must_create_network: bool,
    /// It takes mounts.
    pub mounts: bool,
    /// It keeps tasks' output itself.
    pub disable_log_collection: bool,
    /// It can run tasks as users that are made for them.
    pub dynamic_workload_users: bool,
}

/// Which part of the file system tasks see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsIsolation {
    /// All.
    None,
    /// A directory of their own.
    Chroot,
    /// An image.
    Image,
    /// What they were allowed to.
    Unveil,
}

/// With it a driver finds its task again. What it holds is the driver's own affair.
#[derive(Clone, PartialEq, Eq)]
pub struct Handle(Vec<u8>);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It holds the task's environment.
        write!(f, "Handle({} bytes)", self.0.len())
    }
}

impl Handle {
    /// One that was remembered.
    pub fn from_bytes(bytes: Vec<u8>) -> Handle {
        Handle(bytes)
    }

    /// To be remembered.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn message(&self) -> Result<proto::TaskHandle, PluginError> {
        proto::TaskHandle::decode(self.0.as_slice())
            .map_err(|error| PluginError::Invalid(format!("a remembered handle: {error}")))
    }
}

/// What a driver says of a task that it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedTask {
    /// How it is found again.
    pub handle: Handle,
    /// Its network, if the driver made one.
    pub network: Option<DriverNetwork>,
}

/// What a driver knows of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// Whether it runs; `None` if the driver does not know.
    pub running: Option<bool>,
    /// How it ended.
    pub exit: Option<ExitResult>,
    /// Its network, if the driver made one.
    pub network: Option<DriverNetwork>,
}

impl Plugin {
    /// Tells a driver that it begins. Those that do not care need not know this call.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn init(&self) -> Result<(), PluginError> {
        let mut client = self.driver();
        let done = self.wire.call("Init", client.init(proto::Nothing {}));
        unless_unknown(done.await.map(drop))
    }

    /// Tells a driver that it ends; [`Plugin::stop`] follows.
    ///
    /// # Errors
    /// It does not answer within two seconds, or refuses.
    pub async fn prepare_end(&self) -> Result<(), PluginError> {
        let mut client = self.driver();
        let answer = client.shutdown(proto::Nothing {});
        let done = self.wire.call_within("Shutdown", super::GRACE, answer);
        unless_unknown(done.await.map(drop))
    }

    /// Asks what may stand in a task's configuration.
    ///
    /// # Errors
    /// It does not answer, or its schema has no sense.
    pub async fn task_schema(&self) -> Result<Spec, PluginError> {
        let mut client = self.driver();
        let answer = client.task_config_schema(proto::Nothing {});
        let answer = self.wire.call("TaskConfigSchema", answer).await?;
        let none = || PluginError::Invalid("it has no schema of tasks' configurations".to_owned());
        spec::read(&answer.spec.ok_or_else(none)?)
    }

    /// Asks what the driver can do.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn capabilities(&self) -> Result<Capabilities, PluginError> {
        use proto::driver_capabilities::{FsIsolation as F, MountConfigs};
        let mut client = self.driver();
        let answer = client.capabilities(proto::Nothing {});
        let answer = self.wire.call("Capabilities", answer).await?;
        let reported = answer.capabilities.unwrap_or_default();
        Ok(Capabilities {
            send_signals: reported.send_signals,
            exec: reported.exec,
            fs_isolation: match reported.fs_isolation() {
                F::None => FsIsolation::None,
                F::Chroot => FsIsolation::Chroot,
                F::Image => FsIsolation::Image,
                F::Unveil => FsIsolation::Unveil,
            },
            must_create_network: reported.must_create_network,
            mounts: reported.mount_configs() == MountConfigs::AnyMounts,
            disable_log_collection: reported.disable_log_collection,
            dynamic_workload_users: reported.dynamic_workload_users,
        })
    }

    /// Asks the driver to say how it is, now and whenever it changes.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn driver_health(&self) -> Result<DriverHealth, PluginError> {
        let mut client = self.driver();
        let answer = client.fingerprint(proto::Nothing {});
        let stream = self.wire.call("Fingerprint", answer).await?;
        let per_second = self.wire.limits().per_second;
        Ok(DriverHealth(Messages::new(
            "Fingerprint",
            stream,
            per_second,
        )))
    }

    /// Starts a task.
    ///
    /// # Errors
    /// It did not start; after [`PluginError::Lost`] and [`PluginError::Timeout`] it may have.
    pub(crate) async fn start_task(&self, task: TaskSetup) -> Result<StartedTask, PluginError> {
        let mut client = self.driver();
        let answer = client.start_task(proto::StartTaskRequest { task: Some(task) });
        let within = self.wire.limits().start_task;
        let started = self.wire.call_within("StartTask", within, answer).await?;
        let none = || PluginError::Invalid("it started a task without a handle".to_owned());
        let handle = started.handle.ok_or_else(none)?;
        Ok(StartedTask {
            handle: Handle(handle.encode_to_vec()),
            network: started.network_override.map(driver_reported::network),
        })
    }

    /// Makes the driver find a task again. One that it has already is found, too.
    ///
    /// # Errors
    /// It does not find it, or does not answer.
    pub async fn recover_task(&self, id: &str, handle: &Handle) -> Result<(), PluginError> {
        let request = proto::RecoverTaskRequest {
            task_id: id.to_owned(),
            handle: Some(handle.message()?),
        };
        let mut client = self.driver();
        let answer = client.recover_task(request);
        self.wire.call("RecoverTask", answer).await.map(drop)
    }

    /// Waits until a task has ended, however long that takes. Can be asked several times, also
    /// after the end.
    ///
    /// # Errors
    /// The driver does not know it, or is gone.
    pub async fn wait_task(&self, id: &str) -> Result<ExitResult, PluginError> {
        let mut client = self.driver();
        let answer = client.wait_task(named(id));
        let answer = tokio::select! {
            answer = answer => answer.map_err(|status| super::wire::refused("WaitTask", &status))?,
            lost = self.lost() => return Err(lost),
        };
        let answer = answer.into_inner();
        match answer.result {
            Some(result) => Ok(driver_reported::exit(result, &answer.err)),
            None if answer.err.is_empty() => {
                Ok(ExitResult::unknown("its driver does not report it"))
            }
            None => Ok(ExitResult::unknown(answer.err)),
        }
    }

    /// Ends a task: politely, and by force after `grace`. It is not forgotten.
    ///
    /// # Errors
    /// The driver does not know it, refuses, or takes longer.
    pub async fn stop_task(
        &self,
        id: &str,
        signal: &str,
        grace: Duration,
    ) -> Result<(), PluginError> {
        let request = proto::StopTaskRequest {
            task_id: id.to_owned(),
            timeout: prost_types::Duration::try_from(grace).ok(),
            signal: signal.to_owned(),
        };
        let mut client = self.driver();
        let within = grace.saturating_add(self.wire.limits().call);
        let answer = client.stop_task(request);
        let stopped = self.wire.call_within("StopTask", within, answer);
        stopped.await.map(drop)
    }

    /// Makes the driver forget a task, and end it first with `force`.
    ///
    /// # Errors
    /// The driver does not know it, refuses, or does not answer.
    pub async fn destroy_task(&self, id: &str, force: bool) -> Result<(), PluginError> {
        let request = proto::DestroyTaskRequest {
            task_id: id.to_owned(),
            force,
        };
        let mut client = self.driver();
        let answer = client.destroy_task(request);
        self.wire.call("DestroyTask", answer).await.map(drop)
    }

    /// Asks what the driver knows of a task.
    ///
    /// # Errors
    /// The driver does not know it, or does not answer.
    pub async fn inspect_task(&self, id: &str) -> Result<TaskStatus, PluginError> {
        let mut client = self.driver();
        let answer = client.inspect_task(named(id));
        let answer = self.wire.call("InspectTask", answer).await?;
        let task = answer.task.unwrap_or_default();
        let running = match task.state() {
            proto::TaskState::Unknown => None,
            proto::TaskState::Running => Some(true),
            proto::TaskState::Exited => Some(false),
        };
        Ok(TaskStatus {
            network: answer.network_override.map(driver_reported::network),
            running,
            exit: task
                .result
                .filter(|_| running == Some(false))
                .map(|result| driver_reported::exit(result, "")),
        })
    }

    /// Sends a signal to a task, by its name.
    ///
    /// # Errors
    /// The driver does not know it, refuses, or does not answer.
    pub async fn signal_task(&self, id: &str, signal: &str) -> Result<(), PluginError> {
        let request = proto::SignalTaskRequest {
            task_id: id.to_owned(),
            signal: signal.to_owned(),
        };
        let mut client = self.driver();
        let answer = client.signal_task(request);
        self.wire.call("SignalTask", answer).await.map(drop)
    }

    /// Runs a program in a task to its end, and ends it when the time is over. What it says is dropped.
    ///
    /// # Errors
    /// The driver does not know the task, cannot run the program, or does not answer.
    pub async fn exec_task(
        &self,
        id: &str,
        command: Vec<String>,
        time: Duration,
    ) -> Result<(ExitResult, String), PluginError> {
        let request = proto::ExecTaskRequest {
            task_id: id.to_owned(),
            command,
            timeout: prost_types::Duration::try_from(time).ok(),
        };
        let mut client = self.driver();
        let within = time.saturating_add(self.wire.limits().call);
        let answer = client.exec_task(request);
        let answer = self.wire.call_within("ExecTask", within, answer).await?;
        let none = || PluginError::Invalid("it does not report how a program ended".to_owned());
        let exit = driver_reported::exit(answer.result.ok_or_else(none)?, "");
        let printed = answer.stdout.iter().chain(&answer.stderr).copied();
        let printed: Vec<u8> = printed.take(MAX_PRINTED).collect();
        Ok((exit, String::from_utf8_lossy(&printed).into_owned()))
    }

    /// Asks what a task uses, at each interval.
    ///
    /// # Errors
    /// The driver does not know it, cannot say, or does not answer.
    pub async fn task_stats(&self, id: &str, interval: Duration) -> Result<TaskStats, PluginError> {
        let request = proto::TaskStatsRequest {
            task_id: id.to_owned(),
            collection_interval: prost_types::Duration::try_from(interval).ok(),
        };
        let mut client = self.driver();
        let answer = client.task_stats(request);
        let stream = self.wire.call("TaskStats", answer).await?;
        let per_second = self.wire.limits().per_second;
        Ok(TaskStats(Messages::new("TaskStats", stream, per_second)))
    }

    /// Asks what happens to the driver's tasks.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn task_events(&self) -> Result<TaskEvents, PluginError> {
        let mut client = self.driver();
        let answer = client.task_events(proto::Nothing {});
        let stream = self.wire.call("TaskEvents", answer).await?;
        let per_second = self.wire.limits().per_second;
        Ok(TaskEvents(Messages::new("TaskEvents", stream, per_second)))
    }

    pub(super) fn driver(&self) -> DriverClient<Channel> {
        let (channel, origin) = self.wire.channel();
        DriverClient::with_origin(channel, origin)
            .max_decoding_message_size(self.wire.limits().message)
    }
}

/// How a driver is, again and again.
#[derive(Debug)]
pub struct DriverHealth(Messages<proto::FingerprintResponse>);

impl DriverHealth {
    /// The next that it says. `None` when the driver ended the stream. Can be given up and asked
    /// again.
    ///
    /// # Errors
    /// The driver could not find out, broke the stream off, is gone, or sends too much.
    pub async fn next(&mut self) -> Result<Option<DriverFingerprint>, PluginError> {
        match self.0.next().await? {
            Some(message) if message.err.is_empty() => Ok(Some(driver_reported::driver(message))),
            Some(message) => Err(PluginError::Invalid(format!(
                "it could not find out how it is: {}",
                message.err
            ))),
            None => Ok(None),
        }
    }
}

/// What a task uses, again and again.
#[derive(Debug)]
pub struct TaskStats(Messages<proto::TaskStatsResponse>);

impl TaskStats {
    /// The next measurement. `None` when the driver ended the stream. Can be given up and asked
    /// again.
    ///
    /// # Errors
    /// The driver broke the stream off, is gone, or sends too much.
    pub async fn next(&mut self) -> Result<Option<ReportedUsage>, PluginError> {
        let message = self.0.next().await?;
        Ok(message.map(|message| driver_reported::usage(message.stats.unwrap_or_default())))
    }
}

/// What happens to a driver's tasks, as it happens.
#[derive(Debug)]
pub struct TaskEvents(Messages<proto::DriverTaskEvent>);

impl TaskEvents {
    /// The next event. `None` when the driver ended the stream. Can be given up and asked again.
    ///
    /// # Errors
    /// The driver broke the stream off, is gone, or sends too much.
    pub async fn next(&mut self) -> Result<Option<ReportedTaskEvent>, PluginError> {
        Ok(self.0.next().await?.map(driver_reported::event))
    }
}

fn named(id: &str) -> proto::TaskRequest {
    proto::TaskRequest {
        task_id: id.to_owned(),
    }
}

fn unless_unknown(done: Result<(), PluginError>) -> Result<(), PluginError> {
    match done {
        Err(error) if error.is_unimplemented() => Ok(()),
        done => done,
    }
}
