//! External plugins: programs of others that start tasks (drivers) or know devices, spoken to by
//! Nomad's plugin protocol as it is.
//!
//! [`PluginDir`] finds a program, [`Plugin::launch`] starts it and connects to it, its methods are
//! its calls. Each call has a deadline, each stream and message a bound, and whatever the plugin
//! does is an error of the caller's own and of nobody else ([`error`], one variant for each thing).
//! Nothing is tried again here: when a plugin is started, given up or started again is decided
//! elsewhere.
//!
//! A plugin runs in a session of its own and outlives whoever drops its [`Plugin`], so that a
//! driver's tasks go on while the agent is replaced. [`Plugin::remember`] is what the next agent
//! needs to find it again, or to end it; [`Plugin::stop`] is the end in order. A device plugin is
//! not used again by the next agent but ended (`Reattach::end`).
//!
//! - **Start** ([`program`], [`process`], [`launch`]). A plugin's name is one component of a path;
//!   it is opened below the handle of the plugin directory, and what was opened and checked is
//!   what is executed. Its environment is decided: the protocol's variables, where things are, what
//!   the caller adds; no descriptor is inherited. Its outputs are pipes of which it holds a reading
//!   end itself, so that it is not killed by what it prints while there is no agent; the next agent
//!   reads on through `/proc`. Whatever is wrong before it serves ends it with what it started.
//! - **Proof** ([`handshake`], a pure function). The socket must be our user's, and who listens
//!   there the plugin or one of its session. A plugin is found again by pid, start time and boot
//!   id, through a pidfd, and proved at its socket once more.
//! - **Calls** ([`wire`]) use one HTTP/2 connection, without tonic's own transport, since it is
//!   made once and never again: when it breaks, the plugin is lost. Every call has a deadline,
//!   except `WaitTask`, which ends with the plugin. Streams are not read ahead ([`stream`]): what
//!   nobody asks for waits at the plugin, and more than a fixed number of messages in a second are
//!   an error. Fingerprints that repeat the one before are left out.
//! - **Reports** go to the core as `Said…` (`core/src/device/`, `core/src/driver/reported.rs`), as the
//!   plugin made them: the core distrusts them. Zero and unset are different. A configuration
//!   schema that a plugin announces becomes a `Spec` (`core/src/driver/spec/`). Literals in it are
//!   values: functions are not evaluated.
//! - Plugins are spoken to without TLS, as all known hosts do; one that insists on it is refused.
//!
//! `io-real/examples/` has a plugin of devices and a driver. They are the tests' peers too, and
//! misbehave on demand. To try plugins of Nomad, give their paths to
//! `io-real/tests/plugin_nomad.rs`.

mod base;
pub mod bytes;
mod details;
mod device;
pub(crate) mod driver;
mod driver_reported;
mod error;
pub(crate) mod exec;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod fuzz;
pub mod handshake;
mod launch;
pub mod msgpack;
mod output;
pub(crate) mod process;
mod program;
mod proto;
mod reported;
mod service;
mod spec;
mod stream;
mod wire;

use std::time::Duration;

use tokio::time::timeout;

pub use self::base::{API_VERSION, DriverSettings, PluginInfo, PluginKind, Version};
pub use self::device::{DeviceStats, Devices};
pub use self::driver::{
    Capabilities, DriverHealth, FsIsolation, Handle, StartedTask, TaskEvents, TaskStats, TaskStatus,
};
pub use self::error::{PluginError, Refusal};
pub use self::handshake::{Address, HandshakeError};
pub use self::launch::{LaunchSpec, Reattach};
pub use self::process::{Exit, Identity};
pub use self::program::{PluginDir, Program, ProgramError};
pub(crate) use self::service::health;
pub use self::wire::Limits;

use self::output::LastLines;
use self::process::Process;
use self::wire::Wire;
use crate::abort_on_drop::AbortOnDrop;

/// How long a plugin may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// A plugin that runs, and the connection to it.
#[derive(Debug)]
pub struct Plugin {
    name: String,
    address: Address,
    wire: Wire,
    last: LastLines,
    process: Process,
    _tasks: Vec<AbortOnDrop<()>>,
}

impl Plugin {
    /// The name of its program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What finds it again after a restart of the agent.
    pub fn remember(&self) -> Reattach {
        Reattach {
            name: self.name.clone(),
            process: self.process.identity().clone(),
            address: self.address.clone(),
        }
    }

    /// Waits until it is of no use any more, because its process ended or its connection broke,
    /// and says which. Can be asked again.
    pub async fn lost(&self) -> PluginError {
        let exit = tokio::select! {
            exit = self.process.exited() => Some(exit),
            () = self.wire.ended() => {
                // Who dies closes its socket a moment earlier.
                let soon = Duration::from_millis(200);
                timeout(soon, self.process.exited()).await.ok()
            }
        };
        let Some(exit) = exit else {
            return PluginError::Lost("its connection broke, and its process goes on".to_owned());
        };
        let reported = self.last.complete().await;
        PluginError::Lost(match reported.as_str() {
            "" => format!("it ended ({exit})"),
            reported => format!("it ended ({exit}); it wrote {reported:?}"),
        })
    }

    /// Whether its process runs, as far as is known.
    pub fn is_alive(&self) -> bool {
        self.process.exit().is_none()
    }

    /// Asks whether it serves.
    ///
    /// # Errors
    /// It does not, or does not answer.
    pub async fn check(&self) -> Result<(), PluginError> {
        service::check(&self.wire).await
    }

    /// Ends it: asks it to, waits two seconds, and kills it; with `family` also what it started
    /// and left in its process group, which for a driver may be its tasks.
    pub async fn stop(&self, family: bool) -> Exit {
        service::shutdown(&self.wire, GRACE).await;
        match timeout(GRACE, self.process.exited()).await {
            Ok(exit) => {
                tidy(&self.address);
                exit
            }
            Err(_) => {
                tracing::warn!(plugin = self.name, "a plugin did not end and is killed");
                self.kill(family).await
            }
        }
    }

    /// Kills it, and waits for its end. `family`: see [`Plugin::stop`].
    pub async fn kill(&self, family: bool) -> Exit {
        self.process.kill(family);
        // What hangs in the kernel is left to it.
        let exit = timeout(GRACE, self.process.exited()).await;
        tidy(&self.address);
        exit.unwrap_or(Exit::Unknown)
    }
}

/// Removes the socket of a plugin that has ended, if it did not do so itself and it is one.
fn tidy(address: &Address) {
    if let Address::Unix(path) = address
        && wire::own_socket(path).is_ok()
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove a dead plugin's socket");
    }
}
