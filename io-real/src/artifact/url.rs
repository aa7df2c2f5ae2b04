//! URLs, as far as sources of artifacts need them: the crate `url`, and what it is too kind about.
//! Browsers repair what people type; who is sent somewhere by an enemy's text wants it refused.

use core::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use url::Position::{AfterPath, AfterPort, BeforeHost};

use crate::http_client::{PART, encoded};

/// What is encoded in a path.
const PATH: &AsciiSet = &PART.remove(b'/');

/// A URL. Shown are neither who asks nor the query: both may be secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Url {
    /// Without its query and its fragment.
    address: url::Url,
    /// The parameters, decoded.
    pub query: Vec<(String, String)>,
}

impl Url {
    /// Reads `scheme://user@host:port/path?query#fragment`. The fragment is dropped.
    ///
    /// # Errors
    /// Why it is no URL; without any part of it that may be secret.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (scheme, rest) = text.split_once("://").ok_or("it has no scheme")?;
        if rest.starts_with('/') && !scheme.eq_ignore_ascii_case("file") {
            return Err("it has no host".to_owned());
        }
        Url::checked(text, url::Url::parse(text))
    }

    /// What a `Location` on a page of this URL refers to.
    ///
    /// # Errors
    /// It is no URL.
    pub fn join(&self, location: &str) -> Result<Url, String> {
        let location = location.trim();
        Url::checked(location, self.address.join(location))
    }

    fn checked(text: &str, read: Result<url::Url, url::ParseError>) -> Result<Url, String> {
        let unfit = |c: char| c.is_whitespace() || c.is_control() || "\\\"<>^`{|}".contains(c);
        let before_query = text.split(['?', '#']).next().unwrap_or_default();
        if before_query.contains(unfit) {
            return Err("it has letters that must be encoded".to_owned());
        }
        let mut address = read.map_err(|error| error.to_string())?;
        if !address.has_authority() {
            return Err("it has no host".to_owned());
        }
        // Encoded in the text, and decoded by now.
        if address.host_str().is_some_and(|host| host.contains(unfit)) {
            return Err("its host is no name".to_owned());
        }
        let query = address.query_pairs().into_owned().collect();
        address.set_query(None);
        address.set_fragment(None);
        Ok(Url { address, query })
    }

    /// The scheme, in small letters.
    pub fn scheme(&self) -> &str {
        self.address.scheme()
    }

    /// The host without its port; empty if there is none.
    pub fn host(&self) -> &str {
        self.address.host_str().unwrap_or_default()
    }

    /// The host with its port, unless that is the usual one.
    pub fn authority(&self) -> &str {
        &self.address[BeforeHost..AfterPort]
    }

    /// From its first `/` on, encoded.
    pub fn path(&self) -> &str {
        self.address.path()
    }

    /// Whether both are served by the same: what is meant for one may be told to the other.
    pub fn same_server(&self, other: &Url) -> bool {
        self.address.origin() == other.address.origin()
    }

    /// Who asks, as a header says it; none if it is not said.
    pub fn authorization(&self) -> Option<String> {
        let password = self.address.password().unwrap_or_default();
        let user = self.address.username();
        let given = !user.is_empty() || !password.is_empty();
        given.then(|| {
            let pair = format!("{}:{}", decoded(user), decoded(password));
            format!("Basic {}", BASE64_STANDARD.encode(pair))
        })
    }

    /// As it is asked for: all of it but who asks.
    pub fn request(&self) -> String {
        let query = self.encoded_query();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{self}{mark}{}", query.join("&"))
    }

    /// The parameters, each as it is sent.
    fn encoded_query(&self) -> Vec<String> {
        let pairs = self.query.iter().map(|(key, value)| {
            let equals = if value.is_empty() { "" } else { "=" };
            format!("{}{equals}{}", encoded(key), encoded(value))
        });
        pairs.collect()
    }

    /// Encodes all of the path that can be encoded.
    pub fn encode_path(&mut self) {
        let path = decoded(self.path());
        let path = utf8_percent_encode(&path, PATH).to_string();
        self.address.set_path(&path);
    }

    /// The URL of a file of this machine.
    ///
    /// # Errors
    /// That is no absolute path, or one with `..`.
    pub fn of_file(path: &str, query: &str) -> Result<Url, String> {
        let path = decoded(path);
        if !path.starts_with('/') {
            return Err("its source is no absolute path".to_owned());
        }
        if !is_file_path(&path) {
            return Err(NO_FILE.to_owned());
        }
        let path = utf8_percent_encode(&path, PATH);
        Url::parse(&format!("file://{path}?{query}"))
    }

    /// The path of a file of this machine; none of one that may lead elsewhere than it says.
    pub fn file_path(&self) -> Option<String> {
        let path = decoded(self.path());
        let ours = self.scheme() == "file" && self.host().is_empty();
        (ours && is_file_path(&path)).then_some(path)
    }

    /// Takes a parameter out of the query; the last one if there are several.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let found = self.query.iter().rev().find(|(key, _)| key == name);
        let found = found.map(|(_, value)| value.clone());
        self.query.retain(|(key, _)| key != name);
        found
    }

    /// The last part of the path, decoded; none if that is no name of a file.
    pub fn file_name(&self) -> Option<String> {
        let name = decoded(self.path().rsplit('/').next().unwrap_or(""));
        is_file_name(&name).then_some(name)
    }
}

