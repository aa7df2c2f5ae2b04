//! What is mounted where.

use std::path::{Path, PathBuf};

use super::super::{ProbeError, Root};

/// How long the list is at most: a host of very many containers has some ten thousand mounts.
const LONGEST: usize = 16 << 20;

/// One mount.
#[derive(Debug)]
pub(crate) struct Mount {
    /// Where.
    pub(crate) point: PathBuf,
    /// Which kind of file system.
    pub(crate) kind: String,
    /// What, such as `/dev/sda1`.
    pub(crate) source: String,
    /// The file system's options.
    pub(crate) options: String,
}

/// All mounts that the agent sees, later ones over earlier ones.
pub(crate) fn read(root: &Root) -> Result<Vec<Mount>, ProbeError> {
    let text = root.text("proc/self/mountinfo", LONGEST)?;
    let text = text.unwrap_or_default();
    Ok(text.lines().filter_map(mount).collect())
}

/// Reads a line: numbers, root, point and options, optional fields, ` - `, kind, source, options.
fn mount(line: &str) -> Option<Mount> {
    let (mount, system) = line.split_once(" - ")?;
    let mut system = system.split(' ');
    Some(Mount {
        point: PathBuf::from(unescaped(mount.split(' ').nth(4)?)),
        kind: system.next()?.to_owned(),
        source: unescaped(system.next()?),
        options: system.next().unwrap_or_default().to_owned(),
    })
}

/// The mount that a directory is on.
pub(super) fn holding<'a>(mounts: &'a [Mount], dir: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| dir.starts_with(&mount.point));
    // Of equally long ones the last, which is mounted over the others.
    above.max_by_key(|mount| mount.point.components().count())
}

/// Undoes the kernel's writing of blanks and backslashes as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match (code, part.get(3..)) {
            (Some(code), Some(rest)) if code.is_ascii() => {
                plain.push(char::from(code));
                plain.push_str(rest);
            }
            _ => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}
