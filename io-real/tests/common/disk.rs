//! A small file system that is unmounted however the test ends.

use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Disk(PathBuf);

impl Disk {
    /// `None`: we may not mount.
    pub fn mount(at: &Path, size: &str) -> Option<Self> {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .stderr(std::process::Stdio::null())
            .status();
        let mounted = mount.is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("skipped: cannot mount a small file system");
        }
        mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
