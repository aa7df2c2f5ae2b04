//! Why there is no connection, or no settings for one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

/// How many names of a certificate are told.
const MAX_NAMES: usize = 4;
/// How many characters of each.
const MAX_NAME: usize = 128;

/// A file of certificates or keys that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    path: PathBuf,
    what: String,
}

impl SettingsError {
    pub(crate) fn new(path: &Path, what: String) -> SettingsError {
        let path = path.to_owned();
        SettingsError { path, what }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for SettingsError {}

/// Why a side that connects has no connection. It is the peer's certificate unless ours is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// None of the authorities that are believed has signed it.
    UnknownAuthority,
    /// It is for other names: of another role or region, or of another machine.
    WrongName {
        /// The name that was wanted.
        wanted: String,
        /// Some of those that it has.
        has: Vec<String>,
    },
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// It cannot be used; why, in words.
    BadCertificate(String),
    /// The peer wants a certificate of ours, and there is none.
    CertificateRequired,
    /// The peer does not take our certificate; why, as far as it says.
    CertificateRefused(String),
    /// There is no version or suite that both speak.
    NothingInCommon(String),
    /// What came is not TLS.
    NotTls,
    /// The handshake was not over in time.
    TimedOut(Duration),
    /// It was closed during the handshake.
    ClosedInHandshake,
    /// It was closed after the handshake, before anything was heard. With TLS 1.3, a certificate of ours that is not
    /// taken may show itself so.
    ClosedUnheard,
    /// Something else, in words.
    Other(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::UnknownAuthority => f.write_str(
                "its certificate is signed by no authority that is believed here; check the file of \
                 authorities (ca_file; of a command: -ca-cert)",
            ),
            TlsError::WrongName { wanted, has } if has.is_empty() => {
                write!(f, "its certificate has no names, and {wanted} is wanted")
            }
            TlsError::WrongName { wanted, has } => write!(
                f,
                "its certificate is for {}, and {wanted} is wanted: it has another role, region or \
                 name",
                has.join(", ")
            ),
            TlsError::Expired => f.write_str(
                "its certificate has expired: it needs a new one, unless the clocks of both machines \
                 differ",
            ),
            TlsError::NotYetValid => {
                f.write_str("its certificate is not valid yet; check the clocks of both machines")
            }
            TlsError::BadCertificate(why) => write!(f, "its certificate cannot be used: {why}"),
            TlsError::CertificateRequired => f.write_str(
                "it wants a certificate, and none is given here (cert_file and key_file; of a command: \
                 -client-cert and -client-key)",
            ),
            TlsError::CertificateRefused(why) => write!(
                f,
                "it does not take our certificate ({why}): check that its authority has signed it, \
                 its time, and that its name is that of our role and region"
            ),
            TlsError::NothingInCommon(why) => {
                write!(f, "there is no version or cipher suite that both speak: {why}")
            }
            TlsError::NotTls => f.write_str(
                "it does not speak TLS there; an API without it is at http://, and not at https://",
            ),
            TlsError::TimedOut(after) => {
                write!(f, "its TLS handshake was not over within {after:?}")
            }
            TlsError::ClosedInHandshake => {
                f.write_str("it closed the connection during the TLS handshake: does it speak TLS?")
            }
            TlsError::ClosedUnheard => f.write_str(
                "it closed the connection right after the TLS handshake: does it take our \
                 certificate?",
            ),
            TlsError::Other(why) => write!(f, "TLS failed: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsError {
    /// The reason inside of an error of a stream or a handshake of this crate, if it has one.
    pub fn within(error: &io::Error) -> Option<&TlsError> {
        error.get_ref()?.downcast_ref()
    }

    /// What the library's error means, for a side that connects and has a certificate or not. What is none of TLS is
    /// `closed`, or not explained.
    pub(crate) fn of(error: &io::Error, has_identity: bool, closed: TlsError) -> Option<TlsError> {
        if let Some(error) = error.get_ref().and_then(|it| it.downcast_ref()) {
            return Some(of_library(error, has_identity));
        }
        TlsError::is_end(error).then_some(closed)
    }

    /// Whether an error says that the other side has closed.
    pub(crate) fn is_end(error: &io::Error) -> bool {
        let ends = [
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::ConnectionAborted,
            io::ErrorKind::BrokenPipe,
        ];
        ends.contains(&error.kind())
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> io::Error {
        let kind = match error {
            TlsError::TimedOut(_) => io::ErrorKind::TimedOut,
            TlsError::ClosedInHandshake | TlsError::ClosedUnheard => io::ErrorKind::ConnectionReset,
            TlsError::UnknownAuthority
            | TlsError::WrongName { .. }
            | TlsError::Expired
            | TlsError::NotYetValid
            | TlsError::BadCertificate(_)
            | TlsError::CertificateRequired
            | TlsError::CertificateRefused(_)
            | TlsError::NothingInCommon(_)
            | TlsError::NotTls
            | TlsError::Other(_) => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

fn of_library(error: &rustls::Error, has_identity: bool) -> TlsError {
    use rustls::Error;
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::AlertReceived(alert) => of_alert(*alert, has_identity),
        Error::PeerIncompatible(why) => TlsError::NothingInCommon(format!("{why:?}")),
        Error::InvalidMessage(_) => TlsError::NotTls,
        other => TlsError::Other(other.to_string()),
    }
}

fn of_certificate(error: &CertificateError) -> TlsError {
    match error {
        // Authorities of the same name that another key signs for.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            TlsError::UnknownAuthority
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsError::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsError::NotYetValid
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => TlsError::WrongName {
            wanted: expected.to_str().into_owned(),
            has: presented
                .iter()
                .take(MAX_NAMES)
                .map(|it| name(it))
                .collect(),
        },
        other => TlsError::BadCertificate(other.to_string()),
    }
}

/// A name as people know it: the library wraps it into its type, and the peer chose its length.
fn name(presented: &str) -> String {
    let inner = presented
        .split_once('"')
        .and_then(|(_, rest)| rest.rsplit_once('"'));
    let address = presented
        .strip_prefix("IpAddress(")
        .and_then(|rest| rest.strip_suffix(')'));
    let name = inner.map(|(name, _)| name).or(address).unwrap_or(presented);
    name.chars().take(MAX_NAME).collect()
}

fn of_alert(alert: AlertDescription, has_identity: bool) -> TlsError {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            TlsError::CertificateRequired
        }
        // The last one: our certificate bears the name of its authority, and another key's signature.
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => match has_identity {
            true => TlsError::CertificateRefused(format!("{alert:?}")),
            false => TlsError::CertificateRequired,
        },
        AlertDescription::ProtocolVersion
        | AlertDescription::HandshakeFailure
        | AlertDescription::InsufficientSecurity => TlsError::NothingInCommon(format!("{alert:?}")),
        other => TlsError::Other(format!("it says {other:?}")),
    }
}
