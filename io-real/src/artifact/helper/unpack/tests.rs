//! Archives of enemies: each is refused with its reason, and nothing outside is touched.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tar::{EntryType, Header};
use tempfile::TempDir;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

/// An entry of a tar archive: its name, its kind, where it leads, its mode, what is in it.
type Entry<'a> = (&'a str, EntryType, &'a str, u32, &'a [u8]);

fn tar_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (name, kind, target, mode, bytes) in entries {
        let mut header = Header::new_gnu();
        // As it is, whatever it says: the builder would refuse some of these.
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        out.append(&header, *bytes).unwrap();
    }
    out.into_inner().unwrap()
}

fn zip_of(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, bytes) in entries {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        out.start_file(*name, options).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// A directory to unpack into, in another one that must stay as it is.
struct Place {
    around: TempDir,
    limits: Limits,
}

impl Place {
    fn new() -> Place {
        let around = tempfile::tempdir().unwrap();
        fs::create_dir(around.path().join("in")).unwrap();
        fs::write(around.path().join("secret"), "untouched").unwrap();
        Place {
            around,
            limits: Limits::default(),
        }
    }

    fn sink(&self, packed: usize) -> Sink {
        let dir = File::open(self.around.path().join("in")).unwrap();
        Sink::new(
            dir.into(),
            bounds(&self.limits, packed as u64),
            Keep::Little,
        )
    }

    fn tar(&self, entries: &[Entry<'_>]) -> Result<(), String> {
        let bytes = tar_of(entries);
        let unpacked = super::tar(
            &mut bytes.as_slice(),
            &mut self.sink(bytes.len()),
            &mut |_, _| Ok(()),
        );
        unpacked.map(drop).map_err(|trouble| trouble.why)
    }

    fn zip(&self, bytes: Vec<u8>) -> Result<(), String> {
        let mut sink = self.sink(bytes.len());
        let unpacked = super::zip(Cursor::new(bytes), &self.limits, &mut sink);
        unpacked.map_err(|trouble| trouble.why)
    }

    fn inside(&self, name: &str) -> std::path::PathBuf {
        self.around.path().join("in").join(name)
    }

    /// Nothing but what was there is around the directory.
    #[track_caller]
    fn is_untouched(&self) {
        let path: &Path = self.around.path();
        assert_eq!(fs::read(path.join("secret")).unwrap(), b"untouched");
        let mut names: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["in", "secret"]);
    }
}

const FILE: EntryType = EntryType::Regular;

#[test]
fn plain_archive_is_unpacked() {
    let place = Place::new();
    let entries = [
        ("./", EntryType::Directory, "", 0o755, &b""[..]),
        ("./bin/run", FILE, "", 0o711, b"#!"),
        ("bin/again", EntryType::Link, "bin/run", 0o644, b""),
        ("run", EntryType::Symlink, "bin/run", 0o777, b""),
        ("up/down", EntryType::Symlink, "../bin", 0o777, b""),
        ("data", FILE, "", 0o600, b"one"),
        ("data", FILE, "", 0o600, b"another"),
    ];
    place.tar(&entries).unwrap();
    let mode = |name: &str| {
        fs::metadata(place.inside(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!((mode("bin/run"), mode("data")), (0o755, 0o644));
    assert_eq!(fs::read(place.inside("run")).unwrap(), b"#!");
    assert_eq!(fs::read(place.inside("up/down/run")).unwrap(), b"#!");
    assert_eq!(
        fs::read(place.inside("data")).unwrap(),
        b"another",
        "the last one counts"
    );
    let again = fs::metadata(place.inside("bin/again")).unwrap();
    assert_eq!(again.nlink(), 1, "a hard link is a copy");
    place.is_untouched();
}

#[test]
fn hostile_tar_archives_are_refused() {
    let link = EntryType::Symlink;
    let cases: &[(&[Entry<'_>], &str)] = &[
        (&[("/abs", FILE, "", 0o644, b"x")], "absolute name"),
        (&[("../secret", FILE, "", 0o644, b"x")], "leads out"),
        (&[("a/../../secret", FILE, "", 0o644, b"x")], "leads out"),
        (&[("..", EntryType::Directory, "", 0o755, b"")], "leads out"),
        (
            &[("x", link, "/etc/passwd", 0o777, b"")],
            "link that leads out",
        ),
        (
            &[("x", link, "../secret", 0o777, b"")],
            "link that leads out",
        ),
        (
            &[("a/x", link, "../../secret", 0o777, b"")],
            "link that leads out",
        ),
        (
            &[("x", link, "a/../../secret", 0o777, b"")],
            "link that leads out",
        ),
        (
            &[("x", EntryType::Link, "/etc/passwd", 0o644, b"")],
            "hard link",
        ),
        (
            &[("x", EntryType::Link, "../secret", 0o644, b"")],
            "hard link",
        ),
        (
            &[("x", EntryType::Link, "missing", 0o644, b"")],
            "hard link",
        ),
        (
            &[
                ("d/f", FILE, "", 0o644, b"x"),
                ("l", link, "d", 0o777, b""),
                ("l/f", FILE, "", 0o644, b"y"),
            ],
            "goes through a link",
        ),
        (
            &[
                ("d", EntryType::Directory, "", 0o755, b""),
                ("l", link, "d", 0o777, b""),
                ("h", EntryType::Link, "l/f", 0o644, b""),
            ],
            "hard link",
        ),
        (
            &[("f", FILE, "", 0o644, b"x"), ("f/g", FILE, "", 0o644, b"y")],
            "goes through a link or a file",
        ),
        (
            &[("d/f", FILE, "", 0o644, b"x"), ("d", FILE, "", 0o644, b"y")],
            "where a directory is",
        ),
        (&[("null", EntryType::Char, "", 0o666, b"")], "is a device"),
        (&[("disk", EntryType::Block, "", 0o666, b"")], "is a device"),
        (&[("pipe", EntryType::Fifo, "", 0o666, b"")], "is a pipe"),
        (&[("su", FILE, "", 0o4755, b"x")], "setuid"),
        (&[("sg", FILE, "", 0o2755, b"x")], "setgid"),
        (
            &[("x", EntryType::new(b'?'), "", 0o644, b"")],
            "unknown type",
        ),
    ];
    for (entries, expected) in cases {
        let place = Place::new();
        let why = place.tar(entries).unwrap_err();
        assert!(why.contains(expected), "{entries:?}: {why}");
        place.is_untouched();
    }
}

/// A file in the place of a link replaces the link, and is not written through it.
#[test]
fn overwritten_symlink_is_not_followed() {
    let place = Place::new();
    fs::write(place.inside("target"), "old").unwrap();
    let entries = [
        ("l", EntryType::Symlink, "target", 0o777, &b""[..]),
        ("l", FILE, "", 0o644, b"new"),
    ];
    place.tar(&entries).unwrap();
    assert_eq!(fs::read(place.inside("target")).unwrap(), b"old");
    assert_eq!(fs::read(place.inside("l")).unwrap(), b"new");
}

#[test]
fn archive_with_million_entries_is_refused() {
    let mut place = Place::new();
    place.limits.unpacked_files = 100;
    let names: Vec<String> = (0..101).map(|nth| format!("f{nth}")).collect();
    let entries: Vec<Entry<'_>> = names
        .iter()
        .map(|name| (name.as_str(), FILE, "", 0o644, &b""[..]))
        .collect();
    let why = place.tar(&entries).unwrap_err();
    assert!(why.contains("decompression_file_count_limit"), "{why}");
    let zipped: Vec<(&str, u32, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), 0o644, &b""[..]))
        .collect();
    let why = place.zip(zip_of(&zipped)).unwrap_err();
    assert!(why.contains("decompression_file_count_limit"), "{why}");
}

#[test]
fn decompression_bomb_is_refused() {
    let mut place = Place::new();
    place.limits.unpacked_bytes = 1 << 20;
    let zeros = vec![0; 2 << 20];
    let why = place
        .tar(&[("zeros", FILE, "", 0o644, &zeros)])
        .unwrap_err();
    assert!(why.contains("decompression_size_limit"), "{why}");
    assert!(fs::metadata(place.inside("zeros")).unwrap().len() <= 1 << 20);
    let why = place.zip(zip_of(&[("zeros", 0o644, &zeros)])).unwrap_err();
    assert!(why.contains("decompression_size_limit"), "{why}");

    let place = Place::new();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    (0..70).for_each(|_| packer.write_all(&zeros[..1 << 20]).unwrap());
    let bomb = packer.finish().unwrap();
    let mut sink = place.sink(bomb.len());
    let mut from = plain(Packed::Gz, bomb.as_slice());
    let why = sink
        .file(b"bomb", &Attributes::mode(0o644), &mut from)
        .unwrap_err()
        .why;
    assert!(why.contains("decompression_ratio_limit"), "{why}");
}

#[test]
fn hostile_zip_archives_are_refused() {
    for (name, mode, bytes, expected) in [
        ("../secret", 0o100_644, &b"x"[..], "leads out"),
        ("/abs", 0o100_644, b"x", "absolute name"),
    ] {
        let place = Place::new();
        let why = place.zip(zip_of(&[(name, mode, bytes)])).unwrap_err();
        assert!(why.contains(expected), "{name}: {why}");
        place.is_untouched();
    }
    for target in ["/etc/passwd", "../secret"] {
        let place = Place::new();
        let mut out = ZipWriter::new(Cursor::new(Vec::new()));
        out.add_symlink("l", target, SimpleFileOptions::default())
            .unwrap();
        let why = place.zip(out.finish().unwrap().into_inner()).unwrap_err();
        assert!(why.contains("leads out"), "{why}");
    }
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    out.add_directory("d", options).unwrap();
    out.add_symlink("l", "d", options).unwrap();
    out.start_file("l/f", options).unwrap();
    let place = Place::new();
    let why = place.zip(out.finish().unwrap().into_inner()).unwrap_err();
    assert!(why.contains("goes through a link"), "{why}");
    assert!(place.zip(b"no zip".to_vec()).is_err());
}

/// Whatever is cut off or changed, unpacking ends with a word and touches nothing outside.
#[test]
fn broken_archives_are_refused() {
    let whole = tar_of(&[("a/b", FILE, "", 0o644, &[7; 2_000])]);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&whole).unwrap();
    let packed = packer.finish().unwrap();
    for end in (0..packed.len()).step_by(7) {
        let place = Place::new();
        let mut sink = place.sink(end);
        let mut from = plain(Packed::Gz, &packed[..end]);
        assert!(
            end == 0 || super::tar(&mut from, &mut sink, &mut |_, _| Ok(())).is_err(),
            "{end}"
        );
        place.is_untouched();
    }
    for packed in [Packed::Gz, Packed::Xz, Packed::Zst] {
        let place = Place::new();
        let mut from = plain(packed, &b"these are plain words"[..]);
        assert!(
            super::tar(&mut from, &mut place.sink(21), &mut |_, _| Ok(())).is_err(),
            "{packed:?}"
        );
    }
}

/// A file may be packed in several pieces, one after the other.
#[test]
fn multi_member_gzip_is_unpacked() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(b"x\n").unwrap();
    let gz = gz.finish().unwrap();
    // A frame without a sum: `x\n` as it is.
    let zst = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x11, 0, 0, b'x', b'\n'];
    for (packed, bytes) in [(Packed::Gz, gz.as_slice()), (Packed::Zst, &zst)] {
        let twice = [bytes, bytes].concat();
        let mut text = String::new();
        let mut from = plain(packed, twice.as_slice());
        from.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x\nx\n", "{packed:?}");
    }
}
