//! Namespaces: jobs, variables and volumes of one name side by side, each in a namespace of its own.
//!
//! A namespace may say which drivers and which networks its jobs use. That is asked when a job is registered, and
//! never of one that runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::job::Job;
use crate::text::quote;

/// The namespace that there always is.
pub const DEFAULT: &str = "default";

/// What [`DEFAULT`] is for, unless somebody said otherwise.
pub const DEFAULT_DESCRIPTION: &str = "Default shared namespace";

/// The longest name, in bytes, as in Nomad.
const MAX_NAME: usize = 128;
/// The longest description, in bytes, as in Nomad.
const MAX_DESCRIPTION: usize = 256;
/// The most keys of metadata, and the most drivers or networks in one list.
const MAX_EACH: usize = 128;
/// The longest key, value, or name in a list, in bytes.
const MAX_WORD: usize = 4_096;
/// The network of a group that does not name one.
const HOST_NETWORK: &str = "host";

/// A namespace, as somebody describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for.
    pub description: String,
    /// Somebody's data.
    pub meta: BTreeMap<String, String>,
    /// What its jobs may use; everything if none.
    pub capabilities: Option<NamespaceCapabilities>,
}

/// What jobs of a namespace may use. A list of what is enabled that is empty enables everything; what is disabled
/// is so in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespaceCapabilities {
    /// Drivers that tasks may use, and no others.
    pub enabled_task_drivers: Vec<String>,
    /// Drivers that tasks must not use.
    pub disabled_task_drivers: Vec<String>,
    /// Modes that networks of groups may have, and no others.
    pub enabled_network_modes: Vec<String>,
    /// Modes that networks of groups must not have.
    pub disabled_network_modes: Vec<String>,
}

impl Namespace {
    /// Whether it can be made.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        self.check_sizes()
    }

    /// Whether it is not too large. That is for the API to ask: recordings hide texts, and are to play the same.
    ///
    /// # Errors
    /// Why not.
    pub fn check_sizes(&self) -> Result<(), String> {
        if self.description.len() > MAX_DESCRIPTION {
            return Err(format!(
                "description longer than {MAX_DESCRIPTION} bytes: it has {}",
                self.description.len()
            ));
        }
        let lists = self.capabilities.iter().flat_map(|it| {
            [
                &it.enabled_task_drivers,
                &it.disabled_task_drivers,
                &it.enabled_network_modes,
                &it.disabled_network_modes,
            ]
        });
        let too_many = |count: usize| count > MAX_EACH;
        let too_long = |word: &String| word.len() > MAX_WORD;
        if too_many(self.meta.len()) || lists.clone().any(|list| too_many(list.len())) {
            return Err(format!(
                "a namespace has at most {MAX_EACH} keys of meta, and as many drivers and network modes in each list"
            ));
        }
        let mut words = self.meta.iter().flat_map(|(key, value)| [key, value]);
        if words.any(too_long) || lists.flatten().any(too_long) {
            return Err(format!(
                "keys and values of meta, drivers and network modes have at most {MAX_WORD} bytes"
            ));
        }
        Ok(())
    }
}

/// Whether a namespace that is made may have this name, by Nomad's rule.
///
/// # Errors
/// Why not.
pub fn check_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        return Err(format!(
            "invalid name {}: a namespace's name has 1 to {MAX_NAME} letters, digits and -",
            quote(name)
        ));
    }
    Ok(())
}

impl NamespaceCapabilities {
    /// Whether a job uses nothing but what is allowed.
    ///
    /// # Errors
    /// The first that is not allowed, and what is.
    pub fn admits(&self, job: &Job) -> Result<(), String> {
        let (id, namespace) = (quote(&job.id), quote(&job.namespace));
        for group in &job.task_groups {
            for task in &group.tasks {
                allowed(
                    &task.driver,
                    &self.enabled_task_drivers,
                    &self.disabled_task_drivers,
                )
                .map_err(|why| {
                    let (task, driver) = (quote(&task.name), quote(&task.driver));
                    format!("job {id}: task {task} uses driver {driver}, and namespace {namespace} {why}")
                })?;
            }
            for network in &group.networks {
                let mode = match network.mode.as_str() {
                    "" => HOST_NETWORK,
                    mode => mode,
                };
                allowed(mode, &self.enabled_network_modes, &self.disabled_network_modes).map_err(
                    |why| {
                        let (group, mode) = (quote(&group.name), quote(mode));
                        format!("job {id}: group {group} uses network mode {mode}, and namespace {namespace} {why}")
                    },
                )?;
            }
        }
        Ok(())
    }
}

/// Whether something is enabled and not disabled.
fn allowed(name: &str, enabled: &[String], disabled: &[String]) -> Result<(), String> {
    if disabled.iter().any(|one| one == name) {
        return Err(format!("does not allow {}", disabled.join(", ")));
    }
    if !enabled.is_empty() && !enabled.iter().any(|one| one == name) {
        return Err(format!("allows only {}", enabled.join(", ")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::group::{Network, TaskGroup};
    use crate::model::task::Task;

    fn named(name: &str) -> Namespace {
        Namespace {
            name: name.into(),
            ..Namespace::default()
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn job(driver: &str, mode: &str) -> Job {
        let task = Task {
            name: "t".to_owned(),
            driver: driver.to_owned(),
            ..Task::default()
        };
        let network = Network {
            mode: mode.to_owned(),
            ..Network::default()
        };
        Job {
            id: "j".to_owned(),
            task_groups: vec![TaskGroup {
                tasks: vec![task],
                networks: vec![network],
                ..TaskGroup::default()
            }],
            ..Job::default()
        }
    }

    #[test]
    fn names_are_letters_digits_and_dashes() {
        for good in ["a", "team-a", "T1", &"x".repeat(128)] {
            assert_eq!(named(good).check(), Ok(()), "{good}");
        }
        for bad in ["", "a b", "team_a", "a/b", "é", "*", &"x".repeat(129)] {
            assert!(named(bad).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let mut long = named("a");
        long.description = "x".repeat(257);
        assert!(long.check().is_err());
        let mut many = named("a");
        many.meta = (0..129).map(|n| (n.to_string(), String::new())).collect();
        assert!(many.check().is_err());
        let mut word = named("a");
        word.capabilities = Some(NamespaceCapabilities {
            disabled_network_modes: vec!["x".repeat(4_097)],
            ..NamespaceCapabilities::default()
        });
        assert!(word.check().is_err());
    }

    #[test]
    fn drivers_are_those_that_are_enabled_without_those_that_are_disabled() {
        let none = NamespaceCapabilities::default();
        assert_eq!(none.admits(&job("raw_exec", "")), Ok(()));
        let some = NamespaceCapabilities {
            enabled_task_drivers: words(&["exec", "docker"]),
            disabled_task_drivers: words(&["docker"]),
            ..none
        };
        assert_eq!(some.admits(&job("exec", "")), Ok(()));
        for driver in ["raw_exec", "docker"] {
            let why = some.admits(&job(driver, "")).err().unwrap_or_default();
            assert!(why.contains(&format!("driver {driver:?}")), "{why}");
        }
    }

    #[test]
    fn group_that_names_no_network_mode_is_on_the_hosts_network() {
        let no_host = NamespaceCapabilities {
            disabled_network_modes: words(&["host"]),
            ..NamespaceCapabilities::default()
        };
        assert!(no_host.admits(&job("exec", "")).is_err());
        assert!(no_host.admits(&job("exec", "host")).is_err());
        assert_eq!(no_host.admits(&job("exec", "bridge")), Ok(()));
    }
}
