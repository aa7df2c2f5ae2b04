//! One task of the example driver: a command in a session of its own, which lives on when the
//! plugin does not, and is found again by its number and its start time.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use drover_core::model::value::Value;
use drover_io_real::plugin::msgpack;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::proto::driver::{
    ExecTaskStreamingIoOperation, ExecTaskStreamingRequest, ExecTaskStreamingResponse, ExitResult,
    TaskConfig, TaskHandle, TaskState,
};

/// How a task ended: its exit, or why nobody knows.
pub(crate) type End = Result<ExitResult, String>;

/// A task.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) config: TaskConfig,
    pid: i32,
    start_time: i64,
    end: watch::Receiver<Option<End>>,
}

impl Task {
    /// Starts the command of a task.
    pub(crate) fn start(config: TaskConfig) -> io::Result<Task> {
        let own = msgpack::decode(&config.msgpack_driver_config).map_err(io::Error::other)?;
        let own = own.as_map().cloned().unwrap_or_default();
        let command = own.get("command").and_then(Value::as_str);
        let args = own.get("args").and_then(Value::as_list);
        let log = |path: &str| OpenOptions::new().append(true).open(path);
        let linux = config.resources.iter().flat_map(|it| &it.linux_resources);
        let memory: i64 = linux.map(|it| it.memory_limit_bytes).sum();
        let mut child = Command::new(command.unwrap_or_default())
            .args(args.into_iter().flatten().filter_map(Value::as_str))
            .env_clear()
            // It limits nothing, and says what it would limit to.
            .env("EXAMPLE_MEMORY_LIMIT", memory.to_string())
            .envs(&config.env)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log(&config.stdout_path)?)
            .stderr(log(&config.stderr_path)?)
            // Whoever ends the plugin's group does not mean its tasks.
            .process_group(0)
            .spawn()?;
        let pid = child.id().cast_signed();
        let (sender, end) = watch::channel(None);
        let start_time = start_time(pid)?;
        std::thread::spawn(move || {
            let ended = child.wait().map_err(|error| error.to_string());
            sender.send_replace(Some(ended.map(|status| ExitResult {
                exit_code: status.code().unwrap_or_default(),
                signal: status.signal().unwrap_or_default(),
                oom_killed: false,
            })));
        });
        Ok(Task {
            config,
            pid,
            start_time,
            end,
        })
    }

    /// Finds a task again that an earlier plugin started.
    pub(crate) fn recover(handle: TaskHandle) -> io::Result<Task> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let state = msgpack::decode(&handle.driver_state).map_err(io::Error::other)?;
        let number = |name: &str| state.as_map().and_then(|state| state.get(name)?.as_int());
        let pid = number("pid").and_then(|pid| i32::try_from(pid).ok());
        let (pid, time) = (pid.ok_or_else(missing)?, number("start_time"));
        let process = Pid::from_raw(pid).ok_or_else(missing)?;
        let process = pidfd_open(process, PidfdFlags::empty())?;
        if Some(start_time(pid)?) != time {
            return Err(missing());
        }
        let (sender, end) = watch::channel(None);
        std::thread::spawn(move || {
            let mut fds = [PollFd::new(&process, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            let why = "how it ended is not known: an earlier plugin started it";
            sender.send_replace(Some(Err(why.to_owned())));
        });
        Ok(Task {
            config: handle.config.ok_or_else(missing)?,
            pid,
            start_time: time.ok_or_else(missing)?,
            end,
        })
    }

    /// With it the task is found again.
    pub(crate) fn handle(&self) -> TaskHandle {
        let state = Value::Map(
            [
                ("pid".to_owned(), Value::Int(self.pid.into())),
                ("start_time".to_owned(), Value::Int(self.start_time)),
            ]
            .into(),
        );
        TaskHandle {
            version: 1,
            config: Some(self.config.clone()),
            state: TaskState::Running.into(),
            driver_state: msgpack::encode(&state).unwrap_or_default(),
        }
    }

    /// How it ended; `None` while it runs.
    pub(crate) fn end(&self) -> Option<End> {
        self.end.borrow().clone()
    }

    /// Waits for its end.
    pub(crate) async fn wait(&self) -> End {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(Err("it did not end".to_owned())),
            Err(_) => Err("nobody waits for it".to_owned()),
        }
    }

    /// Sends a signal to it and what it started.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid).filter(|_| self.end().is_none());
        if let Some(pid) = pid {
            // It may be ending just now.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Ends it: politely, and by force after the grace.
    pub(crate) async fn stop(&self, signal: Signal, grace: Duration) {
        let task = Arc::new(self.clone());
        task.signal(signal);
        if timeout(grace, task.wait()).await.is_err() {
            task.signal(Signal::KILL);
            task.wait().await.ok();
        }
    }

    /// Runs a command with its variables, and ends it when the time is over.
    pub(crate) async fn exec(&self, command: &[String], time: Duration) -> io::Result<ExitResult> {
        let missing = || io::Error::from(io::ErrorKind::InvalidInput);
        let (program, args) = command.split_first().ok_or_else(missing)?;
        let mut child = tokio::process::Command::new(program)
            .args(args)
            .env_clear()
            .envs(&self.config.env)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let Ok(status) = timeout(time, child.wait()).await else {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        };
        let status = status?;
        Ok(ExitResult {
            exit_code: status.code().unwrap_or_default(),
            signal: status.signal().unwrap_or_default(),
            oom_killed: false,
        })
    }

    /// Runs a command with its variables, connected to who asks for it.
    pub(crate) fn exec_streaming(
        &self,
        command: &[String],
        mut requests: Streaming<ExecTaskStreamingRequest>,
    ) -> io::Result<ReceiverStream<Result<ExecTaskStreamingResponse, Status>>> {
        let missing = || io::Error::from(io::ErrorKind::InvalidInput);
        let (program, args) = command.split_first().ok_or_else(missing)?;
        let mut child = tokio::process::Command::new(program)
            .args(args)
            .env_clear()
            .envs(&self.config.env)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdin = child.stdin.take();
        let mut stdout = child.stdout.take().ok_or_else(missing)?;
        let (answers, stream) = mpsc::channel(1);
        tokio::spawn(async move {
            let feed = async {
                while let Ok(Some(request)) = requests.message().await {
                    let Some(operation) = request.stdin else {
                        continue;
                    };
                    if operation.close {
                        stdin = None;
                    } else if let Some(stdin) = &mut stdin {
                        let _ = stdin.write_all(&operation.data).await;
                    }
                }
            };
            let run = async {
                let mut chunk = vec![0; 4096];
                while let Ok(count @ 1..) = stdout.read(&mut chunk).await {
                    let data = chunk[..count].to_vec();
                    let stdout = Some(ExecTaskStreamingIoOperation { data, close: false });
                    let answer = ExecTaskStreamingResponse {
                        stdout,
                        ..Default::default()
                    };
                    let _ = answers.send(Ok(answer)).await;
                }
                let status = child.wait().await.unwrap_or_default();
                let result = Some(ExitResult {
                    exit_code: status.code().unwrap_or_default(),
                    signal: status.signal().unwrap_or_default(),
                    oom_killed: false,
                });
                let answer = ExecTaskStreamingResponse {
                    exited: true,
                    result,
                    ..Default::default()
                };
                let _ = answers.send(Ok(answer)).await;
            };
            tokio::select! {
                () = run => {}
                // The program goes with whoever is connected to it.
                () = answers.closed() => {}
                () = async { feed.await; std::future::pending().await } => {}
            }
        });
        Ok(ReceiverStream::new(stream))
    }

    /// Bytes of memory that it has.
    pub(crate) fn memory(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        pages.checked_mul(4096)
    }
}

fn start_time(pid: i32) -> io::Result<i64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
    let time = fields.and_then(|fields| fields.split_ascii_whitespace().nth(19)?.parse().ok());
    time.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}
