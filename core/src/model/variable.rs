//! Variables: small sets of texts, kept by path, mostly secrets.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::identifier;
use crate::text::quote;
use crate::time::Timestamp;

/// The longest path, in bytes.
pub const MAX_PATH: usize = 128;
/// The longest key of an item, in bytes.
pub const MAX_KEY: usize = 128;
/// How many bytes the items of one variable may have, keys and values together.
pub const MAX_BYTES: usize = 64 * 1024;
/// How many variables there may be.
pub const MAX_COUNT: usize = 4096;

/// A variable's full name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VariableKey {
    /// The namespace, `default` unless somebody says otherwise.
    pub namespace: Arc<str>,
    /// Where it is.
    pub path: Arc<str>,
}

impl fmt::Display for VariableKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.path, self.namespace)
    }
}

/// A variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variable {
    /// What is known of it without its items.
    pub meta: VariableMeta,
    /// What it holds.
    pub items: Items,
}

/// What is known of a variable without its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VariableMeta {
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
    /// When it was made.
    pub create_time: Timestamp,
    /// When it last changed.
    pub modify_time: Timestamp,
}

/// What a variable holds. Whoever prints it sees how much it is, and nothing of it.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Items(
    // Pairs: in recordings keys are hidden as values are, which keys of maps are not.
    #[serde(with = "crate::pairs")] BTreeMap<String, String>,
);

impl Items {
    /// Looks at them first.
    ///
    /// # Errors
    /// There are none or too many, or a key is no plain name.
    pub fn new(items: BTreeMap<String, String>) -> Result<Items, String> {
        if items.is_empty() {
            return Err("variable missing required Items object".to_owned());
        }
        if let Some(key) = items.keys().find(|key| !is_plain(key)) {
            return Err(format!(
                "the key {} is no plain name: letters, digits, -, _, . and ~, at most {MAX_KEY} bytes",
                quote(key)
            ));
        }
        let bytes = items.iter().map(|(key, value)| key.len() + value.len());
        if bytes.sum::<usize>() > MAX_BYTES {
            return Err(format!(
                "variables are limited to {} KiB in total size",
                MAX_BYTES / 1024
            ));
        }
        Ok(Items(items))
    }

    /// Key and value of each.
    pub fn get(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items", self.0.len())
    }
}

fn is_plain(key: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    !key.is_empty() && key.len() <= MAX_KEY && key.chars().all(plain)
}

/// Looks whether this may be a namespace of variables: those of jobs are.
///
/// # Errors
/// Why not.
pub fn check_namespace(name: &str) -> Result<(), String> {
    if name == "*" {
        return Err("invalid namespace \"*\": only lists are of all namespaces".to_owned());
    }
    identifier(name).map_err(|why| format!("invalid namespace {}: it {why}", quote(name)))
}

/// Looks whether a variable may stand at this path.
///
/// # Errors
/// Why not.
pub fn check_path(path: &str) -> Result<(), String> {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'~' | b'/');
    if path.is_empty() || path.len() > MAX_PATH || !path.bytes().all(plain) {
        return Err(format!(
            "invalid path {}: it is of letters, digits, -, _, ~ and /, at most {MAX_PATH} of them",
            quote(path)
        ));
    }
    if path.split('/').any(str::is_empty) {
        return Err(format!(
            "invalid path {}: there is nothing before, between or after some /",
            quote(path)
        ));
    }
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["nomad", "jobs", ..] | ["nomad", "job-templates", _] => Ok(()),
        ["nomad", ..] => Err(
            "only paths at \"nomad/jobs\" or \"nomad/job-templates\" and below are valid paths \
             under the top-level \"nomad\" directory"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Which variables the templates of a task may read: those that bear the name of its job, its group
/// or itself, in the namespace of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reads {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The job.
    pub job: Arc<str>,
    /// The group.
    pub group: Arc<str>,
    /// The task.
    pub task: Arc<str>,
}

impl Reads {
    /// Of the task of this name.
    pub fn of(namespace: &str, job: &str, group: &str, task: &str) -> Reads {
        Reads {
            namespace: namespace.into(),
            job: job.into(),
            group: group.into(),
            task: task.into(),
        }
    }

    /// Where they are.
    fn paths(&self) -> [String; 4] {
        let Reads {
            job, group, task, ..
        } = self;
        [
            "nomad/jobs".to_owned(),
            format!("nomad/jobs/{job}"),
            format!("nomad/jobs/{job}/{group}"),
            format!("nomad/jobs/{job}/{group}/{task}"),
        ]
    }

