//! What strangers may say to an agent, and what must hold whatever they say.
//!
//! Each function takes any bytes and panics if something does not hold. There is one for each
//! parser: of a plugin's first line, of its messages with what the core makes of them, of
//! attributes and units (one order, whoever reports them), of sources of artifacts, of disks of
//! other nodes, of templates, of messages of DNS, of answers and networks of CNI, of what Docker engines say, of cron expressions, of files that are formatted, of checks of services, of filter
//! expressions, of policies of access control, of names and files of TLS, of websockets and the messages of exec sessions in them, and of what servers of a cluster send.
//! Fuzzers and the short run of the tests use the same functions.
//!
//! `cargo +nightly fuzz run --dev --features libfuzzer TARGET` searches for as long as one likes,
//! beginning with `corpus/TARGET`. What it finds becomes a file there, and stays. Without `--dev`
//! the whole program is optimised as one first, which takes a quarter of an hour.

mod artifact;
mod attribute;
mod check;
mod cluster;
mod cni;
mod cron;
mod dns;
mod docker;
mod filter;
mod format;
mod plugin;
mod policy;
mod snapshot;
mod template;
mod tls;
mod websocket;

pub use artifact::artifact;
pub use attribute::{attribute, unit};
pub use check::check;
pub use cluster::{placed_alloc, rpc_connection, rpc_message};
pub use cni::{cni_answer, cni_list};
pub use cron::cron;
pub use dns::dns_message;
pub use docker::docker_answer;
pub use filter::filter;
pub use format::hcl_format;
pub use plugin::{handshake, plugin_message};
pub use policy::policy;
pub use snapshot::snapshot;
pub use template::template;
pub use tls::{pem, tls_name};
pub use websocket::{exec_message, websocket_frame};

/// A door.
pub type Target = fn(&[u8]);

/// All doors by their names, and how many tries of others one of theirs takes.
pub const TARGETS: [(&str, Target, u64); 23] = [
    ("artifact", artifact, 1),
    ("attribute", attribute, 1),
    ("check", check, 1),
    ("cni_answer", cni_answer, 1),
    ("cni_list", cni_list, 1),
    ("cron", cron, 1),
    ("dns_message", dns_message, 1),
    ("docker_answer", docker_answer, 1),
    ("exec_message", exec_message, 1),
    ("filter", filter, 1),
    ("handshake", handshake, 1),
    ("hcl_format", hcl_format, 10),
    ("pem", pem, 5),
    ("placed_alloc", placed_alloc, 20),
    ("plugin_message", plugin_message, 1),
    ("policy", policy, 5),
    ("rpc_connection", rpc_connection, 20),
    ("rpc_message", rpc_message, 10),
    ("snapshot", snapshot, 40),
    ("template", template, 1),
    ("tls_name", tls_name, 1),
    ("unit", unit, 1),
    ("websocket_frame", websocket_frame, 1),
];
