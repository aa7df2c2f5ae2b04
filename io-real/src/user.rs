//! Users by name, from the machine's own files.

use std::fs;
use std::io;

use rustix::process::{Gid, getegid, geteuid, getgroups};

/// A user and the groups it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// Its name.
    pub(crate) name: String,
    /// Where it is at home.
    pub(crate) home: String,
    /// Its number.
    pub(crate) uid: u32,
    /// Its first group's number.
    pub(crate) gid: u32,
    /// All of its groups, the first included.
    pub(crate) groups: Vec<u32>,
}

impl User {
    /// The variables that tell a program who it is.
    pub(crate) fn variables(&self) -> [(String, String); 3] {
        let pair = |key: &str, value: &String| (key.to_owned(), value.clone());
        [
            pair("HOME", &self.home),
            pair("LOGNAME", &self.name),
            pair("USER", &self.name),
        ]
    }
}

/// Looks a user up: a name, or a number.
///
/// # Errors
/// There is none of that name, or the files cannot be read.
pub(crate) fn find(name: &str) -> io::Result<User> {
    let passwd = fs::read_to_string("/etc/passwd")?;
    let group = fs::read_to_string("/etc/group")?;
    find_in(name, &passwd, &group).ok_or_else(|| {
        let message = format!("there is no user {name:?} on this machine");
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// The user as whom this program runs.
///
/// # Errors
/// The system does not say it.
pub(crate) fn own() -> io::Result<User> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let others = getgroups()?.into_iter().map(Gid::as_raw);
    Ok(User {
        name: "of the agent".to_owned(),
        home: String::new(),
        uid,
        gid,
        groups: std::iter::once(gid).chain(others).collect(),
    })
}

/// The numbers of a task's user and group; none if the task names no user.
///
/// # Errors
/// As [`find`].
pub(crate) fn owner(name: &str) -> io::Result<Option<(u32, u32)>> {
    match name {
        "" => Ok(None),
        name => find(name).map(|user| Some((user.uid, user.gid))),
    }
}

fn find_in(name: &str, passwd: &str, group: &str) -> Option<User> {
    let mut entries = passwd.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let uid: u32 = fields.get(2)?.parse().ok()?;
        let gid: u32 = fields.get(3)?.parse().ok()?;
        let home = fields.get(5).copied().unwrap_or_default();
        Some((*fields.first()?, uid, gid, home))
    });
    let (name, uid, gid, home) =
        entries.find(|(login, uid, ..)| *login == name || uid.to_string() == name)?;
    let mut groups = vec![gid];
    for line in group.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let (Some(id), Some(members)) = (fields.get(2), fields.get(3)) else {
            continue;
        };
        let Ok(id) = id.parse() else { continue };
        if members.split(',').any(|member| member == name) && !groups.contains(&id) {
            groups.push(id);
        }
    }
    Some(User {
        name: name.to_owned(),
        home: home.to_owned(),
        uid,
        gid,
        groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nweb:x:1001:1002::/:/bin/false\n";
    const GROUP: &str = "root:x:0:\nweb:x:1002:\nlog:x:7:web,other\nx:x:8:webber\n";

    #[test]
    fn user_gets_own_groups_only() {
        let web = User {
            name: "web".to_owned(),
            home: "/".to_owned(),
            uid: 1001,
            gid: 1002,
            groups: vec![1002, 7],
        };
        assert_eq!(find_in("web", PASSWD, GROUP), Some(web.clone()));
        assert_eq!(find_in("1001", PASSWD, GROUP), Some(web));
        assert_eq!(find_in("nobody", PASSWD, GROUP), None);
    }
}
