//! Cutting command lines into words as shells do, and putting words together for one.

/// The words of a command line: quotes and backslashes as in a shell, and nothing else. None if a quote has no end.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => quoted(c, &mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

fn quoted(quote: char, chars: &mut core::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            c if c == quote => return Some(()),
            '\\' if quote == '"' => match chars.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

/// A word that a shell takes as it is.
pub(crate) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_shells() {
        let words = split("a 'b c' \"d \\\" e\"  f\\ g ''");
        let wanted = ["a", "b c", "d \" e", "f g", ""];
        assert_eq!(words.unwrap_or_default(), wanted);
        assert_eq!(split("a 'b"), None);
        assert_eq!(split("a \\"), None);
    }

    #[test]
    fn words_for_shells() {
        assert_eq!(shell("a-b/c"), "a-b/c");
        assert_eq!(shell("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(shell(""), "''");
    }
}
