//! A policy of access control: its whole body is this block.

use super::{Attr, Block, Finish, Kind, attr, labelled, one};
use crate::capability::{
    Capability, HostVolumeCapability, Level, NAMESPACE_POLICIES, PoolCapability, VariableCapability,
};

pub(in crate::jobspec) const POLICY_SPEC: Block = Block::new(
    &[],
    &[
        labelled("namespace", "namespace", "name", &NAMESPACE),
        labelled("host_volume", "host_volume", "name", &HOST_VOLUME),
        labelled("node_pool", "node_pool", "name", &NODE_POOL),
        one("node", "node", &LEVEL),
        one("agent", "agent", &LEVEL),
        one("operator", "operator", &LEVEL),
        one("quota", "quota", &LEVEL),
        one("plugin", "plugin", &PLUGIN),
    ],
);

const fn policy(choices: &'static [&'static str]) -> Attr {
    attr("policy", "policy", Kind::Choice(choices))
}

const fn capabilities(choices: &'static [&'static str]) -> Attr {
    attr("capabilities", "capabilities", Kind::Choices(choices))
}

const NAMESPACE: Block = Block::new(
    &[policy(NAMESPACE_POLICIES), capabilities(Capability::NAMES)],
    &[one("variables", "variables", &VARIABLES)],
)
.finished_by(says_something);

const VARIABLES: Block = Block::new(&[], &[labelled("path", "path", "name", &VARIABLE)])
    .finished_by(|block| {
        if block.fields.is_empty() {
            block.error(
                "there is no path in the block",
                "Write path \"*\" { … } for the variables that the rule is for.",
            );
        }
    });

const VARIABLE: Block =
    Block::new(&[capabilities(VariableCapability::NAMES)], &[]).finished_by(says_something);

const HOST_VOLUME: Block = Block::new(
    &[
        policy(Level::NAMES),
        capabilities(HostVolumeCapability::NAMES),
    ],
    &[],
)
.finished_by(says_something);

const NODE_POOL: Block = Block::new(
    &[policy(Level::NAMES), capabilities(PoolCapability::NAMES)],
    &[],
)
.finished_by(says_something);

const LEVEL: Block = Block::new(&[policy(Level::NAMES)], &[]).finished_by(says_something);

const PLUGIN: Block = Block::new(&[policy(Level::PLUGIN_NAMES)], &[]).finished_by(says_something);

/// Refuses a rule that says nothing: whoever wrote it meant something.
fn says_something(block: &mut Finish<'_>) {
    if block.fields.is_empty() {
        block.error(
            "the rule says nothing",
            "Write what it allows: policy = \"read\", or capabilities = [\"…\"] where there are some.",
        );
    }
}
