//! Whether this node fulfils a job's conditions.
//!
//! What the operators mean is as in Nomad:
//!
//! | operator | true when |
//! |---|---|
//! | `=` `==` `is`, empty | both sides are known and equal |
//! | `!=` `not` | the sides differ; what is not known counts as empty |
//! | `<` `<=` `>` `>=` | both are known and compare so: as whole numbers, else as decimal numbers, else as text |
//! | `version` `semver` | the left is a version that the right allows, see [`version`] |
//! | `regexp` | the right, see [`regexp`], is found in the left |
//! | `set_contains` `set_contains_all` | every item of the right list is in the left (items between commas) |
//! | `set_contains_any` | some item is |
//! | `is_set` `is_not_set` | the left is known, or not |
//! | `distinct_hosts` `distinct_property` | always: one node cannot tell |

pub mod regexp;
pub mod version;

use core::cmp::Ordering;
use std::borrow::Cow;
use std::collections::BTreeSet;

use self::version::{Requirements, Scheme, Version};
use crate::model::job::Constraint;
use crate::model::node::Node;
use crate::text::{glob_match, nearest, quote};

/// How the two sides of a condition are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    AtMost,
    /// Greater.
    Greater,
    /// Greater or equal.
    AtLeast,
    /// The left is a version that the right allows.
    Version,
    /// The same by the rules of semantic versions.
    Semver,
    /// The right is found in the left.
    Regexp,
    /// All items of the right are in the left.
    SetContainsAll,
    /// Some item of the right is in the left.
    SetContainsAny,
    /// The left is known.
    IsSet,
    /// The left is not known.
    IsNotSet,
    /// No two allocations on one node.
    DistinctHosts,
    /// No two allocations on nodes that are alike in something.
    DistinctProperty,
}

/// All that an operator may be called.
const OPERATORS: &[(&str, Operator)] = &[
    ("=", Operator::Equal),
    ("==", Operator::Equal),
    ("is", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("not", Operator::NotEqual),
    ("<", Operator::Less),
    ("<=", Operator::AtMost),
    (">", Operator::Greater),
    (">=", Operator::AtLeast),
    ("version", Operator::Version),
    ("semver", Operator::Semver),
    ("regexp", Operator::Regexp),
    ("set_contains", Operator::SetContainsAll),
    ("set_contains_all", Operator::SetContainsAll),
    ("set_contains_any", Operator::SetContainsAny),
    ("is_set", Operator::IsSet),
    ("is_not_set", Operator::IsNotSet),
    ("distinct_hosts", Operator::DistinctHosts),
    ("distinct_property", Operator::DistinctProperty),
];

impl Operator {
    /// The operator of this name; the empty name is `=`.
    pub fn parse(name: &str) -> Option<Operator> {
        if name.is_empty() {
            return Some(Operator::Equal);
        }
        OPERATORS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, operator)| *operator)
    }
}

/// Whether the node fulfils all of the conditions.
///
/// # Errors
/// The first that it does not, as Nomad's users read it: `${attr.kernel.name} = windows`.
pub fn check_node<'a>(
    node: &Node,
    constraints: impl IntoIterator<Item = &'a Constraint>,
) -> Result<(), String> {
    match constraints.into_iter().find(|c| !satisfies(node, c)) {
        Some(failed) => Err(describe(failed)),
        None => Ok(()),
    }
}

