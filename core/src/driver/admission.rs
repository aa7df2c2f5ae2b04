//! Whether a task asks of its driver for no more than the agent's configuration allows, as far as that is known before
//! its references are replaced. Asked twice: when a job is handed in, so that nothing is made of one that is refused,
//! and by the task, since servers of a cluster place jobs of which this agent is not asked, and the configuration may
//! be another one than it was.

use std::collections::BTreeMap;

use super::config::{DOCKER as DOCKER_SCHEMA, DockerConfig, EXEC as EXEC_SCHEMA, ExecConfig};
use super::docker::DockerPolicy;
use super::isolation::{DOCKER, EXEC, ExecPolicy};
use super::schema::Schema;
use crate::interpolate::has_reference;
use crate::model::group::TaskGroup;
use crate::model::task::Task;
use crate::model::value::Value;

/// Whether a task of a group may be as it is asked for.
///
/// # Errors
/// What may not be, and which setting would allow it.
pub fn admit(
    exec: &ExecPolicy,
    docker: &DockerPolicy,
    group: &TaskGroup,
    task: &Task,
) -> Result<(), String> {
    match task.driver.as_str() {
        EXEC => {
            let config = settled(&EXEC_SCHEMA, &task.config);
            // What is no configuration at all is said of its schema.
            match ExecConfig::decode(&config) {
                Ok(asked) => exec.profile(&asked).map(|_| ()),
                Err(_) => Ok(()),
            }
        }
        DOCKER => {
            let Some(asked) = container_of(task) else {
                return Ok(());
            };
            docker.admit(&asked)?;
            let network = group.networks.first();
            // Where the mode refers to something, the container may turn out not to join that network.
            let mode_is_known = !task.config.get("network_mode").is_some_and(refers);
            if mode_is_known && network.is_some_and(|network| network.mode().is_own()) {
                DockerPolicy::joins_group_network(&asked)?;
            }
            let ports = network
                .into_iter()
                .flat_map(|it| it.reserved_ports.iter().chain(&it.dynamic_ports));
            let labels: Vec<&str> = ports.map(|port| port.label.as_str()).collect();
            DockerPolicy::has_ports(&asked, |label| labels.contains(&label))
        }
        _ => Ok(()),
    }
}

/// What a task says of its container before its references are replaced; none if it is no container, or what it says is
/// at fault.
pub fn container_of(task: &Task) -> Option<DockerConfig> {
    let is_container = task.driver == DOCKER;
    let config = || settled(&DOCKER_SCHEMA, &task.config);
    is_container
        .then(|| DockerConfig::decode(&config()).ok())
        .flatten()
}

/// The fields without references. One that must be given is kept all the same.
fn settled(schema: &Schema, config: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let is_required = |name: &str| {
        let mut fields = schema.fields.iter();
        fields.any(|field| field.required && field.name == name)
    };
    let fields = config.iter();
    fields
        .filter(|(name, value)| is_required(name) || !refers(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn refers(value: &Value) -> bool {
    match value {
        Value::String(text) => has_reference(text),
        Value::List(items) => items.iter().any(refers),
        Value::Map(map) => map.values().any(refers),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::network::Network;

    fn refusal(driver: &str, config: &[(&str, Value)]) -> String {
        refusal_in(&TaskGroup::default(), driver, config)
    }

    fn refusal_in(group: &TaskGroup, driver: &str, config: &[(&str, Value)]) -> String {
        let mut task = Task {
            driver: driver.to_owned(),
            ..Task::default()
        };
        let config = config.iter();
        task.config = config
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let (exec, docker) = (ExecPolicy::default(), DockerPolicy::default());
        let admitted = admit(&exec, &docker, group, &task);
        admitted.err().unwrap_or_default()
    }

    fn text(text: &str) -> Value {
        Value::from(text)
    }

    #[test]
    fn what_is_asked_for_counts_beside_fields_with_references() {
        let image = ("image", text("${NOMAD_META_image}"));
        let args = ("args", Value::List(vec![text("${NOMAD_PORT_http}")]));
        let privileged = ("privileged", Value::Bool(true));
        assert_eq!(refusal("docker", &[image.clone(), args.clone()]), "");
        let why = refusal("docker", &[image, args.clone(), privileged]);
        assert!(why.contains("allow_privileged"), "{why}");
        let command = ("command", text("${NOMAD_META_program}"));
        let add = ("cap_add", Value::List(vec![text("sys_admin")]));
        let why = refusal("exec", &[command.clone(), args, add]);
        assert!(why.contains("allow_caps"), "{why}");
        // What it will be is seen when it starts.
        let unclear = ("cap_add", Value::List(vec![text("${NOMAD_META_cap}")]));
        assert_eq!(refusal("exec", &[command, unclear]), "");
    }

    #[test]
    fn ports_of_container_are_those_of_its_group() {
        let image = ("image", text("a:1"));
        let ports = ("ports", Value::List(vec![text("http")]));
        let why = refusal("docker", &[image, ports]);
        assert!(why.contains("no port \"http\""), "{why}");
    }

    #[test]
    fn names_of_container_in_group_network_are_admitted_while_its_mode_is_unknown() {
        let bridge = Network {
            mode: "bridge".to_owned(),
            ..Network::default()
        };
        let group = TaskGroup {
            networks: vec![bridge],
            ..TaskGroup::default()
        };
        let image = ("image", text("a:1"));
        let servers = ("dns_servers", Value::List(vec![text("10.0.0.1")]));
        let config = [image, servers, ("hostname", text("web"))];
        let why = refusal_in(&group, "docker", &config);
        assert!(why.contains("network of its own"), "{why}");
        for mode in ["host", "${NOMAD_META_net}"] {
            let config = [&config[..], &[("network_mode", text(mode))]].concat();
            assert_eq!(refusal_in(&group, "docker", &config), "", "{mode}");
        }
    }

    #[test]
    fn other_drivers_are_asked_by_nobody() {
        assert_eq!(
            refusal("raw_exec", &[("privileged", Value::Bool(true))]),
            ""
        );
        assert_eq!(refusal("plugin", &[("privileged", Value::Bool(true))]), "");
    }
}
