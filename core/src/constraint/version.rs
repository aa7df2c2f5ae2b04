//! Versions and what is required of them: `>= 1.2, < 2.0`.
//!
//! Two schemes, as in Nomad. The loose one reads any number of segments (`5.15`, `v1.2.3.4`,
//! `1.2.3-beta.1+build`, `1.0beta`), and a comparison without a prerelease never allows a
//! prerelease; one with a prerelease allows only prereleases of the same numbers, and releases.
//! The semantic one has at most three segments and orders prereleases before their release
//! without exceptions; it has no `~>`.
//!
//! Requirements are separated by commas, and all must hold: `=` (or nothing), `!=`, `<`, `<=`,
//! `>`, `>=`, and `~>`, which allows what differs from the last given segment on upwards.

use core::cmp::Ordering;

use crate::text::quote;

/// Versions and requirements longer than this are refused, in bytes.
const MAX_LENGTH: usize = 512;

/// How versions are read and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Whatever looks like a version.
    Loose,
    /// Semantic versions.
    Semver,
}

/// A version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    /// The numbers as given; a missing one is zero.
    segments: Vec<u64>,
    /// What follows the numbers; empty for a release.
    prerelease: String,
}

impl Version {
    /// Reads a version. What follows a `+` is of no meaning.
    ///
    /// # Errors
    /// The text is no version of this scheme.
    pub fn parse(scheme: Scheme, text: &str) -> Result<Version, String> {
        let bad = || format!("{} is not a version", quote(text));
        if text.len() > MAX_LENGTH {
            return Err(bad());
        }
        let rest = text.trim();
        let rest = rest.strip_prefix('v').unwrap_or(rest);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (numbers, tail) = rest.split_at_checked(end).ok_or_else(bad)?;
        let segments: Option<Vec<u64>> = numbers
            .split('.')
            .map(|segment| segment.parse().ok())
            .collect();
        let segments = segments.ok_or_else(bad)?;
        let prerelease = match tail.strip_prefix('-') {
            Some(tail) if !tail.is_empty() => tail,
            Some(_) => return Err(bad()),
            None if scheme == Scheme::Semver && !tail.is_empty() => return Err(bad()),
            None => tail,
        };
        let too_many = scheme == Scheme::Semver && segments.len() > 3;
        let parts = [Some(prerelease).filter(|p| !p.is_empty()), build];
        if too_many || !parts.into_iter().flatten().all(is_dotted) {
            return Err(bad());
        }
        Ok(Version {
            segments,
            prerelease: prerelease.to_owned(),
        })
    }

    fn segment(&self, at: usize) -> u64 {
        self.segments.get(at).copied().unwrap_or(0)
    }

    fn order_numbers(&self, other: &Version) -> Ordering {
        let length = self.segments.len().max(other.segments.len());
        (0..length)
            .map(|at| self.segment(at).cmp(&other.segment(at)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Which of two versions is the later one.
    pub fn order(&self, other: &Version) -> Ordering {
        self.order_numbers(other)
            .then_with(|| order_prereleases(&self.prerelease, &other.prerelease))
    }

    fn is_prerelease(&self) -> bool {
        !self.prerelease.is_empty()
    }
}

/// Whether a text is parts of letters, digits, `-` and `~` with dots between them.
fn is_dotted(text: &str) -> bool {
    text.split('.').all(|part| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '~');
        !part.is_empty() && part.chars().all(fits)
    })
}

fn order_prereleases(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut lefts, mut rights) = (left.split('.'), right.split('.'));
    loop {
        let order = match (lefts.next(), rights.next()) {
            (Some(left), Some(right)) => order_parts(left, right),
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => return Ordering::Equal,
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Numbers by their size and before words; words by their letters.
fn order_parts(left: &str, right: &str) -> Ordering {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Compatible,
}

/// Longer names first, so that `>=` is not read as `>`.
const RELATIONS: &[(&str, Relation)] = &[
    ("!=", Relation::NotEqual),
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("~>", Relation::Compatible),
    ("=", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

/// What is required of a version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirements {
    scheme: Scheme,
    all: Vec<(Relation, Version)>,
}

impl Requirements {
    /// Reads requirements.
    ///
    /// # Errors
    /// The text is none; the message says what part of it is wrong.
    pub fn parse(scheme: Scheme, text: &str) -> Result<Requirements, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("longer than {MAX_LENGTH} bytes"));
        }
        let mut all = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let (relation, version) = RELATIONS
                .iter()
                .find_map(|(name, relation)| Some((*relation, part.strip_prefix(name)?)))
                .unwrap_or((Relation::Equal, part));
            if relation == Relation::Compatible && scheme == Scheme::Semver {
                return Err("semver has no operator ~>".to_owned());
            }
            all.push((relation, Version::parse(scheme, version)?));
        }
        Ok(Requirements { scheme, all })
    }

