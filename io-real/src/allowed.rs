//! Which probes and drivers people allow: lists of the names that are wanted, and of those that are not.

use std::collections::BTreeSet;

/// Two lists of names. Without any, everything is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// What the lists are about, as in `driver.allowlist`.
    pub about: &'static str,
    /// If this has names, only those are wanted.
    pub only: BTreeSet<String>,
    /// What is not wanted, also if the other list has it.
    pub not: BTreeSet<String>,
}

impl Allowed {
    /// Which list keeps this name out, if one does.
    pub fn denial(&self, name: &str) -> Option<String> {
        if self.not.contains(name) {
            return Some(format!("denied by {}.denylist", self.about));
        }
        let left_out = !self.only.is_empty() && !self.only.contains(name);
        left_out.then(|| format!("not in {}.allowlist", self.about))
    }

    /// Whether no list keeps this name out.
    pub fn allows(&self, name: &str) -> bool {
        self.denial(name).is_none()
    }

    /// Every name of both lists.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.only.iter().chain(&self.not).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_denied_is_so_also_if_it_is_wanted() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let lists = Allowed {
            about: "driver",
            only: names(&["a", "b"]),
            not: names(&["b", "c"]),
        };
        assert_eq!(lists.denial("a"), None);
        assert_eq!(
            lists.denial("b").as_deref(),
            Some("denied by driver.denylist")
        );
        assert_eq!(
            lists.denial("c").as_deref(),
            Some("denied by driver.denylist")
        );
        assert_eq!(
            lists.denial("d").as_deref(),
            Some("not in driver.allowlist")
        );
        assert!(Allowed::default().allows("anything"));
    }
}
