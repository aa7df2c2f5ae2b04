//! The inputs of the agent: a variant for each component that reports, with a vocabulary of its own.

use core::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::requests::{CollectGarbage, Request};
use crate::ids::{RequestId, TaskKey};
use crate::input::{DriverInput, HookInput, NodeInput, ShutdownMode, StoreInput, TemplateInput};

/// One thing that happened outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Input {
    /// A driver says something of a task.
    Driver(TaskKey, DriverInput),
    /// A hook's work is over.
    Hook(HookInput),
    /// Something happens to a task's templates after they were asked for.
    Template(TaskKey, TemplateInput),
    /// The store says something of a commit.
    Store(StoreInput),
    /// An operator asks something.
    #[serde(alias = "Local", alias = "Operator")]
    Request(
        RequestId,
        #[serde(deserialize_with = "recorded_request")] Request,
    ),
    /// The node learned something of itself.
    Node(NodeInput),
    /// The agent shall end.
    Shutdown(ShutdownMode),
}

/// A request as recordings have it. Earlier ones have two that are called `Collect`: that for all garbage is
/// the name alone, that for one allocation is a map like all others.
fn recorded_request<'de, D: Deserializer<'de>>(from: D) -> Result<Request, D::Error> {
    struct Recorded;

    impl<'de> Visitor<'de> for Recorded {
        type Value = Request;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a request of an operator")
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<Request, E> {
            match name {
                "Collect" => Ok(CollectGarbage.into()),
                other => Err(E::custom(format!("unknown request \"{other}\""))),
            }
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Request, A::Error> {
            Request::deserialize(MapAccessDeserializer::new(map))
        }
    }

    from.deserialize_any(Recorded)
}
