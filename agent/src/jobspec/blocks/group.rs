//! The `group` block, and the policies that it shares with the job.

use drover_core::model::value::Value;

use super::service::SERVICE;
use super::task::{CONSUL, SECRET, TASK, VAULT};
use super::{Block, Child, FREE, Fields, Finish, Kind, Shape, attr, labelled, many, one};

pub(super) const GROUP: Block = Block::new(
    &[
        attr("count", "Count", Kind::Int),
        attr("meta", "Meta", Kind::Pairs),
        attr("shutdown_delay", "ShutdownDelay", Kind::Span),
        attr("max_run_duration", "MaxRunDuration", Kind::Span),
        attr(
            "stop_after_client_disconnect",
            "StopAfterClientDisconnect",
            Kind::Span,
        ),
        attr("max_client_disconnect", "MaxClientDisconnect", Kind::Span),
        attr(
            "prevent_reschedule_on_lost",
            "PreventRescheduleOnLost",
            Kind::Bool,
        ),
    ],
    &[
        many("constraint", "Constraints", &CONSTRAINT),
        many("affinity", "Affinities", &AFFINITY),
        many("spread", "Spreads", &SPREAD),
        one("restart", "RestartPolicy", &RESTART),
        one("reschedule", "ReschedulePolicy", &RESCHEDULE),
        one("update", "Update", &UPDATE),
        one("migrate", "Migrate", &MIGRATE),
        one("ephemeral_disk", "EphemeralDisk", &EPHEMERAL_DISK),
        one("disconnect", "Disconnect", &DISCONNECT),
        Child {
            name: "network",
            key: "Networks",
            shape: Shape::OneInList,
            body: &NETWORK,
        },
        Child {
            name: "volume",
            key: "Volumes",
            shape: Shape::ByLabel("Name"),
            body: &VOLUME,
        },
        many("service", "Services", &SERVICE),
        one("consul", "Consul", &CONSUL),
        one("scaling", "Scaling", &SCALING),
        one("vault", "@vault", &VAULT),
        labelled("secret", "@secrets", "Name", &SECRET),
        labelled("task", "Tasks", "Name", &TASK),
    ],
)
.finished_by(|block| {
    let vault = block.fields.remove("@vault");
    let secrets = block.take_list("@secrets");
    inherit_vault(block.fields, vault.as_ref());
    inherit_secrets(block.fields, &secrets);
});

/// Gives a group's tasks this Vault block, unless they have their own.
pub(super) fn inherit_vault(group: &mut Fields, vault: Option<&Value>) {
    let (Some(vault), Some(Value::List(tasks))) = (vault, group.get_mut("Tasks")) else {
        return;
    };
    for task in tasks {
        if let Value::Map(task) = task {
            task.entry("Vault".to_owned())
                .or_insert_with(|| vault.clone());
        }
    }
}

/// Gives a group's tasks these secrets, besides their own.
pub(super) fn inherit_secrets(group: &mut Fields, secrets: &[Value]) {
    let Some(Value::List(tasks)) = group.get_mut("Tasks") else {
        return;
    };
    if secrets.is_empty() {
        return;
    }
    for task in tasks {
        if let Value::Map(task) = task {
            let own = task
                .entry("Secrets".to_owned())
                .or_insert_with(|| Value::List(Vec::new()));
            if let Value::List(own) = own {
                own.extend_from_slice(secrets);
            }
        }
    }
}

/// Shorthands of a condition: the operator as the attribute's name. They are kept apart by an
/// `@` before the operator until the block is complete.
pub(super) const CONSTRAINT: Block = Block::new(
    &[
        attr("attribute", "LTarget", Kind::Text),
        attr("operator", "Operand", Kind::Text),
        attr("value", "RTarget", Kind::Text),
        attr("version", "@version", Kind::Text),
        attr("semver", "@semver", Kind::Text),
        attr("regexp", "@regexp", Kind::Text),
        attr("set_contains", "@set_contains", Kind::Text),
        attr("set_contains_all", "@set_contains_all", Kind::Text),
        attr("set_contains_any", "@set_contains_any", Kind::Text),
        attr("distinct_hosts", "@distinct_hosts", Kind::Bool),
        attr("distinct_property", "@distinct_property", Kind::Text),
        attr("is_set", "@is_set", Kind::Bool),
        attr("is_not_set", "@is_not_set", Kind::Bool),
    ],
    &[],
)
.finished_by(finish_constraint);

