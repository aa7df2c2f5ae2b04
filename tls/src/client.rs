//! The side that connects: whom it believes, and a handshake with a deadline.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::TlsError;
use crate::files::{Authorities, Identity};
use crate::protocol::Protocol;

/// Whom a side that connects believes.
#[derive(Clone, Debug)]
pub enum Believes {
    /// Who has a certificate of one of these for the name that is asked for.
    Named(Authorities),
    /// Who has a certificate of one of these for the name that is asked for, or for this one.
    NamedOr(Authorities, ServerName<'static>),
    /// Who has a certificate of one of these, whatever it is for.
    Signed(Authorities),
    /// Everybody: there is no knowing who it is.
    Anybody,
}

/// The settings of a side that connects, with an identity or without.
///
/// # Errors
/// The library does not take them.
pub fn config(
    believes: Believes,
    identity: Option<&Identity>,
    protocol: &Protocol,
) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(protocol.provider());
    let algorithms = provider.signature_verification_algorithms;
    let of_names = |authorities: Authorities| {
        let built = WebPkiServerVerifier::builder_with_provider(authorities.0, provider.clone());
        built.build().map_err(|error| error.to_string())
    };
    let verifier: Arc<dyn ServerCertVerifier> = match believes {
        Believes::Named(authorities) => of_names(authorities)?,
        Believes::NamedOr(authorities, other) => Arc::new(Either {
            of_names: of_names(authorities)?,
            other,
        }),
        Believes::Signed(authorities) => Arc::new(Unnamed {
            authorities: Some(authorities),
            algorithms,
        }),
        Believes::Anybody => Arc::new(Unnamed {
            authorities: None,
            algorithms,
        }),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(protocol.versions())
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let own = SingleCertAndKey::from((*identity.0).clone());
            builder.with_client_cert_resolver(Arc::new(own))
        }
    }))
}

/// How one side is spoken to over TLS: who it has to be, and by which settings.
#[derive(Clone, Debug)]
pub struct Secure {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Secure {
    /// For whoever has to have this name, of a machine or a number.
    ///
    /// # Errors
    /// No certificate can have the name, or the library does not take the settings.
    pub fn new(
        name: &str,
        believes: Believes,
        identity: Option<&Identity>,
        protocol: &Protocol,
    ) -> Result<Secure, String> {
        Ok(Secure {
            config: config(believes, identity, protocol)?,
            name: server_name(name.trim_start_matches('[').trim_end_matches(']'))?,
        })
    }

    /// Begins TLS over a transport.
    ///
    /// # Errors
    /// See [`connect`].
    pub async fn connect<Io>(&self, io: Io, limit: Duration) -> Result<Stream<Io>, TlsError>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        connect(io, self.name.clone(), self.config.clone(), limit).await
    }
}

/// Takes a second name, too.
#[derive(Debug)]
struct Either {
    of_names: Arc<WebPkiServerVerifier>,
    other: ServerName<'static>,
}

impl ServerCertVerifier for Either {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = |name: &ServerName<'_>| {
            let of_names = &self.of_names;
            of_names.verify_server_cert(end_entity, intermediates, name, ocsp, now)
        };
        match verified(name) {
            // What is said is about the name that was asked for.
            Err(error) if is_of_name(&error) => verified(&self.other).map_err(|_| error),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_names.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_names.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_names.supported_verify_schemes()
    }
}

/// Whether a certificate is refused for its names alone.
fn is_of_name(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}

/// Looks at who has signed, if at that, and not at names.
#[derive(Debug)]
struct Unnamed {
    authorities: Option<Authorities>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Unnamed {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(authorities) = &self.authorities {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(end_entity)?,
                &authorities.0,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A name of a server that certificates may have.
///
/// # Errors
/// No certificate can have it.
pub fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let parsed = ServerName::try_from(name.to_owned());
    parsed.map_err(|_| format!("{name:?} is no name of a machine"))
}

/// The name that whoever is at `HOST:PORT` may have: the host, be it a name or a number.
///
/// # Errors
/// No certificate can have it.
pub fn name_at(authority: &str) -> Result<ServerName<'static>, String> {
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    server_name(host.trim_start_matches('[').trim_end_matches(']'))
}

/// Begins TLS over a transport, as the side that connects.
///
/// # Errors
/// Why there is none; or the deadline has passed.
pub async fn connect<Io>(
    io: Io,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    limit: Duration,
) -> Result<Stream<Io>, TlsError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let has_identity = config.client_auth_cert_resolver.has_certs();
    let shaken = TlsConnector::from(config).connect(name, io);
    match timeout(limit, shaken).await {
        Ok(Ok(inner)) => Ok(Stream {
            inner,
            has_identity,
            received: false,
            unwritten: None,
        }),
        Ok(Err(error)) => {
            let closed = TlsError::ClosedInHandshake;
            let why = TlsError::of(&error, has_identity, closed);
            Err(why.unwrap_or_else(|| TlsError::Other(error.to_string())))
        }
        Err(_) => Err(TlsError::TimedOut(limit)),
    }
}

/// A transport with TLS, on the side that connects.
///
/// With TLS 1.3 the handshake is over for this side before the other one has looked at its certificate. So until
/// something was heard, what goes wrong is explained as a part of the handshake: the errors are [`TlsError`].
#[derive(Debug)]
pub struct Stream<Io> {
    inner: TlsStream<Io>,
    has_identity: bool,
    received: bool,
    /// Why nothing can be written, while it is found out whether the other side has said more.
    unwritten: Option<io::Error>,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Stream<Io> {
    fn explained(&self, error: io::Error) -> io::Error {
        if self.received {
            return error;
        }
        match TlsError::of(&error, self.has_identity, TlsError::ClosedUnheard) {
            Some(why) => why.into(),
            None => error,
        }
    }

    /// Why nothing can be sent. Before it closed, the other side may have said why, which is on its way through the
    /// system or lies there: so the end of what can be read is waited for, which comes with the same news.
    fn poll_write_failed(&mut self, cx: &mut Context<'_>, error: io::Error) -> Poll<io::Error> {
        if self.received {
            return Poll::Ready(error);
        }
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        let polled = Pin::new(&mut self.inner).poll_read(cx, &mut buffer);
        match polled {
            Poll::Ready(Err(error)) => Poll::Ready(self.explained(error)),
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                self.received = true;
                Poll::Ready(error)
            }
            Poll::Ready(Ok(())) => Poll::Ready(self.explained(error)),
            Poll::Pending if TlsError::is_end(&error) => {
                self.unwritten = Some(error);
                Poll::Pending
            }
            Poll::Pending => Poll::Ready(self.explained(error)),
        }
    }

    /// Writes by this, unless that has failed.
    fn poll_writing<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TlsStream<Io>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let error = match self.unwritten.take() {
            Some(error) => error,
            None => match ready!(write(Pin::new(&mut self.inner), cx)) {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(error) => error,
            },
        };
        self.poll_write_failed(cx, error).map(Err)
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, remaining) = (buffer.filled().len(), buffer.remaining());
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        if let Err(error) = read {
            return Poll::Ready(Err(self.explained(error)));
        }
        match buffer.filled().len() > before {
            true => self.received = true,
            false if remaining > 0 && !self.received => {
                return Poll::Ready(Err(TlsError::ClosedUnheard.into()));
            }
            false => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |inner, cx| inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |inner, cx| inner.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_writing(cx, |inner, cx| inner.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
