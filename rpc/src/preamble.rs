//! The bytes that select the protocol of a connection, and of each stream in it.

/// The first byte of a connection: yamux, where each stream begins with a [`StreamType`].
pub const MULTIPLEX: u8 = 0x06;

/// The first byte of a connection with TLS: the handshake follows, and inside of it a connection begins anew.
pub const TLS: u8 = 0x04;

/// The protocol of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamType {
    /// Calls: a header and a body, answered by a header and a body.
    Calls,
    /// One streaming call: header, acknowledgement, request, then objects in both directions.
    Streaming,
}

impl StreamType {
    /// Its byte.
    pub fn byte(self) -> u8 {
        match self {
            StreamType::Calls => 0x01,
            StreamType::Streaming => 0x05,
        }
    }

    /// The type with this byte.
    pub fn of(byte: u8) -> Option<StreamType> {
        [StreamType::Calls, StreamType::Streaming]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}