pub(super) const AFFINITY: Block = Block::new(
    &[
        attr("attribute", "LTarget", Kind::Text),
        attr("operator", "Operand", Kind::Text),
        attr("value", "RTarget", Kind::Text),
        attr("weight", "Weight", Kind::Int),
        attr("version", "@version", Kind::Text),
        attr("semver", "@semver", Kind::Text),
        attr("regexp", "@regexp", Kind::Text),
        attr("set_contains", "@set_contains", Kind::Text),
        attr("set_contains_all", "@set_contains_all", Kind::Text),
        attr("set_contains_any", "@set_contains_any", Kind::Text),
    ],
    &[],
)
.finished_by(finish_constraint);

fn finish_constraint(block: &mut Finish<'_>) {
    let keys = block.fields.keys().filter(|key| key.starts_with('@'));
    let keys: Vec<String> = keys.cloned().collect();
    if keys.len() > 1 || (!keys.is_empty() && block.fields.contains_key("Operand")) {
        block.error(
            "there are several operators in one constraint",
            "Write one block for each condition.",
        );
    }
    for key in keys {
        let Some(value) = block.fields.remove(&key) else {
            continue;
        };
        let operand = key.trim_start_matches('@');
        let mut set = |key: &str, value: Value| block.fields.insert(key.to_owned(), value);
        match (operand, value) {
            ("is_set", Value::Bool(false)) => {
                set("Operand", Value::from("is_not_set"));
            }
            ("is_not_set", Value::Bool(false)) => {
                set("Operand", Value::from("is_set"));
            }
            ("distinct_hosts", Value::Bool(distinct)) => {
                set("Operand", Value::from(operand));
                set("RTarget", Value::String(distinct.to_string()));
            }
            // The property is what would be the attribute; a value is its count.
            ("distinct_property", value) => {
                set("Operand", Value::from(operand));
                set("LTarget", value);
            }
            (operand, Value::Bool(_)) => {
                set("Operand", Value::from(operand));
            }
            (operand, value) => {
                set("Operand", Value::from(operand));
                set("RTarget", value);
            }
        }
    }
    block.default("Operand", "=");
}

pub(super) const SPREAD: Block = Block::new(
    &[
        attr("attribute", "Attribute", Kind::Text),
        attr("weight", "Weight", Kind::Int),
    ],
    &[labelled("target", "SpreadTarget", "Value", &SPREAD_TARGET)],
);

const SPREAD_TARGET: Block = Block::new(
    &[
        attr("percent", "Percent", Kind::Int),
        // The label may be written as an attribute; it is the label that counts.
        attr("value", "Value", Kind::Text),
    ],
    &[],
);

pub(super) const RESTART: Block = Block::new(
    &[
        attr("attempts", "Attempts", Kind::Int),
        attr("interval", "Interval", Kind::Span),
        attr("delay", "Delay", Kind::Span),
        attr("mode", "Mode", Kind::Choice(&["fail", "delay"])),
        attr("render_templates", "RenderTemplates", Kind::Bool),
    ],
    &[],
);

pub(super) const RESCHEDULE: Block = Block::new(
    &[
        attr("attempts", "Attempts", Kind::Int),
        attr("interval", "Interval", Kind::Span),
        attr("delay", "Delay", Kind::Span),
        attr("delay_function", "DelayFunction", Kind::Text),
        attr("max_delay", "MaxDelay", Kind::Span),
        attr("unlimited", "Unlimited", Kind::Bool),
    ],
    &[],
);

pub(super) const UPDATE: Block = Block::new(
    &[
        attr("stagger", "Stagger", Kind::Span),
        attr("max_parallel", "MaxParallel", Kind::Int),
        attr("health_check", "HealthCheck", Kind::Text),
        attr("min_healthy_time", "MinHealthyTime", Kind::Span),
        attr("healthy_deadline", "HealthyDeadline", Kind::Span),
        attr("progress_deadline", "ProgressDeadline", Kind::Span),
        attr("auto_revert", "AutoRevert", Kind::Bool),
        attr("auto_promote", "AutoPromote", Kind::Bool),
        attr("canary", "Canary", Kind::Int),
    ],
    &[],
);

