//! What of what is searched somebody may see.

use drover_core::model::variable::VariableKey;

use super::params::Params;
use crate::acl::{Capability, Level, PoolCapability, VariableCapability};

/// Whether somebody may see things of a kind, or some of them.
pub(super) fn may_search(params: &Params, context: &str) -> bool {
    let rights = params.principal.rights();
    let may = |capability| {
        params
            .principal
            .may_one_of(params.namespace(), &[capability])
    };
    match context {
        "nodes" => rights.node(Level::Read),
        "node_pools" => rights.may_any_pool(PoolCapability::Read),
        "plugins" => rights.plugin(Level::List),
        "vars" => rights.may_any_variable(params.namespace(), VariableCapability::List),
        "namespaces" => rights.may_see_any_namespace(),
        "volumes" => may(Capability::CsiListVolume),
        "host_volumes" => may(Capability::HostVolumeRead),
        "scaling_policy" => may(Capability::ListScalingPolicies),
        // Jobs, allocations, evaluations, deployments.
        _ => may(Capability::ReadJob),
    }
}

/// Whether somebody may see that there is a variable.
pub(super) fn may_list(scope: &Params, key: &VariableKey) -> bool {
    let is_asked_for = matches!(scope.namespace(), "*") || *key.namespace == *scope.namespace();
    let rights = scope.principal.rights();
    is_asked_for && rights.may_variable(&key.namespace, &key.path, VariableCapability::List)
}
