//! Amazon's cloud: what it says of this machine.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use super::super::http::{Header, Service, is_header_value};
use super::super::put::link;

/// What is asked, and the attribute that it becomes.
const FACTS: &[(&str, &str)] = &[
    ("ami-id", "platform.aws.ami-id"),
    ("instance-type", "platform.aws.instance-type"),
    ("instance-life-cycle", "platform.aws.instance-life-cycle"),
    ("placement/availability-zone", ZONE),
    ("hostname", "unique.platform.aws.hostname"),
    ("instance-id", ID),
    ("local-hostname", "unique.platform.aws.local-hostname"),
    ("local-ipv4", "unique.platform.aws.local-ipv4"),
    ("mac", "unique.platform.aws.mac"),
    ("public-hostname", "unique.platform.aws.public-hostname"),
    ("public-ipv4", "unique.platform.aws.public-ipv4"),
    ("ipv6", "unique.platform.aws.public-ipv6"),
];

const ZONE: &str = "platform.aws.placement.availability-zone";
const ID: &str = "unique.platform.aws.instance-id";

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let clouds = &context.settings.clouds;
    let service = Service::new(&clouds.aws, clouds.timeout)?;
    let token = token(&service)?;
    let headers: Vec<Header<'_>> = token
        .iter()
        .map(|token| ("X-aws-ec2-metadata-token", token.as_str()))
        .collect();
    let mut found = Fingerprint::default();
    for (key, name) in FACTS {
        if let Some(value) = service.get(&format!("/latest/meta-data/{key}"), &headers)? {
            put(&mut found, name, value);
        }
    }
    let reported = |name: &str| found.attributes.get(name).cloned();
    let ip = reported("unique.platform.aws.local-ipv4").unwrap_or_default();
    let at = reported(ZONE).zip(reported(ID));
    put(&mut found, "unique.network.ip-address", ip);
    if let Some((zone, id)) = at {
        link(&mut found, "aws.ec2", format!("{zone}.{id}"));
    }
    Ok(found)
}

/// What has to go with each question. Services of the first version know no such thing.
fn token(service: &Service) -> Result<Option<String>, ProbeError> {
    let life = ("X-aws-ec2-metadata-token-ttl-seconds", "60");
    let token = service.put("/latest/api/token", &[life])?;
    Ok(token.filter(|token| is_header_value(token)))
}
