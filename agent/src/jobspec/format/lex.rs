//! Cutting a text in HCL into tokens. What is quoted, a heredoc and a comment are one token each.

/// A token: its kind and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub kind: Kind,
    pub text: &'t str,
}

/// What a token is, as far as spaces around it depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The end of a line.
    Newline,
    /// `# …`, `// …` or `/* … */`, without the end of the line.
    Comment,
    /// A name or a keyword.
    Ident,
    Number,
    /// `"…"`, with all that is interpolated in it.
    Quoted,
    /// From `<<WORD` to the second `WORD`.
    Heredoc,
    /// `{`, `[`, `(`.
    Open(u8),
    /// `}`, `]`, `)`.
    Close(u8),
    /// Everything else: operators and signs.
    Sign,
}

/// How deep quotes, heredocs and brackets in them may lie in each other.
const MAX_DEPTH: usize = 100;

/// Signs of more than one byte; none is the beginning of a later one.
const LONG: [&str; 9] = ["...", "::", "=>", "==", "!=", "<=", ">=", "&&", "||"];

/// All tokens of a text, without the white space between them; nothing if a quote, a heredoc or a
/// comment has no end, or they are nested too deeply.
pub(super) fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut found: Vec<Token<'_>> = Vec::new();
    while lexer.skip_blanks() {
        let start = lexer.at;
        let after_dot = found.last().is_some_and(|token| token.text == ".");
        let kind = lexer.token(after_dot, 0)?;
        let text = text.get(start..lexer.at).filter(|it| !it.is_empty())?;
        found.push(Token { kind, text });
    }
    Some(found)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn starts(&self, with: &str) -> bool {
        self.rest().starts_with(with)
    }

    /// Goes behind spaces; whether anything follows.
    fn skip_blanks(&mut self) -> bool {
        let blank = |c: char| matches!(c, ' ' | '\t');
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(blank).len();
        self.at < self.text.len()
    }

    /// Goes on while characters are of a kind.
    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    }

    /// Goes behind the next token.
    fn token(&mut self, after_dot: bool, depth: usize) -> Option<Kind> {
        let first = self.rest().chars().next()?;
        if self.starts("\r\n") {
            self.at += 2;
            return Some(Kind::Newline);
        }
        Some(match first {
            '\n' | '\r' => {
                self.at += 1;
                Kind::Newline
            }
            '"' => {
                self.at += 1;
                self.template(None, depth)?;
                Kind::Quoted
            }
            '<' if self.starts("<<") => {
                self.heredoc(depth)?;
                Kind::Heredoc
            }
            '#' => self.line_comment(),
            '/' if self.starts("//") => self.line_comment(),
            '/' if self.starts("/*") => {
                self.at += 2 + self.rest().get(2..)?.find("*/")? + 2;
                Kind::Comment
            }
            '{' | '[' | '(' => {
                let open = self.byte()?;
                self.at += 1;
                Kind::Open(open)
            }
            '}' | ']' | ')' => {
                let close = self.byte()?;
                self.at += 1;
                Kind::Close(close)
            }
            '0'..='9' => {
                self.number(after_dot);
                Kind::Number
            }
            first if is_name(first) => {
                self.skip_while(|c| is_name(c) || c == '-');
                Kind::Ident
            }
            first => {
                let long = LONG.iter().find(|sign| self.starts(sign));
                self.at += long.map_or(first.len_utf8(), |sign| sign.len());
                Kind::Sign
            }
        })
    }

    fn line_comment(&mut self) -> Kind {
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        let line = rest.get(..end).unwrap_or_default();
        self.at += line.strip_suffix('\r').unwrap_or(line).len();
        Kind::Comment
    }

    /// A number. Behind a dot it is an index, of which another dot is no part.
    fn number(&mut self, after_dot: bool) {
        self.skip_while(|c| c.is_ascii_digit());
        let digit_at = |lexer: &Self, ahead: usize| {
            let byte = lexer.text.as_bytes().get(lexer.at + ahead);
            byte.is_some_and(u8::is_ascii_digit)
        };
        if !after_dot && self.starts(".") && digit_at(self, 1) {
            self.at += 1;
            self.skip_while(|c| c.is_ascii_digit());
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            let sign = matches!(self.text.as_bytes().get(self.at + 1), Some(b'+' | b'-'));
            let ahead = 1 + usize::from(sign);
            if digit_at(self, ahead) {
                self.at += ahead;
                self.skip_while(|c| c.is_ascii_digit());
            }
        }
    }

    /// From `<<WORD` to the line that holds `WORD` alone or at its beginning.
    fn heredoc(&mut self, depth: usize) -> Option<()> {
        self.at += 2;
        if self.starts("-") {
            self.at += 1;
        }
        let start = self.at;
        self.skip_while(|c| is_name(c) || c == '-');
        let text = self.text;
        let word = text.get(start..self.at).filter(|word| !word.is_empty())?;
        self.skip_while(|c| matches!(c, ' ' | '\t' | '\r'));
        (self.byte() == Some(b'\n')).then_some(())?;
        self.template(Some(word), depth)
    }

    /// To the end of what is quoted, or of a heredoc with this word: behind it.
    fn template(&mut self, word: Option<&str>, depth: usize) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        loop {
            let rest = self.rest();
            if rest.starts_with("$${") || rest.starts_with("%%{") {
                self.at += 3;
                continue;
            }
            if rest.starts_with("${") || rest.starts_with("%{") {
                self.at += 2;
                self.interpolation(depth + 1)?;
                continue;
            }
            let first = rest.chars().next()?;
            self.at += first.len_utf8();
            match (word, first) {
                (None, '"') => return Some(()),
                (None, '\\') => self.at += self.rest().chars().next()?.len_utf8(),
                (Some(word), '\n') if self.ends_heredoc(word) => return Some(()),
                _ => {}
            }
        }
    }

    /// Whether the line that begins here ends a heredoc; goes behind its word if so.
    fn ends_heredoc(&mut self, word: &str) -> bool {
        let line = self.rest().trim_start_matches([' ', '\t']);
        let blanks = self.rest().len() - line.len();
        let Some(behind) = line.strip_prefix(word) else {
            return false;
        };
        let goes_on = behind.starts_with(|c: char| is_name(c) || c == '-');
        if !goes_on {
            self.at += blanks + word.len();
        }
        !goes_on
    }

    /// Behind the brace that closes `${` or `%{`.
    fn interpolation(&mut self, depth: usize) -> Option<()> {
        let mut open = 1_usize;
        while open > 0 {
            self.skip_blanks().then_some(())?;
            // A brace that closes may have a mark of its own before it: `~}`.
            if self.starts("~}") {
                self.at += 1;
            }
            match self.token(false, depth)? {
                Kind::Open(b'{') => open += 1,
                Kind::Close(b'}') => open -= 1,
                _ => {}
            }
        }
        Some(())
    }
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
