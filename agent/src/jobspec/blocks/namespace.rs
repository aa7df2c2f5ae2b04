//! A file that describes a namespace: its whole body is this block.

use super::{Block, Kind, RENAMED, attr, one};

pub(in crate::jobspec) const NAMESPACE_SPEC: Block = Block::new(
    &[
        attr("name", "Name", Kind::Text),
        attr("description", "Description", Kind::Text),
        attr("quota", "Quota", Kind::Text),
        attr("meta", "Meta", Kind::Pairs),
    ],
    &[
        one("capabilities", "Capabilities", &CAPABILITIES),
        // Of Nomad's enterprise edition; the agent says so.
        one("node_pool_config", "NodePoolConfiguration", &RENAMED),
        one("vault", "VaultConfiguration", &RENAMED),
        one("consul", "ConsulConfiguration", &RENAMED),
    ],
)
.finished_by(|block| {
    if !block.fields.contains_key("Name") {
        block.error("the namespace has no name", "Write name = \"…\".");
    }
});

const CAPABILITIES: Block = Block::new(
    &[
        attr("enabled_task_drivers", "EnabledTaskDrivers", Kind::Texts),
        attr("disabled_task_drivers", "DisabledTaskDrivers", Kind::Texts),
        attr("enabled_network_modes", "EnabledNetworkModes", Kind::Texts),
        attr(
            "disabled_network_modes",
            "DisabledNetworkModes",
            Kind::Texts,
        ),
    ],
    &[],
);
