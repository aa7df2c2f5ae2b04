//! The stream of a task's output as the API sends it: JSON objects, one after the other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::exit_code::Failure;
use crate::http::frames::Frame;

/// No frame is larger; what is is no stream of frames.
const LARGEST: usize = 1 << 20;

/// A stream that is read.
#[derive(Debug)]
pub(super) struct Frames {
    body: Incoming,
    /// What came and is no whole frame yet.
    rest: Vec<u8>,
    /// What was read and not handed on yet.
    ready: std::vec::IntoIter<Piece>,
}

/// A part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// What the task wrote.
    Bytes(Vec<u8>),
    /// Here something is missing that it wrote.
    Gap,
}

impl Frames {
    pub(super) fn new(body: Incoming) -> Frames {
        Frames {
            body,
            rest: Vec::new(),
            ready: Vec::new().into_iter(),
        }
    }

    /// The next part; none at the end.
    ///
    /// # Errors
    /// The agent broke off, or sends something else.
    pub(super) async fn next(&mut self) -> Result<Option<Piece>, Failure> {
        loop {
            if let Some(piece) = self.ready.next() {
                return Ok(Some(piece));
            }
            match self.body.frame().await {
                None if self.rest.is_empty() => return Ok(None),
                None => return Err(Failure::new("the connection broke within a frame")),
                Some(Err(error)) => {
                    return Err(Failure::new(format!(
                        "the connection to the agent broke: {error}"
                    )));
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.rest.extend_from_slice(&data);
                        self.ready = pieces(&mut self.rest)?.into_iter();
                    }
                }
            }
        }
    }
}

/// Takes all whole frames from the beginning of `rest`.
fn pieces(rest: &mut Vec<u8>) -> Result<Vec<Piece>, Failure> {
    let odd = |why: &dyn std::fmt::Display| {
        Failure::new(format!("the agent sent something other than logs: {why}"))
    };
    let mut pieces = Vec::new();
    let mut frames = serde_json::Deserializer::from_slice(rest).into_iter::<Frame>();
    let mut taken = 0;
    loop {
        match frames.next() {
            None => break,
            Some(Err(error)) if error.is_eof() => break,
            Some(Err(error)) => return Err(odd(&error)),
            Some(Ok(frame)) => {
                taken = frames.byte_offset();
                if !frame.file_event.is_empty() {
                    pieces.push(Piece::Gap);
                }
                if !frame.data.is_empty() {
                    let data = STANDARD.decode(&frame.data).map_err(|error| odd(&error))?;
                    pieces.push(Piece::Bytes(data));
                }
            }
        }
    }
    rest.drain(..taken);
    // Only white space may follow the last one.
    if rest.iter().all(u8::is_ascii_whitespace) {
        rest.clear();
    }
    if rest.len() > LARGEST {
        return Err(odd(&"a frame has no end"));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&str]) -> Result<Vec<Piece>, Failure> {
        let (mut rest, mut all) = (Vec::new(), Vec::new());
        for part in parts {
            rest.extend_from_slice(part.as_bytes());
            all.extend(pieces(&mut rest)?);
        }
        assert!(rest.is_empty(), "{rest:?}");
        Ok(all)
    }

    #[test]
    fn frames_split_anywhere_are_decoded() {
        let text = concat!(
            r#"{"Data":"aGVsbG8=","File":"alloc/logs/t.stdout.0","Offset":5}{}"#,
            "\n",
            r#"{"Data":"IQ==","File":"alloc/logs/t.stdout.4","Offset":1,"FileEvent":"file deleted"}"#,
            "\n",
        );
        let expected = vec![
            Piece::Bytes(b"hello".to_vec()),
            Piece::Gap,
            Piece::Bytes(b"!".to_vec()),
        ];
        assert_eq!(read(&[text]).unwrap(), expected);
        for cut in 1..text.len() {
            let (one, other) = text.split_at(cut);
            assert_eq!(read(&[one, other]).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn invalid_frame_is_reported() {
        for odd in ["hello", "[1]", r#"{"Data":"%"}"#, r#"{"Data":7}"#] {
            assert!(read(&[odd]).is_err(), "{odd}");
        }
        let endless = format!("{{\"Data\":\"{}", "a".repeat(LARGEST + 1));
        assert!(pieces(&mut endless.into_bytes()).is_err());
    }
}
