//! How the agent of a script is set up, where that is not as usual.

use drover_core::claims::resources::{Overcommit, Reserved};
use drover_core::config::{Config, Retention};
use drover_core::time::Span;
use serde::{Deserialize, Serialize};

/// What of an agent's configuration differs from world to world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// How many ended allocations keep their directories, if not as many as usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeps: Option<usize>,
    /// How old evaluations, roll-outs and records of collected allocations become, if not as old as usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeps_for: Option<Span>,
    /// How long no agent runs after one died, at most, if not for a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<Span>,
    /// What jobs do not get.
    #[serde(skip_serializing_if = "is_default")]
    pub reserved: Reserved,
    /// How much more than there is jobs may ask for.
    #[serde(skip_serializing_if = "is_default")]
    pub overcommit: Overcommit,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Settings {
    /// Whether everything is as usual.
    pub fn are_usual(&self) -> bool {
        is_default(self)
    }

    /// A configuration with them.
    pub(crate) fn set(self, mut config: Config) -> Config {
        if let Some(keeps) = self.keeps {
            config.keep_terminal = keeps;
        }
        if let (Some(span), Some(retention)) = (self.keeps_for, config.retention) {
            config.retention = Some(Retention {
                evals: span,
                deployments: span,
                records: span,
                ..retention
            });
        }
        config.reserved = self.reserved;
        config.overcommit = self.overcommit;
        config
    }
}
