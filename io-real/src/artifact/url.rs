//! URLs, as far as sources of artifacts need them.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A URL in its parts. Shown are neither who asks nor the query: both may be secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Url {
    /// In small letters.
    pub scheme: String,
    /// Name and password as they are written, without the `@`.
    pub user: Option<String>,
    /// The host in small letters, with its port if one is given.
    pub authority: String,
    /// From its first `/` on, as it is written; never empty.
    pub path: String,
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
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(letters) {
            return Err("its scheme is none".to_owned());
        }
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user.to_owned()), authority),
            None => (None, authority),
        };
        let unfit = |c: char| c.is_whitespace() || c.is_control() || "\\\"<>^`{|}".contains(c);
        if authority.contains(unfit) || path.contains(unfit) {
            return Err("it has letters that must be encoded".to_owned());
        }
        Ok(Url {
            scheme: scheme.to_ascii_lowercase(),
            user,
            authority: host(authority)?,
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            query: pairs(query),
        })
    }

    /// The host without its port.
    pub fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            Some(_) | None => &self.authority,
        }
    }

    /// The port, given or usual.
    pub fn port(&self) -> u16 {
        let given = self.authority.strip_prefix(self.host());
        let given = given.and_then(|rest| rest.strip_prefix(':')?.parse().ok());
        given.unwrap_or(if self.scheme == "http" { 80 } else { 443 })
    }

    /// Whether both are served by the same: what is meant for one may be told to the other.
    pub fn same_server(&self, other: &Url) -> bool {
        (&self.scheme, self.host(), self.port()) == (&other.scheme, other.host(), other.port())
    }

    /// As it is asked for: all of it but who asks.
    pub fn request(&self) -> String {
        let mut text = self.to_string();
        for (nth, (key, value)) in self.query.iter().enumerate() {
            text.push(if nth == 0 { '?' } else { '&' });
            text.push_str(&encoded(key, false));
            if !value.is_empty() {
                text.push('=');
                text.push_str(&encoded(value, false));
            }
        }
        text
    }

    /// What a `Location` on a page of this URL refers to.
    ///
    /// # Errors
    /// It is no URL.
    pub fn join(&self, location: &str) -> Result<Url, String> {
        let location = location.trim();
        if location.contains("://") {
            return Url::parse(location);
        }
        let base = format!("{}://{}", self.scheme, self.authority);
        if let Some(rest) = location.strip_prefix("//") {
            return Url::parse(&format!("{}://{rest}", self.scheme));
        }
        if location.starts_with('/') {
            return Url::parse(&format!("{base}{location}"));
        }
        let dir = self.path.rsplit_once('/').map_or("", |(dir, _)| dir);
        Url::parse(&format!("{base}{dir}/{location}"))
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
        let name = self.path.rsplit('/').next().unwrap_or("");
        let name = decoded(name, false);
        is_file_name(&name).then_some(name)
    }
}

/// Whether a text may be a file's name, and cannot lead anywhere.
pub fn is_file_name(name: &str) -> bool {
    let bad = name.contains('/') || name.contains(char::is_control);
    !matches!(name, "" | "." | "..") && name.len() <= 255 && !bad
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn host(authority: &str) -> Result<String, String> {
    let (name, port) = match authority
        .strip_prefix('[')
        .and_then(|at| at.split_once(']'))
    {
        Some((address, port)) => {
            let numbers = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
            if address.is_empty() || !address.chars().all(numbers) {
                return Err("its host is none".to_owned());
            }
            (format!("[{}]", address.to_ascii_lowercase()), port)
        }
        None => {
            let (name, _) = authority.split_once(':').unwrap_or((authority, ""));
            let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            if !name.chars().all(letters) {
                return Err("its host is none".to_owned());
            }
            let port = authority.strip_prefix(name).unwrap_or("");
            (name.to_ascii_lowercase(), port)
        }
    };
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok(name),
        Some(number) if number.parse::<u16>().is_ok() && !number.starts_with('+') => {
            Ok(format!("{name}:{number}"))
        }
        Some(_) | None => Err("its port is none".to_owned()),
    }
}

fn pairs(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs
        .map(|(key, value)| (decoded(key, true), decoded(value, true)))
        .collect()
}

/// What `%41` and, in queries, `+` stand for.
pub fn decoded(text: &str, plus: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) if plus => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

/// The text with everything encoded but letters, digits and `-._~`, and `/` if that is kept.
pub fn encoded(text: &str, keep_slash: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || (keep_slash && byte == b'/') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let url = Url::parse("HTTPS://me:pw@Host:8443/a/b.tgz?token=s+1&x#part").unwrap();
        assert_eq!(url.to_string(), "https://host:8443/a/b.tgz");
        assert_eq!(format!("{url:?}"), "https://host:8443/a/b.tgz");
        assert_eq!(url.request(), "https://host:8443/a/b.tgz?token=s%201&x");
        assert_eq!((url.host(), url.port()), ("host", 8443));
        assert_eq!(url.user.as_deref(), Some("me:pw"));
        assert_eq!(url.file_name().as_deref(), Some("b.tgz"));
    }

    #[test]
    fn another_port_is_another_server() {
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
    fn what_is_none_is_refused() {
        for text in [
            "",
            "x",
            "://h/",
            "1x://h/",
            "http://h:/",
            "http://h:99999/",
            "http://h:+1/",
            "http://a b/",
            "http://h/a b",
            "http://[zz]/",
            "http://h/\n",
        ] {
            assert!(Url::parse(text).is_err(), "{text:?}");
        }
        for name in ["..", ".", "%2e%2e", "a%2Fb", "a%00"] {
            let url = Url::parse(&format!("http://h/{name}")).unwrap();
            assert_eq!(url.file_name(), None, "{name}");
        }
    }
}
