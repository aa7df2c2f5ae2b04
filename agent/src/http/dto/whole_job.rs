//! What Nomad's servers add to a job in objects that are kept here as they were written: services, checks, resources and
//! scaling policies. Programs look for each of their fields.

use std::sync::LazyLock;

use drover_core::model::canonical::default_migrate;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use serde_json::{Map, Value, json};

use super::scale::policy_id;

type Fields = Map<String, Value>;

static SERVICE: LazyLock<Fields> = LazyLock::new(|| {
    fields(json!({
        "Address": "", "AddressMode": "auto", "CanaryMeta": null, "CanaryTags": null, "Checks": null,
        "Cluster": "default", "Connect": null, "EnableTagOverride": false, "Identity": null, "Kind": "",
        "Meta": null, "Name": "", "Namespace": "", "OnUpdate": "require_healthy", "PortLabel": "",
        "Provider": "consul", "TaggedAddresses": null, "Tags": null, "TaskName": "", "Weights": null,
    }))
});

static CHECK: LazyLock<Fields> = LazyLock::new(|| {
    fields(json!({
        "AddressMode": "", "Args": null, "Body": "", "CheckRestart": null, "Command": "", "Expose": false,
        "FailuresBeforeCritical": 0, "FailuresBeforeWarning": 0, "GRPCService": "", "GRPCUseTLS": false,
        "Header": null, "InitialStatus": "", "Interval": 0, "Method": "", "Name": "", "Notes": "",
        "OnUpdate": "require_healthy", "Path": "", "PortLabel": "", "Protocol": "",
        "SuccessBeforePassing": 0, "TLSServerName": "", "TLSSkipVerify": false, "TaskName": "",
        "Timeout": 0, "Type": "",
    }))
});

static RESOURCES: LazyLock<Fields> = LazyLock::new(|| {
    fields(json!({
        "Cores": 0, "Devices": null, "DiskMB": 0, "IOPS": 0, "MemoryMaxMB": 0, "NUMA": null, "Networks": null,
        "SecretsMB": 0,
    }))
});

/// How a service leaves a node that is drained.
static MIGRATE: LazyLock<Fields> = LazyLock::new(|| {
    let defaults = default_migrate().into_iter();
    let defaults = defaults.map(|(name, value)| (name.to_owned(), json!(value)));
    defaults.collect()
});

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

/// Completes a job as it is shown.
pub(super) fn complete(job: &Job, shown: &mut Fields) {
    let groups = list(shown, "TaskGroups");
    for (group, shown) in job.task_groups.iter().zip(groups) {
        if let Value::Object(shown) = shown {
            complete_group(job, group, shown);
        }
    }
}

fn complete_group(job: &Job, group: &TaskGroup, shown: &mut Fields) {
    complete_services(&job.namespace, "", shown);
    if let Some(Value::Object(scaling)) = shown.get_mut("Scaling") {
        let more = json!({
            "ID": policy_id(job, group),
            "Target": { "Namespace": job.namespace, "Job": job.id, "Group": group.name },
            "CreateIndex": job.create_index,
            "ModifyIndex": job.job_modify_index,
        });
        fill(scaling, &fields(more));
    }
    if job.job_type == JobType::Service {
        match shown.get_mut("Migrate") {
            Some(Value::Object(migrate)) => fill(migrate, &MIGRATE),
            _ => drop(shown.insert("Migrate".to_owned(), MIGRATE.clone().into())),
        }
    }
    let tasks = list(shown, "Tasks").iter_mut();
    for task in tasks.filter_map(Value::as_object_mut) {
        let name = task
            .get("Name")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        complete_services(&job.namespace, &name, task);
        if let Some(Value::Object(resources)) = task.get_mut("Resources") {
            fill(resources, &RESOURCES);
        }
    }
}

/// Completes the services of a task, or of its group.
fn complete_services(namespace: &str, task: &str, shown: &mut Fields) {
    for service in list(shown, "Services").iter_mut() {
        let Value::Object(service) = service else {
            continue;
        };
        let mut known = SERVICE.clone();
        known.insert("Namespace".to_owned(), namespace.into());
        known.insert("TaskName".to_owned(), task.into());
        fill(service, &known);
        for check in list(service, "Checks") {
            if let Value::Object(check) = check {
                fill(check, &CHECK);
            }
        }
    }
}

fn list<'a>(shown: &'a mut Fields, name: &str) -> &'a mut [Value] {
    match shown.get_mut(name) {
        Some(Value::Array(list)) => list,
        _ => &mut [],
    }
}

/// Gives an object the fields that it lacks, and their names as Nomad writes them to those that it has.
fn fill(object: &mut Fields, known: &Fields) {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    for (name, value) in known {
        if object.contains_key(name) {
            continue;
        }
        let odd = object.keys().find(|key| plain(key) == plain(name)).cloned();
        let written = odd.and_then(|key| object.remove(&key));
        object.insert(name.clone(), written.unwrap_or_else(|| value.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_as_nomad_does_and_none_is_missing() {
        let mut service = fields(json!({ "Name": "web", "port_label": "http", "Own": 1 }));
        fill(&mut service, &SERVICE);
        assert_eq!(service["PortLabel"], "http");
        assert_eq!(
            (&service["Name"], &service["Own"]),
            (&json!("web"), &json!(1))
        );
        assert_eq!(service.len(), SERVICE.len() + 1);
    }
}
