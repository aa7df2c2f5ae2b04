//! DigitalOcean: what it says of this machine.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use super::super::http::Service;
use super::super::put::link;

/// What is asked, and the attribute that it becomes.
const FACTS: &[(&str, &str)] = &[
    ("region", "platform.digitalocean.region"),
    ("hostname", "unique.platform.digitalocean.hostname"),
    ("id", ID),
    (
        "interfaces/public/0/mac",
        "unique.platform.digitalocean.mac",
    ),
    (
        "interfaces/private/0/ipv4/address",
        "unique.platform.digitalocean.private-ipv4",
    ),
    (
        "interfaces/private/0/ipv6/address",
        "unique.platform.digitalocean.private-ipv6",
    ),
    (
        "interfaces/public/0/ipv4/address",
        "unique.platform.digitalocean.public-ipv4",
    ),
    (
        "interfaces/public/0/ipv6/address",
        "unique.platform.digitalocean.public-ipv6",
    ),
];

const ID: &str = "unique.platform.digitalocean.id";

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let clouds = &context.settings.clouds;
    let service = Service::new(&clouds.digitalocean, clouds.timeout)?;
    let mut found = Fingerprint::default();
    for (key, name) in FACTS {
        if let Some(value) = service.get(&format!("/metadata/v1/{key}"), &[])? {
            put(&mut found, name, value);
        }
    }
    if let Some(id) = found.attributes.get(ID).cloned() {
        link(&mut found, "digitalocean", id);
    }
    Ok(found)
}
