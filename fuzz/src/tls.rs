//! What configurations and peers say of TLS: names that certificates must have, and files with certificates and keys.

use drover_tls::client::{name_at, server_name};
use drover_tls::{Authorities, Identity};

/// The name of a region or of a host, or where somebody is.
///
/// # Panics
/// Something does not hold.
pub fn tls_name(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    // What a certificate may have is what was asked for, and nothing that is nearly so.
    match server_name(text) {
        Ok(name) => assert!(is_same(&name.to_str(), text), "{text:?}: {name:?}"),
        Err(why) => assert!(why.contains("no name"), "{text:?}: {why}"),
    }
    if let Ok(name) = name_at(text) {
        let name = name.to_str();
        let is_there = text.len() >= name.len() || name.contains(':');
        assert!(is_there && !name.is_empty(), "{text:?}: {name:?}");
    }
    // A port changes nobody's name.
    let known = server_name(text).map(|name| name.to_str().into_owned());
    if !text.contains(':') {
        let at = name_at(&format!("{text}:4647")).map(|name| name.to_str().into_owned());
        if let Ok(known) = &known {
            assert_eq!(at.as_ref(), Ok(known), "{text:?}");
        }
    }
}

/// Addresses are written in several ways.
fn is_same(name: &str, text: &str) -> bool {
    let address = |text: &str| text.parse::<core::net::IpAddr>().ok();
    name == text || (address(name).is_some() && address(name) == address(text))
}

/// A file with certificates and keys, as an authority's and as one's own.
///
/// # Panics
/// Something does not hold.
pub fn pem(bytes: &[u8]) {
    if let Err(why) = Authorities::from_pem(bytes) {
        contains_no_secret(&why, bytes);
    }
    match Identity::from_pem(bytes, bytes) {
        // Who has one has certificates.
        Ok(identity) => assert_eq!(format!("{identity:?}"), "Identity"),
        Err(why) => contains_no_secret(&why, bytes),
    }
}

/// No part of a line of a key, or of a certificate, is in what is said of the file.
fn contains_no_secret(message: &str, file: &[u8]) {
    assert!(!message.is_empty() && message.len() < 500, "{message}");
    let file = String::from_utf8_lossy(file);
    let is_base64 = |it: u8| it.is_ascii_alphanumeric() || b"+/=".contains(&it);
    let lines = file.lines().filter(|line| line.bytes().all(is_base64));
    for line in lines.map(str::as_bytes) {
        for part in line.chunks_exact(24) {
            assert!(
                !message.as_bytes().windows(24).any(|it| it == part),
                "{message}"
            );
        }
    }
}
