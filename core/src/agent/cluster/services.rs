//! The services of allocations that servers placed here: what servers shall know of them follows from what runs, as on
//! a node alone ([`crate::agent::Registration`]).

use super::super::services::{Registration, of_alloc};
use super::super::{Agent, cx};
use crate::announced::{Announced, Instances};
use crate::cluster::ServiceInstance;
use crate::ids::AllocId;
use crate::store::Saved;
use crate::time::Now;

use std::sync::Arc;

impl Agent {
    /// Something of an allocation of servers may have changed: they shall have its services as they are now. A task
    /// that waits for them to have none of its services any more ends if that is so.
    pub(in crate::agent) fn note_services(&mut self, now: Now, id: AllocId) {
        let (Some(server), Some(alloc)) = (&mut self.server, self.allocs.get_mut(&id)) else {
            return;
        };
        let services = of_alloc(&self.config, alloc).into_iter().map(instance);
        let services: Instances = services.map(|one| (one.id.clone(), one)).collect();
        let mut cx = cx(&self.config, &mut self.shared, now);
        server.note_services(&mut cx, id, services);
        if alloc.end_deregistered(&mut cx) {
            alloc.settle(&mut cx);
        }
    }

    /// Servers may still have services of an earlier life of the agent.
    pub(super) fn restore_services(&mut self, saved: &Saved, now: Now) {
        let announced = Announced::restored(&saved.announced);
        let mut cx = cx(&self.config, &mut self.shared, now);
        if let Some(server) = &mut self.server {
            server.restore_services(&mut cx, announced);
        }
    }
}

fn instance(one: Registration) -> Arc<ServiceInstance> {
    Arc::new(ServiceInstance {
        id: one.id.into(),
        name: one.name,
        job: one.job,
        datacenter: one.datacenter,
        alloc: one.alloc,
        task: one.task,
        tags: one.tags,
        address: one.address,
        port: one.port,
    })
}
