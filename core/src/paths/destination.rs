//! Where an artifact goes: below its task's directory, or below what the allocation shares.

use super::task_path::names;
use crate::text::quote;

/// The longest destination, in bytes.
pub const MAX_DESTINATION: usize = 4_096;

/// The path of `destination` below the allocation's directory, such as `web/local/bin`.
///
/// What is relative begins in the task's directory. What is absolute may name a directory of the
/// allocation as the task knows it (`root` is the allocation's directory); any other begins in
/// the task's directory, as in Nomad.
///
/// # Errors
/// It leads elsewhere: to another task, to no directory of the task, or out of everything.
pub fn task_path(destination: &str, task: &str, root: &str) -> Result<String, String> {
    if destination.len() > MAX_DESTINATION {
        return Err(format!("has more than {MAX_DESTINATION} bytes"));
    }
    if destination.contains(char::is_control) {
        return Err("must not contain control characters".to_owned());
    }
    let names = names(destination, root, task);
    let names =
        names.ok_or_else(|| format!("{} leads out of the task's directory", quote(destination)))?;
    Ok(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_stays_in_task_or_alloc_dir() {
        let root = "/data/alloc/7";
        for (written, expected) in [
            ("local/", "web/local"),
            ("", "web"),
            ("./local//bin/x", "web/local/bin/x"),
            ("/etc/x", "web/etc/x"),
            ("local/../secrets", "web/secrets"),
            ("../alloc/data", "alloc/data"),
            ("/data/alloc/7/web/local", "web/local"),
            ("/data/alloc/7/alloc/data", "alloc/data"),
            ("/data/alloc/71/x", "web/data/alloc/71/x"),
        ] {
            let found = task_path(written, "web", root);
            assert_eq!(found.as_deref(), Ok(expected), "{written}");
        }
        for wrong in [
            "..",
            "../..",
            "../db/local",
            "/../../x",
            "/data/alloc/7",
            "/data/alloc/7/db/local",
            "/data/alloc/7/../8/web",
            "local/\0",
            "local/\n",
        ] {
            assert!(task_path(wrong, "web", root).is_err(), "{wrong:?}");
        }
        assert!(task_path(&"x".repeat(MAX_DESTINATION + 1), "web", root).is_err());
    }
}
