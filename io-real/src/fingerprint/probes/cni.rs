//! Networks described for CNI: the network modes `cni/<name>`. Where the agent can make no network namespaces it offers none,
//! and an attribute `network.cni.fault` says why.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};
use crate::network::cni::list::Lists;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    let dir = &context.settings.cni_config_dir;
    let lists = Lists::read(&context.root.outside(dir))
        .map_err(|error| ProbeError::unreadable(dir.display().to_string(), error))?;
    for why in &lists.faults {
        tracing::warn!("no network of CNI: {why}");
    }
    if lists.all.is_empty() {
        return Ok(found);
    }
    if let Some(why) = context.kernel.fault_of_namespaces() {
        put(&mut found, "network.cni.fault", why);
        return Ok(found);
    }
    let modes = lists.all.keys().map(|name| format!("cni/{name}"));
    found.resources.network_modes.extend(modes);
    Ok(found)
}
