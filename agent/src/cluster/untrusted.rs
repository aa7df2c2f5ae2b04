//! What servers say, for whoever tries it with what makes no sense (the crate `drover-fuzz`). The agent reads
//! allocations by the same.

use drover_core::cluster::PlacedAlloc;
use drover_rpc::types::allocation::Allocation;

use super::placed;

/// An allocation that servers placed on this node, as the core takes it; none if it has no id that could be one.
pub fn placed_alloc(alloc: &Allocation) -> Option<PlacedAlloc> {
    placed::of(alloc)
}
