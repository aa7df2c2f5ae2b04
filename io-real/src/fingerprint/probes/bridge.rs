//! The network modes `bridge` and `none`: whether the kernel has bridges, loaded or to be loaded, and whether the
//! agent can make such networks. If it cannot, an attribute says why, such as `network.bridge.fault`.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

/// How long lists of modules are at most; those of big distributions have a megabyte.
const LIST: usize = 16 << 20;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    let has_bridge = has_bridge(context)?;
    if has_bridge {
        let hairpin = context.settings.bridge_hairpin;
        put(&mut found, "nomad.bridge.hairpin_mode", hairpin);
    }
    for (mode, fault) in context.kernel.network_modes(&context.settings.bridge) {
        match fault {
            None if mode == "bridge" && !has_bridge => {}
            None => {
                found.resources.network_modes.insert(mode.to_owned());
            }
            Some(why) => put(&mut found, &format!("network.{mode}.fault"), why),
        }
    }
    Ok(found)
}

fn has_bridge(context: &Context) -> Result<bool, ProbeError> {
    let root = &context.root;
    if root.has("sys/module/bridge")? {
        return Ok(true);
    }
    let loaded = root.text("proc/modules", LIST)?.unwrap_or_default();
    if loaded.lines().any(|line| line.starts_with("bridge ")) {
        return Ok(true);
    }
    let release = context.kernel.name().release;
    if release.is_empty() || release.contains('/') {
        return Ok(false);
    }
    for list in ["modules.builtin", "modules.dep"] {
        let path = format!("lib/modules/{release}/{list}");
        let modules = root.text(&path, LIST)?.unwrap_or_default();
        if modules.lines().any(is_bridge) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a line is of the bridge's own file, `…/bridge.ko` or `…/bridge.ko.xz: what it needs`.
fn is_bridge(line: &str) -> bool {
    let file = line.split(':').next().unwrap_or_default();
    let name = file.rsplit('/').next().unwrap_or_default();
    name == "bridge.ko" || name.starts_with("bridge.ko.")
}
