//! The canonical layout of files in HCL: what `drover fmt` writes.
//!
//! Only white space between tokens on a line is changed: two columns for each open bracket, one space
//! around operators, `=` and comments at the end of lines below each other. Tokens and comments stay
//! as they are, byte for byte, and so do line ends, blank lines, and everything inside of quotes and
//! heredocs. The layout is that of HCL's own formatter, which Nomad uses; inside of `"${ … }"` that
//! one takes spaces away, and this one changes nothing.
//!
//! [`lex`] cuts a text into tokens, [`layout`] says what stands between them. That nothing else
//! changed is checked on each result before anybody gets it.

mod layout;
mod lex;

use hcl_edit::expr::{Array, FuncArgs, Object};
use hcl_edit::structure::Body;
use hcl_edit::visit_mut::{self, VisitMut};

use super::error::Errors;
use super::source::Source;
use super::syntax;

/// A byte order mark, which some editors write.
const MARK: char = '\u{feff}';

/// The text in the canonical layout; the same text if it has it already. `name` is the file's, for
/// errors.
///
/// # Errors
/// The text is too large, is no HCL, or is nested so deeply or written so unusually that its layout
/// cannot be told from its meaning.
pub fn format(text: &str, name: &str) -> Result<String, Errors> {
    let (mark, text) = match text.strip_prefix(MARK) {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let source = Source::bounded(name, text)?;
    let before = hcl_edit::parser::parse_body(text)
        .map_err(|error| Errors::from(syntax::issue(&source, &error)))?;
    let tokens = lex::tokens(text).ok_or_else(|| unusual(&source))?;
    let formatted = layout::write(&tokens);
    let after = hcl_edit::parser::parse_body(&formatted);
    let same_meaning = after.is_ok_and(|after| stripped(after) == stripped(before));
    if !same_meaning || lex::tokens(&formatted).as_deref() != Some(&tokens) {
        return Err(unusual(&source));
    }
    Ok(format!("{mark}{formatted}"))
}

/// Without the white space that the parser's own comparison looks at.
fn stripped(mut body: Body) -> Body {
    struct Strip;
    impl VisitMut for Strip {
        fn visit_array_mut(&mut self, node: &mut Array) {
            node.set_trailing("");
            visit_mut::visit_array_mut(self, node);
        }

        fn visit_object_mut(&mut self, node: &mut Object) {
            node.set_trailing("");
            visit_mut::visit_object_mut(self, node);
        }

        fn visit_func_args_mut(&mut self, node: &mut FuncArgs) {
            node.set_trailing("");
            visit_mut::visit_func_args_mut(self, node);
        }
    }
    Strip.visit_body_mut(&mut body);
    body
}

fn unusual(source: &Source) -> Errors {
    let message = "the layout of this file cannot be changed without changing what it says";
    let issue = source.issue(&None, message);
    let help = "It stays as it is. It may be nested too deeply.";
    issue.help(help).into()
}

#[cfg(test)]
mod tests;
