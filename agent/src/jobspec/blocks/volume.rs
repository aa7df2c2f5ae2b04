//! A file that describes a host volume that is to be made or registered: its whole body is this block.

use drover_core::model::value::Value;

use super::group::CONSTRAINT;
use super::{Block, Finish, Kind, attr, many};
use crate::sizes;

pub(in crate::jobspec) const VOLUME_SPEC: Block = Block::new(
    &[
        attr("id", "ID", Kind::Text),
        attr("name", "Name", Kind::Text),
        attr("type", "Type", Kind::Choice(&["host"])),
        attr("namespace", "Namespace", Kind::Text),
        attr("plugin_id", "PluginID", Kind::Text),
        attr("node_id", "NodeID", Kind::Text),
        attr("node_pool", "NodePool", Kind::Text),
        attr("host_path", "HostPath", Kind::Text),
        attr("capacity", "", Kind::Ignored("a directory has no size")),
        attr("capacity_min", MIN, Kind::Text),
        attr("capacity_max", MAX, Kind::Text),
        attr("parameters", "Parameters", Kind::Pairs),
    ],
    &[
        many("capability", "RequestedCapabilities", &CAPABILITY),
        many("constraint", "Constraints", &CONSTRAINT),
    ],
)
.finished_by(finish);

const MIN: &str = "RequestedCapacityMinBytes";
const MAX: &str = "RequestedCapacityMaxBytes";

const CAPABILITY: Block = Block::new(
    &[
        attr("access_mode", "AccessMode", Kind::Text),
        attr("attachment_mode", "AttachmentMode", Kind::Text),
    ],
    &[],
)
.finished_by(|block| block.default("AttachmentMode", "file-system"));

fn finish(block: &mut Finish<'_>) {
    if !block.fields.contains_key("Name") {
        block.error("the volume has no name", "Write name = \"…\".");
    }
    for key in [MIN, MAX] {
        let Some(Value::String(text)) = block.fields.get(key) else {
            continue;
        };
        match sizes::bytes(text).and_then(|bytes| i64::try_from(bytes).ok()) {
            Some(bytes) => drop(block.fields.insert(key.to_owned(), Value::Int(bytes))),
            None => block.error(
                format!("{text:?} is no size"),
                "Write a number of bytes, or one with a unit: \"10GiB\", \"500MB\".",
            ),
        }
    }
}