pub(super) const MIGRATE: Block = Block::new(
    &[
        attr("max_parallel", "MaxParallel", Kind::Int),
        attr("health_check", "HealthCheck", Kind::Text),
        attr("min_healthy_time", "MinHealthyTime", Kind::Span),
        attr("healthy_deadline", "HealthyDeadline", Kind::Span),
    ],
    &[],
);

const EPHEMERAL_DISK: Block = Block::new(
    &[
        attr("size", "SizeMB", Kind::Int),
        attr("sticky", "Sticky", Kind::Bool),
        attr("migrate", "Migrate", Kind::Bool),
    ],
    &[],
);

const DISCONNECT: Block = Block::new(
    &[
        attr("lost_after", "LostAfter", Kind::Span),
        attr("stop_on_client_after", "StopOnClientAfter", Kind::Span),
        attr("replace", "Replace", Kind::Bool),
        attr("reconcile", "Reconcile", Kind::Text),
    ],
    &[],
);

pub(super) const NETWORK: Block = Block::new(
    &[
        attr("mode", "Mode", Kind::Text),
        attr("hostname", "Hostname", Kind::Text),
        attr("mbits", "", Kind::Ignored("bandwidth is not managed")),
    ],
    &[
        labelled("port", "@ports", "Label", &PORT),
        one("dns", "DNS", &DNS),
        one("cni", "CNI", &CNI),
    ],
)
.finished_by(finish_network);

const PORT: Block = Block::new(
    &[
        attr("static", "Value", Kind::Int),
        attr("to", "To", Kind::Int),
        attr("host_network", "HostNetwork", Kind::Text),
        attr("ignore_collision", "IgnoreCollision", Kind::Bool),
    ],
    &[],
);

const DNS: Block = Block::new(
    &[
        attr("servers", "Servers", Kind::Texts),
        attr("searches", "Searches", Kind::Texts),
        attr("options", "Options", Kind::Texts),
    ],
    &[],
);

const CNI: Block = Block::new(&[attr("args", "Args", Kind::Pairs)], &[]);

/// A port with a number is reserved, any other is dynamic.
fn finish_network(block: &mut Finish<'_>) {
    let mut labels = Vec::new();
    let (mut reserved, mut dynamic) = (Vec::new(), Vec::new());
    for port in block.take_list("@ports") {
        let get = |key: &str| port.as_map().and_then(|port| port.get(key));
        let label = get("Label")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        if labels.contains(&label) {
            block.error(
                format!("two ports have the label \"{label}\""),
                "Give each its own.",
            );
        }
        labels.push(label);
        let number = get("Value").and_then(Value::as_int).unwrap_or(0);
        if number > 0 {
            reserved.push(port)
        } else {
            dynamic.push(port)
        }
    }
    for (key, ports) in [("ReservedPorts", reserved), ("DynamicPorts", dynamic)] {
        if !ports.is_empty() {
            block.fields.insert(key.to_owned(), Value::List(ports));
        }
    }
}

const VOLUME: Block = Block::new(
    &[
        attr("type", "Type", Kind::Text),
        attr("source", "Source", Kind::Text),
        attr("read_only", "ReadOnly", Kind::Bool),
        attr("sticky", "Sticky", Kind::Bool),
        attr("per_alloc", "PerAlloc", Kind::Bool),
        attr("access_mode", "AccessMode", Kind::Text),
        attr("attachment_mode", "AttachmentMode", Kind::Text),
    ],
    &[one("mount_options", "MountOptions", &MOUNT_OPTIONS)],
);

const MOUNT_OPTIONS: Block = Block::new(
    &[
        attr("fs_type", "FSType", Kind::Text),
        attr("mount_flags", "MountFlags", Kind::Texts),
    ],
    &[],
);

pub(super) const SCALING: Block = Block::new(
    &[
        attr("enabled", "Enabled", Kind::Bool),
        attr("min", "Min", Kind::Int),
        attr("max", "Max", Kind::Int),
        attr("type", "Type", Kind::Text),
    ],
    &[one("policy", "Policy", &FREE)],
);
