//! Addresses that a configuration asks the machine for: `{{ GetPrivateIP }}`, or
//! `{{ GetDefaultInterfaces | exclude "type" "ipv6" | attr "address" }}`.
//!
//! It is no template engine: between the braces is one pipeline, which begins with what finds interfaces and goes on
//! with what picks of them and names them. Anything else is refused by name.
//!
//! | | |
//! |---|---|
//! | [`pipeline`] | what is written, and which steps that is |
//! | [`pick`] | which of the addresses a step leaves, and in which order |
//! | [`ranges`] | addresses that documents give a meaning |

mod pick;
mod pipeline;
mod ranges;
#[cfg(test)]
mod tests;

use drover_core::text::quote;
use drover_io_real::fingerprint::{Interface, interfaces};

/// The longest text that is looked at.
const LONGEST: usize = 4096;

/// Whether a text asks the machine for something.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// A text in which what asks for this machine's addresses is replaced by them.
///
/// # Errors
/// It asks for what there is not, or for nothing that is known here, or the kernel does not say its addresses.
pub(super) fn of_this_machine(text: &str) -> Result<String, String> {
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    let all = interfaces().map_err(|error| {
        format!("the addresses of this machine cannot be read ({error}): write the address itself")
    })?;
    evaluate(text, &all)
}

/// The same with these interfaces.
///
/// # Errors
/// As [`of_this_machine`].
fn evaluate(text: &str, all: &[Interface]) -> Result<String, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, template)) = rest.split_once("{{") {
        let Some((inner, after)) = template.split_once("}}") else {
            return Err(format!("{} has no end: }}}} is missing", quote(template)));
        };
        out.push_str(before);
        let inner = inner.strip_prefix('-').unwrap_or(inner);
        let inner = inner.strip_suffix('-').unwrap_or(inner);
        let found = pipeline::evaluate(inner, all)?;
        if found.trim().is_empty() {
            return Err("this machine has no such address: write the address itself".to_owned());
        }
        out.push_str(&found);
        rest = after;
    }
    out.push_str(rest);
    Ok(out.trim().to_owned())
}
