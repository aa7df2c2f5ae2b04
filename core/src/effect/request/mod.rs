//! What drivers are asked: one file for each request. It says what the request takes, how it is answered, and
//! what is answered when it could not be carried out; whoever passes requests on, shows or counts them knows
//! them as [`DriverRequest`]s.

mod destroy;
mod exec;
mod health;
mod open_session;
mod recover;
mod signal;
mod start;
mod stop;

pub use destroy::Destroy;
pub use exec::{Exec, Program};
pub use health::Health;
pub use open_session::{OpenSession, SessionProgram};
pub use recover::Recover;
pub use signal::Signal;
pub use start::{Start, TaskConfig, TaskNetwork};
pub use stop::Stop;

use serde::{Deserialize, Serialize};

use crate::ids::LaunchId;
use crate::input::DriverInput;
use crate::op::{Failure, Op};

/// What is the same of all requests. Exactly one answer follows each, of which nobody can be sure.
pub trait DriverRequest {
    /// What is asked, in a word or two, before the name of a launch.
    fn name(&self) -> &'static str;

    /// The operation.
    fn op(&self) -> Op;

    /// The launch that it is about.
    fn launch(&self) -> LaunchId;

    /// The answer if it failed.
    fn failed(&self, failure: Failure) -> DriverInput;

    /// The answer if there is no such driver, so that nothing of the launch can be alive.
    fn without_driver(&self, failure: Failure) -> DriverInput {
        self.failed(failure)
    }
}

/// The requests: a line for each.
macro_rules! requests {
    ($($name:ident,)*) => {
        /// What a driver is asked.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum DriverEffect {
            $(#[allow(missing_docs, reason = "its type says it")]
            $name($name),)*
        }

        impl DriverEffect {
            /// As what is the same of all.
            pub fn get(&self) -> &dyn DriverRequest {
                match self {
                    $(DriverEffect::$name(request) => request,)*
                }
            }
        }

        $(impl From<$name> for DriverEffect {
            fn from(request: $name) -> DriverEffect {
                DriverEffect::$name(request)
            }
        })*
    };
}

requests! {
    Start,
    Recover,
    Stop,
    Signal,
    Exec,
    Health,
    OpenSession,
    Destroy,
}

impl DriverEffect {
    /// The operation that this asks for.
    pub fn op(&self) -> Op {
        self.get().op()
    }

    /// The launch that it is about.
    pub fn launch(&self) -> LaunchId {
        self.get().launch()
    }
}
