//! Data keys that leave a keyring in a snapshot, encrypted with the root key, and come into another.

use std::path::Path;

use super::files::{Dir, StoredKey};
use super::root::RootKey;
use super::{DIR, DataKey, KeyId, Keyring, KeyringError, Keys, MOST};

/// Why data keys of a snapshot cannot be used.
#[derive(Debug)]
pub(crate) enum TravelError {
    /// There is no root key.
    NoRoot,
    /// One is none.
    Damaged,
    /// No root key opens this one.
    Locked(KeyId),
    /// The keyring cannot be used.
    Keyring(KeyringError),
}

impl From<KeyringError> for TravelError {
    fn from(error: KeyringError) -> TravelError {
        TravelError::Keyring(error)
    }
}

impl Keyring {
    /// The data keys as they lie on the disk.
    ///
    /// # Errors
    /// The disk says no.
    pub(crate) fn sealed_keys(&self) -> Result<Vec<(KeyId, Vec<u8>)>, KeyringError> {
        let ids: Vec<KeyId> = self.keys().all.keys().copied().collect();
        let sealed = ids.into_iter().map(|id| Ok((id, self.dir.sealed_key(id)?)));
        sealed.collect()
    }

    /// Opens data keys that lay in a keyring with the same root key.
    ///
    /// # Errors
    /// One cannot be opened.
    pub(crate) fn open_sealed(&self, sealed: &[(KeyId, &[u8])]) -> Result<Keys, TravelError> {
        open_with(&[&self.root], sealed)
    }
}

/// Opens data keys with the root key that an agent in this data directory would have: `root`, or the one that
/// lies beside its data keys.
///
/// # Errors
/// There is none, or one of the keys cannot be opened.
pub(crate) fn open_sealed(
    data_dir: &Path,
    root: Option<&RootKey>,
    sealed: &[(KeyId, &[u8])],
) -> Result<Keys, TravelError> {
    let path = data_dir.join(DIR);
    let dir = Dir::find(&path).map_err(|error| KeyringError::Io(path, error))?;
    let beside = dir.map(|dir| dir.root()).transpose()?.flatten();
    let roots: Vec<&RootKey> = root.into_iter().chain(&beside).collect();
    match roots.is_empty() {
        true => Err(TravelError::NoRoot),
        false => open_with(&roots, sealed),
    }
}

/// Opens data keys with one of these root keys.
///
/// # Errors
/// None of them opens one of the keys.
pub(crate) fn open_with(
    roots: &[&RootKey],
    sealed: &[(KeyId, &[u8])],
) -> Result<Keys, TravelError> {
    let mut keys = Keys::default();
    for (id, text) in sealed {
        let stored = StoredKey::read(*id, text).ok_or(TravelError::Damaged)?;
        let secret = roots.iter().find_map(|root| stored.open(root));
        let secret = secret.ok_or(TravelError::Locked(*id))?;
        let created = stored.created;
        keys.all.insert(*id, DataKey { secret, created });
    }
    Ok(keys)
}

/// Takes data keys into the keyring of a data directory, which keeps those that it has, and the active one if
/// it has one.
///
/// # Errors
/// The disk says no, or there would be too many.
pub(crate) fn adopt(
    data_dir: &Path,
    sealed: &[(KeyId, &[u8])],
    active: KeyId,
) -> Result<(), KeyringError> {
    let path = data_dir.join(DIR);
    let dir = Dir::open(&path).map_err(|error| KeyringError::Io(path, error))?;
    let known = dir.keys()?;
    let new: Vec<_> = (sealed.iter())
        .filter(|(id, _)| !known.contains(id))
        .collect();
    if known.len() + new.len() > MOST {
        return Err(KeyringError::Full);
    }
    for (id, text) in new {
        dir.write_sealed_key(*id, text)?;
    }
    match dir.active()? {
        Some(_) => Ok(()),
        None => dir.set_active(active),
    }
}
