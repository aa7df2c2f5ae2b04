//! Formatting files in HCL: what is written differs from what was read in white space alone, says the same,
//! and stays as it is when it is formatted again.

use drover::jobspec::format::format;

/// A job file.
///
/// # Panics
/// Something does not hold.
pub fn hcl_format(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let formatted = match format(text, "x.hcl") {
        Ok(formatted) => formatted,
        Err(errors) => return assert!(!errors.to_string().is_empty()),
    };
    assert_eq!(without_blanks(text), without_blanks(&formatted));
    let again = format(&formatted, "x.hcl");
    assert_eq!(again.ok().as_deref(), Some(formatted.as_str()), "{text:?}");
}

/// All that is no blank: ends of lines stay where they are.
fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\t')).collect()
}
