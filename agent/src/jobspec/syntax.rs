//! What to do about a text that is no HCL. The parser knows what it expected; people want to know what
//! is written instead of what they wrote. The usual mistakes are those of people who know JSON, YAML
//! or the shell.

use drover_core::text::quote;

use super::error::Issue;
use super::source::Source;

/// The longest piece of somebody's file that an advice shows.
const SHOWN: usize = 60;

/// What the parser says, with its place, and what to write instead.
pub(super) fn issue(source: &Source, error: &hcl_edit::parser::Error) -> Box<Issue> {
    let at = error.location().offset();
    let message = format!("this cannot be read: {}", error.message());
    let issue = source.issue(&Some(at..at), message);
    let text = source.text();
    let (before, after) = (text.get(..at), text.get(at..));
    let line = Line {
        before: before
            .and_then(|text| text.rsplit('\n').next())
            .unwrap_or_default(),
        after: after
            .and_then(|text| text.lines().next())
            .unwrap_or_default(),
    };
    issue.maybe_help(advice(&line, error.message()))
}

/// The line on which the parser stopped.
struct Line<'a> {
    before: &'a str,
    after: &'a str,
}

fn advice(line: &Line<'_>, message: &str) -> Option<String> {
    if message.contains("redefined") {
        return Some("An attribute may be written once in a block.".to_owned());
    }
    if message.contains("heredoc") {
        return Some("Close the heredoc with its word alone on a line.".to_owned());
    }
    line.shell_variable()
        .or_else(|| line.comma())
        .or_else(|| line.quoted_name())
        .or_else(|| line.other_quotes())
        .or_else(|| line.colon())
        .or_else(|| line.nested_block())
        .or_else(|| line.several_attributes())
}

impl Line<'_> {
    fn next(&self) -> Option<char> {
        self.after.trim_start().chars().next()
    }

    /// Whether a block begins on this line and is open still.
    fn is_in_block(&self) -> bool {
        let opened = self.before.matches('{').count();
        opened > self.before.matches('}').count()
    }

    /// `"${X:-y}"`: what is meant for a shell is read as an expression of the file.
    fn shell_variable(&self) -> Option<String> {
        let start = self.before.rfind("${")?;
        let inside = self.before.get(start + 2..)?;
        if inside.contains('}') || self.before.get(..start)?.ends_with('$') {
            return None;
        }
        let end = self.after.find('}')?;
        let variable = format!("{inside}{}", self.after.get(..end)?);
        let right = match variable.chars().nth(SHOWN) {
            Some(_) => "$${…}".to_owned(),
            None => format!("$${{{variable}}}"),
        };
        Some(format!(
            "${{…}} is an expression of the job file. If the task's shell is to see it, write two \
             dollars: {right}"
        ))
    }

    fn comma(&self) -> Option<String> {
        if self.next() != Some(',') {
            return None;
        }
        Some(
            "Attributes have no commas between them: leave it out, and write each on its own line."
                .to_owned(),
        )
    }

    /// `"driver" = "exec"`, as in JSON.
    fn quoted_name(&self) -> Option<String> {
        let before = self.before.trim();
        if !(before.is_empty() || before.ends_with('{')) {
            return None;
        }
        let rest = self.after.trim_start().strip_prefix('"')?;
        let (name, rest) = rest.split_once('"')?;
        let sign = rest.trim_start().chars().next()?;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let shown = match name.chars().all(is_name) && name.len() <= SHOWN {
            true => name,
            false => "name",
        };
        match sign {
            '=' | ':' => Some(format!(
                "The name of an attribute has no quotes: {shown} = … (names with other characters \
                 stand in a map: env = {{ \"a.b\" = \"…\" }})"
            )),
            '{' | '"' => Some(format!(
                "The name of a block has no quotes: {shown} {{ … }}"
            )),
            _ => None,
        }
    }

    fn other_quotes(&self) -> Option<String> {
        let rest = self.after.trim_start().strip_prefix(['\'', '`'])?;
        let word = rest.split(['\'', '`']).next().unwrap_or_default();
        Some(format!("Text stands in double quotes: {}", quote(word)))
    }

    /// `driver: "exec"`, as in YAML.
    fn colon(&self) -> Option<String> {
        let name = self.before.trim();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        if self.next() != Some(':') || !name.chars().all(is_name) || name.len() > SHOWN {
            return None;
        }
        Some(format!("An attribute is written with =: {name} = …"))
    }

    /// `network { port "http" {} }`: a block may be on one line only if it holds no other.
    fn nested_block(&self) -> Option<String> {
        if !self.is_in_block() || !matches!(self.next(), Some('"' | '{')) {
            return None;
        }
        let (outer, inner) = self.before.split_once('{')?;
        let whole = format!("{}{}", inner.trim_start(), self.after.trim_end());
        let inner = whole.strip_suffix('}').unwrap_or(&whole).trim();
        let (outer, inner) = (outer.trim(), inner.replace("{}", "{\n    }"));
        if outer.len() > SHOWN || inner.len() > SHOWN {
            return Some(
                "A block on one line cannot hold another block: write the inner block on lines of \
                 its own."
                    .to_owned(),
            );
        }
        Some(format!(
            "A block on one line cannot hold another block. Write\n    {outer} {{\n      {}\n    }}",
            inner.replace('\n', "\n  ")
        ))
    }

    fn several_attributes(&self) -> Option<String> {
        let signs = self.before.matches('=').count() + self.after.matches('=').count();
        if !self.is_in_block() || signs < 2 {
            return None;
        }
        Some(
            "A block on one line holds one attribute at most; write each on its own line."
                .to_owned(),
        )
    }
}
