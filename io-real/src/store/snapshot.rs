//! A snapshot: the whole state as one file, of one commit.
//!
//! ```text
//! magic, version, what it is (JSON), data keys, records, SHA-256 of all before
//! ```
//!
//! Data keys lie in it as in the keyring, encrypted with the root key. Variables are encrypted as they are in
//! the store; every other record is encrypted for the snapshot with the active data key, because jobs have
//! secrets in the environments of their tasks. So nobody reads more of it than the names of records, unless
//! he has the root key, which is never in it.
//!
//! A file of which one byte is another, or which ends too early or too late, is refused as a whole, and so is
//! one of a later version.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use drover_core::store::SCHEMA;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::codec;
use super::sealed::{self, PREFIX};
use crate::keyring::{KeyId, Keyring, KeyringError, Keys, Opened, TravelError};

/// How a snapshot begins.
const MAGIC: &[u8] = b"drover snapshot\n";
/// The layout that this version writes, and the last one that it reads.
const VERSION: u32 = 1;
/// Bytes of its sum, which are its last ones.
const SUM: usize = 32;
/// Bytes of a snapshot at most.
pub const MAX_SNAPSHOT: u64 = 256 << 20;
/// Bytes of what it says of itself at most.
const MAX_ABOUT: usize = 64 * 1024;
/// What the names of records are sealed with besides themselves: no record of the store is sealed so.
const OF_SNAPSHOT: &[u8] = b"snapshot/";

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// When it was made, in nanoseconds since 1970.
    pub created: i64,
    /// The version of the agent that made it.
    pub agent_version: String,
    /// The layout of its records.
    pub schema: u32,
    /// The number of the last commit that is in it.
    pub commit: u64,
    /// The data key with which it is encrypted.
    pub key: String,
    /// How many data keys are in it.
    pub keys: usize,
    /// How many records are in it.
    pub records: usize,
}

/// Why a file is not taken for a snapshot.
#[derive(Debug)]
pub enum SnapshotError {
    /// It is something else.
    Foreign,
    /// A later version wrote it.
    Newer(u32),
    /// It is not what was written: how so.
    Damaged(&'static str),
    /// It is larger than any.
    TooLarge,
    /// The root key does not open this data key of it.
    Locked(KeyId),
    /// There is no root key here.
    NoRoot,
    /// The keyring cannot be used.
    Keyring(KeyringError),
    /// The disk says no.
    Io(io::Error),
    /// There is a state, which it would replace.
    NotEmpty,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Foreign => f.write_str("it is no snapshot of Drover"),
            SnapshotError::Newer(version) => write!(
                f,
                "a later version of Drover made it (its layout is {version}, and {VERSION} is read here): \
                 restore it with that version"
            ),
            SnapshotError::Damaged(how) => write!(f, "it is damaged: {how}"),
            SnapshotError::TooLarge => write!(f, "it is larger than {} MiB", MAX_SNAPSHOT >> 20),
            SnapshotError::Locked(key) => write!(
                f,
                "the root key does not open its data key {key}: it was made with another root key, without \
                 which nobody can read it"
            ),
            SnapshotError::NoRoot => f.write_str(
                "there is no root key here: put the one with which it was made into keyring/root of the data \
                 directory, or where the configuration says (root_key_file)",
            ),
            SnapshotError::Keyring(error) => error.fmt(f),
            SnapshotError::Io(error) => error.fmt(f),
            SnapshotError::NotEmpty => f.write_str(
                "there is a state already, which it would replace: -force does so and keeps the present one \
                 beside it",
            ),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<KeyringError> for SnapshotError {
    fn from(error: KeyringError) -> SnapshotError {
        SnapshotError::Keyring(error)
    }
}

impl From<TravelError> for SnapshotError {
    fn from(error: TravelError) -> SnapshotError {
        match error {
            TravelError::NoRoot => SnapshotError::NoRoot,
            TravelError::Damaged => SnapshotError::Damaged("a key is none"),
            TravelError::Locked(key) => SnapshotError::Locked(key),
            TravelError::Keyring(error) => SnapshotError::Keyring(error),
        }
    }
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> SnapshotError {
        SnapshotError::Io(error)
    }
}

/// Makes a snapshot, record by record.
pub(super) struct Writer<'k> {
    keyring: &'k Keyring,
    records: Vec<u8>,
    count: usize,
}

impl<'k> Writer<'k> {
    pub(super) fn new(keyring: &'k Keyring) -> Writer<'k> {
        Writer {
            keyring,
            records: Vec::new(),
            count: 0,
        }
    }

    /// Adds a record as it lies in the store.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
        let sealed = match name.starts_with(PREFIX) {
            true => match crate::keyring::sealed_with(value) {
                Some(_) => value.to_vec(),
                None => self.keyring.seal(name, value)?,
            },
            false => self.keyring.seal(&of_snapshot(name), value)?,
        };
        push(&mut self.records, name, &sealed)?;
        self.count += 1;
        if self.records.len() as u64 > MAX_SNAPSHOT {
            return Err(SnapshotError::TooLarge.to_string());
        }
        Ok(())
    }

