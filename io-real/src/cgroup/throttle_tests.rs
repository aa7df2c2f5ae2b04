#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use drover_core::driver::config::IoLimits;
use rustix::fs::makedev;

use super::super::{Cgroups, Version};
use super::{Disk, disk_of, whole_disk};

/// A machine with a disk, a part of it, and one whose name has a slash.
fn machine() -> tempfile::TempDir {
    let sys = tempfile::tempdir().unwrap();
    let disks = [
        ("8:0", "sda", "sda"),
        ("8:2", "sda/sda2", "sda2"),
        ("104:0", "cciss!c0d0", "cciss!c0d0"),
    ];
    fs::create_dir_all(sys.path().join("dev/block")).unwrap();
    for (numbers, place, _) in disks {
        let dir = sys.path().join("devices").join(place);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("dev"), format!("{numbers}\n")).unwrap();
        symlink(dir, sys.path().join("dev/block").join(numbers)).unwrap();
    }
    fs::write(sys.path().join("devices/sda/sda2/partition"), "2\n").unwrap();
    sys
}

fn disk() -> Disk {
    Disk {
        numbers: "8:0".to_owned(),
        node: "/dev/sda".into(),
    }
}

fn limits() -> IoLimits {
    IoLimits {
        read_bps: Some(1 << 20),
        write_iops: Some(50),
        ..IoLimits::default()
    }
}

fn groups(version: Version, parent: &Path) -> Cgroups {
    Cgroups {
        version,
        parent: "parent".to_owned(),
        v1: None,
        controlled: vec![parent.to_owned()],
        pids: None,
        blkio: (version != Version::V2).then(|| parent.to_owned()),
        cores: None,
        most_processes: None,
        io: None,
        unified: None,
        mark: None,
    }
}

#[test]
fn part_of_a_disk_leads_to_the_whole() {
    let sys = machine();
    for part in [makedev(8, 0), makedev(8, 2)] {
        assert_eq!(whole_disk(sys.path(), part).unwrap(), disk());
    }
    let other = whole_disk(sys.path(), makedev(104, 0)).unwrap();
    assert_eq!(other.node, PathBuf::from("/dev/cciss/c0d0"));
    let unknown = whole_disk(sys.path(), makedev(9, 9)).unwrap_err();
    assert!(unknown.to_string().contains("9:9"), "{unknown}");
}

#[test]
fn directory_on_no_disk_is_an_error_that_says_so() {
    let error = disk_of(machine().path(), Path::new("/proc")).unwrap_err();
    assert!(error.to_string().contains("is proc"), "{error}");
}

#[test]
fn limits_are_written_whole() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("one");
    fs::create_dir(&dir).unwrap();
    let v1 = ["read_bps", "write_bps", "read_iops", "write_iops"];
    let v1 = v1.map(|name| dir.join(format!("blkio.throttle.{name}_device")));
    for file in v1.iter().chain([&dir.join("io.max")]) {
        fs::write(file, "").unwrap();
    }
    let set = (disk(), limits());
    for version in [Version::V2, Version::Hybrid] {
        let groups = groups(version, place.path());
        groups.limit_io("one", Some(&set)).unwrap();
    }
    let text = |file: &PathBuf| fs::read_to_string(file).unwrap();
    assert_eq!(
        text(&dir.join("io.max")),
        "8:0 rbps=1048576 wbps=max riops=max wiops=50"
    );
    let texts: Vec<String> = v1.iter().map(text).collect();
    assert_eq!(texts, ["8:0 1048576", "8:0 0", "8:0 0", "8:0 50"]);
}

#[test]
fn limit_that_cannot_be_written_is_an_error_that_names_the_file() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("one")).unwrap();
    let groups = groups(Version::V2, place.path());
    let error = groups
        .limit_io("one", Some(&(disk(), limits())))
        .unwrap_err();
    assert!(error.to_string().contains("io.max"), "{error}");
}

#[test]
fn unset_io_limits_write_nothing() {
    let groups = groups(Version::V1, Path::new("/nowhere"));
    assert_eq!(groups.io_limits(IoLimits::default()).unwrap(), None);
    let refused = groups.io_limits(limits()).unwrap_err();
    assert!(refused.to_string().contains("leave out `io`"), "{refused}");
}
