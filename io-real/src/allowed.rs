//! Which probes and drivers people allow (`client { options = { … } }`): lists of the names that
//! are wanted, and of those that are not or are switched off, by Nomad's names. Clouds are asked
//! only if they are named.
//!
//! What is denied is no part of the core's configuration; the node's status lists it from the
//! settings. What a denied driver still ran is ended when the agent starts.

use std::collections::{BTreeMap, BTreeSet};

/// Lists of names. Without any, everything is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// What the lists are about, as in `driver.allowlist`.
    pub about: &'static str,
    /// If this has names, only those are wanted.
    pub only: BTreeSet<String>,
    /// What is not wanted, also if the other list has it.
    pub not: BTreeSet<String>,
    /// What is switched off, whatever the other lists have, with why.
    pub disabled: BTreeMap<String, String>,
}

impl Allowed {
    /// Which list keeps this name out, if one does.
    pub fn denial(&self, name: &str) -> Option<String> {
        if let Some(why) = self.disabled.get(name) {
            return Some(why.clone());
        }
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

    /// Every name of the two lists that people write.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.only.iter().chain(&self.not).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_overrides_allow() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let lists = Allowed {
            about: "driver",
            only: names(&["a", "b", "e"]),
            not: names(&["b", "c"]),
            disabled: [(
                "a".to_owned(),
                "plugin \"a\" has enabled = false".to_owned(),
            )]
            .into(),
        };
        assert_eq!(
            lists.denial("a").as_deref(),
            Some("plugin \"a\" has enabled = false")
        );
        assert_eq!(lists.denial("e"), None);
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
