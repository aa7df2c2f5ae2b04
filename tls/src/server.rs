//! The side that listens.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::SingleCertAndKey;

use crate::files::{Authorities, Identity};
use crate::protocol::Protocol;

/// What is spoken inside: HTTP/1.1, and whatever does not say.
const INSIDE: &[u8] = b"http/1.1";

/// The settings of a side that listens with this identity. With authorities, everybody who connects must have a
/// certificate of one of them.
///
/// # Errors
/// The library does not take them.
pub fn config(
    identity: &Identity,
    clients: Option<&Authorities>,
    protocol: &Protocol,
) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(protocol.provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(protocol.versions())
        .map_err(|error| error.to_string())?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let roots = authorities.0.clone();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| error.to_string())?)
        }
    };
    let own = SingleCertAndKey::from((*identity.0).clone());
    let mut config = builder.with_cert_resolver(Arc::new(own));
    config.alpn_protocols = vec![INSIDE.to_vec()];
    Ok(Arc::new(config))
}
