//! `volume create` and `volume register`: a directory of the host becomes a volume that jobs may use.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, cx};
use crate::constraint;
use crate::effect::{Refusal, Reply};
use crate::model::volume::VolumeSpec;
use crate::store::volume::MAX_VOLUMES;
use crate::text::quote;

/// Make a volume, or find the directory of one that is there. The answer follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CreateVolume {
    /// What it is to be.
    pub spec: VolumeSpec,
}

impl OperatorRequest for CreateVolume {
    fn name(&self) -> &'static str {
        "create volume"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Node
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let volumes = asked.agent.machine.volumes();
        if let Err(why) = self.spec.check() {
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        let what = format!("volume {}", quote(&self.spec.name));
        if let Err(why) = asked.agent.check_namespace(&self.spec.namespace, &what) {
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        if volumes.has_name(&self.spec.name) {
            return Some(conflict("the node has a volume of this name already"));
        }
        if volumes.records().count() >= MAX_VOLUMES {
            let why = format!(
                "a node has at most {MAX_VOLUMES} volumes that are made while its agent runs"
            );
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        let node = &asked.agent.config.node;
        if let Err(why) = constraint::check_node(node, &self.spec.constraints) {
            return Some(conflict(&format!(
                "the node does not fulfil the constraint {why}"
            )));
        }
        let agent = &mut *asked.agent;
        let cx = &mut cx(&agent.config, &mut agent.shared, asked.now);
        let volumes = &mut agent.machine.volumes;
        volumes.create(cx, self.spec.clone(), asked.request);
        None
    }
}
