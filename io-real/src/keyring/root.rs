//! The root key, with which the data keys are encrypted.
//!
//! It comes from one of three places: a file that the configuration names (`root_key_file`), a credential of
//! the service manager ([`CREDENTIAL`]), or the keyring's own directory. What is in it may be anything of
//! 32 bytes to 4 KiB, such as the output of `openssl rand -base64 32`: the key is derived from all of it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use rustix::fs::OFlags;

use super::KeyringError;
use super::seal::{LENGTH, Secret};

/// The credential's name: `LoadCredentialEncrypted=drover-root-key` of a unit of systemd.
pub const CREDENTIAL: &str = "drover-root-key";

/// What there must be of it, and may be.
const LEAST: usize = 32;
const MOST: usize = 4096;

/// The root key.
pub struct RootKey(pub(super) Secret);

impl RootKey {
    /// The root key that the configuration or the service manager gives, if one of them does.
    /// `credentials` is the directory of credentials (`CREDENTIALS_DIRECTORY`).
    ///
    /// # Errors
    /// It cannot be read, is too short or too long, others can read it too, or it belongs to somebody else.
    pub fn find(
        file: Option<&Path>,
        credentials: Option<&Path>,
    ) -> Result<Option<RootKey>, KeyringError> {
        if let Some(file) = file {
            return read(file, Others::MayNotRead).map(Some);
        }
        match credentials.map(|dir| dir.join(CREDENTIAL)) {
            // Who reads it is for the service manager to say.
            Some(path) if path.exists() => read(&path, Others::AreNotOurs).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// The key that follows from these bytes.
    ///
    /// # Errors
    /// There are too few.
    pub(super) fn of(bytes: &[u8]) -> Result<RootKey, String> {
        if bytes.len() < LEAST {
            return Err(format!("it has {} bytes and needs {LEAST}", bytes.len()));
        }
        struct Length;
        impl KeyType for Length {
            fn len(&self) -> usize {
                LENGTH
            }
        }
        let mut key = [0; LENGTH];
        let extracted = Salt::new(HKDF_SHA256, &[]).extract(bytes);
        extracted
            .expand(&[b"drover root key"], Length)
            .and_then(|expanded| expanded.fill(&mut key))
            .map_err(|_| "it cannot be used".to_owned())?;
        Secret::new(key).map(RootKey)
    }
}

/// What of others' rights to the file is ours to check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    MayNotRead,
    AreNotOurs,
}

fn read(path: &Path, others: Others) -> Result<RootKey, KeyringError> {
    let failed = |error| KeyringError::Io(PathBuf::from(path), error);
    let invalid = |why: String| KeyringError::Root(format!("{}: {why}", path.display()));
    // A pipe or a device would be waited for without an end.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::CLOEXEC).bits()).unwrap_or(0);
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(invalid("it is no file".to_owned()));
    }
    if others == Others::MayNotRead && meta.mode() & 0o077 != 0 {
        return Err(invalid(
            "others than its owner may use it: chmod 0600".to_owned(),
        ));
    }
    let (owner, own) = (meta.uid(), rustix::process::geteuid().as_raw());
    if others == Others::MayNotRead && owner != 0 && owner != own {
        return Err(invalid(format!(
            "it belongs to user {owner}, who can change it: chown it to root or to the agent's user"
        )));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MOST).unwrap_or(u64::MAX);
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(failed)?;
    if bytes.len() > MOST {
        return Err(invalid(format!("it has more than {MOST} bytes")));
    }
    RootKey::of(&bytes).map_err(invalid)
}
