//! The interface of the default route.

use super::super::{ProbeError, Root};

/// How long a table of routes is at most. A machine that knows every network of the internet is
/// no place for tasks.
const LONGEST: usize = 16 << 20;

const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// The interface that leads to everywhere else; that of version 4 if both versions have one.
pub(in super::super) fn default_interface(root: &Root) -> Result<Option<String>, ProbeError> {
    let v4 = root.text("proc/net/route", LONGEST)?.unwrap_or_default();
    if let Some(device) = best(v4.lines().filter_map(version_4)) {
        return Ok(Some(device.to_owned()));
    }
    let v6 = root
        .text("proc/net/ipv6_route", LONGEST)?
        .unwrap_or_default();
    Ok(best(v6.lines().filter_map(version_6)).map(str::to_owned))
}

/// The route with the least metric; the first of equals.
fn best<'a>(routes: impl Iterator<Item = (u32, &'a str)>) -> Option<&'a str> {
    let best = routes.min_by_key(|(metric, _)| *metric);
    best.map(|(_, device)| device)
}

/// Metric and interface of a default route: interface, destination, gateway, flags, references,
/// uses, metric, mask.
fn version_4(line: &str) -> Option<(u32, &str)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
    let [device, to, _, flags, _, _, metric, mask] = fields.as_slice() else {
        return None;
    };
    let default = *to == "00000000" && *mask == "00000000" && leads(flags);
    default.then_some((metric.parse().ok()?, *device))
}

/// The same of version 6: destination, its length, source, its length, gateway, metric,
/// references, uses, flags, interface.
fn version_6(line: &str) -> Option<(u32, &str)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let [_, length, _, _, _, metric, _, _, flags, device] = fields.as_slice() else {
        return None;
    };
    let default = *length == "00" && leads(flags) && *device != "lo";
    default.then_some((u32::from_str_radix(metric, 16).ok()?, *device))
}

fn leads(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & UP != 0 && flags & REJECT == 0)
}
