//! Microsoft's cloud: what it says of this machine.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use super::super::http::Service;
use super::super::put::link;

/// The version of the service's answers that is asked for.
const VERSION: &str = "api-version=2019-06-04&format=json";

/// How many of a machine's tags are kept.
const TAGS: usize = 64;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let clouds = &context.settings.clouds;
    let service = Service::new(&clouds.azure, clouds.timeout)?;
    let mut found = Fingerprint::default();
    if let Some(compute) = ask::<Compute>(&service, "/metadata/instance/compute")? {
        put_compute(&mut found, &compute);
    }
    let network: Option<Wires> = ask(&service, "/metadata/instance/network")?;
    if let Some(wire) = network.unwrap_or_default().interface.first() {
        put_wire(&mut found, wire);
    }
    Ok(found)
}

fn ask<T: DeserializeOwned>(service: &Service, path: &str) -> Result<Option<T>, ProbeError> {
    let Some(text) = service.get(&format!("{path}?{VERSION}"), &[("Metadata", "true")])? else {
        return Ok(None);
    };
    let answer = serde_json::from_str(&text).map_err(|error| ProbeError::Service {
        what: path.to_owned(),
        why: error.to_string(),
    })?;
    Ok(Some(answer))
}

fn put_compute(found: &mut Fingerprint, compute: &Compute) {
    put(found, "platform.azure.location", &compute.location);
    put(
        found,
        "platform.azure.resource-group",
        &compute.resource_group_name,
    );
    put(
        found,
        "platform.azure.scale-set",
        &compute.vm_scale_set_name,
    );
    put(found, "platform.azure.vm-size", &compute.vm_size);
    put(found, "platform.azure.zone", &compute.zone);
    put(found, "unique.platform.azure.id", &compute.vm_id);
    put(found, "unique.platform.azure.name", &compute.name);
    for tag in compute.tags_list.iter().take(TAGS) {
        put(
            found,
            &format!("platform.azure.tag.{}", tag.name),
            &tag.value,
        );
    }
    link(found, "azure", &compute.vm_id);
}

fn put_wire(found: &mut Fingerprint, wire: &Wire) {
    put(found, "unique.platform.azure.mac", &wire.mac_address);
    if let Some(ip) = wire.ipv4.ip_address.first() {
        put(
            found,
            "unique.platform.azure.local-ipv4",
            &ip.private_ip_address,
        );
        put(
            found,
            "unique.platform.azure.public-ipv4",
            &ip.public_ip_address,
        );
        put(found, "unique.network.ip-address", &ip.private_ip_address);
    }
    if let Some(ip) = wire.ipv6.ip_address.first() {
        put(
            found,
            "unique.platform.azure.local-ipv6",
            &ip.private_ip_address,
        );
        put(
            found,
            "unique.platform.azure.public-ipv6",
            &ip.public_ip_address,
        );
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Compute {
    location: String,
    name: String,
    resource_group_name: String,
    tags_list: Vec<Tag>,
    vm_id: String,
    vm_scale_set_name: String,
    vm_size: String,
    zone: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tag {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wires {
    interface: Vec<Wire>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wire {
    ipv4: Ips,
    ipv6: Ips,
    mac_address: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ips {
    ip_address: Vec<Ip>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ip {
    private_ip_address: String,
    public_ip_address: String,
}
