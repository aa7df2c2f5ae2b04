//! The keyring's directory, of small files.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::root::RootKey;
use super::seal::{LENGTH, Secret};
use super::{KeyId, KeyringError};
use crate::small_files::SmallFiles;

/// The root key, where no other is given.
const ROOT: &str = "root";
/// The name of the active key.
pub(super) const ACTIVE: &str = "active";
/// How the names of data keys end.
const SUFFIX: &str = ".key";
/// Bytes of a file at most.
const MOST: u64 = 4096;

/// The directory.
pub(super) struct Dir {
    files: SmallFiles,
    path: PathBuf,
}

/// A data key as it lies on the disk.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredKey {
    /// When it was made, in nanoseconds since 1970.
    pub(super) created: i64,
    /// The key, encrypted with the root key.
    sealed: String,
    #[serde(skip)]
    name: Vec<u8>,
}

impl StoredKey {
    /// What the file of a key says; none if that is no key.
    pub(super) fn read(id: KeyId, text: &[u8]) -> Option<StoredKey> {
        let read: StoredKey = serde_json::from_slice(text).ok()?;
        let name = file_of(id).into_bytes();
        Some(StoredKey { name, ..read })
    }

    /// The key, if the root key opens it.
    pub(super) fn open(&self, root: &RootKey) -> Option<Secret> {
        let sealed = BASE64_STANDARD.decode(&self.sealed).ok()?;
        let bytes = root.0.open(&self.name, &sealed)?;
        let bytes: [u8; LENGTH] = bytes.try_into().ok()?;
        Secret::new(bytes).ok()
    }
}

impl Dir {
    /// The directory, made if need be.
    pub(super) fn open(path: &Path) -> io::Result<Dir> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        // It was made a moment ago.
        Dir::find(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The directory, if it is there.
    pub(super) fn find(path: &Path) -> io::Result<Option<Dir>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match open(path, flags, Mode::empty()) {
            Ok(handle) => Ok(Some(Dir {
                files: SmallFiles::new(handle, MOST),
                path: path.to_owned(),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The root key that lies here.
    pub(super) fn root(&self) -> Result<Option<RootKey>, KeyringError> {
        let Some(bytes) = self.read(ROOT)? else {
            return Ok(None);
        };
        let root = RootKey::of(&bytes).map_err(|_| self.damaged(ROOT))?;
        Ok(Some(root))
    }

    pub(super) fn make_root(&self) -> Result<RootKey, KeyringError> {
        let secret = Secret::random().map_err(KeyringError::Root)?;
        self.write(ROOT, secret.bytes())?;
        RootKey::of(secret.bytes()).map_err(KeyringError::Root)
    }

    pub(super) fn remove_root(&self) -> Result<(), KeyringError> {
        self.remove(ROOT)
    }

    /// The names of the data keys.
    pub(super) fn keys(&self) -> Result<Vec<KeyId>, KeyringError> {
        let names = self.files.names().map_err(|error| self.failed("", error))?;
        let mut keys = Vec::new();
        for name in names {
            if let Some(id) = name.strip_suffix(SUFFIX) {
                keys.push(id.parse().map_err(|_| self.damaged(&name))?);
            }
        }
        keys.sort();
        Ok(keys)
    }

    pub(super) fn key(&self, id: KeyId) -> Result<StoredKey, KeyringError> {
        let text = self.sealed_key(id)?;
        StoredKey::read(id, &text).ok_or_else(|| self.damaged(&file_of(id)))
    }

    /// The file of a data key as it is.
    pub(super) fn sealed_key(&self, id: KeyId) -> Result<Vec<u8>, KeyringError> {
        let name = file_of(id);
        self.read(&name)?.ok_or_else(|| self.damaged(&name))
    }

    /// Writes the file of a data key that [`Dir::sealed_key`] gave.
    pub(super) fn write_sealed_key(&self, id: KeyId, text: &[u8]) -> Result<(), KeyringError> {
        self.write(&file_of(id), text)
    }

    pub(super) fn write_key(
        &self,
        id: KeyId,
        created: i64,
        secret: &Secret,
        root: &RootKey,
    ) -> Result<(), KeyringError> {
        let name = file_of(id);
        let sealed = root.0.seal(name.as_bytes(), secret.bytes());
        let stored = StoredKey {
            created,
            sealed: BASE64_STANDARD.encode(sealed.map_err(KeyringError::Root)?),
            name: Vec::new(),
        };
        let text = serde_json::to_vec(&stored).map_err(|error| self.failed(&name, error.into()))?;
        self.write(&name, &text)
    }

    pub(super) fn remove_key(&self, id: KeyId) -> Result<(), KeyringError> {
        self.remove(&file_of(id))
    }

    pub(super) fn active(&self) -> Result<Option<KeyId>, KeyringError> {
        let Some(text) = self.read(ACTIVE)? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&text).ok();
        let id = text.and_then(|text| text.trim_end().parse().ok());
        id.map(Some).ok_or_else(|| self.damaged(ACTIVE))
    }

    pub(super) fn set_active(&self, id: KeyId) -> Result<(), KeyringError> {
        self.write(ACTIVE, id.to_string().as_bytes())
    }

    /// The root key does not open it.
    pub(super) fn locked(&self, id: KeyId) -> KeyringError {
        KeyringError::Locked(self.path.join(file_of(id)))
    }

    fn damaged(&self, name: &str) -> KeyringError {
        KeyringError::Damaged(self.path.join(name))
    }

    fn failed(&self, name: &str, error: io::Error) -> KeyringError {
        KeyringError::Io(self.path.join(name), error)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, KeyringError> {
        let read = self.files.read(name);
        read.map_err(|error| self.failed(name, error))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), KeyringError> {
        let written = self.files.write(name, bytes);
        written.map_err(|error| self.failed(name, error))
    }

    fn remove(&self, name: &str) -> Result<(), KeyringError> {
        let removed = self.files.remove(name).and_then(|()| self.files.sync());
        removed.map_err(|error| self.failed(name, error))
    }
}

fn file_of(id: KeyId) -> String {
    format!("{id}{SUFFIX}")
}
