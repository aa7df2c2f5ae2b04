//! Starting a plugin, and finding one again that an earlier agent started.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::error::PluginError;
use super::handshake::{self, Address};
use super::output::{LastLines, Lines, forward};
use super::process::{Identity, Process, output_pipe};
use super::program::Program;
use super::wire::{Limits, Wire};
use super::{Plugin, service};
use crate::abort_on_drop::AbortOnDrop;

/// With these a plugin knows that it was started as one.
const COOKIE: (&str, &str) = (
    "NOMAD_PLUGIN_MAGIC_COOKIE",
    "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
);

/// What of the agent's own environment a plugin gets: where things are, and no secrets.
const PASSED_ON: [&str; 7] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

/// Longer paths leave no room for a socket's name.
const MAX_SOCKET_DIR: usize = 80;

/// How a plugin is started.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those that every plugin gets.
    pub env: BTreeMap<String, String>,
    /// The ports that it may listen on, if it does not use a socket.
    pub ports: (u16, u16),
    /// Where its socket is to be made; wherever it likes, if the path is too long or none.
    pub socket_dir: Option<PathBuf>,
    /// How long it may take until it says where it listens.
    pub start_timeout: Duration,
    /// What it is given later.
    pub limits: Limits,
}

impl Default for LaunchSpec {
    fn default() -> LaunchSpec {
        LaunchSpec {
            args: Vec::new(),
            env: BTreeMap::new(),
            ports: (10_000, 25_000),
            socket_dir: None,
            start_timeout: Duration::from_mins(1),
            limits: Limits::default(),
        }
    }
}

/// What must be remembered of a plugin to find it again after a restart of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reattach {
    /// The name of its program.
    pub name: String,
    /// Who its process is.
    pub process: Identity,
    /// Where it listens.
    pub address: Address,
}

impl Plugin {
    /// Starts a plugin and connects to it. Whatever fails, no process is left.
    ///
    /// # Errors
    /// See [`PluginError`].
    pub async fn launch(program: &Program, spec: &LaunchSpec) -> Result<Plugin, PluginError> {
        let (stdout, its_stdout) = output_pipe()?;
        let (stderr, its_stderr) = output_pipe()?;
        let env = environment(spec);
        let (own, args) = (program.try_clone()?, spec.args.clone());
        // It comes back when the program is executed, which may lie on a disk that hangs.
        let spawning = spawn_blocking(move || {
            let process = Process::spawn(&own, &args, &env, [its_stdout, its_stderr])?;
            Ok::<_, io::Error>(Doomed(Some(process)))
        });
        let doomed = spawning.await.map_err(io::Error::other)??;
        let started = start(program.name(), doomed.get()?, spec, [stdout, stderr]).await;
        let process = doomed.survives()?;
        match started {
            Ok(started) => Ok(Plugin {
                name: program.name().to_owned(),
                address: started.address,
                wire: started.wire,
                last: started.last,
                process,
                _tasks: started.tasks,
            }),
            Err((error, address)) => {
                process.kill(true);
                let _ = timeout(super::GRACE, process.exited()).await;
                if let Some(address) = address {
                    super::tidy(&address);
                }
                Err(error)
            }
        }
    }

    /// Connects to a plugin that an earlier agent started; what it prints is read on.
    ///
    /// # Errors
    /// `Lost`: it is gone, whoever has its number now. Others: it does not answer as it should;
    /// [`Reattach::end`] ends it.
    pub async fn reattach(from: &Reattach, limits: Limits) -> Result<Plugin, PluginError> {
        let process = Process::find(&from.process)?;
        let gone = || PluginError::Lost("its process is not there any more".to_owned());
        let process = process.ok_or_else(gone)?;
        let last = LastLines::default();
        let mut tasks = Vec::new();
        for number in [1, 2] {
            if let Some(pipe) = process.output(number) {
                let reading = forward(from.name.clone(), pipe, last.clone());
                tasks.push(AbortOnDrop(tokio::spawn(reading)));
            }
        }
        let wire = Wire::open(&from.address, from.process.pid, limits).await?;
        service::begin(&from.name, &wire, &mut tasks).await?;
        Ok(Plugin {
            name: from.name.clone(),
            address: from.address.clone(),
            wire,
            last,
            process,
            _tasks: tasks,
        })
    }
}

