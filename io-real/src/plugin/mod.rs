//! External plugins: programs of others that start tasks or know devices, spoken to by the field's
//! plugin protocol as it is.
//!
//! [`PluginDir`] finds a program, [`Plugin::launch`] starts it and connects to it, its methods are
//! its calls. Each call has a deadline, each stream and message a bound, and whatever the plugin
//! does is an error of the caller's own and of nobody else. Nothing is tried again here: when a
//! plugin is started, given up or started again is decided elsewhere.
//!
//! A plugin runs in a session of its own and outlives whoever drops its [`Plugin`], so that a
//! driver's tasks go on while the agent is replaced. [`Plugin::remember`] is what the next agent
//! needs to find it again, or to end it; [`Plugin::stop`] is the end in order.

mod base;
pub mod bytes;
mod details;
mod device;
pub(crate) mod driver;
mod driver_said;
mod error;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod fuzz;
pub mod handshake;
mod launch;
pub mod msgpack;
mod output;
mod process;
mod program;
mod proto;
mod said;
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
pub use self::wire::Limits;

use self::output::LastLines;
use self::process::Process;
use self::service::Task;
use self::wire::Wire;

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
    _tasks: Vec<Task>,
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
        let said = self.last.complete().await;
        PluginError::Lost(match said.as_str() {
            "" => format!("it ended ({exit})"),
            said => format!("it ended ({exit}), saying {said:?}"),
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
