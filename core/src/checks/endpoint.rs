//! Where a service, or a check of it, is reached.

use std::borrow::Cow;

use crate::model::alloc::DriverNetwork;
use crate::store::record::{AllocRecord, AssignedPort};

/// The address and port: the allocation's own, if that is wanted; the driver's, if it reported them and they are
/// wanted or it says that they are to be announced; else the host's. `port` is a label or a number, and 0 if empty.
/// None if that turns out to be none.
pub fn endpoint<'a>(
    alloc: &'a AllocRecord,
    node: &'a str,
    port: &str,
    address_mode: &str,
    network: Option<&'a DriverNetwork>,
) -> Option<(Cow<'a, str>, u16)> {
    let assigned = alloc.ports.iter().find(|assigned| assigned.label == port);
    let number = || match port {
        "" => Some(0),
        port => port.parse().ok(),
    };
    let inside = |port: &AssignedPort| match port.to {
        0 => port.value,
        to => to,
    };
    if let Some((address, _)) = alloc.own_address().filter(|_| address_mode == "alloc") {
        let port = assigned.map(inside).or_else(number)?;
        return Some((address.to_string().into(), port));
    }
    let of_driver = network.filter(|network| match address_mode {
        "" | "auto" => network.advertises(),
        mode => mode == "driver" && !network.ip.is_empty(),
    });
    match (of_driver, assigned) {
        (Some(network), assigned) => {
            let mapped = network.port_map.get(port).copied();
            let port = mapped.or(assigned.map(inside)).or_else(number)?;
            Some((network.ip.as_str().into(), port))
        }
        (None, Some(port)) => Some((port.host_ip.as_str().into(), port.value)),
        (None, None) => Some((node.into(), number()?)),
    }
}
