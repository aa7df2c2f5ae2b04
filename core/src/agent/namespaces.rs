//! Which namespaces there are, and who is in them.
//!
//! There is `default`, there are those of the configuration, and those that somebody made. What lies in a namespace
//! keeps it; so nothing is ever placed in one that is not there, except where the configuration named it until the
//! agent was restarted: its jobs go on, and take no change.

use crate::model::job::JobStatus;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Agent;
use crate::ids::JobKey;
use crate::model::job::Job;
use crate::model::namespace::{self, Namespace};
use crate::store::namespace::NamespaceRecord;
use crate::text::quote;

/// How many namespaces are named to somebody who asks for one that is not there.
const NAMED: usize = 20;

impl Agent {
    /// Whether the configuration says that there is this namespace. A recording of earlier days does not say which
    /// there were.
    pub(super) fn is_configured_namespace(&self, name: &str) -> bool {
        let configured = self.config.namespaces.as_ref();
        name == namespace::DEFAULT
            || configured.is_none_or(|names| names.iter().any(|one| **one == *name))
    }

    /// Whether there is this namespace.
    pub(super) fn has_namespace(&self, name: &str) -> bool {
        self.local.namespaces.contains_key(name) || self.is_configured_namespace(name)
    }

    /// All namespaces by name; those that nobody described have index 1.
    pub(super) fn namespaces(&self) -> BTreeMap<Arc<str>, Arc<NamespaceRecord>> {
        let default = [Arc::from(namespace::DEFAULT)];
        let configured = self.config.namespaces.iter().flatten().cloned();
        let undescribed = |name: Arc<str>| {
            let description = match &*name {
                namespace::DEFAULT => namespace::DEFAULT_DESCRIPTION,
                _ => "",
            };
            let record = NamespaceRecord {
                namespace: Namespace {
                    name: name.clone(),
                    description: description.to_owned(),
                    ..Namespace::default()
                },
                create_index: 1,
                modify_index: 1,
            };
            (name, Arc::new(record))
        };
        let given = default.into_iter().chain(configured).map(undescribed);
        let mut all: BTreeMap<_, _> = given.collect();
        let made = self.local.namespaces.iter();
        all.extend(made.map(|(name, record)| (name.clone(), record.clone())));
        all
    }

    /// Why something cannot be in this namespace, if it is not there; `what` names it.
    ///
    /// # Errors
    /// There is no such namespace.
    pub(super) fn check_namespace(&self, name: &str, what: &str) -> Result<(), String> {
        if self.has_namespace(name) {
            return Ok(());
        }
        let all = self.namespaces();
        let more = match all.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let known: Vec<&str> = all.keys().take(NAMED).map(|name| &**name).collect();
        Err(format!(
            "{what} is in nonexistent namespace {}; there are {}{more} (namespace apply makes another)",
            quote(name),
            known.join(", ")
        ))
    }

    /// Whether a job's namespace is there.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn check_namespace_of(&self, job: &JobKey) -> Result<(), String> {
        let what = format!("job {}", quote(&job.id));
        self.check_namespace(&job.namespace, &what)
    }

    /// Whether a job's namespace is there and lets it use what it uses.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check_home(&self, job: &Job) -> Result<(), String> {
        self.check_namespace_of(&job.key())?;
        let record = self.local.namespaces.get(job.namespace.as_str());
        let capabilities = record.and_then(|record| record.namespace.capabilities.as_ref());
        capabilities.map_or(Ok(()), |capabilities| capabilities.admits(job))
    }

    /// What keeps a namespace from being deleted: a job that is not over, an allocation of which something may be
    /// alive, a variable or a volume.
    ///
    /// A service that is not stopped may look dead and come back: its node takes work again, or has yet to be known
    /// by an agent that has just begun. So it is not over before it is stopped.
    pub(super) fn content_of_namespace(&self, name: &str) -> Option<String> {
        for (key, record) in &self.local.jobs {
            if *key.namespace != *name {
                continue;
            }
            let job = &record.job;
            let ends_by_itself = job.job_type.runs_to_completion();
            if self.view().job_status(key) != JobStatus::Dead {
                return Some(format!("job {}, which is not dead", quote(&job.id)));
            }
            if !job.stop && (!ends_by_itself || self.shared.fingerprint_pending) {
                return Some(format!("job {}, which is not stopped", quote(&job.id)));
            }
        }
        let mut allocs = self.allocs.values().filter(|alloc| !alloc.is_gone());
        if let Some(alloc) = allocs.find(|alloc| *alloc.record().job.namespace == *name) {
            return Some(format!(
                "allocation {}, which is not over",
                alloc.record().id
            ));
        }
        let mut variables = self.local.variables.keys();
        if let Some(key) = variables.find(|key| *key.namespace == *name) {
            return Some(format!("variable {}", quote(&key.path)));
        }
        let mut volumes = self.machine.volumes().records();
        let volume = volumes.find(|volume| *volume.spec.namespace == *name)?;
        Some(format!("volume {}", quote(&volume.spec.name)))
    }
}
