//! Which agent made a group: written on its directories as an extended attribute, since groups of
//! all agents of a host lie side by side and their names do not tell.
//!
//! Where it cannot be written (kernels before 5.7) only the audit misses it.

use super::Cgroups;
use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};

/// The attribute.
const NAME: &str = "user.drover.home";

/// Longer marks are none of ours.
const LONGEST: usize = 8192;

impl Cgroups {
    /// Groups that are made from now on bear this mark.
    #[must_use]
    pub fn marked(mut self, mark: String) -> Cgroups {
        self.mark = Some(mark);
        self
    }

    pub(super) fn put_mark(&self, name: &str) {
        let Some(mark) = &self.mark else { return };
        for dir in self.dirs() {
            let _ = lsetxattr(dir.join(name), NAME, mark.as_bytes(), XattrFlags::empty());
        }
    }

    /// The mark of a group, if it bears one.
    pub fn mark_of(&self, name: &str) -> Option<String> {
        super::check(name).ok()?;
        self.dirs().find_map(|dir| {
            let mut bytes = vec![0; LONGEST];
            let len = lgetxattr(dir.join(name), NAME, bytes.as_mut_slice()).ok()?;
            bytes.truncate(len);
            String::from_utf8(bytes).ok()
        })
    }
}
