//! Facts with units: that they have one order, whoever says them.

use std::cmp::Ordering;

use drover_core::device::attribute::{Attribute, Fact};
use drover_core::device::reported::ReportedAttribute;
use drover_core::model::float::Float;

/// Up to here whole numbers and fractions are the same.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Facts as people write them, a line each.
///
/// # Panics
/// If two do not compare the same both ways, or one is another when it was shown and read again.
pub fn attribute(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let facts: Vec<Attribute> = text.lines().take(8).map(Attribute::parse).collect();
    have_one_order(&facts);
    for fact in &facts {
        let again = Attribute::parse(&fact.to_string());
        let order = fact.compare(&again);
        // The shortest digits that name a large fraction may name another whole number.
        let same = match fact.fact {
            Fact::Float(float) if float.get().abs() > WHOLE => order.is_some(),
            Fact::Float(_) | Fact::Int(_) | Fact::Text(_) | Fact::Bool(_) => {
                order == Some(Ordering::Equal)
            }
        };
        assert!(same, "{fact:?} became {again:?}");
    }
}

/// Facts as plugins say them: a byte that says which values are there, a number, and a unit's
/// name up to a zero byte.
///
/// # Panics
/// As [`attribute`], or if what has no value, two, or a wrong unit is taken.
pub fn unit(bytes: &[u8]) {
    let mut facts = Vec::new();
    let mut rest = bytes;
    while let Some((read_one, after)) = read_one(rest)
        && facts.len() < 8
    {
        rest = after;
        let values = [
            read_one.int.is_some(),
            read_one.float.is_some(),
            read_one.string.is_some(),
            read_one.bool.is_some(),
        ];
        let Ok(fact) = Attribute::of(&read_one) else {
            continue;
        };
        let count = values.into_iter().filter(|there| *there).count();
        assert_eq!(count, 1, "{read_one:?}");
        assert!(read_one.float.is_none_or(Float::is_finite), "{read_one:?}");
        let is_number = read_one.int.is_some() || read_one.float.is_some();
        assert!(read_one.unit.is_empty() || is_number, "{read_one:?}");
        facts.push(fact);
    }
    have_one_order(&facts);
}

fn read_one(bytes: &[u8]) -> Option<(ReportedAttribute, &[u8])> {
    let (which, rest) = bytes.split_first()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let end = rest.iter().position(|byte| *byte == 0);
    let (unit, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let has = |bit: u8| which & bit != 0;
    let read_one = ReportedAttribute {
        int: has(1).then(|| i64::from_le_bytes(*number)),
        float: has(2).then(|| Float::new(f64::from_le_bytes(*number))),
        string: has(4).then(|| String::from_utf8_lossy(number).into_owned()),
        bool: has(8).then_some(has(16)),
        unit: String::from_utf8_lossy(unit).into_owned(),
    };
    Some((read_one, rest.get(1..).unwrap_or_default()))
}

/// Each equals itself; two compare the same both ways; what is not greater than what is not
/// greater is not greater.
fn have_one_order(facts: &[Attribute]) {
    for a in facts {
        assert_eq!(a.compare(a), Some(Ordering::Equal), "{a:?}");
        for b in facts {
            let ab = a.compare(b);
            let back = b.compare(a).map(Ordering::reverse);
            assert_eq!(ab, back, "{a:?} and {b:?}");
            for c in facts {
                if ab.is_some_and(Ordering::is_le) && b.compare(c).is_some_and(Ordering::is_le) {
                    let ac = a.compare(c);
                    assert!(ac.is_some_and(Ordering::is_le), "{a:?}, {b:?}, {c:?}");
                }
            }
        }
    }
}
