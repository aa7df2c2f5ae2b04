//! Fingerprints: finding out what this machine is and has.
//!
//! A *probe* is a plain function that looks once and answers, or says why it cannot: `fn(&Context)
//! -> Result<Fingerprint, ProbeError>`, one file each in `probes/`. [`PROBES`] is the table of
//! them, with name, period, and whether they are off unless enabled (the clouds'). Which are asked,
//! when again, and what becomes of the answers is decided by the core (`core/src/fingerprint/`). A
//! new probe is a file and a line of the table.
//!
//! - [`Context`] is all that probes see: a directory ([`Root`]) that has the machine's `/proc`,
//!   `/sys` and `/etc`, the [`Kernel`] for what is in no file (name, landlock, addresses, volume),
//!   and [`Settings`]. So a machine can be a directory: `tests/fixtures/machines/` has some, each a
//!   text file, with what is found out about it beside it.
//! - **What is not there is no error**: a machine without `/sys` is a machine of which less is
//!   known. What is there and cannot be read is an error, with what to do. One bad CNI file or
//!   plugin costs its own entry.
//! - **Everything has a bound**, since files may hold anything and plugins may do anything: bytes
//!   of each file, names in a directory, cores, interfaces, CNI plugins (64, 3 s each, 20 s
//!   together, ended with their process groups), a cloud's answers (64 KiB, 2 s together). Links
//!   lead nowhere outside. Values lose control characters and what is beyond 512 bytes.
//! - [`Prober`] asks a probe by name, on a blocking thread, each probe once at a time: one that
//!   hangs takes one thread.
//! - **Speed of a core**, as schedulers count it: what it always reaches; else its best; else by
//!   the model's name or its clock; else 1000 MHz are assumed, and no `cpu.frequency` is reported.
//!   Usable are the cores that the agent may run on, without reserved ones.
//! - **Clouds** are asked at one address by number, never by name, and redirections are not
//!   followed.
//! - Addresses that change each day or run out are left out, and so are interfaces that nobody is
//!   reached at: on a host of many containers the node would change all the time.

mod context;
mod error;
mod http;
mod interfaces;
mod kernel;
mod netlink;
mod prober;
mod probes;
mod put;
mod root;
mod run;

pub use context::{Clouds, Context, HostNetwork, Settings, Subnet};
pub use error::ProbeError;
pub use interfaces::{Interface, interfaces};
pub use kernel::{InterfaceAddress, Kernel, Live, Name, Volume};
pub use prober::Prober;
pub use root::Root;

use drover_core::fingerprint::Fingerprint;

use probes::{
    agent, arch, aws, azure, bridge, cgroup, cni, cpu, digitalocean, gce, host, landlock, memory,
    network, plugins_cni, signal, storage,
};

/// One probe.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Its name in allow and deny lists.
    pub name: &'static str,
    /// How many seconds later it is to look again; `None` if only when people ask for it.
    pub period: Option<u32>,
    /// Whether it looks only where people enable it, as it asks others than this machine.
    pub off_unless_enabled: bool,
    query: Query,
}

type Query = fn(&Context) -> Result<Fingerprint, ProbeError>;

impl Probe {
    /// Looks, and blocks meanwhile.
    ///
    /// # Errors
    /// Something that is there could not be read or asked.
    pub fn query(&self, context: &Context) -> Result<Fingerprint, ProbeError> {
        (self.query)(context)
    }

    /// A probe of what stays as it is.
    const fn once(name: &'static str, query: Query) -> Probe {
        Probe {
            name,
            period: None,
            off_unless_enabled: false,
            query,
        }
    }

    /// A probe of what changes while machines run.
    const fn each(seconds: u32, name: &'static str, query: Query) -> Probe {
        Probe {
            period: Some(seconds),
            ..Probe::once(name, query)
        }
    }

    /// A probe of a cloud.
    const fn cloud(name: &'static str, query: Query) -> Probe {
        Probe {
            off_unless_enabled: true,
            ..Probe::once(name, query)
        }
    }
}

/// All probes, in the order of their names; clouds last, so that what they know of an address wins.
pub const PROBES: &[Probe] = &[
    Probe::once("arch", arch::query),
    Probe::each(300, "bridge", bridge::query),
    Probe::once("cgroup", cgroup::query),
    Probe::each(300, "cni", cni::query),
    Probe::each(300, "cpu", cpu::query),
    Probe::each(300, "host", host::query),
    Probe::once("landlock", landlock::query),
    Probe::each(300, "memory", memory::query),
    Probe::each(60, "network", network::query),
    Probe::once("nomad", agent::query),
    Probe::each(3600, "plugins_cni", plugins_cni::query),
    Probe::once("signal", signal::query),
    Probe::each(300, "storage", storage::query),
    Probe::cloud("env_aws", aws::query),
    Probe::cloud("env_azure", azure::query),
    Probe::cloud("env_digitalocean", digitalocean::query),
    Probe::cloud("env_gce", gce::query),
];
