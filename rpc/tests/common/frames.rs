//! The frames of yamux, by hand: for peers that no library would be.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

pub(crate) const DATA: u8 = 0;
pub(crate) const WINDOW: u8 = 1;
pub(crate) const PING: u8 = 2;
pub(crate) const GO_AWAY: u8 = 3;

pub(crate) const SYN: u16 = 1;
pub(crate) const ACK: u16 = 2;
pub(crate) const FIN: u16 = 4;
pub(crate) const RST: u16 = 8;

/// One frame. Only data has a body; with other types, `length` means something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u16,
    pub(crate) stream: u32,
    pub(crate) length: u32,
    pub(crate) body: Vec<u8>,
}

impl Frame {
    pub(crate) fn new(kind: u8, flags: u16, stream: u32, length: u32) -> Frame {
        Frame {
            kind,
            flags,
            stream,
            length,
            body: Vec::new(),
        }
    }

    pub(crate) fn data(stream: u32, body: &[u8]) -> Frame {
        let length = body.len() as u32;
        Frame {
            body: body.to_vec(),
            ..Frame::new(DATA, 0, stream, length)
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0, self.kind];
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(self.length.to_be_bytes());
        bytes.extend(&self.body);
        bytes
    }

    /// Reads the next frame; `None`: the connection has ended.
    pub(crate) async fn read<R: AsyncRead + Unpin>(io: &mut R) -> io::Result<Option<Frame>> {
        let mut header = [0; 12];
        if io.read(&mut header[..1]).await? == 0 {
            return Ok(None);
        }
        io.read_exact(&mut header[1..]).await?;
        assert_eq!(header[0], 0, "the version of {header:02x?}");
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four"));
        let flags = u16::from_be_bytes([header[2], header[3]]);
        let mut frame = Frame::new(header[1], flags, word(4), word(8));
        if frame.kind == DATA {
            frame.body = vec![0; frame.length as usize];
            io.read_exact(&mut frame.body).await?;
        }
        Ok(Some(frame))
    }

    /// All frames of recorded bytes.
    pub(crate) fn all(mut bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let next = Frame::read(&mut bytes);
            let frame = futures::executor::block_on(next).expect("whole frames");
            frames.extend(frame);
        }
        frames
    }
}

/// What frames carry of one stream.
pub(crate) fn carried(frames: &[Frame], stream: u32) -> Vec<u8> {
    let of_it = frames.iter().filter(|frame| frame.stream == stream);
    of_it.flat_map(|frame| frame.body.iter().copied()).collect()
}
