//! The messages and calls of the plugin protocol, as `build.rs` makes them from `proto/`.

#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "generated code"
)]

include!(concat!(env!("OUT_DIR"), "/client/all.rs"));

pub(crate) use grpc::health::v1 as health;
pub(crate) use hashicorp::nomad::plugins::base::proto as base;
pub(crate) use hashicorp::nomad::plugins::device;
pub(crate) use hashicorp::nomad::plugins::drivers::proto as driver;
pub(crate) use hashicorp::nomad::plugins::shared::{hclspec, structs};