    fn key(&self, path: &str) -> VariableKey {
        VariableKey {
            namespace: self.namespace.clone(),
            path: path.into(),
        }
    }

    /// The variable that a template calls so: a path, with `@` and the namespace if it likes.
    ///
    /// # Errors
    /// It may not be read; the words say what may.
    pub fn find(&self, named: &str) -> Result<VariableKey, String> {
        let (path, namespace) = named.split_once('@').unwrap_or((named, &self.namespace));
        let mut paths = self.paths().into_iter();
        match paths.find(|one| one == path) {
            Some(path) if namespace == &*self.namespace => Ok(self.key(&path)),
            Some(_) | None => Err(self.refusal(named)),
        }
    }

    /// Those that begin with a prefix, which may name the namespace too.
    ///
    /// # Errors
    /// None of those that may be read can begin so; the words say what may be read.
    pub fn below(&self, named: &str) -> Result<Vec<VariableKey>, String> {
        let (prefix, namespace) = named.split_once('@').unwrap_or((named, &self.namespace));
        let paths = self.paths().into_iter();
        let of = paths.filter(|path| path.starts_with(prefix));
        let keys: Vec<VariableKey> = of.map(|path| self.key(&path)).collect();
        if keys.is_empty() || namespace != &*self.namespace {
            return Err(self.refusal(named));
        }
        Ok(keys)
    }

    fn refusal(&self, named: &str) -> String {
        let may = self.paths().join(", ");
        let namespace = &self.namespace;
        format!(
            "variable {}: Permission denied: this task may read {may} in the namespace {namespace}",
            quote(named)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_path_is_validated() {
        let long = "a".repeat(MAX_PATH);
        for good in [
            "a",
            "a/b-c_d~e/9",
            "nomad/jobs",
            "nomad/jobs/web/g/t",
            "nomad/job-templates/x",
            "nomads/x",
            &long,
        ] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        let too_long = "a".repeat(MAX_PATH + 1);
        for bad in [
            "",
            "/a",
            "a/",
            "a//b",
            "a b",
            "a.b",
            "ä",
            "a@b",
            "nomad",
            "nomad/x",
            "nomad/job-templates",
            "nomad/job-templates/a/b",
            &too_long,
        ] {
            assert!(check_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn variable_items_are_validated() {
        let of = |key: &str, value: &str| Items::new([(key.to_owned(), value.to_owned())].into());
        assert!(of("tls.crt", "x").is_ok() && of("a-b_C~9", "").is_ok());
        for bad in ["", "a b", "a/b", "a\n", &"k".repeat(MAX_KEY + 1)] {
            assert!(of(bad, "x").is_err(), "{bad:?}");
        }
        assert!(of("k", &"v".repeat(MAX_BYTES - 1)).is_ok());
        assert!(of("k", &"v".repeat(MAX_BYTES)).is_err());
        assert!(Items::new(BTreeMap::new()).is_err());
    }

    #[test]
    fn variable_debug_output_is_empty() {
        let items = Items::new([("key".to_owned(), "hunter2".to_owned())].into());
        let variable = Variable {
            items: items.unwrap_or_default(),
            ..Variable::default()
        };
        let printed = format!("{variable:?}");
        assert!(printed.contains("1 items") && !printed.contains("hunter2"));
        assert!(!printed.contains("key"));
    }

    #[test]
    fn task_reads_only_its_own_variables() {
        let reads = Reads::of("default", "web", "g", "main");
        for good in [
            "nomad/jobs",
            "nomad/jobs/web",
            "nomad/jobs/web/g",
            "nomad/jobs/web/g/main",
            "nomad/jobs/web@default",
        ] {
            assert!(reads.find(good).is_ok(), "{good}");
        }
        for bad in [
            "nomad/jobs/other",
            "nomad/jobs/web/",
            "nomad/jobs/web/g/other",
            "secret",
            "nomad/jobs/web@other",
            "nomad/jobs/web@",
            "",
        ] {
            let why = reads.find(bad).err().unwrap_or_default();
            assert!(why.contains("nomad/jobs/web/g/main"), "{bad}: {why}");
        }
        assert_eq!(reads.below("").map(|keys| keys.len()), Ok(4));
        assert_eq!(reads.below("nomad/jobs/web/").map(|keys| keys.len()), Ok(2));
        assert!(reads.below("secret").is_err() && reads.below("@other").is_err());
    }
}
