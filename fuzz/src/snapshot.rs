//! Disks of other nodes: whatever a stream says, nothing outside of one directory is touched.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use drover_io_real::migrate::receive::{Limits, try_in};
use tar::Header;

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    entries: 100,
};

/// A tar stream, as it is and with the sums of its headers made right: most mistakes would be
/// noticed by these and nothing else be tried.
///
/// # Panics
/// If taking it in changes anything outside of its directory, goes beyond its limits, or leaves what
/// changes its user.
pub fn snapshot(bytes: &[u8]) {
    take_in(bytes);
    take_in(&with_sums(bytes));
}

/// The same with the sums of its headers made right, as far as one leads to the next.
fn with_sums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(block) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<512>())
    {
        let mut header = Header::from_byte_slice(block).clone();
        header.set_cksum();
        *block = *header.as_bytes();
        let size = header.entry_size().unwrap_or(0).div_ceil(512);
        let size = usize::try_from(size).unwrap_or(0).min(bytes.len());
        at += 512 + size * 512;
    }
    bytes
}

fn take_in(bytes: &[u8]) {
    let Ok(around) = tempfile::tempdir() else {
        return;
    };
    let inside = around.path().join("in");
    let outside = around.path().join("outside");
    if fs::create_dir(&inside).is_err() || fs::write(&outside, "untouched").is_err() {
        return;
    }
    let Ok(dir) = fs::File::open(&inside) else {
        return;
    };
    if let Err(why) = try_in(OwnedFd::from(dir), bytes, LIMITS) {
        assert!(!why.is_empty() && why.len() < 2_000, "{why}");
    }
    let kept = fs::read(&outside).is_ok_and(|kept| kept == b"untouched");
    assert!(kept, "something outside was changed");
    let names = fs::read_dir(around.path()).map(Iterator::count);
    assert_eq!(names.ok(), Some(2), "something came beside it");
    let (mut bytes, mut entries) = (0, 0);
    measure(&inside, &mut bytes, &mut entries);
    assert!(bytes <= LIMITS.bytes && entries <= 20 * LIMITS.entries);
}

fn measure(dir: &Path, bytes: &mut u64, entries: &mut u64) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        *entries += 1;
        let Ok(meta) = entry.metadata() else {
            continue;
        };
        if meta.is_dir() {
            measure(&entry.path(), bytes, entries);
        } else if meta.is_file() {
            assert_eq!(meta.permissions().mode() & 0o6000, 0, "it changes its user");
            *bytes += meta.len();
        } else {
            assert!(meta.is_symlink(), "neither a file, a directory nor a link");
        }
    }
}
