//! The `task` block.

use drover_core::model::artifact::GetterMode;
use drover_core::model::value::Value;

use super::group::{AFFINITY, CONSTRAINT, NETWORK, RESTART, SCALING};
use super::service::{IDENTITY, SERVICE};
use super::{Block, Child, FREE, Finish, Kind, Shape, attr, labelled, many, one};

pub(super) const TASK: Block = Block::new(
    &[
        attr("driver", "Driver", Kind::Text),
        attr("user", "User", Kind::Text),
        attr("env", "Env", Kind::Pairs),
        attr("meta", "Meta", Kind::Pairs),
        attr("kill_timeout", "KillTimeout", Kind::Span),
        attr("kill_signal", "KillSignal", Kind::Text),
        attr("shutdown_delay", "ShutdownDelay", Kind::Span),
        attr("leader", "Leader", Kind::Bool),
        attr("kind", "Kind", Kind::Text),
    ],
    &[
        one("config", "Config", &FREE),
        one("lifecycle", "Lifecycle", &LIFECYCLE),
        one("resources", "Resources", &RESOURCES),
        one("restart", "RestartPolicy", &RESTART),
        one("logs", "LogConfig", &LOGS),
        many("constraint", "Constraints", &CONSTRAINT),
        many("affinity", "Affinities", &AFFINITY),
        many("service", "Services", &SERVICE),
        many("artifact", "Artifacts", &ARTIFACT),
        many("template", "Templates", &TEMPLATE),
        many("volume_mount", "VolumeMounts", &VOLUME_MOUNT),
        one("dispatch_payload", "DispatchPayload", &DISPATCH_PAYLOAD),
        one("vault", "Vault", &VAULT),
        one("consul", "Consul", &CONSUL),
        many("identity", "Identities", &IDENTITY),
        labelled("secret", "Secrets", "Name", &SECRET),
        labelled("action", "Actions", "Name", &ACTION),
        one("csi_plugin", "CSIPluginConfig", &CSI_PLUGIN),
        labelled("scaling", "ScalingPolicies", "Type", &SCALING),
        one("schedule", "Schedule", &SCHEDULE),
        many("wait_for", "WaitFor", &WAIT_FOR),
        one("image_update", "ImageUpdate", &IMAGE_UPDATE),
    ],
)
.finished_by(finish_task);

/// The identity without a name, or named `default`, is the task's own.
fn finish_task(block: &mut Finish<'_>) {
    let mut others = Vec::new();
    for identity in block.take_list("Identities") {
        let name = identity.as_map().and_then(|identity| identity.get("Name"));
        match name.and_then(Value::as_str).unwrap_or("") {
            "" | "default" => {
                if block
                    .fields
                    .insert("Identity".to_owned(), identity)
                    .is_some()
                {
                    block.error("there are two default identities", "Name one of them.");
                }
            }
            _ => others.push(identity),
        }
    }
    if !others.is_empty() {
        block
            .fields
            .insert("Identities".to_owned(), Value::List(others));
    }
}

const LIFECYCLE: Block = Block::new(
    &[
        attr(
            "hook",
            "Hook",
            Kind::Choice(&["prestart", "poststart", "poststop"]),
        ),
        attr("sidecar", "Sidecar", Kind::Bool),
    ],
    &[],
)
.finished_by(|block| {
    if !block.fields.contains_key("Hook") {
        block.error(
            "lifecycle has no hook",
            "Say when the task runs: hook = \"prestart\", \"poststart\" or \"poststop\".",
        );
        // The rest of the job is still read.
        block.default("Hook", "prestart");
    }
});

const RESOURCES: Block = Block::new(
    &[
        attr("cpu", "CPU", Kind::Int),
        attr("cores", "Cores", Kind::Int),
        attr("memory", "MemoryMB", Kind::Int),
        attr("memory_max", "MemoryMaxMB", Kind::Int),
        attr("secrets", "SecretsMB", Kind::Int),
        attr(
            "disk",
            "",
            Kind::Ignored("disk space belongs into ephemeral_disk"),
        ),
        attr("iops", "", Kind::Ignored("it is not managed")),
    ],
    &[
        labelled("device", "Devices", "Name", &DEVICE),
        one("numa", "NUMA", &NUMA),
        many("network", "", &NETWORK),
    ],
);

const DEVICE: Block = Block::new(
    &[attr("count", "Count", Kind::Int)],
    &[
        many("constraint", "Constraints", &CONSTRAINT),
        many("affinity", "Affinities", &AFFINITY),
    ],
);

const NUMA: Block = Block::new(
    &[
        attr("affinity", "Affinity", Kind::Text),
        attr("devices", "Devices", Kind::Texts),
    ],
    &[],
);

const LOGS: Block = Block::new(
    &[
        attr("max_files", "MaxFiles", Kind::Int),
        attr("max_file_size", "MaxFileSizeMB", Kind::Int),
        attr("disabled", "Disabled", Kind::Bool),
    ],
    &[],
);

