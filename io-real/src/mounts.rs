//! What is mounted where, of `/proc/self/mountinfo`.
//!
//! By hand and here alone: the crate `procfs` leaves names as the kernel escapes them, makes maps of
//! options that nobody asks for, and fails altogether if one name is no text, which whoever may
//! mount anything can make it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The table, below the root of the file system.
pub(crate) const TABLE: &str = "proc/self/mountinfo";

/// How long it is at most: a host of very many containers has some ten thousand mounts.
pub(crate) const LONGEST: usize = 16 << 20;

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
pub(crate) fn here() -> io::Result<Vec<Mount>> {
    let mut table = Vec::new();
    let file = File::open(Path::new("/").join(TABLE))?;
    file.take(LONGEST as u64).read_to_end(&mut table)?;
    Ok(parse(&table))
}

/// The mounts of a table.
pub(crate) fn parse(table: &[u8]) -> Vec<Mount> {
    let lines = table.split(|byte| *byte == b'\n');
    lines.filter_map(mount).collect()
}

/// Reads a line: numbers, root, point and options, optional fields, ` - `, kind, source, options.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = OsString::from_vec(unescaped(fields.nth(4)?)).into();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut system = fields.skip_while(|field| *field != b"-").skip(1);
    Some(Mount {
        point,
        kind: text(system.next()?),
        source: text(&unescaped(system.next()?)),
        options: text(system.next().unwrap_or_default()),
    })
}

/// The mount that a directory is on.
pub(crate) fn holding<'a>(mounts: &'a [Mount], dir: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| dir.starts_with(&mount.point));
    // Of equally long ones the last, which is mounted over the others.
    above.max_by_key(|mount| mount.point.components().count())
}

/// Undoes the kernel's writing of blanks and backslashes as `\040`.
fn unescaped(mut rest: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|octal| std::str::from_utf8(octal).ok());
        let byte = octal.and_then(|octal| u8::from_str_radix(octal, 8).ok());
        if byte.is_some() {
            rest = after.get(3..).unwrap_or_default();
        }
        plain.push(byte.unwrap_or(*first));
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn non_utf8_mount_hides_no_other() {
        let table = b"22 1 0:21 / /bad\xffname rw shared:1 - tmpfs none rw\n\
            not a mount\n\
            23 1 0:22 / /a\\040b\\134x/c rw - cgroup2 a\\011b rw,x\n";
        let mounts = parse(table);
        let points: Vec<&OsStr> = mounts.iter().map(|mount| mount.point.as_os_str()).collect();
        let expected: [&[u8]; 2] = [b"/bad\xffname", b"/a b\\x/c"];
        assert_eq!(points, expected.map(OsStr::from_bytes));
        let Some(last) = mounts.last() else { return };
        assert_eq!(
            (last.kind.as_str(), last.source.as_str()),
            ("cgroup2", "a\tb")
        );
        assert_eq!(last.options, "rw,x");
    }
}
