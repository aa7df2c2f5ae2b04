//! What was considered when an allocation was placed, or could not be.

use std::collections::BTreeMap;

use drover_core::model::placement::{Lack, PlacementFailure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::records::NodeNames;

/// What was considered. There is one node; what Nomad counts of many is 0 or 1 here, and what it
/// measures by class, quota or score does not exist.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AllocMetric {
    pub nodes_evaluated: u64,
    pub nodes_filtered: u64,
    pub nodes_in_pool: u64,
    pub node_pool: String,
    pub nodes_available: BTreeMap<String, u64>,
    pub class_filtered: Option<BTreeMap<String, u64>>,
    pub constraint_filtered: BTreeMap<String, u64>,
    pub nodes_exhausted: u64,
    pub class_exhausted: Option<BTreeMap<String, u64>>,
    pub dimension_exhausted: BTreeMap<String, u64>,
    pub quota_exhausted: Option<Vec<String>>,
    pub resources_exhausted: Option<BTreeMap<String, Value>>,
    pub scores: Option<BTreeMap<String, f64>>,
    pub score_meta_data: Option<Vec<Value>>,
    pub allocation_time: i64,
    pub coalesced_failures: u64,
}

impl AllocMetric {
    /// This node was looked at, and is good.
    pub(super) fn placed(node: &NodeNames) -> AllocMetric {
        AllocMetric {
            nodes_evaluated: 1,
            nodes_in_pool: 1,
            node_pool: node.pool.clone(),
            nodes_available: BTreeMap::from([(node.datacenter.clone(), 1)]),
            ..AllocMetric::default()
        }
    }

    /// This node was considered and the group was not placed, for this reason.
    pub(super) fn not_placed(node: &NodeNames, why: &PlacementFailure) -> AllocMetric {
        let considered = AllocMetric::placed(node);
        match why.lack() {
            Lack::NotReady(why) => AllocMetric {
                nodes_evaluated: 0,
                nodes_available: BTreeMap::from([(node.datacenter.clone(), 0)]),
                constraint_filtered: BTreeMap::from([(why, 1)]),
                ..considered
            },
            Lack::Datacenters(names) => AllocMetric {
                nodes_evaluated: 0,
                nodes_available: names.into_iter().map(|name| (name, 0)).collect(),
                ..considered
            },
            Lack::Filter(why) => AllocMetric {
                nodes_filtered: 1,
                constraint_filtered: BTreeMap::from([(why, 1)]),
                ..considered
            },
            Lack::Dimension(what) => AllocMetric {
                nodes_exhausted: 1,
                dimension_exhausted: BTreeMap::from([(what, 1)]),
                ..considered
            },
        }
    }
}