const ARTIFACT: Block = Block::new(
    &[
        attr("source", "GetterSource", Kind::Text),
        attr("destination", "RelativeDest", Kind::Text),
        attr("mode", "GetterMode", Kind::Choice(GetterMode::NAMES)),
        attr("options", "GetterOptions", Kind::Pairs),
        attr("headers", "GetterHeaders", Kind::Pairs),
        attr("insecure", "GetterInsecure", Kind::Bool),
        attr("chown", "Chown", Kind::Bool),
    ],
    &[],
);

const TEMPLATE: Block = Block::new(
    &[
        attr("source", "SourcePath", Kind::Text),
        attr("destination", "DestPath", Kind::Text),
        attr("data", "EmbeddedTmpl", Kind::Text),
        attr(
            "change_mode",
            "ChangeMode",
            Kind::Choice(&["noop", "restart", "signal", "script"]),
        ),
        attr("change_signal", "ChangeSignal", Kind::Text),
        attr("splay", "Splay", Kind::Span),
        attr("perms", "Perms", Kind::Text),
        attr("uid", "Uid", Kind::Int),
        attr("gid", "Gid", Kind::Int),
        attr("left_delimiter", "LeftDelim", Kind::Text),
        attr("right_delimiter", "RightDelim", Kind::Text),
        attr("env", "Envvars", Kind::Bool),
        attr("error_on_missing_key", "ErrMissingKey", Kind::Bool),
        attr("once", "Once", Kind::Bool),
        attr(
            "vault_grace",
            "",
            Kind::Ignored("it has no effect any more"),
        ),
    ],
    &[
        one("change_script", "ChangeScript", &CHANGE_SCRIPT),
        one("wait", "Wait", &WAIT),
    ],
);

const CHANGE_SCRIPT: Block = Block::new(
    &[
        attr("command", "Command", Kind::Text),
        attr("args", "Args", Kind::Texts),
        attr("timeout", "Timeout", Kind::Span),
        attr("fail_on_error", "FailOnError", Kind::Bool),
        attr("run_on_first_render", "RunOnFirstRender", Kind::Bool),
    ],
    &[],
);

const WAIT: Block = Block::new(
    &[
        attr("min", "Min", Kind::Span),
        attr("max", "Max", Kind::Span),
    ],
    &[],
);

const WAIT_FOR: Block = Block::new(&[attr("service", "Service", Kind::Text)], &[]);

const IMAGE_UPDATE: Block = Block::new(
    &[
        attr("enabled", "Enabled", Kind::Bool),
        attr("schedule", "Schedule", Kind::Text),
        attr("policy", "Policy", Kind::Text),
        attr("time_zone", "TimeZone", Kind::Text),
    ],
    &[],
);

const VOLUME_MOUNT: Block = Block::new(
    &[
        attr("volume", "Volume", Kind::Text),
        attr("destination", "Destination", Kind::Text),
        attr("read_only", "ReadOnly", Kind::Bool),
        attr("propagation_mode", "PropagationMode", Kind::Text),
        attr("selinux_label", "SELinuxLabel", Kind::Text),
    ],
    &[],
);

const DISPATCH_PAYLOAD: Block = Block::new(&[attr("file", "File", Kind::Text)], &[]);

pub(super) const VAULT: Block = Block::new(
    &[
        attr("role", "Role", Kind::Text),
        attr("policies", "Policies", Kind::Texts),
        attr("namespace", "Namespace", Kind::Text),
        attr("cluster", "Cluster", Kind::Text),
        attr("env", "Env", Kind::Bool),
        attr("disable_file", "DisableFile", Kind::Bool),
        attr("change_mode", "ChangeMode", Kind::Text),
        attr("change_signal", "ChangeSignal", Kind::Text),
        attr("allow_token_expiration", "AllowTokenExpiration", Kind::Bool),
    ],
    &[],
);

pub(super) const CONSUL: Block = Block::new(
    &[
        attr("namespace", "Namespace", Kind::Text),
        attr("cluster", "Cluster", Kind::Text),
        attr("partition", "Partition", Kind::Text),
    ],
    &[],
);

pub(super) const SECRET: Block = Block::new(
    &[
        attr("provider", "Provider", Kind::Text),
        attr("path", "Path", Kind::Text),
        attr("env", "Env", Kind::Pairs),
    ],
    &[one("config", "Config", &FREE)],
);

const ACTION: Block = Block::new(
    &[
        attr("command", "Command", Kind::Text),
        attr("args", "Args", Kind::Texts),
    ],
    &[],
);

const CSI_PLUGIN: Block = Block::new(
    &[
        attr("id", "ID", Kind::Text),
        attr("type", "Type", Kind::Text),
        attr("mount_dir", "MountDir", Kind::Text),
        attr("stage_publish_base_dir", "StagePublishBaseDir", Kind::Text),
        attr("health_timeout", "HealthTimeout", Kind::Span),
    ],
    &[],
);

const SCHEDULE: Block = Block::new(
    &[],
    &[Child {
        name: "cron",
        key: "Cron",
        shape: Shape::One,
        body: &SCHEDULE_CRON,
    }],
);

const SCHEDULE_CRON: Block = Block::new(
    &[
        attr("start", "Start", Kind::Text),
        attr("end", "End", Kind::Text),
        attr("timezone", "Timezone", Kind::Text),
    ],
    &[],
);
