//! One file for each probe, and what several of them read.

pub(super) mod agent;
pub(super) mod arch;
pub(super) mod aws;
pub(super) mod azure;
pub(super) mod bridge;
pub(super) mod cgroup;
pub(super) mod cni;
pub(super) mod cpu;
mod cpuinfo;
pub(super) mod digitalocean;
pub(super) mod gce;
pub(super) mod host;
pub(super) mod landlock;
pub(super) mod memory;
pub(super) mod network;
pub(super) mod plugins_cni;
mod routes;
pub(super) mod signal;
pub(super) mod storage;
mod topology;

pub(super) use routes::default_interface;
