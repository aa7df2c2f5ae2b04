//! Which records are encrypted on the disk: variables, and nothing else.

use std::sync::Arc;

use drover_core::store::{Key, Record};

use super::codec;
use crate::keyring::{KeyId, Keyring, Keys, Opened, sealed_with};

/// How the names of variables begin.
pub(super) const PREFIX: &[u8] = b"variable/";

/// Makes bytes of records, as they lie on the disk.
#[derive(Clone)]
pub(super) struct Sealing(pub(super) Arc<Keyring>);

impl Sealing {
    /// A record's bytes. `old` is what stands under its name: if that says the same and is sealed with the
    /// active key, it is given back, so that nothing is written.
    pub(super) fn encode(
        &self,
        key: &Key,
        record: &Record,
        old: Option<&[u8]>,
    ) -> Result<Vec<u8>, String> {
        let plain = codec::encode(record)?;
        if !matches!(key, Key::Variable(_)) {
            return Ok(plain);
        }
        let name = codec::key_text(key);
        let active = self.0.active();
        let same = |old: &&[u8]| match self.0.open_value(name.as_bytes(), old) {
            Ok(Opened::Sealed(id, text)) => Some(id) == active && text == plain,
            Ok(Opened::Plain) | Err(_) => false,
        };
        match old.filter(same) {
            Some(old) => Ok(old.to_vec()),
            None => self.0.seal(name.as_bytes(), &plain),
        }
    }

    /// A variable's value sealed with the active key, if it is not already; none if it is, or cannot be read.
    pub(super) fn renewed(&self, name: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, String> {
        if sealed_with(value).is_some_and(|id| Some(id) == self.0.active()) {
            return Ok(None);
        }
        match self.0.open_value(name, value) {
            Ok(Opened::Sealed(_, plain)) => self.0.seal(name, &plain).map(Some),
            Ok(Opened::Plain) => self.0.seal(name, value).map(Some),
            // What cannot be read stays as it is.
            Err(_) => Ok(None),
        }
    }

    /// Whether the value was sealed with this key.
    pub(super) fn is_of(value: &[u8], key: KeyId) -> bool {
        sealed_with(value) == Some(key)
    }

    /// Whether it was written before variables were encrypted.
    pub(super) fn is_plain(name: &[u8], value: &[u8]) -> bool {
        name.starts_with(PREFIX) && sealed_with(value).is_none()
    }
}

/// Reads what stands under a name.
pub(super) fn decode(keys: &Keys, key: &Key, value: &[u8]) -> Result<Record, String> {
    if !matches!(key, Key::Variable(_)) {
        return codec::decode(key, value);
    }
    match keys.open(codec::key_text(key).as_bytes(), value)? {
        Opened::Sealed(_, plain) => codec::decode(key, &plain),
        Opened::Plain => codec::decode(key, value),
    }
}
