//! The escape character of an interactive session: at the beginning of a line, `~.` ends the session, whatever
//! has become of its program, and `~~` is one `~`.

/// Watches what is typed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Escape {
    /// The character; none if there is no way to escape.
    character: Option<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the beginning of a line.
    Beginning,
    /// After the escape character there.
    Escaped,
    /// Anywhere else.
    Within,
}

impl Escape {
    pub(super) fn new(character: Option<u8>) -> Escape {
        let state = State::Beginning;
        Escape { character, state }
    }

    /// What of the typed is to be sent; none if it asks for the end.
    pub(super) fn typed(&mut self, typed: &[u8]) -> Option<Vec<u8>> {
        let Some(escape) = self.character else {
            return Some(typed.to_vec());
        };
        let mut sent = Vec::with_capacity(typed.len() + 1);
        for byte in typed {
            if self.state == State::Escaped {
                match *byte {
                    b'.' => return None,
                    other if other == escape => {}
                    _ => sent.push(escape),
                }
            } else if self.state == State::Beginning && *byte == escape {
                self.state = State::Escaped;
                continue;
            }
            sent.push(*byte);
            self.state = match *byte {
                b'\r' | b'\n' => State::Beginning,
                _ => State::Within,
            };
        }
        Some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(typed: &[&str]) -> Option<String> {
        let mut escape = Escape::new(Some(b'~'));
        let mut all = Vec::new();
        for typed in typed {
            all.extend(escape.typed(typed.as_bytes())?);
        }
        String::from_utf8(all).ok()
    }

    #[test]
    fn escape_ends_session_only_at_beginning_of_a_line() {
        assert_eq!(sent(&["~."]), None);
        assert_eq!(sent(&["ls\r", "~", "."]), None);
        assert_eq!(sent(&["ls ~.\r"]).as_deref(), Some("ls ~.\r"));
        assert_eq!(sent(&["~~.\r"]).as_deref(), Some("~.\r"));
        assert_eq!(sent(&["~", "x~."]).as_deref(), Some("~x~."));
        assert_eq!(
            Escape::new(None).typed(b"~.").as_deref(),
            Some(b"~.".as_slice())
        );
    }
}
