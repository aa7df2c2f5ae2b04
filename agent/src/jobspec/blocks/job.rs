//! The `job` block.

use std::collections::BTreeMap;

use drover_core::model::value::Value;

use super::group::{
    AFFINITY, CONSTRAINT, GROUP, MIGRATE, RESCHEDULE, SPREAD, UPDATE, inherit_secrets,
    inherit_vault,
};
use super::task::{SECRET, TASK, VAULT};
use super::{Block, Child, Fields, Finish, Kind, Shape, attr, labelled, many, one};

/// Where tasks that stand directly in the job are kept until each gets its group.
pub(super) const OWN_TASKS: &str = "@tasks";

/// The outermost block.
pub(in super::super) const JOB: Block = Block::new(
    &[
        attr("id", "ID", Kind::Text),
        attr("name", "Name", Kind::Text),
        attr("region", "Region", Kind::Text),
        attr("namespace", "Namespace", Kind::Text),
        attr("node_pool", "NodePool", Kind::Text),
        attr(
            "type",
            "Type",
            Kind::Choice(&["service", "batch", "system", "sysbatch"]),
        ),
        attr("priority", "Priority", Kind::Int),
        attr("datacenters", "Datacenters", Kind::Texts),
        attr("all_at_once", "AllAtOnce", Kind::Bool),
        attr("meta", "Meta", Kind::Pairs),
        attr(
            "vault_token",
            "",
            Kind::Ignored("tokens are no part of a job"),
        ),
        attr(
            "consul_token",
            "",
            Kind::Ignored("tokens are no part of a job"),
        ),
    ],
    &[
        many("constraint", "Constraints", &CONSTRAINT),
        many("affinity", "Affinities", &AFFINITY),
        many("spread", "Spreads", &SPREAD),
        labelled("group", "TaskGroups", "Name", &GROUP),
        labelled("task", OWN_TASKS, "Name", &TASK),
        one("update", "Update", &UPDATE),
        one("migrate", "Migrate", &MIGRATE),
        one("reschedule", "Reschedule", &RESCHEDULE),
        one("periodic", "Periodic", &PERIODIC),
        one("parameterized", "ParameterizedJob", &PARAMETERIZED),
        one("multiregion", "Multiregion", &MULTIREGION),
        one("ui", "UI", &UI),
        one("vault", "@vault", &VAULT),
        labelled("secret", "@secrets", "Name", &SECRET),
    ],
)
.finished_by(finish_job);

const PERIODIC: Block = Block::new(
    &[
        attr("enabled", "Enabled", Kind::Bool),
        attr("cron", "Spec", Kind::Text),
        attr("crons", "Specs", Kind::Texts),
        attr("prohibit_overlap", "ProhibitOverlap", Kind::Bool),
        attr("time_zone", "TimeZone", Kind::Text),
        attr("missed", "Missed", Kind::Choice(&["run-once", "skip"])),
    ],
    &[],
)
.finished_by(|block| {
    if block.fields.contains_key("Spec") && block.fields.contains_key("Specs") {
        block.error(
            "cron and crons cannot both be given",
            "Put all lines into crons.",
        );
    }
    block.default("SpecType", "cron");
});

const PARAMETERIZED: Block = Block::new(
    &[
        attr("payload", "Payload", Kind::Text),
        attr("meta_required", "MetaRequired", Kind::Texts),
        attr("meta_optional", "MetaOptional", Kind::Texts),
    ],
    &[],
);

const MULTIREGION: Block = Block::new(
    &[],
    &[
        one("strategy", "Strategy", &STRATEGY),
        labelled("region", "Regions", "Name", &REGION),
    ],
);

const STRATEGY: Block = Block::new(
    &[
        attr("max_parallel", "MaxParallel", Kind::Int),
        attr("on_failure", "OnFailure", Kind::Text),
    ],
    &[],
);

const REGION: Block = Block::new(
    &[
        attr("count", "Count", Kind::Int),
        attr("datacenters", "Datacenters", Kind::Texts),
        attr("node_pool", "NodePool", Kind::Text),
        attr("meta", "Meta", Kind::Pairs),
    ],
    &[],
);

const UI: Block = Block::new(
    &[attr("description", "Description", Kind::Text)],
    &[Child {
        name: "link",
        key: "Links",
        shape: Shape::Many,
        body: &LINK,
    }],
);

const LINK: Block = Block::new(
    &[
        attr("label", "Label", Kind::Text),
        attr("url", "Url", Kind::Text),
    ],
    &[],
);

/// Tasks of the job become groups of their own, before the groups that are written as such; what
/// the job says of Vault and secrets goes to its tasks.
fn finish_job(block: &mut Finish<'_>) {
    let mut groups: Vec<Value> = block
        .take_list(OWN_TASKS)
        .into_iter()
        .map(group_of)
        .collect();
    groups.extend(block.take_list("TaskGroups"));
    let vault = block.fields.remove("@vault");
    let secrets = block.take_list("@secrets");
    for group in &mut groups {
        if let Value::Map(group) = group {
            inherit_vault(group, vault.as_ref());
            inherit_secrets(group, &secrets);
        }
    }
    if !groups.is_empty() {
        block
            .fields
            .insert("TaskGroups".to_owned(), Value::List(groups));
    }
}

fn group_of(task: Value) -> Value {
    let name = task.as_map().and_then(|task| task.get("Name")).cloned();
    let fields: Fields = BTreeMap::from([
        ("Name".to_owned(), name.unwrap_or_default()),
        ("Tasks".to_owned(), Value::List(vec![task])),
    ]);
    Value::Map(fields)
}
