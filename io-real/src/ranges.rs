//! Lists of numbers as the kernel writes them: `0-3,8`.

use std::collections::BTreeSet;

/// Numbers from here on are not believed.
pub(crate) const BEYOND: u32 = 8192;

/// Reads a list. Parts of it that are no numbers, and numbers that are not believed, are left out.
pub(crate) fn parse(text: &str) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<u32>()) {
            all.extend(first..last.saturating_add(1).min(BEYOND));
        }
    }
    all
}

/// Writes a list.
pub(crate) fn print(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let parts: Vec<String> = ranges
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        })
        .collect();
    parts.join(",")
}
