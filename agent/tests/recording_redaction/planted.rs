//! A job with a secret at every place that may have one.

use drover_core::model::artifact::Artifact;
use drover_core::model::group::{Network, TaskGroup};
use drover_core::model::identity::Identity;
use drover_core::model::job::Job;
use drover_core::model::task::{Resources, Task};
use drover_core::model::template::Template;
use serde_json::{Value, json};

/// Every secret has this in it.
pub(crate) const SECRET: &str = "hunter2";

/// Fields of these kinds of blocks that hold no secret: names, ids, times, numbers, conditions on
/// the node, or blocks whose own fields are looked at. Whoever adds a field decides.
const SHOWN: &[(&str, &[&str])] = &[
    (
        "job",
        &[
            "ID",
            "Name",
            "Namespace",
            "Region",
            "Type",
            "Priority",
            "AllAtOnce",
            "Datacenters",
            "NodePool",
            "Constraints",
            "TaskGroups",
            "Update",
            "Reschedule",
            "Periodic",
            "ParameterizedJob",
            "ParentID",
            "Dispatched",
            "Stop",
            "Version",
            "Stable",
            "Status",
            "StatusDescription",
            "SubmitTime",
            "CreateIndex",
            "ModifyIndex",
            "JobModifyIndex",
        ],
    ),
    (
        "group",
        &[
            "Name",
            "Count",
            "Constraints",
            "RestartPolicy",
            "ReschedulePolicy",
            "Update",
            "EphemeralDisk",
            "Networks",
            "Volumes",
            "ShutdownDelay",
            "MaxRunDuration",
            "StopAfterClientDisconnect",
            "MaxClientDisconnect",
            "PreventRescheduleOnLost",
            "Tasks",
        ],
    ),
    (
        "task",
        &[
            "Name",
            "Driver",
            "User",
            "Lifecycle",
            "Leader",
            "KillTimeout",
            "KillSignal",
            "ShutdownDelay",
            "RestartPolicy",
            "Resources",
            "LogConfig",
            "Constraints",
            "DispatchPayload",
            "Identity",
            "Identities",
            "VolumeMounts",
        ],
    ),
    (
        "identity",
        &[
            "Name",
            "Audience",
            "ChangeMode",
            "ChangeSignal",
            "Env",
            "File",
            "Filepath",
            "TTL",
        ],
    ),
    ("artifact", &["GetterMode", "GetterInsecure", "Chown"]),
    (
        "template",
        &[
            "SourcePath",
            "DestPath",
            "ChangeMode",
            "ChangeSignal",
            "ChangeScript",
            "Splay",
            "Perms",
            "Uid",
            "Gid",
            "LeftDelim",
            "RightDelim",
            "Envvars",
            "ErrMissingKey",
            "Once",
            "Wait",
            "VaultGrace",
        ],
    ),
    (
        "network",
        &["Mode", "ReservedPorts", "DynamicPorts", "Hostname"],
    ),
    (
        "resources",
        &[
            "CPU",
            "Cores",
            "MemoryMB",
            "MemoryMaxMB",
            "SecretsMB",
            "Devices",
        ],
    ),
];

/// The block with a secret in every field that may have one, in the shape that the field has.
fn planted(kind: &str, block: &impl serde::Serialize) -> Value {
    let (_, shown) = SHOWN.iter().find(|(name, _)| *name == kind).unwrap();
    let mut block = serde_json::to_value(block).unwrap();
    for (field, value) in block.as_object_mut().unwrap() {
        if shown.contains(&field.as_str()) {
            continue;
        }
        let secret = format!("{SECRET}-{kind}-{field}");
        let nested = json!({ "plain": secret, "deep": [{ "token": secret, "pin": 20_241_121 }] });
        *value = match (field.as_str(), &value) {
            ("Meta" | "Env" | "GetterOptions" | "GetterHeaders", _) => {
                json!({ "name": secret, "same": secret })
            }
            ("Config", _) => nested,
            (_, Value::Array(_)) => json!([nested]),
            (_, Value::String(_)) => json!(secret),
            _ => nested,
        };
    }
    block
}

/// A job with all of them.
pub(crate) fn job() -> Job {
    let mut task = planted("task", &Task::default());
    let mut template = planted("template", &Template::default());
    template["EmbeddedTmpl"] = json!(format!("{SECRET}-template"));
    template["DestPath"] = json!("local/config");
    template["ChangeMode"] = json!("script");
    template["ChangeScript"] = json!({
        "Command": format!("{SECRET}-command"), "Args": [format!("{SECRET}-argument")],
        "RunOnFirstRender": true,
    });
    task["Templates"] = json!([template]);
    task["Name"] = json!("main");
    task["Driver"] = json!("custom");
    task["Artifacts"] = json!([planted("artifact", &Artifact::default())]);
    task["Resources"] = planted("resources", &Resources::default());
    task["RestartPolicy"] = json!({
        "Attempts": 1_000, "Interval": 3_600_000_000_000_i64, "Delay": 1_000_000, "Mode": "fail",
    });
    task["Env"]["URL"] = json!("db://${name}:hunter2-mixed@${NOMAD_META_name}/");
    task["DispatchPayload"] = json!({ "File": "in/data" });
    let mut identity = planted("identity", &Identity::default());
    identity["File"] = json!(true);
    identity["TTL"] = json!(60_000_000_000_i64);
    task["Identity"] = identity;
    let mut mock = task.clone();
    mock["Name"] = json!("pretended");
    mock["Driver"] = json!("mock_driver");
    mock["Config"] = json!({
        "run_for": "${NOMAD_META_span}", "exit_code": 12_345, "stdout_string": "hunter2-config",
        "stderr_string": "${same} and hunter2", "driver_port_map": "http:8080",
        "exec_command": [{ "run_for": "5m", "stdout_string": "hunter2-command" }],
    });
    mock["Meta"]["span"] = json!("90s");
    let mut group = planted("group", &TaskGroup::default());
    group["Name"] = json!("group");
    group["Networks"] = json!([planted("network", &Network::default())]);
    group["Tasks"] = json!([task, mock]);
    let mut job = planted("job", &Job::default());
    job["ID"] = json!("job");
    job["Type"] = json!("batch");
    job["Dispatched"] = json!(true);
    job["ParentID"] = json!("parent");
    job["ParameterizedJob"] = json!({ "Payload": "required", "MetaOptional": ["name"] });
    job["TaskGroups"] = json!([group]);
    serde_json::from_value(job).unwrap()
}
