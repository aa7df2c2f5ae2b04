//! Artifacts: files that are fetched before a task's first start.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One thing to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Artifact {
    /// Where from: a URL, with Nomad's additions (`git::…`, `…//part`, `?checksum=…`).
    pub getter_source: String,
    /// What more there is to say of the source: `checksum`, `archive`, `ref` and so on.
    pub getter_options: BTreeMap<String, String>,
    /// Headers of requests.
    pub getter_headers: BTreeMap<String, String>,
    /// What it is expected to be.
    pub getter_mode: GetterMode,
    /// Whether the server may be anybody: its certificate is not looked at.
    pub getter_insecure: bool,
    /// Where to, below the task's directory.
    pub relative_dest: String,
    /// Whether it belongs to the task's user afterwards; else to the agent's.
    pub chown: bool,
}

/// What an artifact is expected to be.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum GetterMode {
    /// Whatever it is: the destination is a directory, into which an archive is unpacked.
    #[default]
    Any,
    /// One file, and the destination is its path.
    File,
    /// A directory, or an archive of one.
    Dir,
}

impl GetterMode {
    /// All of them, as they are written.
    pub const NAMES: &'static [&'static str] = &["any", "file", "dir"];
}

/// A way to sum up a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SumKind {
    /// Holds off accidents only.
    Md5,
    /// Holds off accidents only.
    Sha1,
    /// Holds off forgers.
    Sha256,
    /// Holds off forgers.
    Sha512,
}

impl SumKind {
    const ALL: [SumKind; 4] = [
        SumKind::Md5,
        SumKind::Sha1,
        SumKind::Sha256,
        SumKind::Sha512,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            SumKind::Md5 => "md5",
            SumKind::Sha1 => "sha1",
            SumKind::Sha256 => "sha256",
            SumKind::Sha512 => "sha512",
        }
    }

    /// How many bytes a sum has.
    pub fn bytes(self) -> usize {
        match self {
            SumKind::Md5 => 16,
            SumKind::Sha1 => 20,
            SumKind::Sha256 => 32,
            SumKind::Sha512 => 64,
        }
    }

    /// Whether nobody can make another file with the same sum.
    pub fn is_strong(self) -> bool {
        match self {
            SumKind::Md5 | SumKind::Sha1 => false,
            SumKind::Sha256 | SumKind::Sha512 => true,
        }
    }
}

/// What the bytes of a file must sum up to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Checksum {
    /// How.
    pub kind: SumKind,
    /// The sum, in small hexadecimal digits.
    pub hex: String,
}

impl Checksum {
    /// Reads `sha256:0a1b…`, or the digits alone, whose number says which kind it is.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Checksum, String> {
        let (kind, digits) = match text.split_once(':') {
            Some(("file", _)) => {
                return Err("a file of checksums is not supported: give the sum itself".to_owned());
            }
            Some((name, digits)) => {
                let named = SumKind::ALL.into_iter().find(|kind| kind.name() == name);
                let kind = named.ok_or("the kind must be md5, sha1, sha256 or sha512")?;
                (kind, digits)
            }
            None => {
                let long = SumKind::ALL
                    .into_iter()
                    .find(|kind| kind.bytes() * 2 == text.len());
                (long.ok_or("it is written as sha256:DIGITS")?, text)
            }
        };
        if digits.len() != kind.bytes() * 2 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            let (name, digits) = (kind.name(), kind.bytes() * 2);
            return Err(format!("{name} has {digits} hexadecimal digits"));
        }
        let hex = digits.to_ascii_lowercase();
        Ok(Checksum { kind, hex })
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.hex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_parsed_by_kind() {
        let md5 = "0123456789abcdef0123456789ABCDEF";
        let read = Checksum::parse(&format!("md5:{md5}"));
        let text = read.as_ref().map(ToString::to_string);
        assert_eq!(text, Ok(format!("md5:{}", md5.to_lowercase())));
        assert_eq!(Checksum::parse(md5), read, "its length says the kind");
        for wrong in ["", "md5:", "md5:00", "sha3:00", "00", "file:sums.txt"] {
            assert!(Checksum::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Checksum::parse(&format!("sha256:{md5}")).is_err());
        assert!(Checksum::parse(&format!("md5:g{}", &md5[1..])).is_err());
    }
}
