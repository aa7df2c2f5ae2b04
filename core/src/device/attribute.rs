//! Facts with units, and how they compare.

use core::cmp::Ordering;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::reported::ReportedAttribute;
use super::unit::{self, Measure};
use crate::model::float::Float;

/// What a fact says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fact {
    /// A whole number.
    Int(i64),
    /// A number with a fraction; always a number.
    Float(Float),
    /// A text.
    Text(String),
    /// Yes or no.
    Bool(bool),
}

/// A fact, with the unit of a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attribute {
    /// What it says.
    pub fact: Fact,
    /// The unit, which is known; empty for none.
    pub unit: String,
}

impl Attribute {
    /// What somebody outside said.
    ///
    /// # Errors
    /// No value or two, a unit that nobody knows or that stands at no number, a number that is none.
    pub fn of(reported: &ReportedAttribute) -> Result<Attribute, String> {
        let int = reported.int.map(Fact::Int);
        let float = reported.float.map(Fact::Float);
        let text = reported.string.clone().map(Fact::Text);
        let yes = reported.bool.map(Fact::Bool);
        let mut facts = [int, float, text, yes].into_iter().flatten();
        let (Some(fact), None) = (facts.next(), facts.next()) else {
            return Err("needs exactly one value".to_owned());
        };
        if matches!(fact, Fact::Float(float) if !float.is_finite()) {
            return Err("is not a number".to_owned());
        }
        let is_number = matches!(fact, Fact::Int(_) | Fact::Float(_));
        if !reported.unit.is_empty() && !is_number {
            return Err(format!(
                "has the unit {:?} and is not a number",
                reported.unit
            ));
        }
        if !reported.unit.is_empty() && unit::find(&reported.unit).is_none() {
            return Err(format!("has the unknown unit {:?}", reported.unit));
        }
        Ok(Attribute {
            fact,
            unit: reported.unit.clone(),
        })
    }

    /// What a person wrote, such as `4 GiB`.
    pub fn parse(text: &str) -> Attribute {
        let bare = |fact| Attribute {
            fact,
            unit: String::new(),
        };
        if let Some((number, unit)) = unit::split(text)
            && let Some(fact) = number_of(number)
        {
            let unit = unit.name.to_owned();
            return Attribute { fact, unit };
        }
        if let Some(fact) = number_of(text) {
            return bare(fact);
        }
        match text {
            "true" => bare(Fact::Bool(true)),
            "false" => bare(Fact::Bool(false)),
            text => bare(Fact::Text(text.to_owned())),
        }
    }

    /// How it compares with another; none if they are not of one kind.
    pub fn compare(&self, other: &Attribute) -> Option<Ordering> {
        match (&self.fact, &other.fact) {
            (Fact::Text(left), Fact::Text(right)) => Some(left.cmp(right)),
            (Fact::Bool(left), Fact::Bool(right)) => Some(left.cmp(right)),
            (Fact::Int(_) | Fact::Float(_), Fact::Int(_) | Fact::Float(_)) => {
                let (left, right) = (self.exact()?, other.exact()?);
                (left.0 == right.0).then(|| left.1.order(right.1))
            }
            (Fact::Text(_) | Fact::Bool(_) | Fact::Int(_) | Fact::Float(_), _) => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.fact {
            Fact::Text(text) => Some(text),
            Fact::Int(_) | Fact::Float(_) | Fact::Bool(_) => None,
        }
    }

    fn exact(&self) -> Option<(Option<Measure>, Exact)> {
        let number = match self.fact {
            Fact::Int(number) => Exact::new(i128::from(number), 0),
            Fact::Float(float) => Exact::of_float(float),
            Fact::Text(_) | Fact::Bool(_) => return None,
        };
        let unit = unit::find(&self.unit);
        let multiplier = unit.map_or(1, |unit| unit.multiplier);
        let number = Exact::new(number.digits * i128::from(multiplier), number.exponent);
        Some((unit.map(|unit| unit.measure), number))
    }
}

/// As people read it: the unit directly behind the number.
impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fact {
            Fact::Int(number) => write!(f, "{number}{}", self.unit),
            Fact::Float(number) => write!(f, "{}{}", number.get(), self.unit),
            Fact::Text(text) => f.write_str(text),
            Fact::Bool(yes) => write!(f, "{yes}"),
        }
    }
}

