//! Signals by name.

/// The number of a signal such as `SIGHUP`, `hup` or `1`; `default` for the empty name.
pub(super) fn number(name: &str, default: i32) -> Option<i32> {
    if name.is_empty() {
        return Some(default);
    }
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some((_, number)) = NAMES.iter().find(|(known, _)| *known == short) {
        return Some(*number);
    }
    name.parse().ok().filter(|number| (1..=64).contains(number))
}

/// The names of all signals that a task can be sent, such as `SIGHUP`.
pub(crate) fn names() -> impl Iterator<Item = String> {
    NAMES.iter().map(|(short, _)| format!("SIG{short}"))
}

/// What ends a task politely unless the job says otherwise.
pub(super) const INTERRUPT: i32 = 2;

const NAMES: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("IOT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("SYS", 31),
];

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(number("SIGTERM", 2), Some(15));
        assert_eq!(number("hup", 2), Some(1));
        assert_eq!(number("9", 2), Some(9));
        assert_eq!(number("", 2), Some(2));
        assert_eq!(number("SIGNOPE", 2), None);
        assert_eq!(number("65", 2), None);
    }
}
