//! The handshake of TLS with a client.

use std::sync::Arc;
use std::time::Duration;

use drover_tls::Current;
use rustls::ServerConfig;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connections::Admitted;
use super::socket::Socket;
use super::stream::Watched;
use super::{linger, send_status};

/// How every message of a handshake begins.
const HANDSHAKE: u8 = 0x16;

/// What a connection is to be encrypted with.
pub(super) struct Secure {
    config: Arc<ServerConfig>,
    limit: Duration,
}

impl Secure {
    /// With what is in force now, within this time.
    pub(super) fn new(tls: &Current<ServerConfig>, limit: Duration) -> Secure {
        let config = tls.get();
        Secure { config, limit }
    }

    /// Makes it. A client that speaks plain HTTP is told so; of others that fail, the log tells at level `debug`.
    pub(super) async fn handshake(
        self,
        io: Watched,
        stream: &Socket,
        admitted: &mut Admitted,
    ) -> Option<TlsStream<Watched>> {
        let shaking = async {
            let mut first = [0];
            match stream.peek(&mut first).await {
                Ok(1) if first[0] != HANDSHAKE => {
                    let words =
                        "this agent speaks https here, and not http: use https:// in its address";
                    send_status(stream, "400 Bad Request", "", words);
                    linger(stream).await;
                    None
                }
                Ok(_) | Err(_) => Some(TlsAcceptor::from(self.config).accept(io).await),
            }
        };
        let shaken = tokio::select! {
            biased;
            _ = &mut admitted.closed => return None,
            shaken = timeout(self.limit, shaking) => shaken,
        };
        match shaken {
            Ok(Some(Ok(stream))) => {
                // What came so far was no part of a request.
                admitted.caller.ended();
                Some(stream)
            }
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "a client's TLS handshake failed");
                None
            }
            Ok(None) => None,
            Err(_) => {
                tracing::debug!("a client's TLS handshake took too long");
                None
            }
        }
    }
}
