//! What a connection may cost, whatever its server does.

use std::time::Duration;

/// The limits of one connection.
///
/// The memory that a server can make us use is bounded by them: for each stream a yamux window (256 KiB), for
/// each inbound call a request, for each outbound call a reply, with the spare capacity of their buffers; and
/// for each message that is decoded a multiple of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a reply. Callers that ask for many allocations ask for them in batches.
    pub reply_bytes: usize,
    /// Bytes of an inbound request, and of an object that a server sends in a streaming call.
    pub request_bytes: usize,
    /// Outbound calls at once; further ones wait.
    pub outbound_calls: usize,
    /// Inbound calls at once, streaming ones included; further ones are reset.
    pub inbound_calls: usize,
    /// The time to connect.
    pub connect_timeout: Duration,
    /// The time for the server to acknowledge a call's stream, which it does at once. If it does not, the
    /// connection is dead in one direction at least, and the call fails.
    pub acknowledge_timeout: Duration,
    /// The time for an inbound call to send its header and its request, and to take its reply.
    pub handshake_timeout: Duration,
    /// The connection is closed if no byte was received for so long. Servers ping every 30 s.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            reply_bytes: 16 << 20,
            request_bytes: 256 << 10,
            outbound_calls: 64,
            inbound_calls: 128,
            connect_timeout: Duration::from_secs(10),
            acknowledge_timeout: Duration::from_secs(15),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

/// Streams beyond those of calls: closed ones that yamux has not removed yet.
const CLOSED_STREAMS: usize = 64;

impl Limits {
    /// The streams of a connection; a server that opens more loses the connection.
    pub(super) fn streams(&self) -> usize {
        self.outbound_calls + self.inbound_calls + CLOSED_STREAMS
    }
}