    /// All of it, as of the commit with this number.
    pub(super) fn finish(self, commit: u64, created: i64) -> Result<Vec<u8>, String> {
        let failed = |error: KeyringError| error.to_string();
        let keys = self.keyring.sealed_keys().map_err(failed)?;
        let active = self.keyring.active().ok_or("the active key is gone")?;
        let about = About {
            created,
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            schema: SCHEMA,
            commit,
            key: active.to_string(),
            keys: keys.len(),
            records: self.count,
        };
        let about = serde_json::to_vec(&about).map_err(|error| error.to_string())?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(length(&about)?);
        bytes.extend(about);
        for (id, key) in &keys {
            push(&mut bytes, id.to_string().as_bytes(), key)?;
        }
        bytes.extend(self.records);
        let sum = Sha256::digest(&bytes);
        bytes.extend(sum);
        Ok(bytes)
    }
}

fn of_snapshot(name: &[u8]) -> Vec<u8> {
    [OF_SNAPSHOT, name].concat()
}

fn length(part: &[u8]) -> Result<[u8; 4], String> {
    let length = u32::try_from(part.len()).map_err(|_| "a record is too large".to_owned())?;
    Ok(length.to_le_bytes())
}

fn push(bytes: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), String> {
    bytes.extend(length(name)?);
    bytes.extend(length(value)?);
    bytes.extend(name);
    bytes.extend(value);
    Ok(())
}

/// A snapshot that is whole.
pub struct Snapshot<'b> {
    /// What it says of itself.
    pub about: About,
    /// Its sum, which names it.
    pub sum: String,
    pub(super) keys: Vec<(KeyId, &'b [u8])>,
    records: Vec<(&'b [u8], &'b [u8])>,
}

/// A record as a store has it: its name and its bytes.
pub(super) type Stored<'b> = (&'b [u8], Vec<u8>);

/// What of a snapshot is of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindOf {
    /// Records.
    pub count: usize,
    /// Their bytes.
    pub bytes: usize,
}

impl<'b> Snapshot<'b> {
    /// Reads a snapshot, and looks whether all of it is there.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn read(bytes: &'b [u8]) -> Result<Snapshot<'b>, SnapshotError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::Foreign)?;
        let (version, _) = rest.split_first_chunk().ok_or(TOO_SHORT)?;
        let version = u32::from_le_bytes(*version);
        if version > VERSION {
            return Err(SnapshotError::Newer(version));
        }
        let (content, sum) = bytes
            .split_last_chunk::<SUM>()
            .filter(|(content, _)| content.len() > MAGIC.len())
            .ok_or(TOO_SHORT)?;
        if Sha256::digest(content)[..] != sum[..] {
            return Err(SnapshotError::Damaged("its sum is another"));
        }
        let mut parts = Parts(content.get(MAGIC.len() + 4..).unwrap_or_default());
        let about = parts.one(MAX_ABOUT)?;
        let about: About = serde_json::from_slice(about)
            .map_err(|_| SnapshotError::Damaged("it does not say what it is"))?;
        if about.schema > SCHEMA {
            return Err(SnapshotError::Newer(about.schema));
        }
        let mut keys = Vec::new();
        for _ in 0..about.keys {
            let (name, value) = parts.pair()?;
            let id = std::str::from_utf8(name)
                .ok()
                .and_then(|id| id.parse().ok());
            keys.push((
                id.ok_or(SnapshotError::Damaged("a key has no name"))?,
                value,
            ));
        }
        let mut records = Vec::new();
        for _ in 0..about.records {
            records.push(parts.pair()?);
        }
        if !parts.0.is_empty() {
            return Err(SnapshotError::Damaged("there is more in it than it says"));
        }
        let sum = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Snapshot {
            about,
            sum,
            keys,
            records,
        })
    }

    /// How many records there are of each kind.
    pub fn kinds(&self) -> BTreeMap<String, KindOf> {
        let mut kinds: BTreeMap<String, KindOf> = BTreeMap::new();
        for (name, value) in &self.records {
            let kind = name.split(|byte| *byte == b'/').next().unwrap_or_default();
            let kind = kinds
                .entry(String::from_utf8_lossy(kind).into_owned())
                .or_default();
            kind.count += 1;
            kind.bytes += value.len();
        }
        kinds
    }

    /// Its records as a store has them, each of which this version can read.
    ///
    /// # Errors
    /// One cannot be decrypted with these keys, or is not of the kind that its name says.
    pub(super) fn records(&self, keys: &Keys) -> Result<Vec<Stored<'b>>, SnapshotError> {
        let mut records = Vec::new();
        for (name, value) in &self.records {
            let unreadable = |_| SnapshotError::Damaged("a record cannot be read");
            let stored = match name.starts_with(PREFIX) {
                true => value.to_vec(),
                false => match keys.open(&of_snapshot(name), value).map_err(unreadable)? {
                    Opened::Sealed(_, plain) => plain,
                    Opened::Plain => {
                        return Err(SnapshotError::Damaged("a record is not encrypted"));
                    }
                },
            };
            let key = codec::key(name).map_err(unreadable)?;
            sealed::decode(keys, &key, &stored).map_err(unreadable)?;
            records.push((*name, stored));
        }
        Ok(records)
    }
}

const TOO_SHORT: SnapshotError = SnapshotError::Damaged("it ends too early");

/// What is left to read.
struct Parts<'b>(&'b [u8]);

impl<'b> Parts<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8], SnapshotError> {
        let (part, rest) = self.0.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(part)
    }

    fn length(&mut self) -> Result<usize, SnapshotError> {
        let bytes = self.take(4)?.try_into().map_err(|_| TOO_SHORT)?;
        usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| TOO_SHORT)
    }

    fn one(&mut self, most: usize) -> Result<&'b [u8], SnapshotError> {
        match self.length()? {
            length if length > most => Err(SnapshotError::Damaged("it says too much of itself")),
            length => self.take(length),
        }
    }

    fn pair(&mut self) -> Result<(&'b [u8], &'b [u8]), SnapshotError> {
        let (name, value) = (self.length()?, self.length()?);
        Ok((self.take(name)?, self.take(value)?))
    }
}

/// The bytes of a file that may be a snapshot.
///
/// # Errors
/// It cannot be read, or is too large.
pub fn load(path: &Path) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_SNAPSHOT + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SNAPSHOT {
        return Err(SnapshotError::TooLarge);
    }
    Ok(bytes)
}