    /// Whether a version fulfils all of them.
    pub fn allow(&self, version: &Version) -> bool {
        self.all
            .iter()
            .all(|(relation, wanted)| holds(self.scheme, *relation, version, wanted))
    }
}

fn holds(scheme: Scheme, relation: Relation, version: &Version, wanted: &Version) -> bool {
    let order = version.order(wanted);
    let fits = scheme == Scheme::Semver || prerelease_fits(version, wanted);
    match relation {
        Relation::Equal => order.is_eq(),
        Relation::NotEqual => order.is_ne(),
        Relation::Less => fits && order.is_lt(),
        Relation::AtMost => fits && order.is_le(),
        Relation::Greater => fits && order.is_gt(),
        Relation::AtLeast => fits && order.is_ge(),
        Relation::Compatible => {
            let both = version.is_prerelease() == wanted.is_prerelease();
            let kept = wanted.segments.len().saturating_sub(1);
            let same = (0..kept).all(|at| version.segment(at) == wanted.segment(at));
            fits && both && same && order.is_ge()
        }
    }
}

/// Whether the loose scheme lets a comparison with `wanted` allow `version` at all.
fn prerelease_fits(version: &Version, wanted: &Version) -> bool {
    match (version.is_prerelease(), wanted.is_prerelease()) {
        (true, true) => version.order_numbers(wanted).is_eq(),
        (true, false) => false,
        (false, true) | (false, false) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(version: &str, requirements: &str) -> Option<bool> {
        let version = Version::parse(Scheme::Loose, version).ok()?;
        let requirements = Requirements::parse(Scheme::Loose, requirements).ok()?;
        Some(requirements.allow(&version))
    }

    fn semver(version: &str, requirements: &str) -> Option<bool> {
        let version = Version::parse(Scheme::Semver, version).ok()?;
        let requirements = Requirements::parse(Scheme::Semver, requirements).ok()?;
        Some(requirements.allow(&version))
    }

    #[test]
    fn numbers_compare_as_numbers() {
        assert_eq!(loose("1.10.0", ">= 1.9"), Some(true));
        assert_eq!(loose("1.2", "1.2.0"), Some(true));
        assert_eq!(loose("v1.2.3.4", "> 1.2.3"), Some(true));
        assert_eq!(loose("1.2.3", "!=1.2.3"), Some(false));
        assert_eq!(loose("1.2.3", ">= 1.0, < 1.2"), Some(false));
        assert_eq!(loose("1.2.3+x", "= 1.2.3+y"), Some(true));
    }

    #[test]
    fn compatible_keeps_all_but_the_last_segment() {
        assert_eq!(loose("1.9.0", "~> 1.2"), Some(true));
        assert_eq!(loose("2.0.0", "~> 1.2"), Some(false));
        assert_eq!(loose("1.2.9", "~> 1.2.3"), Some(true));
        assert_eq!(loose("1.3.0", "~> 1.2.3"), Some(false));
        assert_eq!(loose("1.2.2", "~> 1.2.3"), Some(false));
        assert_eq!(loose("9.0", "~> 1"), Some(true));
        assert_eq!(loose("1.2.3", "~> 1.2.3-beta"), Some(false));
    }

    #[test]
    fn version_constraint_excludes_prereleases() {
        assert_eq!(loose("1.3.0-beta", ">= 1.2"), Some(false));
        assert_eq!(loose("1.3.0-beta.2", ">= 1.3.0-beta.1"), Some(true));
        assert_eq!(loose("1.4.0-beta.2", ">= 1.3.0-beta.1"), Some(false));
        assert_eq!(loose("1.3.0", ">= 1.3.0-beta.1"), Some(true));
        assert_eq!(loose("5.15.0-86-generic", "> 5.0"), Some(false));
        assert_eq!(loose("1.0beta", "= 1.0-beta"), Some(true));
    }

    #[test]
    fn semver_constraint_orders_prereleases() {
        assert_eq!(semver("1.3.0-beta", ">= 1.2.0"), Some(true));
        assert_eq!(semver("1.3.0-beta", "< 1.3.0"), Some(true));
        for (earlier, later) in [
            ("1.0.0-alpha", "1.0.0-alpha.1"),
            ("1.0.0-alpha.1", "1.0.0-alpha.beta"),
            ("1.0.0-beta.2", "1.0.0-beta.11"),
            ("1.0.0-rc.1", "1.0.0"),
        ] {
            assert_eq!(semver(earlier, &format!("< {later}")), Some(true));
            assert_eq!(semver(later, &format!("< {earlier}")), Some(false));
        }
    }

    #[test]
    fn invalid_version_is_refused() {
        for bad in ["", "v", "x", "1..2", "1.", ".1", "1.2-", "1.2-a..b", "1.2+"] {
            assert!(Version::parse(Scheme::Loose, bad).is_err(), "{bad:?}");
        }
        for bad in ["1.2.3.4", "1.0beta"] {
            assert!(Version::parse(Scheme::Semver, bad).is_err(), "{bad:?}");
        }
        assert!(Requirements::parse(Scheme::Loose, ">= 1.0,").is_err());
        assert!(Requirements::parse(Scheme::Loose, "=> 1.0").is_err());
        assert!(Requirements::parse(Scheme::Semver, "~> 1.0").is_err());
        assert!(Version::parse(Scheme::Loose, &"1.".repeat(1000)).is_err());
    }

    #[test]
    fn version_may_be_as_long_as_allowed() {
        let longest = "1".to_owned() + &"0".repeat(15) + " ".repeat(MAX_LENGTH - 16).as_str();
        assert_eq!(longest.len(), MAX_LENGTH);
        assert!(Version::parse(Scheme::Loose, &longest).is_ok());
        assert!(Requirements::parse(Scheme::Loose, &longest).is_ok());
        let longer = longest + " ";
        assert!(Version::parse(Scheme::Loose, &longer).is_err());
        assert!(Requirements::parse(Scheme::Loose, &longer).is_err());
    }

    #[test]
    fn each_relation_has_its_own_bounds() {
        let table = [
            ("=", [false, true, false]),
            ("!=", [true, false, true]),
            ("<", [true, false, false]),
            ("<=", [true, true, false]),
            (">", [false, false, true]),
            (">=", [false, true, true]),
        ];
        for (relation, expected) in table {
            let wanted = format!("{relation} 1.2.0");
            let found = ["1.1.9", "1.2.0", "1.2.1"].map(|version| loose(version, &wanted));
            assert_eq!(found, expected.map(Some), "loose {wanted}");
            let found = ["1.1.9", "1.2.0", "1.2.1"].map(|version| semver(version, &wanted));
            assert_eq!(found, expected.map(Some), "semantic {wanted}");
        }
    }
}
