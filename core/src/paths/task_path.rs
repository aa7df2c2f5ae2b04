//! Places of files that a job names: always in a directory of the task, or in that which the tasks
//! of an allocation share, and without `..`. The source and destination of templates, what
//! templates read, and destinations of artifacts are such places. `io-real/src/dirs/files.rs` opens
//! them.

use serde::{Deserialize, Serialize};

use crate::model::identity::Identity;

/// The longest path, in bytes, as for the kernel.
const MAX_PATH: usize = 4095;
/// The longest name in it.
const MAX_NAME: usize = 255;

/// A file or directory of a task. Whether something on the way is a link is seen by who opens it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskPath {
    /// Below which directory.
    pub base: Base,
    /// Names with `/` between them: no empty ones, no `.` and no `..`.
    pub path: String,
}

/// The directories that files of jobs may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Base {
    /// The task's own, with `local`, `secrets` and `tmp`.
    Task,
    /// That of all tasks of the allocation.
    Shared,
}

impl TaskPath {
    /// The place that `text` means in a job: relative to the directory of `task`, or a whole path
    /// below `root`, the directory of the allocation. Another whole path is read as if the task's
    /// directory were the root, as in Nomad.
    ///
    /// # Errors
    /// It leads out of both directories, is one of them, or cannot be a path.
    pub fn of(text: &str, root: &str, task: &str) -> Result<TaskPath, String> {
        if text.len() > MAX_PATH || text.contains('\0') {
            return Err(format!(
                "the path must not have NUL in it or be longer than {MAX_PATH} bytes"
            ));
        }
        let names = names(text, root, task).ok_or_else(|| leads_out(text))?;
        if names.iter().any(|name| name.len() > MAX_NAME) {
            return Err(format!(
                "a name in the path is longer than {MAX_NAME} bytes"
            ));
        }
        let (first, rest) = names.split_first().ok_or_else(|| leads_out(text))?;
        let base = match *first {
            name if name == task => Base::Task,
            _ => Base::Shared,
        };
        if rest.is_empty() {
            return Err(format!("{text:?} is a directory of the agent's own"));
        }
        let path = rest.join("/");
        Ok(TaskPath { base, path })
    }
}

impl TaskPath {
    /// The place of a file below the `local` of `task`.
    ///
    /// # Errors
    /// It leads out of that, is that, or cannot be a path.
    pub fn in_local(file: &str, task: &str) -> Result<TaskPath, String> {
        let task_path = TaskPath::of(&format!("local/{file}"), "", task)?;
        if task_path.base == Base::Task && task_path.path.starts_with("local/") {
            Ok(task_path)
        } else {
            Err(format!("{file:?} is no file below local"))
        }
    }

    /// Where the token of an identity goes.
    ///
    /// # Errors
    /// It is none of the task's own.
    pub fn of_identity(identity: &Identity, task: &str) -> Result<TaskPath, String> {
        let path = identity.path();
        let task_path = TaskPath::of(&path, "", task)?;
        match task_path.base {
            Base::Task => Ok(task_path),
            Base::Shared => Err(format!("{path:?} is not the task's own")),
        }
    }
}

/// The names on the way that `text` means, from the directory of the allocation (`root`) on: the
/// first is that of `task` or of what tasks share. None if it leads elsewhere.
///
/// What is relative begins in the task's directory, and so does a whole path that is not below
/// `root`, as in Nomad.
pub(crate) fn names<'a>(text: &'a str, root: &str, task: &'a str) -> Option<Vec<&'a str>> {
    let below_root = text.strip_prefix(root).filter(|_| !root.is_empty());
    let below_root = below_root.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut names: Vec<&str> = match below_root {
        Some(_) => Vec::new(),
        None => vec![task],
    };
    for name in below_root.unwrap_or(text).split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    let first = *names.first()?;
    (first == task || first == SHARED).then_some(names)
}

/// The directory of what the tasks of an allocation share.
const SHARED: &str = "alloc";

fn leads_out(text: &str) -> String {
    format!("{text:?} leads out of the directories of the task and its allocation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_path_stays_in_task_or_alloc_dir() {
        let of = |text| {
            TaskPath::of(text, "/alloc/1", "web").map(|task_path| (task_path.base, task_path.path))
        };
        let task = |path: &str| Ok((Base::Task, path.to_owned()));
        let shared = |path: &str| Ok((Base::Shared, path.to_owned()));
        assert_eq!(of("local/a"), task("local/a"));
        assert_eq!(of("./local//a/."), task("local/a"));
        assert_eq!(of("/local/a"), task("local/a"));
        assert_eq!(of("/alloc/1/web/secrets/a"), task("secrets/a"));
        assert_eq!(of("/alloc/1/alloc/data/a"), shared("data/a"));
        assert_eq!(of("../alloc/data/a"), shared("data/a"));
        assert_eq!(of("local/../../web/tmp/a"), task("tmp/a"));
        assert_eq!(of("/alloc/10/web/a"), task("alloc/10/web/a"));
        let local = |file| TaskPath::in_local(file, "web").map(|task_path| task_path.path);
        assert_eq!(local("a/b"), Ok("local/a/b".to_owned()));
        assert_eq!(local("/a/../b"), Ok("local/b".to_owned()));
        for bad in [
            "",
            ".",
            "..",
            "../secrets/a",
            "../../alloc/data/a",
            "a/../../local",
        ] {
            assert!(local(bad).is_err(), "{bad:?}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../other/local/a",
            "../../2/web/a",
            "/alloc/1",
            "/alloc/1/other/a",
            "/alloc/1/../2/web/a",
            "a/../../..",
            "a\0b",
        ] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
        let long = ["a".repeat(256), "a/".repeat(3000)];
        for long in &long {
            assert!(TaskPath::of(long, "/alloc/1", "web").is_err());
        }
    }
}