/// Why a path is refused.
pub(super) const NO_FILE: &str = "a path must not have .. or control characters in it";

fn is_file_path(path: &str) -> bool {
    !path.contains(char::is_control) && !path.split('/').any(|step| step == "..")
}

/// Whether a text may be a file's name, and cannot lead anywhere.
pub fn is_file_name(name: &str) -> bool {
    let bad = name.contains('/') || name.contains(char::is_control);
    !matches!(name, "" | "." | "..") && name.len() <= 255 && !bad
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.address[BeforeHost..AfterPath];
        write!(f, "{}://{place}", self.scheme())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn url_secrets_are_hidden() {
        let url = Url::parse("HTTPS://me:pw@Host:8443/a/b.tgz?token=s+1&x#part").unwrap();
        assert_eq!(url.to_string(), "https://host:8443/a/b.tgz");
        assert_eq!(format!("{url:?}"), "https://host:8443/a/b.tgz");
        assert_eq!(url.request(), "https://host:8443/a/b.tgz?token=s%201&x");
        assert_eq!((url.host(), url.authority()), ("host", "host:8443"));
        assert_eq!(url.authorization().as_deref(), Some("Basic bWU6cHc="));
        assert_eq!(url.file_name().as_deref(), Some("b.tgz"));
    }

    #[test]
    fn different_port_is_different_origin() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(url("http://a/x").same_server(&url("http://a:80/y")));
        assert!(!url("http://a/x").same_server(&url("http://a:8080/x")));
        assert!(!url("http://a/x").same_server(&url("https://a/x")));
        let base = url("https://a/dir/x?y=1");
        for (location, meant) in [
            ("z", "https://a/dir/z"),
            ("/z", "https://a/z"),
            ("//b/z", "https://b/z"),
            ("http://c/z", "http://c/z"),
        ] {
            assert_eq!(base.join(location).unwrap().to_string(), meant);
        }
    }

    #[test]
    fn invalid_url_is_refused() {
        for text in [
            "",
            "x",
            "://h/",
            "1x://h/",
            "http://h:99999/",
            "http://h:+1/",
            "http://a b/",
            "http://h/a b",
            "http://[zz]/",
            "http://h/\n",
            "http:h/x",
            "http:///x",
            "data:,a://b",
            "http://h\\x/",
            "http://h%00/",
            "http://h%22e/",
            "http://h%7Be%7D/",
        ] {
            assert!(Url::parse(text).is_err(), "{text:?}");
        }
        for name in ["..", ".", "%2e%2e", "a%2Fb", "a%00"] {
            let url = Url::parse(&format!("http://h/{name}")).unwrap();
            assert_eq!(url.file_name(), None, "{name}");
        }
    }

    #[test]
    fn malformed_redirect_is_refused() {
        let base = Url::parse("https://a/dir/x").unwrap();
        for location in [
            "/\\evil/x",
            "ht\ntp://evil/",
            "/a b",
            "http://",
            "data:x",
            "//h%22e/",
        ] {
            assert!(base.join(location).is_err(), "{location:?}");
        }
    }

    #[test]
    fn file_url_with_parent_dir_is_refused() {
        for path in ["/a/../b", "/a/%2e%2E/b", "a", "/a%00"] {
            assert!(Url::of_file(path, "").is_err(), "{path}");
        }
        for text in ["FILE:///a/..%2f..%2Fetc", "file://host/a", "http://h/a"] {
            assert_eq!(Url::parse(text).unwrap().file_path(), None, "{text}");
        }
        let url = Url::of_file("/a b\\|?.tgz", "x=1").unwrap();
        assert_eq!(url.file_path().as_deref(), Some("/a b\\|?.tgz"));
        assert_eq!(url.query, [("x".to_owned(), "1".to_owned())]);
    }
}
