//! A segment as bytes: gzip members one after the other, which `zcat` reads as one text. Each member is
//! what was written at once, some lines of JSON; its length and checksum are gzip's.

use std::io::{self, BufRead, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use serde::Serialize;

use crate::redact::{How, Redacted};

/// No more text than this is unpacked of a file: more than 20 times what recordings are as a rule.
const MOST: u64 = 1 << 30;

/// How a member begins.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// The same with what follows: no name, no time, compressed in haste, by a system that is not told.
const HEADER: [u8; 10] = [0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 4, 0xff];

/// Appends a line of a segment to `lines`, without its secrets.
///
/// # Errors
/// The value refuses to be written.
pub fn line<T: Serialize>(lines: &mut Vec<u8>, value: &T, how: How) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *lines, &Redacted::new(value, how))?;
    lines.push(b'\n');
    Ok(())
}

/// Appends a member with these lines to `bytes`.
///
/// # Errors
/// There are none in memory.
pub fn member(bytes: &mut Vec<u8>, lines: &[u8]) -> io::Result<()> {
    Members::default().append(bytes, lines)
}

/// What makes members one after the other. Its memory, some hundred KiB, is used again: a member is often a few
/// lines, and to get and to give back that much for each costs more than to compress them.
#[derive(Debug)]
pub struct Members(Compress);

impl Default for Members {
    fn default() -> Members {
        Members(Compress::new(Compression::fast(), false))
    }
}

impl Members {
    /// Appends a member with these lines to `bytes`.
    ///
    /// # Errors
    /// There are none in memory.
    pub fn append(&mut self, bytes: &mut Vec<u8>, mut lines: &[u8]) -> io::Result<()> {
        bytes.extend_from_slice(&HEADER);
        let mut sum = Crc::new();
        sum.update(lines);
        self.0.reset();
        loop {
            // Lines of JSON become much shorter.
            bytes.reserve(lines.len() / 2 + 64);
            let before = self.0.total_in();
            let status = self.0.compress_vec(lines, bytes, FlushCompress::Finish)?;
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(usize::MAX);
            lines = lines.get(taken..).unwrap_or_default();
            if status == Status::StreamEnd {
                break;
            }
        }
        bytes.extend_from_slice(&sum.sum().to_le_bytes());
        bytes.extend_from_slice(&sum.amount().to_le_bytes());
        Ok(())
    }
}

/// A value as a member of its own, whose lines are never all in memory.
///
/// # Errors
/// The value refuses to be written.
pub fn member_of<T: Serialize>(value: &T, how: How) -> io::Result<Vec<u8>> {
    let mut member = io::BufWriter::new(GzEncoder::new(Vec::new(), Compression::fast()));
    serde_json::to_writer(&mut member, &Redacted::new(value, how))?;
    member.write_all(b"\n")?;
    member
        .into_inner()
        .map_err(|error| error.into_error())?
        .finish()
}

/// How the bytes of a segment end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As they were written.
    Whole,
    /// With so many bytes of a member that is cut off.
    Torn(usize),
    /// With what is no member, or not what was written there. Nothing after it is read.
    Damaged(String),
}

/// The lines in the bytes of a segment, and how those end. What is cut off or damaged is left out whole.
pub fn read(bytes: &[u8]) -> (Vec<u8>, End) {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let before = lines.len();
        let left = MOST.saturating_sub(u64::try_from(before).unwrap_or(MOST));
        let mut member = GzDecoder::new(rest).take(left);
        let read = member.read_to_end(&mut lines);
        let is_whole = member.limit() > 0;
        match read {
            Ok(_) if is_whole => rest = member.into_inner().into_inner(),
            read => {
                lines.truncate(before);
                return (lines, end(rest, read.err()));
            }
        }
    }
    (lines, End::Whole)
}

/// Why no member can be read here.
fn end(rest: &[u8], error: Option<io::Error>) -> End {
    let others = rest.windows(MAGIC.len()).skip(1);
    match error {
        None => End::Damaged(format!("there are more than {MOST} bytes in it")),
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            // Another one follows, so this one was written to its end.
            if others.clone().any(|bytes| bytes == MAGIC) || !may_begin(rest) {
                End::Damaged("it is not what was written there".to_owned())
            } else {
                End::Torn(rest.len())
            }
        }
        Some(error) => End::Damaged(error.to_string()),
    }
}

/// Whether a segment may begin so, or is cut off before that can be told.
pub fn may_begin(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC).all(|(one, other)| *one == other)
}

/// The version and layout of a recording that is not compressed, as they were up to layout 3: one line
/// of which the JSON follows after 26 bytes.
pub fn of_old_layout(bytes: &[u8]) -> Option<(String, u64)> {
    let line = bytes.lines().next()?.ok()?;
    let header: serde_json::Value = serde_json::from_str(line.get(26..)?).ok()?;
    let header = header.get("value")?;
    let version = header.get("version")?.as_str()?.to_owned();
    Some((version, header.get("format")?.as_u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(all: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for lines in all {
            member(&mut bytes, lines.as_bytes()).unwrap_or_default();
        }
        bytes
    }

    #[test]
    fn members_are_read_as_they_were_written() {
        let bytes = members(&["{\"a\":1}\n", "", "ä\nb\n"]);
        let text = "{\"a\":1}\nä\nb\n".as_bytes().to_vec();
        assert_eq!(read(&bytes), (text, End::Whole));
        assert_eq!(read(&[]), (Vec::new(), End::Whole));
    }

    #[test]
    fn truncated_member_is_torn_and_earlier_are_read() {
        let (one, both) = (members(&["one\n"]), members(&["one\n", "two\n"]));
        for end in one.len() + 1..both.len() {
            let torn = End::Torn(end - one.len());
            assert_eq!(
                read(&both[..end]),
                (b"one\n".to_vec(), torn),
                "cut at {end}"
            );
        }
    }

    #[test]
    fn changed_member_is_refused() {
        let (one, all) = (members(&["one\n"]), members(&["one\n", "two\n", "three\n"]));
        let (second, end) = (one.len(), members(&["one\n", "two\n"]).len());
        // Times and the like in the head of a member are not looked at.
        for at in (second..end).filter(|at| !(second + 3..second + 10).contains(at)) {
            let mut changed = all.clone();
            changed[at] ^= 1;
            let (lines, end) = read(&changed);
            assert_eq!(lines, b"one\n", "changed at {at}");
            assert!(matches!(end, End::Damaged(_)), "changed at {at}: {end:?}");
        }
    }

    #[test]
    fn recording_of_old_layout_is_recognized() {
        let old = "0000002a 0123456789abcdef \
                   {\"shared\":[],\"value\":{\"format\":3,\"version\":\"0.1.0\"}}\n";
        assert_eq!(of_old_layout(old.as_bytes()), Some(("0.1.0".to_owned(), 3)));
        assert_eq!(of_old_layout(b"job \"web\" {}"), None);
    }
}
