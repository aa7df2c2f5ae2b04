//! A service of an allocation, as servers take it.

use drover_core::cluster::ServiceInstance;
use drover_rpc::types::service::ServiceRegistration;

/// A service of this node.
pub(super) fn of(service: &ServiceInstance, node: &str) -> ServiceRegistration {
    ServiceRegistration {
        address: service.address.clone(),
        alloc_id: service.alloc.to_string(),
        datacenter: service.datacenter.clone(),
        id: service.id.to_string(),
        job_id: service.job.id.to_string(),
        namespace: service.job.namespace.to_string(),
        node_id: node.to_owned(),
        port: i64::from(service.port),
        service_name: service.name.clone(),
        tags: service.tags.clone(),
        ..ServiceRegistration::default()
    }
}
