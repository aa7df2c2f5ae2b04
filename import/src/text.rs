//! Texts that may refer to variables of the job file, and how HCL writes them.

use core::fmt::Write;

/// A piece of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// As it stands.
    Plain(String),
    /// The value of a variable of the job file.
    Variable(String),
    /// A text where the variable is not empty, and nothing where it is.
    If(String, String),
}

/// A text with variables in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub Vec<Part>);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(vec![Part::Plain(text.to_owned())])
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(vec![Part::Plain(text)])
    }
}

impl Text {
    /// The text, if nothing in it is a variable.
    pub(crate) fn plain(&self) -> Option<String> {
        let mut all = String::new();
        for part in &self.0 {
            match part {
                Part::Plain(text) => all.push_str(text),
                Part::Variable(_) | Part::If(..) => return None,
            }
        }
        Some(all)
    }

    /// Adds a text at the end.
    pub(crate) fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(Part::Plain(last)) => last.push_str(text),
            _ => self.0.push(Part::Plain(text.to_owned())),
        }
    }

    /// This text and another one behind it.
    pub(crate) fn then(mut self, other: Text) -> Text {
        for part in other.0 {
            match part {
                Part::Plain(text) => self.push(&text),
                Part::Variable(_) | Part::If(..) => self.0.push(part),
            }
        }
        self
    }

    /// As an expression in quotes, or a variable alone.
    pub(crate) fn quoted(&self) -> String {
        if let [Part::Variable(name)] = self.0.as_slice() {
            return format!("var.{name}");
        }
        let mut out = String::from("\"");
        self.write(&mut out, escape);
        out.push('"');
        out
    }

    /// The same in a heredoc, if it is one or more whole lines that can stand in one.
    pub(crate) fn heredoc(&self) -> Option<String> {
        let mut body = String::new();
        self.write(&mut body, |out, text| out.push_str(&unrefer(text)));
        let lines = body.matches('\n').count();
        let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if lines < 2 || !body.ends_with('\n') || body.contains(odd) {
            return None;
        }
        let ends = |word: &str| body.lines().any(|line| line.trim_start().starts_with(word));
        let word = ["EOT", "END_OF_TEXT", "LAST_LINE"]
            .into_iter()
            .find(|it| !ends(it))?;
        Some(format!("<<{word}\n{body}{word}"))
    }

    fn write(&self, out: &mut String, plain: fn(&mut String, &str)) {
        for part in &self.0 {
            match part {
                Part::Plain(text) => plain(out, text),
                Part::Variable(name) => {
                    let _ = write!(out, "${{var.{name}}}");
                }
                Part::If(name, then) => {
                    let then = string(then);
                    let _ = write!(out, "${{var.{name} != \"\" ? {then} : \"\"}}");
                }
            }
        }
    }
}

/// A plain text as a string of HCL.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::from("\"");
    escape(&mut out, text);
    out.push('"');
    out
}

/// What begins a reference in a template does not begin one any more.
fn unrefer(text: &str) -> String {
    text.replace("${", "$${").replace("%{", "%%{")
}

fn escape(out: &mut String, text: &str) {
    for c in unrefer(text).chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

impl Text {
    /// The parts between a sign; what variables stand for is not cut.
    pub(crate) fn split(&self, sign: char) -> Vec<Text> {
        let mut all = vec![Text::default()];
        for part in &self.0 {
            let Part::Plain(text) = part else {
                if let Some(last) = all.last_mut() {
                    last.0.push(part.clone());
                }
                continue;
            };
            for (at, piece) in text.split(sign).enumerate() {
                if at > 0 {
                    all.push(Text::default());
                }
                if let Some(last) = all.last_mut().filter(|_| !piece.is_empty()) {
                    last.push(piece);
                }
            }
        }
        all
    }

    /// The name of the variable that this is, if it is nothing else.
    pub(crate) fn variable(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Variable(name)] => Some(name),
            _ => None,
        }
    }
}
