//! Regular expressions for conditions, by the crate `regex-lite`: matched in time proportional to
//! the lengths of expression and text, whatever both are.
//!
//! What is written for Go's expressions, which Nomad uses, means the same here, and is found
//! anywhere in the text unless `^` or `$` say otherwise. The differences:
//!
//! - `(?i)` folds the case of ASCII letters only;
//! - `\p{Greek}` and other classes of Unicode, and `\Q...\E`, are errors;
//! - a brace that begins no repetition is an error, and has to be written `\{`;
//! - in a class, `[`, `&&`, `--` and `~~` are errors unless they are written with a `\`.
//!
//! This crate and not `regex`, which the program has elsewhere: there, `\d`, `\w` and `\b` mean all of
//! Unicode, `[a&&b]` and `[a[b]]` mean something else than in Go, and it takes longer to read an
//! expression than to look for it in a node's attribute.

use regex_lite::{Regex, RegexBuilder};

/// The most letters that an expression may have.
pub const MAX_LENGTH: usize = 1_000;

/// The most bytes that a compiled expression may take, all repetitions written out.
pub const MAX_SIZE: usize = 1 << 20;

/// How deep groups may be in groups.
const MAX_DEPTH: u32 = 50;

/// Reads an expression.
///
/// # Errors
/// What is wrong with it, or not known here; or it is too large: more than [`MAX_LENGTH`] letters,
/// or more than [`MAX_SIZE`] bytes once it is compiled.
pub fn compile(text: &str) -> Result<Regex, String> {
    if text.chars().count() > MAX_LENGTH {
        return Err(format!(
            "the regular expression is longer than {MAX_LENGTH} letters"
        ));
    }
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(MAX_SIZE).nest_limit(MAX_DEPTH);
    let compiled = builder.build();
    compiled.map_err(|why| format!("bad regular expression: {why}"))
}

#[cfg(test)]
mod tests;
