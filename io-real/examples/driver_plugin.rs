//! An example of a plugin that is a driver: it runs a command as its child. Its tasks outlive it,
//! and the next plugin finds them again by what the host remembered for it.
//!
//! A task's configuration: `command`, a path, and `args`.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use drover_core::model::value::Value;
use rustix::process::Signal;
use support::base::{Base, attr, attr_or, object};
use support::mischief::Mischief;
use support::proto::base::PluginType;
use support::proto::base::base_plugin_server::BasePluginServer;
use support::proto::driver::driver_capabilities::FsIsolation;
use support::proto::driver::driver_server::{Driver, DriverServer};
use support::proto::driver::fingerprint_response::Health;
use support::proto::driver::{
    CapabilitiesResponse, DestroyTaskRequest, DriverCapabilities, DriverTaskEvent, ExecTaskRequest,
    ExecTaskResponse, ExecTaskStreamingRequest, ExecTaskStreamingResponse, FingerprintResponse,
    InspectTaskResponse, MemoryUsage, Nothing, RecoverTaskRequest, SignalTaskRequest,
    StartTaskRequest, StartTaskResponse, StopTaskRequest, TaskConfigSchemaResponse, TaskRequest,
    TaskResourceUsage, TaskState, TaskStats, TaskStatsRequest, TaskStatsResponse, TaskStatus,
    WaitTaskResponse, memory_usage,
};
use support::proto::structs::{Attribute, attribute};
use support::serve::{Answers, serve};
use support::task::Task;
use tokio::sync::{mpsc, watch};
use tokio::time::interval;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tokio_stream::{StreamExt, once, pending};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// How often it says what its tasks use, if it is not told.
const USUALLY: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mischief = Mischief::from_env();
    let base = Base {
        mischief: mischief.clone(),
        kind: PluginType::Driver,
        name: "example_exec",
        schema: object([("greeting", attr_or("greeting", "string", "\"hello\""))]),
        config: Arc::new(watch::Sender::new(Value::Null)),
    };
    let config = base.config.clone();
    let commands = Commands {
        mischief: mischief.clone(),
        config,
        tasks: Mutex::default(),
        listeners: Mutex::default(),
    };
    let services = Server::builder()
        .add_service(BasePluginServer::new(base))
        .add_service(DriverServer::new(commands));
    serve(&mischief, services).await
}

type Listener = mpsc::UnboundedSender<Result<DriverTaskEvent, Status>>;

struct Commands {
    mischief: Mischief,
    config: Arc<watch::Sender<Value>>,
    tasks: Mutex<BTreeMap<String, Task>>,
    listeners: Mutex<Vec<Listener>>,
}

impl Commands {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task(&self, id: &str) -> Result<Task, Status> {
        let task = self.tasks().get(id).cloned();
        // In Nomad's own words, by which hosts know it.
        task.ok_or_else(|| Status::unknown("task not found for given id"))
    }

    fn emit(&self, task: &Task, message: &str) {
        let event = DriverTaskEvent {
            task_id: task.config.id.clone(),
            alloc_id: task.config.alloc_id.clone(),
            task_name: task.config.name.clone(),
            timestamp: Some(SystemTime::now().into()),
            message: message.to_owned(),
            annotations: BTreeMap::new(),
        };
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.send(Ok(event.clone())).is_ok());
    }
}

fn done() -> Result<Response<Nothing>, Status> {
    Ok(Response::new(Nothing {}))
}

/// What a task uses: this driver measures its memory alone.
fn stats(task: &Task) -> TaskStatsResponse {
    let memory = task.memory().map(|rss| MemoryUsage {
        rss,
        measured_fields: vec![memory_usage::Fields::Rss.into()],
        ..MemoryUsage::default()
    });
    TaskStatsResponse {
        stats: Some(TaskStats {
            id: task.config.id.clone(),
            timestamp: Some(SystemTime::now().into()),
            agg_resource_usage: Some(TaskResourceUsage { cpu: None, memory }),
            ..TaskStats::default()
        }),
    }
}

/// What cannot be: a process that has no number.
fn garbage(task: &Task) -> TaskStatsResponse {
    let mut message = stats(task);
    if let Some(stats) = &mut message.stats {
        let usage = TaskResourceUsage::default();
        stats
            .resource_usage_by_pid
            .insert("everybody".to_owned(), usage);
    }
    message
}

fn signal(name: &str) -> Result<Signal, Status> {
    Ok(match name {
        "" | "SIGINT" => Signal::INT,
        "SIGTERM" => Signal::TERM,
        "SIGHUP" => Signal::HUP,
        "SIGUSR1" => Signal::USR1,
        "SIGKILL" => Signal::KILL,
        other => return Err(Status::invalid_argument(format!("no signal {other:?}"))),
    })
}

