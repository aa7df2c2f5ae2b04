//! What a task leaves open.

use super::service::fill_service;
use super::{conditions, fill, fill_text, merged};
use crate::model::artifact::{Artifact, GetterMode};
use crate::model::policy::RestartPolicy;
use crate::model::task::{DEFAULT_KILL_TIMEOUT, LogConfig, Task};
use crate::model::template::{ChangeMode, ChangeScript, Template};
use crate::model::value::Value;
use crate::time::{SECOND, Span};

/// Fills in a task of a group with this restart policy, whose services are named like this.
pub(super) fn fill_task(task: &mut Task, restart: &RestartPolicy, group_name: &str) {
    task.kill_timeout.get_or_insert(DEFAULT_KILL_TIMEOUT);
    task.log_config.get_or_insert_with(LogConfig::default);
    let own = task.restart_policy.unwrap_or_default();
    task.restart_policy = Some(merged(own, *restart));
    conditions(&mut task.constraints, &mut task.affinities, &mut []);
    for device in &mut task.resources.devices {
        device
            .constraints
            .iter_mut()
            .for_each(|c| fill_text(&mut c.operand, "="));
        device
            .affinities
            .iter_mut()
            .for_each(|a| fill_text(&mut a.operand, "="));
    }
    if let Some(numa) = &mut task.resources.numa {
        fill(numa, &[("Affinity", Value::from("none"))]);
    }
    let name = format!("{group_name}-{}", task.name);
    task.services
        .iter_mut()
        .for_each(|service| fill_service(service, &name, &task.name));
    task.artifacts.iter_mut().for_each(fill_artifact);
    task.templates.iter_mut().for_each(fill_template);
    for mount in &mut task.volume_mounts {
        fill_text(&mut mount.propagation_mode, "private");
    }
    if let Some(vault) = &mut task.vault {
        fill(
            vault,
            &[
                ("Cluster", Value::from("default")),
                ("Env", Value::Bool(true)),
                ("DisableFile", Value::Bool(false)),
                ("ChangeMode", Value::from("restart")),
                ("AllowTokenExpiration", Value::Bool(false)),
            ],
        );
        fill_signal(vault);
    }
    if let Some(plugin) = &mut task.csi_plugin_config {
        fill(
            plugin,
            &[
                ("MountDir", Value::from("/csi")),
                ("StagePublishBaseDir", Value::from("/local/csi")),
                ("HealthTimeout", Value::Int(30 * SECOND)),
            ],
        );
    }
}

fn fill_artifact(artifact: &mut Artifact) {
    // A single file keeps its name.
    let place = match artifact.getter_mode {
        GetterMode::File => {
            let path = artifact.getter_source.split(['?', '#']).next();
            let name = path.unwrap_or("").rsplit('/').next().unwrap_or("");
            format!("local/{name}")
        }
        GetterMode::Any | GetterMode::Dir => "local/".to_owned(),
    };
    fill_text(&mut artifact.relative_dest, &place);
}

fn fill_template(template: &mut Template) {
    let usual = Template::default();
    fill_text(&mut template.perms, &usual.perms);
    fill_text(&mut template.left_delim, &usual.left_delim);
    fill_text(&mut template.right_delim, &usual.right_delim);
    if template.change_mode == ChangeMode::Signal {
        fill_text(&mut template.change_signal, "SIGHUP");
    }
    if let Some(wait) = &mut template.wait
        && wait.max.is_zero()
    {
        wait.max = Span(wait.min.0.saturating_mul(4));
    }
    if let Some(script) = &mut template.change_script
        && script.timeout.is_zero()
    {
        script.timeout = ChangeScript::TIMEOUT;
    }
}

/// The signal that is sent where a change is told by one.
fn fill_signal(block: &mut Value) {
    let mode = block.as_map().and_then(|fields| fields.get("ChangeMode"));
    if mode.and_then(Value::as_str) == Some("signal") {
        fill(block, &[("ChangeSignal", Value::from("SIGHUP"))]);
    }
}
