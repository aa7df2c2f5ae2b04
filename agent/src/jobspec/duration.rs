//! Lengths of time as job files write them: `90s`, `1h30m`, `1.5h`, `-2s`, `0`.

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds of a written duration.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    let bad = || {
        format!(
            "\"{text}\" is no duration; write numbers with the units ns, us, ms, s, m or h, \
             such as \"90s\" or \"1h30m\""
        )
    };
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or("")),
        Some(b'+') => (false, text.get(1..).unwrap_or("")),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() || text.len() > 128 {
        return Err(bad());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = component(rest).ok_or_else(bad)?;
        total = total.checked_add(nanos).ok_or_else(bad)?;
        rest = after;
    }
    let total = if negative { -total } else { total };
    i64::try_from(total).map_err(|_| format!("\"{text}\" is longer than 292 years"))
}

/// One number with its unit, and what follows.
fn component(text: &str) -> Option<(i128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(end);
    let end = rest
        .find(|c: char| c.is_ascii_digit() || c == '.')
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    // Digits below a nanosecond say nothing.
    let part: String = part.chars().take(18).collect();
    let fraction = match part.as_str() {
        "" => 0,
        digits => digits.parse::<i128>().ok()? * scale / 10_i128.pow(digits.len() as u32),
    };
    Some((whole * scale + fraction, rest))
}
