//! Rules for names, of which some hold for many: `*` stands for any text, also for none.

use std::collections::BTreeMap;

/// Rules by the name, or the pattern of names, that they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByName<T>(pub(super) BTreeMap<String, T>);

impl<T> Default for ByName<T> {
    fn default() -> ByName<T> {
        ByName(BTreeMap::new())
    }
}

impl<T> ByName<T> {
    /// The one rule for a name: its own; else that whose pattern leaves the least to its wildcards. Of two that leave
    /// as much, it is the first in the order of the alphabet.
    pub(super) fn of(&self, name: &str) -> Option<&T> {
        if let Some(own) = self.0.get(name) {
            return Some(own);
        }
        let fitting = (self.0.iter()).filter(|(pattern, _)| matches(pattern, name));
        let nearest = fitting.min_by_key(|(pattern, _)| distance(pattern, name));
        nearest.map(|(_, rule)| rule)
    }
}

/// How many letters of a name the wildcards of its pattern stand for.
fn distance(pattern: &str, name: &str) -> usize {
    let fixed = pattern.len() - pattern.matches('*').count();
    name.len().saturating_sub(fixed)
}

/// Whether a name is of a pattern. Each part between wildcards is found where it comes first, so that nothing is
/// tried twice.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut name) = name.strip_suffix(end) else {
        return false;
    };
    for part in middle.split('*') {
        let Some((_, after)) = name.split_once(part) else {
            return false;
        };
        name = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_stands_for_any_text() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("*-web", "prod-web", true),
            ("*-web", "-webs", false),
            ("prod-*", "prod", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("aa*aa", "aaa", false),
            ("**", "x", true),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn nearest_rule_is_for_a_name() {
        let names = ["*", "prod-*", "*-web", "prod-api", "production-*"];
        let rules = ByName(names.map(|name| (name.to_owned(), name)).into());
        for (name, rule) in [
            ("prod-api", "prod-api"),
            ("prod-db", "prod-*"),
            ("prod-web", "prod-*"),
            ("production-web", "production-*"),
            ("staging-web", "*-web"),
            ("default", "*"),
        ] {
            assert_eq!(rules.of(name), Some(&rule), "{name}");
        }
        assert_eq!(ByName::<u8>::default().of("x"), None);
    }

    #[test]
    fn hostile_pattern_is_matched_at_once() {
        let pattern = "a*".repeat(30_000) + "b";
        assert!(!matches(&pattern, &"a".repeat(60_000)));
    }
}
