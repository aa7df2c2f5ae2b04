//! The block `host_volume` of the block `client`: a directory of the host that jobs may use by its name.
//!
//! ```hcl
//! client {
//!   host_volume "data" {
//!     path      = "/srv/data"    # a directory that is there when the agent starts
//!     read_only = false          # whether no job may write to it
//!   }
//! }
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use drover_core::model::volume::HostVolume;
use drover_core::text::quote;
use hcl_edit::structure::Block;

use super::literal::{Fields, fields};
use super::{label, unknown};

/// The longest name, in bytes.
const MAX_NAME: usize = 128;

/// Reads where the directories of volumes are made while the agent runs.
pub(super) fn dir(given: &mut Fields) -> Result<Option<PathBuf>, String> {
    let Some(path) = given.text("host_volumes_dir")? else {
        return Ok(None);
    };
    if !Path::new(&path).is_absolute() || path.contains('\0') {
        let path = quote(&path);
        return Err(format!(
            "client: host_volumes_dir: {path} is no absolute path"
        ));
    }
    Ok(Some(PathBuf::from(path)))
}

/// Reads one block into the volumes that were read before.
pub(super) fn add(volumes: &mut BTreeMap<String, HostVolume>, block: &Block) -> Result<(), String> {
    let name = label(block)?.to_owned();
    let about = format!("client: host_volume {}", quote(&name));
    if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
        return Err(format!(
            "{about}: a name has 1 to {MAX_NAME} bytes and no control characters"
        ));
    }
    let mut given = fields(&block.body)?;
    let path = given.text("path")?.unwrap_or_default();
    let read_only = given.flag("read_only")?.unwrap_or(false);
    given.nothing_else(&about)?;
    if let Some(inner) = block.body.blocks().next() {
        let why = unknown("block", inner.ident.as_str(), &[]);
        return Err(format!("{about}: {why}"));
    }
    if !Path::new(&path).is_absolute() || path.contains('\0') {
        let path = quote(&path);
        return Err(format!(
            "{about}: path: {path} is no absolute path, as \"/srv/data\" is"
        ));
    }
    let volume = HostVolume {
        name: name.clone(),
        path,
        read_only,
        id: String::new(),
    };
    match volumes.insert(name, volume) {
        None => Ok(()),
        Some(_) => Err(format!("{about} is there twice")),
    }
}

/// Whether the directories of all volumes are there: an agent without one of them does not start, so that no
/// job finds an empty directory where its data should be.
///
/// # Errors
/// The first that is not.
pub fn check_directories(volumes: &BTreeMap<String, HostVolume>) -> Result<(), String> {
    for volume in volumes.values() {
        let about = format!("client: host_volume {}", quote(&volume.name));
        let path = quote(&volume.path);
        match std::fs::metadata(&volume.path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(format!("{about}: {path} is no directory")),
            Err(error) => {
                return Err(format!(
                    "{about}: {path}: {error}; make the directory, or remove the block"
                ));
            }
        }
    }
    Ok(())
}

/// What operators should know of volumes that lie in others: jobs that write to the outer one can put a link in
/// place of the inner one's directory, and links on the paths of volumes are followed when a task starts.
#[must_use]
pub fn nested(volumes: &BTreeMap<String, HostVolume>, made_below: Option<&Path>) -> Vec<String> {
    let mut inner: Vec<(String, &Path)> = (volumes.values())
        .map(|it| {
            (
                format!("host_volume {}", quote(&it.name)),
                Path::new(&it.path),
            )
        })
        .collect();
    inner.extend(made_below.map(|dir| ("host_volumes_dir".to_owned(), dir)));
    let mut remarks = Vec::new();
    for outer in volumes.values().filter(|outer| !outer.read_only) {
        let around = Path::new(&outer.path);
        for (name, path) in inner.iter().filter(|(_, path)| lies_in(path, around)) {
            remarks.push(format!(
                "client: {name}: {} lies in the directory of host_volume {}, to which jobs may write: they can make \
                 a link of it that leads anywhere; move it out, or set read_only = true there",
                quote(&path.display().to_string()),
                quote(&outer.name)
            ));
        }
    }
    remarks
}

/// Whether a path leads through a directory, by its words or by its links.
fn lies_in(path: &Path, dir: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let whole = real(dir);
    [path.to_owned(), real(path)].iter().any(|path| {
        [dir, &whole]
            .iter()
            .any(|dir| path.starts_with(dir) && path != dir)
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, HostVolume>, String> {
        let config = parse(&format!("client {{\n{text}\n}}"))?;
        Ok(config.client.node.host_volumes)
    }

    #[test]
    fn host_volumes_are_read() {
        let text = "host_volume \"a\" {\n path = \"/srv/a\"\n}\nhost_volume \"b\" {\n path = \"/\"\n read_only = true\n}";
        let volumes = read(text).unwrap();
        let shown: Vec<_> = volumes
            .values()
            .map(|it| (it.name.as_str(), it.path.as_str(), it.read_only))
            .collect();
        assert_eq!(shown, [("a", "/srv/a", false), ("b", "/", true)]);
    }

    #[test]
    fn volume_inside_writable_volume_is_reported() {
        let one = |name: &str, path: &str, read_only| {
            format!("host_volume \"{name}\" {{\n path = \"{path}\"\n read_only = {read_only}\n}}\n")
        };
        let warning = |outer: &str, read_only, below: Option<&str>| {
            let text = one("inner", "/srv/data/inner", false) + &one("outer", outer, read_only);
            nested(&read(&text).unwrap(), below.map(Path::new))
        };
        let words = warning("/srv/data", false, None);
        assert!(
            words.len() == 1 && words[0].contains("host_volume \"inner\": \"/srv/data/inner\""),
            "{words:?}"
        );
        for (outer, read_only) in [
            ("/srv/data", true),
            ("/srv/dat", false),
            ("/srv/data/inner", false),
        ] {
            assert_eq!(warning(outer, read_only, None), [""; 0], "{outer}");
        }
        let words = warning("/srv/dat", false, Some("/srv/dat/made"));
        assert!(words[0].contains("host_volumes_dir"), "{words:?}");
    }

    #[test]
    fn invalid_host_volume_is_refused_by_name() {
        for (text, words) in [
            (
                "host_volume \"a\" {}",
                "\"a\": path: \"\" is no absolute path",
            ),
            (
                "host_volume \"a\" {\n path = \"srv\"\n}",
                "\"srv\" is no absolute path",
            ),
            (
                "host_volume \"a\" {\n pth = \"/srv\"\n}",
                "did you mean path?",
            ),
            ("host_volume {\n path = \"/srv\"\n}", "needs one name"),
            (
                "host_volume \"a\" {\n path = \"/a\"\n}\nhost_volume \"a\" {\n path = \"/b\"\n}",
                "\"a\" is there twice",
            ),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn missing_directory_is_an_error() {
        let check = |path: &str| {
            check_directories(
                &read(&format!("host_volume \"a\" {{\n path = {path:?}\n}}")).unwrap(),
            )
        };
        assert_eq!(check("/proc"), Ok(()));
        let why = check("/proc/version").unwrap_err();
        assert!(why.contains("is no directory"), "{why}");
        let why = check("/proc/no-such-thing").unwrap_err();
        assert!(why.contains("No such file"), "{why}");
    }
}
