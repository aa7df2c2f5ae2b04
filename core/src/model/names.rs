//! What may be a name.

/// The longest name of a group or task, in bytes.
pub(crate) const MAX_NAME: usize = 128;

/// The longest id, in bytes.
const MAX_IDENTIFIER: usize = 256;

/// Whether a text can be a name that a directory bears: one component of a path, wherever it is
/// put.
pub(crate) fn component(name: &str) -> Result<(), String> {
    let why = match name {
        "" => "the name must not be empty",
        "." | ".." => "the name must not be . or ..",
        _ if name.len() > MAX_NAME => {
            return Err(format!("the name must not be longer than {MAX_NAME} bytes"));
        }
        _ if name.contains(['/', '\\']) => "the name must not contain / or \\",
        _ if name.contains(char::is_control) => "the name must not contain control characters",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// Whether a text can be an id, which no path is made of.
pub(crate) fn identifier(id: &str) -> Result<(), String> {
    if id.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if id.len() > MAX_IDENTIFIER {
        return Err(format!("must not be longer than {MAX_IDENTIFIER} bytes"));
    }
    if id.contains(char::is_control) {
        return Err("must not contain control characters".to_owned());
    }
    Ok(())
}

/// Whether a text can be a port's label: a part of a variable's name, where a `-` becomes a `_`.
pub(crate) fn label(label: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if label.is_empty() || label.len() > MAX_NAME || !label.chars().all(fits) {
        return Err(format!(
            "the label must be of letters, digits, _ and -, and not longer than {MAX_NAME} bytes"
        ));
    }
    Ok(())
}
