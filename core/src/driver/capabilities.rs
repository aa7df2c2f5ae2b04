//! Capabilities: the parts of root's power, by the names that Linux gives them.

use serde::{Deserialize, Serialize};

use crate::text::{nearest, quote};

/// The names, without `CAP_`, in the order of their numbers.
const NAMES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// A set of capabilities: bit `n` stands for the one of number `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// All that Linux has.
    pub const ALL: Capabilities = Capabilities((1 << NAMES.len()) - 1);

    /// Those with these names: with or without `CAP_`, in any case; `all` is all of them.
    ///
    /// # Errors
    /// The first name that is none.
    pub fn named<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Result<Self, String> {
        let mut set = Capabilities::default();
        for name in names {
            set = set.and(Self::one(name.as_ref())?);
        }
        Ok(set)
    }

    fn one(name: &str) -> Result<Self, String> {
        let lower = name.to_ascii_lowercase();
        let plain = lower.strip_prefix("cap_").unwrap_or(&lower);
        if plain == "all" {
            return Ok(Self::ALL);
        }
        let number = NAMES.iter().position(|known| *known == plain);
        number.map(|it| Capabilities(1 << it)).ok_or_else(|| {
            let near = nearest(plain, NAMES).map(|near| format!(" (did you mean {near}?)"));
            let near = near.unwrap_or_default();
            format!("there is no capability {}{near}", quote(name))
        })
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Capabilities(self.0 | other.0)
    }

    /// Those in both.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Capabilities(self.0 & other.0)
    }

    /// Those that the other does not have.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Capabilities(self.0 & !other.0)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the one of this name is among them.
    pub fn has(self, name: &str) -> bool {
        Self::one(name).is_ok_and(|one| !one.within(self).is_empty())
    }

    /// Their names, in the order of their numbers.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = NAMES.iter().enumerate();
        all.filter(move |(number, _)| self.0 & (1 << number) != 0)
            .map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_each_spelling() {
        let named = |name: &str| Capabilities::named([name]);
        assert_eq!(named("kill"), Ok(Capabilities(1 << 5)));
        assert_eq!(named("CAP_KILL"), named("kill"));
        assert_eq!(named("cap_Sys_Admin"), Ok(Capabilities(1 << 21)));
        assert_eq!(named("ALL"), Ok(Capabilities::ALL));
        for wrong in ["CAP_CAP_KILL", " kill", "", "kill,chown", "5"] {
            assert!(named(wrong).is_err(), "{wrong:?}");
        }
        let why = named("sys_admn");
        let words = "there is no capability \"sys_admn\" (did you mean sys_admin?)";
        assert_eq!(why, Err(words.to_owned()));
    }

    #[test]
    fn numbers_are_those_of_linux() {
        let last = Capabilities(1 << 40);
        assert_eq!(last.names().collect::<Vec<_>>(), ["checkpoint_restore"]);
        assert!(Capabilities::ALL.has("bpf") && !last.has("bpf"));
        assert_eq!(Capabilities::ALL.names().count(), 41);
    }
}
