//! Frames as bytes: one line each, with length and checksum, so that a torn or damaged tail is
//! known for what it is.
//!
//! ```text
//! <length in 8 hexadecimal digits> <FNV-1a of the text in 16> <text>\n
//! ```
//!
//! The text is JSON without line breaks, so a recording can also be read with a pager.

use super::digest::Fnv;

/// The bytes in front of the text.
const HEAD: usize = 8 + 1 + 16 + 1;

/// What stands in front of `text`; a line break follows it.
pub fn head(text: &[u8]) -> String {
    format!("{:08x} {:016x} ", text.len(), checksum(text))
}

/// A frame's text, and the bytes that follow the frame.
pub type Frame<'a> = (&'a [u8], &'a [u8]);

/// The frame that the bytes begin with; none if there are no bytes.
///
/// # Errors
/// [`Torn`] if the bytes end within a frame or are not what was written.
pub fn next(bytes: &[u8]) -> Result<Option<Frame<'_>>, Torn> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (head, rest) = bytes.split_at_checked(HEAD).ok_or(Torn)?;
    let head = core::str::from_utf8(head).map_err(|_| Torn)?;
    let mut words = head.split(' ');
    let mut number = || u64::from_str_radix(words.next().unwrap_or_default(), 16).map_err(|_| Torn);
    let (length, sum) = (number()?, number()?);
    let length = usize::try_from(length).map_err(|_| Torn)?;
    let (text, rest) = rest.split_at_checked(length).ok_or(Torn)?;
    let rest = rest.strip_prefix(b"\n").ok_or(Torn)?;
    if checksum(text) == sum {
        Ok(Some((text, rest)))
    } else {
        Err(Torn)
    }
}

/// The bytes end within a frame, or are not what was written. What came before them is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn;

fn checksum(text: &[u8]) -> u64 {
    let mut hash = Fnv::default();
    hash.write(text);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(texts: &[&str]) -> Vec<u8> {
        let one = |text: &&str| format!("{}{text}\n", head(text.as_bytes()));
        texts.iter().map(one).collect::<String>().into_bytes()
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let bytes = frames(&["{\"a\":1}", "", "ä"]);
        let mut rest = bytes.as_slice();
        let mut texts = Vec::new();
        while let Ok(Some((text, after))) = next(rest) {
            texts.push(text);
            rest = after;
        }
        assert_eq!(texts, ["{\"a\":1}".as_bytes(), b"", "ä".as_bytes()]);
        assert_eq!(next(rest), Ok(None));
    }

    #[test]
    fn a_frame_that_was_cut_or_changed_is_torn() {
        let whole = frames(&["{\"step\":1}"]);
        for end in 1..whole.len() {
            assert_eq!(next(&whole[..end]), Err(Torn), "cut at {end}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_eq!(next(&changed), Err(Torn), "changed at {at}");
        }
    }
}
