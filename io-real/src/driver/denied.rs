//! As whom of this machine tasks of a driver do not run: `denied_host_uids` and `denied_host_gids` of its block.

use crate::user::User;

/// Users and groups that no task of a driver has, each from the first to the last number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedIds {
    /// The users.
    pub users: Vec<(u32, u32)>,
    /// The groups.
    pub groups: Vec<(u32, u32)>,
}

impl DeniedIds {
    /// Whether everybody is admitted.
    pub(super) fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }

    /// Admits tasks of this user, to a driver of this name.
    ///
    /// # Errors
    /// None may run as that user, in words.
    pub(super) fn admit(&self, user: &User, driver: &str) -> Result<(), String> {
        let within = |ranges: &[(u32, u32)], id: u32| {
            let mut ranges = ranges.iter();
            ranges.any(|(first, last)| (*first..=*last).contains(&id))
        };
        let (name, uid) = (&user.name, user.uid);
        if within(&self.users, uid) {
            return Err(format!(
                "no task may run as the user {name} ({uid}): denied_host_uids of plugin \"{driver}\""
            ));
        }
        let mut groups = user.groups.iter();
        match groups.find(|group| within(&self.groups, **group)) {
            None => Ok(()),
            Some(group) => Err(format!(
                "no task may have the group {group}, which the user {name} has: denied_host_gids of plugin \
                 \"{driver}\""
            )),
        }
    }
}
