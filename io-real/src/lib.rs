//! The real world of the Drover node agent: processes, control groups, directories, the disk.
//!
//! [`node`] owns the core and carries its effects out. Everything else does one kind of work and
//! decides nothing: a question of policy in this crate is in the wrong crate.

pub mod agent_handle;
pub mod allowed;
pub mod artifact;
pub mod audit;
mod cancel;
pub mod cgroup;
pub mod checks;
pub mod clock;
pub mod cluster;
pub mod connect;
pub mod data_dir;
pub mod destroy;
pub mod device;
mod dir_locks;
pub mod dirs;
pub mod driver;
pub mod facts;
pub mod fingerprint;
pub mod forward;
pub mod gate;
pub mod hooks;
pub mod http_client;
pub mod identity;
mod journal;
pub mod keyring;
pub mod logfile;
pub mod memory;
pub mod migrate;
mod mounts;
pub mod network;
pub mod node;
pub mod notify;
mod one_task;
pub mod open_files;
pub mod plugin;
pub mod plugins;
pub mod post;
mod proc_stat;
mod ranges;
pub mod recorder;
pub mod safe_open;
pub mod session;
pub mod shim;
mod small_files;
pub mod stats;
pub mod store;
mod templates;
pub mod timing;
pub mod transfers;
mod unpack;
mod user;
pub mod volumes;
mod wall_clock;
pub mod zones;