#[tonic::async_trait]
impl Driver for Commands {
    type FingerprintStream = Answers<FingerprintResponse>;
    type TaskStatsStream = Answers<TaskStatsResponse>;
    type TaskEventsStream = Answers<DriverTaskEvent>;
    type ExecTaskStreamingStream = Answers<ExecTaskStreamingResponse>;

    async fn init(&self, _: Request<Nothing>) -> Result<Response<Nothing>, Status> {
        // Plugins that are older than this call do not know it.
        Err(Status::unimplemented("there is nothing to do"))
    }

    async fn shutdown(&self, _: Request<Nothing>) -> Result<Response<Nothing>, Status> {
        done()
    }

    async fn task_config_schema(
        &self,
        _: Request<Nothing>,
    ) -> Result<Response<TaskConfigSchemaResponse>, Status> {
        self.mischief.at("TaskConfigSchema").await?;
        let spec = object([
            ("command", attr("command", "string", true)),
            ("args", attr("args", "list(string)", false)),
        ]);
        let spec = Some(spec);
        Ok(Response::new(TaskConfigSchemaResponse { spec }))
    }

    async fn capabilities(
        &self,
        _: Request<Nothing>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        self.mischief.at("Capabilities").await?;
        let capabilities = DriverCapabilities {
            send_signals: true,
            exec: !self.mischief.is("noexec"),
            fs_isolation: FsIsolation::None.into(),
            ..DriverCapabilities::default()
        };
        let capabilities = Some(capabilities);
        Ok(Response::new(CapabilitiesResponse { capabilities }))
    }

    async fn fingerprint(
        &self,
        _: Request<Nothing>,
    ) -> Result<Response<Self::FingerprintStream>, Status> {
        self.mischief.at("Fingerprint").await?;
        let config = self.config.borrow();
        let greeting = config
            .as_map()
            .and_then(|map| map.get("greeting")?.as_str());
        let greeting = Attribute {
            value: Some(attribute::Value::StringVal(
                greeting.unwrap_or_default().to_owned(),
            )),
            unit: String::new(),
        };
        let message = FingerprintResponse {
            attributes: [("driver.example.greeting".to_owned(), greeting)].into(),
            health: Health::Healthy.into(),
            health_description: "Healthy".to_owned(),
            err: if self.mischief.is("unwell") {
                "told to be unwell".to_owned()
            } else {
                String::new()
            },
        };
        Ok(Response::new(Box::pin(once(Ok(message)).chain(pending()))))
    }

    async fn recover_task(
        &self,
        request: Request<RecoverTaskRequest>,
    ) -> Result<Response<Nothing>, Status> {
        self.mischief.at("RecoverTask").await?;
        let handle = request.into_inner().handle.unwrap_or_default();
        let id = handle.config.as_ref().map(|config| config.id.clone());
        let id = id.ok_or_else(|| Status::invalid_argument("no configuration"))?;
        if !self.tasks().contains_key(&id) {
            let task = Task::recover(handle)
                .map_err(|error| Status::unknown(format!("cannot find the task: {error}")))?;
            self.emit(&task, "found again");
            self.tasks().insert(id, task);
        }
        done()
    }

    async fn start_task(
        &self,
        request: Request<StartTaskRequest>,
    ) -> Result<Response<StartTaskResponse>, Status> {
        self.mischief.at("StartTask").await?;
        let config = request.into_inner().task.unwrap_or_default();
        let id = config.id.clone();
        if self.tasks().contains_key(&id) {
            return Err(Status::already_exists("the task was started before"));
        }
        let task = Task::start(config)
            .map_err(|error| Status::unknown(format!("cannot start the command: {error}")))?;
        self.emit(&task, "started");
        let handle = Some(task.handle());
        self.tasks().insert(id, task);
        self.mischief.at("Started").await?;
        Ok(Response::new(StartTaskResponse {
            handle: handle.filter(|_| !self.mischief.is("no handle")),
            ..StartTaskResponse::default()
        }))
    }

    async fn wait_task(
        &self,
        request: Request<TaskRequest>,
    ) -> Result<Response<WaitTaskResponse>, Status> {
        let task = self.task(&request.get_ref().task_id)?;
        self.mischief.at("WaitTask").await?;
        let (result, err) = match task.wait().await {
            Ok(result) => (Some(result), String::new()),
            Err(why) => (None, why),
        };
        Ok(Response::new(WaitTaskResponse { result, err }))
    }