impl Reattach {
    /// Ends a plugin of an earlier agent by force, and waits until it is gone. True if it was
    /// there.
    ///
    /// # Errors
    /// Whether it is there cannot be found out, or it does not die.
    pub async fn end(&self) -> Result<bool, PluginError> {
        let Some(process) = Process::find(&self.process)? else {
            return Ok(false);
        };
        process.kill(false);
        let limit = Duration::from_secs(5);
        match timeout(limit, process.exited()).await {
            Ok(_) => {
                super::tidy(&self.address);
                Ok(true)
            }
            Err(_) => Err(PluginError::Timeout {
                call: "kill",
                after: limit,
            }),
        }
    }
}

/// What comes of a start.
struct Started {
    address: Address,
    wire: Wire,
    last: LastLines,
    tasks: Vec<AbortOnDrop<()>>,
}

/// Waits for the plugin to say where it listens, and connects. With an error, where it listens.
async fn start(
    name: &str,
    process: &Process,
    spec: &LaunchSpec,
    [stdout, stderr]: [OwnedFd; 2],
) -> Result<Started, (PluginError, Option<Address>)> {
    let last = LastLines::default();
    let logs = forward(name.to_owned(), stderr, last.clone());
    let mut tasks = vec![AbortOnDrop(tokio::spawn(logs))];
    let early = |error| (error, None);
    let mut lines = Lines::new(stdout).map_err(|error| early(error.into()))?;
    let shaken = timeout(spec.start_timeout, shake(process, &mut lines, &last)).await;
    let late = |_| early(PluginError::StartTimeout(spec.start_timeout));
    let address = shaken.map_err(late)?.map_err(early)?;
    tasks.push(AbortOnDrop(tokio::spawn(lines.drain())));
    let connecting = async {
        let wire = Wire::open(&address, process.identity().pid, spec.limits).await?;
        service::begin(name, &wire, &mut tasks).await?;
        Ok(wire)
    };
    match connecting.await {
        Ok(wire) => Ok(Started {
            address,
            wire,
            last,
            tasks,
        }),
        Err(error) => Err((error, Some(address))),
    }
}

/// A process that is killed, with what it started, unless it is said to survive: also if nobody
/// waits for the start any more.
struct Doomed(Option<Process>);

impl Doomed {
    fn get(&self) -> Result<&Process, PluginError> {
        let none = || PluginError::Lost("it was released".to_owned());
        self.0.as_ref().ok_or_else(none)
    }

    fn survives(mut self) -> Result<Process, PluginError> {
        let none = || PluginError::Lost("it was released".to_owned());
        self.0.take().ok_or_else(none)
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        if let Some(process) = &self.0 {
            process.kill(true);
        }
    }
}

/// Waits for the line that says where the plugin listens, or for its end.
async fn shake(
    process: &Process,
    lines: &mut Lines,
    last: &LastLines,
) -> Result<Address, PluginError> {
    // One byte more, so that a longer line is told from a full one.
    let limit = handshake::MAX_LINE + 1;
    let exit = tokio::select! {
        biased;
        line = lines.next(limit) => match line? {
            Some(line) => return Ok(handshake::parse(&line)?),
            None => process.exited().await,
        },
        exit = process.exited() => exit,
    };
    // It may have said something all the same.
    match lines.rest(limit).await {
        Some(line) if handshake::parse(&line).is_err() => Ok(handshake::parse(&line)?),
        Some(_) | None => Err(PluginError::ExitedEarly {
            exit,
            reported: last.complete().await,
        }),
    }
}

fn environment(spec: &LaunchSpec) -> BTreeMap<String, String> {
    let passed = PASSED_ON.iter();
    let mut env: BTreeMap<String, String> = passed
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect();
    let default_path = || "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
    env.entry("PATH".to_owned()).or_insert_with(default_path);
    env.extend(spec.env.clone());
    let (from, to) = spec.ports;
    let decided = [
        (COOKIE.0, COOKIE.1.to_owned()),
        ("PLUGIN_PROTOCOL_VERSIONS", handshake::PROTOCOL.to_owned()),
        ("PLUGIN_MIN_PORT", from.to_string()),
        ("PLUGIN_MAX_PORT", to.to_string()),
    ];
    for (name, value) in decided {
        env.insert(name.to_owned(), value);
    }
    let dir = spec.socket_dir.as_deref().and_then(|dir| dir.to_str());
    if let Some(dir) = dir.filter(|dir| dir.len() <= MAX_SOCKET_DIR) {
        env.insert("PLUGIN_UNIX_SOCKET_DIR".to_owned(), dir.to_owned());
    }
    env
}
