//! Messages as declared types: what a node sends, and what it reads of the servers' messages.
//!
//! The fields are those of Nomad 2.0.5, by its names, in the order in which they are written (sorted). Types
//! that are only read leave out what only schedulers need. Unknown fields are skipped; fields that older servers
//! do not send have their zero value. Durations, and times that are numbers, are in nanoseconds unless
//! documented otherwise.
//!
//! An outbound request implements [`Request`], an inbound one [`InboundRequest`]: its method and its reply.
//! Each read carries the fields of every read (`AllowStale`, `MinQueryIndex` and so on), each write those of
//! every write. Set the ones that matter:
//!
//! ```
//! use drover_rpc::types::query::NodeGetClientAllocs;
//!
//! let request = NodeGetClientAllocs {
//!     region: "global".into(),
//!     min_query_index: 17,
//!     ..Default::default()
//! };
//! # assert_eq!(request.max_query_time, 0);
//! ```

// Names and meanings are Nomad's; what is surprising is documented.
#![allow(missing_docs)]

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::msgpack::{Malformed, Secret, Unencodable};

pub mod allocation;
pub mod host;
pub mod identity;
pub mod inbound;
pub mod job;
pub mod network;
pub mod node;
pub mod node_resources;
pub mod query;
pub mod registration;
pub mod service;
pub mod stats;
pub mod status;
pub mod stream;
pub mod task;
pub mod update;
pub mod variable;

/// A request of a node.
pub trait Request: Serialize + Sync {
    /// The method, as `Node.Register`.
    const METHOD: &'static str;
    /// Whether it may be sent again when it is not known whether it was carried out.
    const IDEMPOTENT: bool;
    /// Its reply.
    type Reply: DeserializeOwned;

    /// Appends its encoding.
    ///
    /// # Errors
    /// If it cannot be encoded.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Unencodable>;

    /// Decodes a reply.
    ///
    /// # Errors
    /// If the bytes are not a reply of this type.
    fn decode(reply: &[u8]) -> Result<Self::Reply, Malformed>;
}

/// A read.
pub trait Question: Request + Default {
    /// One that says this of what all of them say: whether a server may answer that is behind, by whose token, and in
    /// which region.
    fn of(allow_stale: bool, auth_token: Secret, region: String) -> Self;
}

/// A request of a server to a node.
pub trait InboundRequest: DeserializeOwned {
    /// The method, as `Allocations.Signal`.
    const METHOD: &'static str;
    /// Its reply.
    type Reply: Serialize;
}

macro_rules! request {
    ($request:ty, $method:literal, $reply:ty, idempotent) => {
        super::request!($request, $method, $reply, IDEMPOTENT = true);
    };
    ($request:ty, $method:literal, $reply:ty, not_idempotent) => {
        super::request!($request, $method, $reply, IDEMPOTENT = false);
    };
    ($request:ty, $method:literal, $reply:ty, IDEMPOTENT = $idempotent:literal) => {
        impl super::Request for $request {
            const METHOD: &'static str = $method;
            const IDEMPOTENT: bool = $idempotent;
            type Reply = $reply;

            // Not generic, so that they are compiled here, once, and optimized as this crate is.
            fn encode(&self, out: &mut Vec<u8>) -> Result<(), crate::msgpack::Unencodable> {
                crate::msgpack::encode_onto(out, self)
            }

            fn decode(reply: &[u8]) -> Result<$reply, crate::msgpack::Malformed> {
                crate::msgpack::decode(reply)
            }
        }
    };
}

/// A read: what is in every one of them, and what else is asked, where that stands in the order of names.
macro_rules! question {
    ($(#[doc = $words:literal])* $name:ident, $method:literal, $reply:ty
        $(, first { $($first:tt)* })?
        $(, after_auth_token { $($second:tt)* })?
        $(, after_forwarded { $($third:tt)* })?
        $(, before_namespace { $($fourth:tt)* })?
        $(, after_next_token { $($fifth:tt)* })?
        $(, last { $($last:tt)* })?
    ) => {
        $(#[doc = $words])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "PascalCase", default)]
        pub struct $name {
            $($($first)*)?
            pub allow_stale: bool,
            pub auth_token: crate::msgpack::Secret,
            $($($second)*)?
            pub filter: String,
            pub forwarded: bool,
            $($($third)*)?
            pub max_query_time: i64,
            pub min_query_index: u64,
            $($($fourth)*)?
            pub namespace: String,
            pub next_token: String,
            $($($fifth)*)?
            pub per_page: i32,
            pub prefix: String,
            pub region: String,
            pub reverse: bool,
            $($($last)*)?
        }

        super::request!($name, $method, $reply, idempotent);

        impl super::Question for $name {
            fn of(allow_stale: bool, auth_token: crate::msgpack::Secret, region: String) -> $name {
                $name {
                    allow_stale,
                    auth_token,
                    region,
                    ..$name::default()
                }
            }
        }
    };
}

macro_rules! inbound_request {
    ($request:ty, $method:literal, $reply:ty) => {
        impl super::InboundRequest for $request {
            const METHOD: &'static str = $method;
            type Reply = $reply;
        }
    };
}

use {inbound_request, question, request};
