//! Maps that are written as blocks, with keys in quotes: `meta { "rack.row" = "7" }`. Nomad's agents read that. In the
//! syntax of today a block has plain names only, and a map (`meta = { … }`) has any: so one is made of the other.

use std::borrow::Cow;

/// The same text, where blocks with keys in quotes are maps. No line moves.
pub(super) fn as_maps(text: &str) -> Cow<'_, str> {
    let mut braces = Scanner::new(text).braces();
    if braces.is_empty() {
        return Cow::Borrowed(text);
    }
    braces.sort_unstable();
    let mut changed = String::with_capacity(text.len() + 2 * braces.len());
    let mut rest = 0;
    for brace in braces {
        changed.push_str(text.get(rest..brace).unwrap_or_default());
        changed.push_str("= ");
        rest = brace;
    }
    changed.push_str(text.get(rest..).unwrap_or_default());
    Cow::Owned(changed)
}

/// What of a statement was read so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Nothing,
    /// A name: a block without labels may begin.
    Name,
    /// A text in quotes: a key may be it.
    Quoted,
    More,
}

/// A brace that is open.
struct Open {
    /// Where, if a block begins there whose body may be a map.
    block: Option<usize>,
    has_quoted_key: bool,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    read: Read,
    open: Vec<Open>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Scanner<'a> {
        Scanner {
            text: text.as_bytes(),
            at: 0,
            read: Read::Nothing,
            open: Vec::new(),
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// Where the braces are of blocks that have keys in quotes.
    fn braces(mut self) -> Vec<usize> {
        let mut found = Vec::new();
        while let Some(byte) = self.byte(0) {
            match (byte, self.byte(1)) {
                (b'#', _) | (b'/', Some(b'/')) => self.skip_to(b"\n"),
                (b'/', Some(b'*')) => self.skip_past(b"*/"),
                (b'<', Some(b'<')) => self.skip_heredoc(),
                (b'"', _) => self.skip_quoted(),
                (b'\n' | b',', _) => self.next(Read::Nothing),
                (byte, _) if byte.is_ascii_whitespace() => self.at += 1,
                (b'{', _) => {
                    self.open.push(Open {
                        block: (self.read == Read::Name).then_some(self.at),
                        has_quoted_key: false,
                    });
                    self.next(Read::Nothing);
                }
                (b'}', _) => {
                    let closed = self.open.pop().filter(|open| open.has_quoted_key);
                    found.extend(closed.and_then(|open| open.block));
                    self.next(Read::More);
                }
                (b'=' | b':', _) => {
                    let is_key = self.read == Read::Quoted;
                    if let Some(open) = self.open.last_mut().filter(|_| is_key) {
                        open.has_quoted_key = true;
                    }
                    self.next(Read::More);
                }
                (byte, _) if is_of_name(byte) => self.skip_name(),
                _ => self.next(Read::More),
            }
        }
        found
    }

    fn next(&mut self, read: Read) {
        self.read = read;
        self.at += 1;
    }

    /// Something was read whole.
    fn was(&mut self, read: Read) {
        self.read = match self.read {
            Read::Nothing => read,
            Read::Name | Read::Quoted | Read::More => Read::More,
        };
    }

    fn skip_name(&mut self) {
        while self.byte(0).is_some_and(is_of_name) {
            self.at += 1;
        }
        self.was(Read::Name);
    }

    fn skip_quoted(&mut self) {
        self.at += 1;
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        self.was(Read::Quoted);
    }

    fn skip_to(&mut self, end: &[u8]) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.windows(end.len()).position(|it| it == end);
        self.at += length.unwrap_or(rest.len());
    }

    fn skip_past(&mut self, end: &[u8]) {
        self.skip_to(end);
        self.at += end.len();
    }

    /// To the line that has nothing but the word after `<<`.
    fn skip_heredoc(&mut self) {
        self.at += 2;
        let from = self.at;
        self.skip_to(b"\n");
        let word = self.text.get(from..self.at).unwrap_or_default();
        let word = word.strip_prefix(b"-").unwrap_or(word).trim_ascii();
        while self.at < self.text.len() {
            let from = self.at + 1;
            self.at = from;
            self.skip_to(b"\n");
            let line = self.text.get(from..self.at).unwrap_or_default();
            if line.trim_ascii() == word {
                break;
            }
        }
        self.was(Read::More);
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_with_key_in_quotes_is_made_a_map() {
        for (text, expected) in [
            ("meta { \"a.b\" = \"c\" }", "meta = { \"a.b\" = \"c\" }"),
            (
                "client {\n meta {\n rack = \"r\"\n \"a.b\" = 1\n }\n}",
                "client {\n meta = {\n rack = \"r\"\n \"a.b\" = 1\n }\n}",
            ),
            (
                "chroot_env {\n # {\n \"/a\" = \"}\"\n}\noptions {\n \"b\" = \"\\\"\"\n}",
                "chroot_env = {\n # {\n \"/a\" = \"}\"\n}\noptions = {\n \"b\" = \"\\\"\"\n}",
            ),
        ] {
            assert_eq!(as_maps(text), expected);
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for text in [
            "",
            "meta {\n rack = \"r\"\n}",
            "options = { \"a\" = \"b\" }",
            "plugin \"x\" {\n args = [\"a\",\n \"b\"]\n}",
            "host_volume \"a\" {\n path = \"/x\"\n}",
            "x = <<E\n meta { \"a\" = 1 }\nE\ny = 1",
            "/* meta { \"a\" = 1 } */ // meta { \"a\" = 1 }",
            "# meta { \"a\" = 1 }",
            "meta { \"a\" = 1",
            "} \" \\",
            "x = <<",
            "/*",
            "ä { \"ö\" }",
        ] {
            assert_eq!(as_maps(text), text);
        }
    }
}
