//! Google's cloud: what it says of this machine.
//!
//! A machine's own keys are left out: people put scripts, keys and tokens there.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use super::super::http::Service;
use super::super::put::link;

/// What is asked, and the attribute that it becomes.
const FACTS: &[(&str, &str)] = &[
    ("cpu-platform", "platform.gce.cpu-platform"),
    (
        "scheduling/automatic-restart",
        "platform.gce.scheduling.automatic-restart",
    ),
    (
        "scheduling/on-host-maintenance",
        "platform.gce.scheduling.on-host-maintenance",
    ),
    ("hostname", "unique.platform.gce.hostname"),
    ("id", ID),
];

/// The same, where the answer is a path of which the last part counts.
const PATHS: &[(&str, &str)] = &[
    ("machine-type", "platform.gce.machine-type"),
    ("zone", "platform.gce.zone"),
];

const ID: &str = "unique.platform.gce.id";

/// How many of a machine's tags, interfaces and outer addresses are kept.
const MOST: usize = 64;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let clouds = &context.settings.clouds;
    let service = Service::new(&clouds.gce, clouds.timeout)?;
    let mut found = Fingerprint::default();
    for (key, name) in FACTS {
        if let Some(value) = ask(&service, key)? {
            put(&mut found, name, value);
        }
    }
    for (key, name) in PATHS {
        if let Some(value) = ask(&service, key)? {
            put(&mut found, name, last(&value));
        }
    }
    put_tags(&service, &mut found)?;
    put_wires(&service, &mut found)?;
    if let Some(id) = found.attributes.get(ID).cloned() {
        link(&mut found, "gce", id);
    }
    Ok(found)
}

fn ask(service: &Service, key: &str) -> Result<Option<String>, ProbeError> {
    let path = format!("/computeMetadata/v1/instance/{key}");
    service.get(&path, &[("Metadata-Flavor", "Google")])
}

fn ask_json<T: DeserializeOwned + Default>(service: &Service, key: &str) -> Result<T, ProbeError> {
    let Some(text) = ask(service, key)? else {
        return Ok(T::default());
    };
    serde_json::from_str(&text).map_err(|error| ProbeError::Service {
        what: key.to_owned(),
        why: error.to_string(),
    })
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Tags; people call some `unique.` themselves.
fn put_tags(service: &Service, found: &mut Fingerprint) -> Result<(), ProbeError> {
    let tags: Vec<String> = ask_json(service, "tags?alt=json")?;
    for tag in tags.iter().take(MOST) {
        let name = match tag.strip_prefix("unique.") {
            Some(own) => format!("unique.platform.gce.tag.{own}"),
            None => format!("platform.gce.tag.{tag}"),
        };
        put(found, &name, true);
    }
    Ok(())
}

fn put_wires(service: &Service, found: &mut Fingerprint) -> Result<(), ProbeError> {
    let wires: Vec<Wire> = ask_json(service, "network-interfaces/?recursive=true&alt=json")?;
    if let Some(first) = wires.first() {
        put(found, "unique.network.ip-address", &first.ip);
    }
    for wire in wires.iter().take(MOST) {
        let network = last(&wire.network);
        put(found, &format!("platform.gce.network.{network}"), true);
        put(
            found,
            &format!("unique.platform.gce.network.{network}.ip"),
            &wire.ip,
        );
        let outer = wire.access_configs.iter().take(MOST).enumerate();
        for (number, access) in outer {
            let name = format!("unique.platform.gce.network.{network}.external-ip.{number}");
            put(found, &name, &access.external_ip);
        }
    }
    Ok(())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wire {
    access_configs: Vec<Access>,
    ip: String,
    network: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Access {
    external_ip: String,
}