fn number_of(text: &str) -> Option<Fact> {
    if let Ok(number) = text.parse() {
        return Some(Fact::Int(number));
    }
    // "inf" and "nan" are texts.
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let float = Float::new(text.parse().ok().filter(|_| digits)?);
    float.is_finite().then_some(Fact::Float(float))
}

/// A number without rounding: digits times two to the power of the exponent. The digits have at
/// most 114 bits: 53 of a float or 64 of a whole number, and 60 of a unit.
#[derive(Clone, Copy)]
struct Exact {
    digits: i128,
    exponent: i32,
}

impl Exact {
    fn new(digits: i128, exponent: i32) -> Exact {
        Exact { digits, exponent }
    }

    /// The parts of an IEEE 754 number of 64 bits.
    fn of_float(float: Float) -> Exact {
        let bits = float.get().to_bits();
        let fraction = i128::from(bits & ((1 << 52) - 1));
        let biased = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
        let (digits, exponent) = match biased {
            0 => (fraction, -1074),
            biased => (fraction | (1 << 52), biased - 1075),
        };
        let sign = if bits >> 63 == 1 { -1 } else { 1 };
        Exact::new(sign * digits, exponent)
    }

    fn order(self, other: Exact) -> Ordering {
        let signs = self.digits.signum().cmp(&other.digits.signum());
        if signs.is_ne() || self.digits == 0 {
            return signs;
        }
        let sizes = self.size().cmp(&other.size());
        if self.digits < 0 {
            sizes.reverse()
        } else {
            sizes
        }
    }

    /// The place of the highest bit, and all bits from there on. Not for zero.
    fn size(self) -> (i64, u128) {
        let digits = self.digits.unsigned_abs();
        let leading = digits.leading_zeros();
        let highest = i64::from(self.exponent) + 127 - i64::from(leading);
        (highest, digits << leading.min(127))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(left: &str, right: &str) -> Option<Ordering> {
        Attribute::parse(left).compare(&Attribute::parse(right))
    }

    #[test]
    fn quantities_compare_across_units() {
        for (left, right, expected) in [
            ("4 GiB", "4096MiB", Some(Ordering::Equal)),
            ("4GB", "4GiB", Some(Ordering::Less)),
            ("1.5 GHz", "1500MHz", Some(Ordering::Equal)),
            ("1kW", "999 W", Some(Ordering::Greater)),
            ("0.1", "0.10", Some(Ordering::Equal)),
            ("-2", "-1.5", Some(Ordering::Less)),
            ("0", "-0.0", Some(Ordering::Equal)),
            ("-1.5", "-1.25", Some(Ordering::Less)),
            ("-1.5", "1", Some(Ordering::Less)),
            ("5e-324", "2.3e-308", Some(Ordering::Less)),
            ("0.5", "0.25", Some(Ordering::Greater)),
            ("16EiB", "15.999EiB", Some(Ordering::Greater)),
            ("9223372036854775807EB", "1e30", None),
            ("4 GiB", "4", None),
            ("4 GiB", "4 GiB/s", None),
            ("true", "false", Some(Ordering::Greater)),
            ("a", "b", Some(Ordering::Less)),
            ("a", "1", None),
        ] {
            assert_eq!(order(left, right), expected, "{left} and {right}");
        }
    }

    #[test]
    fn longest_unit_suffix_wins() {
        assert_eq!(Attribute::parse("5MiB/s").unit, "MiB/s");
        assert_eq!(Attribute::parse("5mW").unit, "mW");
        for text in ["W", "inf", "NaN", "fiveMiB", ""] {
            assert_eq!(Attribute::parse(text).text(), Some(text));
        }
        assert_eq!(Attribute::parse("16 GiB").to_string(), "16GiB");
    }

    #[test]
    fn reported_attribute_has_one_value_and_known_unit() {
        let int = ReportedAttribute {
            int: Some(0),
            ..ReportedAttribute::default()
        };
        assert!(Attribute::of(&int).is_ok(), "zero is a value");
        let bad = [
            ReportedAttribute::default(),
            ReportedAttribute {
                bool: Some(false),
                ..int.clone()
            },
            ReportedAttribute {
                unit: "furlong".to_owned(),
                ..int
            },
            ReportedAttribute {
                string: Some("x".to_owned()),
                unit: "MiB".to_owned(),
                ..ReportedAttribute::default()
            },
            ReportedAttribute {
                float: Some(Float::new(f64::NAN)),
                ..ReportedAttribute::default()
            },
        ];
        for reported in bad {
            assert!(Attribute::of(&reported).is_err(), "{reported:?}");
        }
    }
}
