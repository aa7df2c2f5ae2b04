//! What only the engine knows of a container's network: its address.

use std::collections::BTreeMap;

use bollard::models::ContainerInspectResponse;
use drover_core::model::alloc::DriverNetwork;

use super::records::Shown;

/// Networks of the engine whose addresses nobody else reaches.
const LOCAL: [&str; 2] = ["bridge", "nat"];

/// The address of a container in the first of its networks by name; none if it has none of its own.
pub(super) fn of(found: &ContainerInspectResponse, shown: &Shown) -> Option<DriverNetwork> {
    let networks = found.network_settings.as_ref()?.networks.as_ref()?;
    let networks: BTreeMap<_, _> = networks.iter().collect();
    let address = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (name, ip) = networks.into_iter().find_map(|(name, network)| {
        let v4 = || address(&network.ip_address);
        let v6 = || address(&network.global_ipv6_address);
        let ip = if shown.prefers_v6 { v6() } else { v4() };
        Some((name, ip?))
    })?;
    Some(DriverNetwork {
        ip,
        auto_advertise: shown.prefers_v6 || !LOCAL.contains(&name.as_str()),
        port_map: shown.ports.clone(),
    })
}
