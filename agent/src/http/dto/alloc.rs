//! Allocations and their tasks.

use std::collections::BTreeMap;

use drover_api::{AllocRecords, AllocStub};
use drover_core::model::network::{Dns, INTERFACE, PluginNetwork};
use drover_io_real::transfers::{Amount, mib};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::full_job;
use super::metric::AllocMetric;
use super::resources::{AllocatedResources, OldResources};

/// The network of an allocation's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct NetworkStatus {
    pub interface_name: String,
    pub address: String,
    #[serde(rename = "AddressIPv6")]
    pub address_ipv6: String,
    #[serde(rename = "DNS")]
    pub dns: Option<Value>,
}

/// A whole allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Alloc {
    #[serde(flatten)]
    pub stub: AllocStub,
    pub job: Value,
    pub alloc_modify_index: u64,
    /// An extension of our own: its logs and files are gone, what stays is this record.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub directory_collected: bool,
    pub allocated_resources: AllocatedResources,
    pub resources: OldResources,
    pub task_resources: BTreeMap<String, OldResources>,
    pub shared_resources: OldResources,
    pub metrics: AllocMetric,
    /// The address that a driver gave to a task of it, as soon as that is known.
    pub network_status: Option<NetworkStatus>,
    #[serde(rename = "SigningKeyID")]
    pub signing_key_id: String,
}

/// How much came, in words.
pub(crate) fn how_far(amount: Amount) -> String {
    match amount.total {
        Some(total) => format!("{} of {} MiB", mib(amount.bytes), mib(total)),
        None => format!("{} MiB so far", mib(amount.bytes)),
    }
}

impl Alloc {
    /// An allocation as it is shown whole.
    pub(crate) fn of(alloc: &AllocRecords) -> Alloc {
        Alloc {
            job: full_job(&alloc.job, alloc.job_status, None),
            ..Alloc::without_job(alloc)
        }
    }

    /// The same but for its job, which is the larger part of it.
    pub(crate) fn without_job(alloc: &AllocRecords) -> Alloc {
        let record = alloc.alloc();
        let group = alloc.job.group(record.group.as_str());
        let allocated = AllocatedResources::of(record, group);
        Alloc {
            stub: AllocStub::from(alloc),
            job: Value::Null,
            alloc_modify_index: record.modify_index,
            directory_collected: alloc.is_collected(),
            resources: allocated.old(),
            task_resources: (allocated.tasks.iter())
                .map(|(name, task)| (name.clone(), task.old()))
                .collect(),
            shared_resources: allocated.shared.old(),
            allocated_resources: allocated,
            metrics: AllocMetric::placed(&alloc.node),
            network_status: network_status(alloc),
            signing_key_id: String::new(),
        }
    }
}

/// The network that plugins made, and what the job says about names, which goes first.
fn status_of_plugins(found: &PluginNetwork, dns: Option<&Dns>) -> NetworkStatus {
    let text = |address: Option<String>| address.unwrap_or_default();
    let dns = dns.or(found.dns.as_ref());
    NetworkStatus {
        interface_name: found.interface.clone(),
        address: text(found.address.map(|it| it.to_string())),
        address_ipv6: text(found.address_ipv6.map(|it| it.to_string())),
        dns: dns.and_then(|dns| serde_json::to_value(dns).ok()),
    }
}

/// The network of its own, or the first address that a driver gave to a task of it.
fn network_status(alloc: &AllocRecords) -> Option<NetworkStatus> {
    let group = alloc.job.group(alloc.alloc().group.as_str());
    let network = group.and_then(|group| group.networks.first());
    let dns = network.and_then(|network| network.dns.as_ref());
    let own = alloc.alloc().network.as_ref();
    if let Some(found) = own.and_then(|own| own.found.as_ref()) {
        return Some(status_of_plugins(found, dns));
    }
    if let Some(address) = alloc.alloc().address() {
        return Some(NetworkStatus {
            interface_name: INTERFACE.to_owned(),
            address: address.to_string(),
            dns: dns.and_then(|dns| serde_json::to_value(dns).ok()),
            ..NetworkStatus::default()
        });
    }
    let mut networks = alloc.tasks().filter_map(|(_, _, network)| network);
    let ip = &networks.find(|network| !network.ip.is_empty())?.ip;
    let (address, address_ipv6) = if ip.contains(':') {
        (String::new(), ip.clone())
    } else {
        (ip.clone(), String::new())
    };
    Some(NetworkStatus {
        address,
        address_ipv6,
        ..NetworkStatus::default()
    })
}
