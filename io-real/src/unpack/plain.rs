//! Compression taken away: what is read has any size, and what that asks of memory is bounded.

use std::io::{self, BufRead, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// The most memory that unpacking may ask for at once, in KiB.
const MEMORY_KIB: u32 = 256 << 10;

/// Takes gzip away.
pub(crate) fn gz<'a>(from: impl BufRead + 'a) -> Box<dyn Read + 'a> {
    Box::new(MultiGzDecoder::new(from))
}

/// Takes xz away.
pub(crate) fn xz<'a>(from: impl BufRead + 'a) -> Box<dyn Read + 'a> {
    Box::new(XzReader::new_mem_limit(from, true, MEMORY_KIB))
}

/// Takes Zstandard away.
pub(crate) fn zst<'a>(from: impl BufRead + 'a) -> Box<dyn Read + 'a> {
    Box::new(Frames::Between(from))
}

/// Frames of Zstandard, one after the other.
enum Frames<R: Read> {
    Between(R),
    Inside(Box<StreamingDecoder<Frame<R>, FrameDecoder>>),
    Over,
}

/// What a frame begins with was read to see what it is.
type Frame<R> = Chain<Cursor<[u8; 4]>, R>;

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Frames::Over) {
                Frames::Over => return Ok(0),
                Frames::Between(mut from) => match begin(&mut from)? {
                    None => return Ok(0),
                    Some([0x50..=0x5f, 0x2a, 0x4d, 0x18]) => {
                        skip(&mut from)?;
                        *self = Frames::Between(from);
                    }
                    Some(begin) => {
                        let window = u64::from(MEMORY_KIB) << 10;
                        let frame = Cursor::new(begin).chain(from);
                        let decoder = StreamingDecoder::new_with_max_window_size(frame, window);
                        let decoder = decoder.map_err(io::Error::other)?;
                        *self = Frames::Inside(Box::new(decoder));
                    }
                },
                Frames::Inside(mut decoder) => match decoder.read(into)? {
                    0 if !into.is_empty() => {
                        let (_, from) = decoder.into_inner().into_inner();
                        *self = Frames::Between(from);
                    }
                    read => {
                        *self = Frames::Inside(decoder);
                        return Ok(read);
                    }
                },
            }
        }
    }
}

/// What the next frame begins with, if there is one.
fn begin(from: &mut impl Read) -> io::Result<Option<[u8; 4]>> {
    let mut text = Vec::new();
    from.take(4).read_to_end(&mut text)?;
    match text.as_slice() {
        [] => Ok(None),
        text => text.try_into().map(Some).map_err(|_| cut()),
    }
}

/// Passes over a frame that has no content, but what programs note for themselves.
fn skip(from: &mut impl Read) -> io::Result<()> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    match io::copy(&mut from.take(length), &mut io::sink())? == length {
        true => Ok(()),
        false => Err(cut()),
    }
}

fn cut() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "it ends in the middle of a frame",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// A frame with these bytes as they are.
    fn frame(bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        // One segment whose length follows, and one block, which is the last.
        let begin = [0x28, 0xb5, 0x2f, 0xfd, 0x20, length];
        let block = ((u32::from(length) << 3) | 1).to_le_bytes();
        [&begin, &block[..3], bytes].concat()
    }

    fn noted(length: u32) -> Vec<u8> {
        let begin = [[0x5e, 0x2a, 0x4d, 0x18], length.to_le_bytes()].concat();
        [begin, vec![1; 5]].concat()
    }

    fn unpacked(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        zst(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn frame_that_programs_note_for_themselves_is_passed_over() {
        let all = [noted(5), frame(b"one"), noted(5), frame(b"two"), noted(5)].concat();
        assert_eq!(unpacked(&all).unwrap(), "onetwo");
        assert!(unpacked(&noted(6)).is_err(), "it is cut");
    }
}