    async fn stop_task(
        &self,
        request: Request<StopTaskRequest>,
    ) -> Result<Response<Nothing>, Status> {
        let request = request.into_inner();
        let task = self.task(&request.task_id)?;
        self.mischief.at("StopTask").await?;
        let grace = request.timeout.and_then(|grace| grace.try_into().ok());
        task.stop(signal(&request.signal)?, grace.unwrap_or_default())
            .await;
        done()
    }

    async fn destroy_task(
        &self,
        request: Request<DestroyTaskRequest>,
    ) -> Result<Response<Nothing>, Status> {
        let request = request.into_inner();
        let task = self.task(&request.task_id)?;
        self.mischief.at("DestroyTask").await?;
        if task.end().is_none() {
            if !request.force {
                return Err(Status::failed_precondition("the task runs"));
            }
            task.stop(Signal::KILL, Duration::ZERO).await;
        }
        self.tasks().remove(&request.task_id);
        done()
    }

    async fn inspect_task(
        &self,
        request: Request<TaskRequest>,
    ) -> Result<Response<InspectTaskResponse>, Status> {
        let task = self.task(&request.get_ref().task_id)?;
        let end = task.end();
        let state = match end {
            None => TaskState::Running,
            Some(_) => TaskState::Exited,
        };
        let task = TaskStatus {
            id: task.config.id.clone(),
            name: task.config.name.clone(),
            state: state.into(),
            result: end.and_then(Result::ok),
            ..TaskStatus::default()
        };
        Ok(Response::new(InspectTaskResponse {
            task: Some(task),
            ..InspectTaskResponse::default()
        }))
    }

    async fn task_stats(
        &self,
        request: Request<TaskStatsRequest>,
    ) -> Result<Response<Self::TaskStatsStream>, Status> {
        let request = request.into_inner();
        let task = self.task(&request.task_id)?;
        self.mischief.at("TaskStats").await?;
        if self.mischief.is("flood:TaskStats") {
            let flood = std::iter::from_fn(move || Some(Ok(stats(&task))));
            return Ok(Response::new(Box::pin(tokio_stream::iter(flood))));
        }
        if self.mischief.is("garbage:TaskStats") {
            let garbage = once(Ok(garbage(&task))).chain(pending());
            return Ok(Response::new(Box::pin(garbage)));
        }
        if self.mischief.is("end:TaskStats") {
            return Ok(Response::new(Box::pin(once(Ok(stats(&task))))));
        }
        let every = request.collection_interval;
        let every = every.and_then(|every| Duration::try_from(every).ok());
        let every = every.filter(|every| !every.is_zero()).unwrap_or(USUALLY);
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut ticks = interval(every);
            while task.end().is_none() {
                ticks.tick().await;
                if sender.send(Ok(stats(&task))).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn task_events(
        &self,
        _: Request<Nothing>,
    ) -> Result<Response<Self::TaskEventsStream>, Status> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.push(sender);
        let events = UnboundedReceiverStream::new(receiver);
        Ok(Response::new(Box::pin(events)))
    }

    async fn signal_task(
        &self,
        request: Request<SignalTaskRequest>,
    ) -> Result<Response<Nothing>, Status> {
        let request = request.into_inner();
        self.mischief.at("SignalTask").await?;
        self.task(&request.task_id)?
            .signal(signal(&request.signal)?);
        done()
    }

    async fn exec_task(
        &self,
        request: Request<ExecTaskRequest>,
    ) -> Result<Response<ExecTaskResponse>, Status> {
        let request = request.into_inner();
        let task = self.task(&request.task_id)?;
        self.mischief.at("ExecTask").await?;
        let time = request.timeout.and_then(|time| time.try_into().ok());
        let ended = task.exec(&request.command, time.unwrap_or_default()).await;
        let result = Some(ended.map_err(|error| Status::unknown(error.to_string()))?);
        Ok(Response::new(ExecTaskResponse {
            result,
            ..ExecTaskResponse::default()
        }))
    }

    async fn exec_task_streaming(
        &self,
        request: Request<Streaming<ExecTaskStreamingRequest>>,
    ) -> Result<Response<Self::ExecTaskStreamingStream>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?.and_then(|first| first.setup);
        let setup = first.ok_or_else(|| Status::invalid_argument("the first one is setup"))?;
        let task = self.task(&setup.task_id)?;
        self.mischief.at("ExecTaskStreaming").await?;
        let stream = task.exec_streaming(&setup.command, requests);
        let stream = stream.map_err(|error| Status::unknown(error.to_string()))?;
        Ok(Response::new(Box::pin(stream)))
    }
}
