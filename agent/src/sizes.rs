//! Sizes as people write them: `100GB`, `64MiB`, `1024`.

/// The bytes of a text, with a unit or without: units with an `i` count by 1,024. `None` if it is no size, or too
/// large a one.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits).unwrap_or((text, ""));
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("0", Some(0)),
            ("512", Some(512)),
            ("10GiB", Some(10 << 30)),
            ("1 MB", Some(1_000_000)),
            ("2k", Some(2000)),
            ("", None),
            ("GiB", None),
            ("1 parsec", None),
            ("18446744073709551615k", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
