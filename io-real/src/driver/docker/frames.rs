//! What an engine sends of a program without a terminal: frames of its two streams, taken apart without keeping
//! anything of them.

use crate::session::Output;

/// What is in hand.
#[derive(Default)]
pub(super) struct Frames {
    header: Vec<u8>,
    /// So many bytes of the frame are left, and of which stream.
    left: usize,
    is_stderr: bool,
}

impl Frames {
    /// Takes what comes; `take` gets what each stream says.
    ///
    /// # Errors
    /// Those are no frames.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Output, &[u8]),
    ) -> Result<(), String> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = match self.left {
                0 => self.head(rest)?,
                left => {
                    let part = rest.get(..left).unwrap_or(rest);
                    take(
                        if self.is_stderr {
                            Output::Stderr
                        } else {
                            Output::Stdout
                        },
                        part,
                    );
                    self.left -= part.len();
                    part.len()
                }
            };
            rest = rest.get(read..).unwrap_or_default();
        }
        Ok(())
    }

    fn head(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let wanted = (8 - self.header.len()).min(bytes.len());
        self.header
            .extend_from_slice(bytes.get(..wanted).unwrap_or_default());
        let Ok([which, _, _, _, length @ ..]) = <[u8; 8]>::try_from(self.header.as_slice()) else {
            return Ok(wanted);
        };
        if which > 2 {
            return Err("what the engine sends is no output".to_owned());
        }
        self.header.clear();
        self.is_stderr = which == 2;
        self.left = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        Ok(wanted)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn fragmented_frames_keep_their_streams() {
        let bytes = b"\x01\0\0\0\0\0\0\x03one\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x03two";
        for at_a_time in 1..bytes.len() {
            let (mut frames, mut out, mut err) = (Frames::default(), Vec::new(), Vec::new());
            for part in bytes.chunks(at_a_time) {
                let take = |which, bytes: &[u8]| match which {
                    Output::Stdout => out.extend_from_slice(bytes),
                    Output::Stderr => err.extend_from_slice(bytes),
                };
                frames.feed(part, take).unwrap();
            }
            assert_eq!((out.as_slice(), err.as_slice()), (&b"one"[..], &b"two"[..]));
        }
        assert!(Frames::default().feed(b"HTTP/1.1 200", |_, _| {}).is_err());
    }
}
