//! What a plugin wants a task to be given with its devices, validated before any task is given it.

use crate::input::HookOutput;
use crate::model::device::{DeviceNode, Mount};
use crate::text::quote;

/// How many variables, mounts and device nodes a reservation may have, of each.
const MAX_EACH: usize = 1024;
/// How long a text of it may be, in bytes.
const MAX_TEXT: usize = 4096;

/// Looks at what came from outside.
///
/// # Errors
/// The first thing that cannot be so.
pub(super) fn check(given: &HookOutput) -> Result<(), String> {
    let sizes = [given.env.len(), given.mounts.len(), given.nodes.len()];
    if sizes.into_iter().any(|size| size > MAX_EACH) {
        return Err(format!(
            "the reservation has more than {MAX_EACH} variables, mounts or devices"
        ));
    }
    for (name, value) in &given.env {
        let odd = name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
        if odd || name.len() > MAX_TEXT || value.len() > MAX_TEXT {
            return Err(format!(
                "the reservation's variable {} cannot be set",
                quote(name)
            ));
        }
    }
    given.mounts.iter().try_for_each(mount)?;
    given.nodes.iter().try_for_each(node)
}

fn mount(mount: &Mount) -> Result<(), String> {
    path(&mount.host_path)?;
    path(&mount.task_path)
}

fn node(node: &DeviceNode) -> Result<(), String> {
    path(&node.host_path)?;
    path(&node.task_path)?;
    let known = node.permissions.chars().all(|one| "rwm".contains(one));
    if !known || node.permissions.len() > 3 {
        return Err(format!(
            "the reservation's permissions {} are not of r, w and m",
            quote(&node.permissions)
        ));
    }
    Ok(())
}

/// A path from the root that goes nowhere else on its way.
fn path(path: &str) -> Result<(), String> {
    let straight = path.starts_with('/') && path.split('/').all(|part| part != "..");
    if !straight || path.contains('\0') || path.len() > MAX_TEXT {
        return Err(format!(
            "the reservation's path {} is not whole",
            quote(path)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_reservation_is_refused() {
        let mount = |host: &str, task: &str| HookOutput {
            mounts: vec![Mount {
                host_path: host.to_owned(),
                task_path: task.to_owned(),
                read_only: true,
                ..Mount::default()
            }],
            ..HookOutput::default()
        };
        let node = |permissions: &str| HookOutput {
            nodes: vec![DeviceNode {
                host_path: "/dev/null".to_owned(),
                task_path: "/dev/null".to_owned(),
                permissions: permissions.to_owned(),
            }],
            ..HookOutput::default()
        };
        let env = |name: &str| HookOutput {
            env: [(name.to_owned(), String::new())].into(),
            ..HookOutput::default()
        };
        for good in [mount("/a/b", "/c"), node("rw"), node(""), env("A")] {
            assert_eq!(check(&good), Ok(()));
        }
        let bad = [
            mount("a", "/c"),
            mount("/a/../b", "/c"),
            mount("/a", ""),
            node("rwx"),
            node("rrrr"),
            env(""),
            env("A=B"),
        ];
        for bad in bad {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }
}