/// A condition as one line.
pub fn describe(constraint: &Constraint) -> String {
    let operand = if constraint.operand.is_empty() {
        "="
    } else {
        constraint.operand.as_str()
    };
    let words = [constraint.target.as_str(), operand, &constraint.value];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Whether the node fulfils a condition. One that [`check_constraint`] refuses is not fulfilled.
pub fn satisfies(node: &Node, constraint: &Constraint) -> bool {
    let Some(operator) = Operator::parse(&constraint.operand) else {
        return false;
    };
    let left = resolve(node, &constraint.target);
    let right = resolve(node, &constraint.value);
    match operator {
        Operator::IsSet => return left.is_some(),
        Operator::IsNotSet => return left.is_none(),
        Operator::DistinctHosts | Operator::DistinctProperty => return true,
        Operator::NotEqual => return left.unwrap_or_default() != right.unwrap_or_default(),
        Operator::Equal
        | Operator::Less
        | Operator::AtMost
        | Operator::Greater
        | Operator::AtLeast
        | Operator::Version
        | Operator::Semver
        | Operator::Regexp
        | Operator::SetContainsAll
        | Operator::SetContainsAny => {}
    }
    match (left, right) {
        (Some(left), Some(right)) => compare_texts(operator, &left, &right),
        (None, _) | (_, None) => false,
    }
}

/// Whether the operator is true of two texts.
pub fn compare_texts(operator: Operator, left: &str, right: &str) -> bool {
    match operator {
        Operator::Equal => left == right,
        Operator::NotEqual => left != right,
        Operator::Less => order(left, right).is_lt(),
        Operator::AtMost => order(left, right).is_le(),
        Operator::Greater => order(left, right).is_gt(),
        Operator::AtLeast => order(left, right).is_ge(),
        Operator::Version => allows(Scheme::Loose, left, right),
        Operator::Semver => allows(Scheme::Semver, left, right),
        Operator::Regexp => regexp::compile(right).is_ok_and(|found| found.is_match(left)),
        Operator::SetContainsAll => items(right).is_subset(&items(left)),
        Operator::SetContainsAny => !items(right).is_disjoint(&items(left)),
        Operator::IsSet
        | Operator::IsNotSet
        | Operator::DistinctHosts
        | Operator::DistinctProperty => true,
    }
}

fn allows(scheme: Scheme, version: &str, requirements: &str) -> bool {
    match (
        Version::parse(scheme, version),
        Requirements::parse(scheme, requirements),
    ) {
        (Ok(version), Ok(requirements)) => requirements.allow(&version),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn items(list: &str) -> BTreeSet<&str> {
    list.split(',').map(str::trim).collect()
}

/// What one side of a condition stands for; none for what this node does not know.
fn resolve<'a>(node: &'a Node, target: &'a str) -> Option<Cow<'a, str>> {
    let Some(reference) = target.strip_prefix("${") else {
        return Some(Cow::Borrowed(target));
    };
    let name = reference.strip_suffix('}')?;
    let found = match name {
        "node.unique.id" => return Some(Cow::Owned(node.id.to_string())),
        "node.unique.name" => &node.name,
        "node.datacenter" => &node.datacenter,
        "node.region" => &node.region,
        "node.class" => &node.class,
        "node.pool" => &node.pool,
        _ => match (name.strip_prefix("attr."), name.strip_prefix("meta.")) {
            (Some(key), _) => node.attributes.get(key)?,
            (None, Some(key)) => node.meta.get(key)?,
            (None, None) => return None,
        },
    };
    Some(Cow::Borrowed(found))
}

/// Compares as whole numbers where both are, else as decimal numbers where both are, else as text.
fn order(left: &str, right: &str) -> Ordering {
    if let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>()) {
        return left.cmp(&right);
    }
    match (Decimal::parse(left), Decimal::parse(right)) {
        (Some(left), Some(right)) => left.order(&right),
        (None, _) | (_, None) => left.cmp(right),
    }
}

/// A decimal number as its digits, so that no float decides anything.
struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// Reads `[+-]digits[.digits]`. Exponents and special numbers are text.
    fn parse(text: &'a str) -> Option<Decimal<'a>> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        Some(Decimal {
            negative: negative && !(whole.is_empty() && fraction.is_empty()),
            whole,
            fraction,
        })
    }

    fn order(&self, other: &Decimal<'_>) -> Ordering {
        let sizes = (self.whole.len().cmp(&other.whole.len()))
            .then_with(|| self.whole.cmp(other.whole))
            .then_with(|| self.fraction.cmp(other.fraction));
        match (self.negative, other.negative) {
            (false, false) => sizes,
            (true, true) => sizes.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// Whether a condition can be evaluated at all, whatever the node.
///
/// # Errors
/// What is wrong with it.
pub fn check_constraint(constraint: &Constraint) -> Result<(), String> {
    let Some(operator) = Operator::parse(&constraint.operand) else {
        let near = nearest(
            &constraint.operand,
            OPERATORS
                .iter()
                .map(|(name, _)| *name)
                .filter(|n| n.len() > 2),
        );
        let hint = near.map_or(String::new(), |name| format!(" (did you mean {name:?}?)"));
        return Err(format!(
            "unknown operator {}{hint}",
            quote(&constraint.operand)
        ));
    };
    let value = constraint.value.as_str();
    if operator != Operator::DistinctHosts && constraint.target.is_empty() {
        return Err("an attribute must be given".to_owned());
    }
    match operator {
        Operator::IsSet | Operator::IsNotSet if value.is_empty() => Ok(()),
        Operator::IsSet | Operator::IsNotSet => {
            Err(format!("operator {} takes no value", constraint.operand))
        }
        Operator::DistinctHosts => Ok(()),
        Operator::DistinctProperty if value.is_empty() => Ok(()),
        Operator::DistinctProperty => match value.parse::<u64>() {
            Ok(1..) => Ok(()),
            Ok(0) | Err(_) => Err("the value must be a whole number of at least 1".to_owned()),
        },
        Operator::Equal
        | Operator::NotEqual
        | Operator::Less
        | Operator::AtMost
        | Operator::Greater
        | Operator::AtLeast
        | Operator::SetContainsAll
        | Operator::SetContainsAny
        | Operator::Version
        | Operator::Semver
        | Operator::Regexp => check_value(operator, value),
    }
}

/// Whether the right side can be read. What a reference stands for is known on the node only.
fn check_value(operator: Operator, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("a value must be given".to_owned());
    }
    if value.starts_with("${") {
        return Ok(());
    }
    match operator {
        Operator::Version => Requirements::parse(Scheme::Loose, value).map(|_| ()),
        Operator::Semver => Requirements::parse(Scheme::Semver, value).map(|_| ()),
        Operator::Regexp => regexp::compile(value).map(|_| ()),
        Operator::Equal
        | Operator::NotEqual
        | Operator::Less
        | Operator::AtMost
        | Operator::Greater
        | Operator::AtLeast
        | Operator::SetContainsAll
        | Operator::SetContainsAny
        | Operator::IsSet
        | Operator::IsNotSet
        | Operator::DistinctHosts
        | Operator::DistinctProperty => Ok(()),
    }
}

/// Whether one of a job's patterns of data centres, in which `*` stands for any text, is this
/// data centre.
pub fn datacenter_matches(patterns: &[String], datacenter: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| glob_match(pattern, datacenter))
}

#[cfg(test)]
mod tests;
