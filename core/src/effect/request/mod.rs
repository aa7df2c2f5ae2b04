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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Found;
    use crate::model::task::LogConfig;
    use crate::time::Span;

    /// Something of it may be left, which has to be destroyed before it runs again.
    #[test]
    fn launch_that_could_not_be_looked_for_is_gone_and_may_have_run() {
        let (op, launch) = (Op(1), LaunchId(2));
        let logs = LogConfig::default();
        let failed = Recover { op, launch, logs }.failed(Failure::fatal("no answer"));
        let found = Found::Gone("no answer".to_owned());
        let network = None;
        assert_eq!(
            failed,
            DriverInput::Recovered {
                op,
                launch,
                found,
                network
            }
        );
    }

    /// The next agent has the driver no more, and waits for nothing that cannot be.
    #[test]
    fn launch_without_its_driver_can_be_ended_and_nothing_else() {
        let (op, launch) = (Op(1), LaunchId(2));
        let failure = || Failure::fatal("no such driver");
        let answer = |request: DriverEffect| request.get().without_driver(failure());
        let (signal, grace) = (String::new(), Span::ZERO);
        let stop = Stop {
            op,
            launch,
            signal,
            grace,
        };
        let result = Ok(());
        assert_eq!(
            answer(stop.into()),
            DriverInput::Stopped { op, launch, result }
        );
        let result = Ok(None);
        assert_eq!(
            answer(Destroy { op, launch }.into()),
            DriverInput::Destroyed { op, launch, result }
        );
        assert_eq!(
            answer(Health { op, launch }.into()),
            DriverInput::executed(op, launch, Err(failure()))
        );
    }
}
