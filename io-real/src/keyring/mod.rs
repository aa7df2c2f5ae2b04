//! Keys with which variables are encrypted before they reach the disk.
//!
//! Each *data key* (AES-256-GCM) is a file of `keyring/` in the data directory, encrypted with the *root
//! key* ([`root`]), which is somewhere else: a credential of the service manager, a file that the
//! configuration names, or, where neither is given, a file beside them that only the agent's user reads.
//! Whoever copies the store, or the whole data directory of an agent whose root key is elsewhere, reads no
//! variable.
//!
//! One key is *active*: new values are sealed with it. The others are kept until nothing is sealed with them
//! and somebody removes them. The file `active` names the active one and is replaced whole, so an agent that
//! dies while keys are rotated has either the old one or the new one, and both files.
//!
//! A root key that does not open the data keys is an error at the start, and nothing is changed then: with
//! other keys the variables would be lost without anybody having said so.

mod files;
pub mod root;
mod seal;
mod travel;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use drover_core::ids::NodeId;

use self::files::Dir;
use self::root::RootKey;
use self::seal::Secret;
pub(crate) use self::travel::{TravelError, adopt, open_sealed, open_with};
use crate::facts;

/// The keyring's directory, in the data directory.
pub(crate) const DIR: &str = "keyring";

/// How a sealed value begins; one that was never sealed is JSON and begins otherwise.
const MARK: &[u8] = b"sealed1\0";

/// Keys at most: they are made by hand.
const MOST: usize = 256;

/// A key's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u128);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        NodeId(self.0).fmt(f)
    }
}

impl FromStr for KeyId {
    type Err = drover_core::ids::NotAUuid;

    fn from_str(text: &str) -> Result<KeyId, Self::Err> {
        text.parse::<NodeId>().map(|id| KeyId(id.0))
    }
}

/// What is known of a key; never the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFacts {
    /// Its name.
    pub id: KeyId,
    /// Whether new values are sealed with it.
    pub active: bool,
    /// When it was made, in nanoseconds since 1970.
    pub created: i64,
}

/// Why there is no keyring, or why a key cannot be used.
#[derive(Debug)]
pub enum KeyringError {
    /// The disk says no: where, and what.
    Io(PathBuf, io::Error),
    /// The root key cannot be used: why.
    Root(String),
    /// The root key does not open this data key.
    Locked(PathBuf),
    /// A file is none that this version wrote.
    Damaged(PathBuf),
    /// There are as many keys as there may be.
    Full,
    /// There is no such key.
    Unknown(KeyId),
    /// It is the active one.
    Active(KeyId),
    /// So many values are sealed with it.
    Used(KeyId, usize),
}

impl fmt::Display for KeyringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyringError::Io(path, error) => {
                write!(f, "cannot use the keyring ({}): {error}", path.display())
            }
            KeyringError::Root(why) => write!(f, "cannot use the root key: {why}"),
            KeyringError::Locked(path) => write!(
                f,
                "the root key does not open {}: it is not the one with which the keyring was made. \
                 Nothing was changed. Start the agent with that root key; without it the variables \
                 cannot be read, and to go on without them: mv {dir} {dir}.locked",
                path.display(),
                dir = path.parent().unwrap_or(path).display(),
            ),
            KeyringError::Damaged(path) => write!(
                f,
                "{} is damaged. Nothing was changed. Restore it from a backup",
                path.display()
            ),
            KeyringError::Full => write!(
                f,
                "there are {MOST} keys already: remove some that are not used any more"
            ),
            KeyringError::Unknown(id) => write!(f, "there is no key {id}"),
            KeyringError::Active(id) => {
                write!(
                    f,
                    "key {id} is active: rotate the keyring before it is removed"
                )
            }
            KeyringError::Used(id, count) => write!(
                f,
                "{count} variables are encrypted with key {id}: rotate with -full before it is removed"
            ),
        }
    }
}

impl std::error::Error for KeyringError {}

/// The keys, in memory and on disk.
pub struct Keyring {
    dir: Dir,
    root: RootKey,
    keys: Mutex<Keys>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

/// A keyring that was read, and not changed yet: [`Found::complete`] makes of it one that seals.
pub(crate) struct Found {
    path: PathBuf,
    /// The root key with which data keys are to be encrypted; none if there is none yet.
    root: Option<RootKey>,
    /// The keys that are encrypted with a root key beside them, and are not to be any more.
    moving: Vec<KeyId>,
    /// Whether there is a root key beside them that is not to be there.
    beside: bool,
    pub(crate) keys: Keys,
}

/// The data keys.
#[derive(Default)]
pub(crate) struct Keys {
    all: BTreeMap<KeyId, DataKey>,
    active: Option<KeyId>,
}

struct DataKey {
    secret: Secret,
    created: i64,
}

/// What a value that was read is.
pub(crate) enum Opened {
    /// Sealed with this key.
    Sealed(KeyId, Vec<u8>),
    /// Written by a version that did not seal.
    Plain,
}

impl Keys {
    /// What was sealed.
    ///
    /// # Errors
    /// Its key is gone, or it is not what was sealed under this name.
    pub(crate) fn open(&self, name: &[u8], value: &[u8]) -> Result<Opened, String> {
        let Some(id) = sealed_with(value) else {
            return Ok(Opened::Plain);
        };
        let rest = value.get(MARK.len() + size_of::<u128>()..);
        let key = self.all.get(&id);
        let key = key.ok_or_else(|| format!("its key {id} is not in the keyring"))?;
        let plain = key.secret.open(name, rest.unwrap_or_default());
        let plain = plain.ok_or_else(|| format!("key {id} does not open it"))?;
        Ok(Opened::Sealed(id, plain))
    }
}

impl Found {
    /// Reads the keyring of a data directory and changes nothing. `root` is the root key if it is not to lie
    /// beside the data keys.
    ///
    /// # Errors
    /// See [`KeyringError`].
    pub(crate) fn read(data_dir: &Path, root: Option<RootKey>) -> Result<Found, KeyringError> {
        let path = data_dir.join(DIR);
        let dir = Dir::find(&path).map_err(|error| KeyringError::Io(path.clone(), error))?;
        let Some(dir) = dir else {
            return Ok(Found {
                path,
                root,
                moving: Vec::new(),
                beside: false,
                keys: Keys::default(),
            });
        };
        let (root, old) = match (root, dir.root()?) {
            (Some(root), beside) => (Some(root), beside),
            (None, beside) => (beside, None),
        };
        let mut keys = Keys::default();
        let mut moving = Vec::new();
        for id in dir.keys()? {
            let key = dir.key(id)?;
            let opened = root.as_ref().and_then(|root| key.open(root));
            let secret = match opened {
                Some(secret) => secret,
                None => {
                    moving.push(id);
                    let opened = old.as_ref().and_then(|old| key.open(old));
                    opened.ok_or_else(|| dir.locked(id))?
                }
            };
            let created = key.created;
            keys.all.insert(id, DataKey { secret, created });
        }
        keys.active = dir.active()?;
        if keys
            .active
            .is_some_and(|active| !keys.all.contains_key(&active))
        {
            return Err(KeyringError::Damaged(path.join(files::ACTIVE)));
        }
        Ok(Found {
            path,
            root,
            moving,
            beside: old.is_some(),
            keys,
        })
    }

    /// Makes what is missing: the directory, a root key, a data key that is active. Data keys that were
    /// encrypted with a root key beside them are encrypted with the one that was given.
    ///
    /// # Errors
    /// The disk says no.
    pub(crate) fn complete(mut self) -> Result<Keyring, KeyringError> {
        let failed = |error| KeyringError::Io(self.path.clone(), error);
        let dir = Dir::open(&self.path).map_err(failed)?;
        let root = match self.root.take() {
            Some(root) => root,
            None => dir.make_root()?,
        };
        for id in self.moving {
            if let Some(key) = self.keys.all.get(&id) {
                dir.write_key(id, key.created, &key.secret, &root)?;
            }
        }
        if self.beside {
            dir.remove_root()?;
        }
        if self.keys.active.is_none() {
            let (id, key) = make(&dir, &root)?;
            self.keys.all.insert(id, key);
            dir.set_active(id)?;
            self.keys.active = Some(id);
        }
        Ok(Keyring {
            dir,
            root,
            keys: Mutex::new(self.keys),
        })
    }
}

impl Keyring {
    /// What is known of each key, the oldest first.
    pub fn list(&self) -> Vec<KeyFacts> {
        let keys = self.keys();
        let mut list: Vec<KeyFacts> = keys
            .all
            .iter()
            .map(|(id, key)| KeyFacts {
                id: *id,
                active: Some(*id) == keys.active,
                created: key.created,
            })
            .collect();
        list.sort_by_key(|key| (key.created, key.id));
        list
    }

    /// Makes another key and seals with it from now on.
    ///
    /// # Errors
    /// The disk says no, or there are too many; the active key is the old one then.
    pub(crate) fn rotate(&self) -> Result<KeyFacts, KeyringError> {
        let mut keys = self.keys();
        if keys.all.len() >= MOST {
            return Err(KeyringError::Full);
        }
        let (id, key) = make(&self.dir, &self.root)?;
        let created = key.created;
        keys.all.insert(id, key);
        self.dir.set_active(id)?;
        keys.active = Some(id);
        Ok(KeyFacts {
            id,
            active: true,
            created,
        })
    }

    /// Removes a key with which nothing is sealed any more, as `used` says.
    ///
    /// # Errors
    /// It is not there, active or used, or the disk says no.
    pub(crate) fn remove(&self, id: KeyId, used: usize) -> Result<(), KeyringError> {
        let mut keys = self.keys();
        if !keys.all.contains_key(&id) {
            return Err(KeyringError::Unknown(id));
        }
        if keys.active == Some(id) {
            return Err(KeyringError::Active(id));
        }
        if used > 0 {
            return Err(KeyringError::Used(id, used));
        }
        self.dir.remove_key(id)?;
        keys.all.remove(&id);
        Ok(())
    }

    /// The key that is active.
    pub(crate) fn active(&self) -> Option<KeyId> {
        self.keys().active
    }

    /// Encrypts what stands under `name`, which is part of the seal: a value that is moved under another
    /// name cannot be opened.
    ///
    /// # Errors
    /// There is no randomness.
    pub(crate) fn seal(&self, name: &[u8], plain: &[u8]) -> Result<Vec<u8>, String> {
        let keys = self.keys();
        let active = keys.active.and_then(|id| Some((id, keys.all.get(&id)?)));
        let (id, key) = active.ok_or("the active key is gone")?;
        let mut sealed = MARK.to_vec();
        sealed.extend_from_slice(&id.0.to_be_bytes());
        sealed.extend(key.secret.seal(name, plain)?);
        Ok(sealed)
    }

    /// What was sealed: see [`Keys::open`].
    ///
    /// # Errors
    /// See there.
    pub(crate) fn open_value(&self, name: &[u8], value: &[u8]) -> Result<Opened, String> {
        self.keys().open(name, value)
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key with which a value was sealed, if it was.
pub(crate) fn sealed_with(value: &[u8]) -> Option<KeyId> {
    let id = value.strip_prefix(MARK)?.first_chunk()?;
    Some(KeyId(u128::from_be_bytes(*id)))
}

fn make(dir: &Dir, root: &RootKey) -> Result<(KeyId, DataKey), KeyringError> {
    let id = KeyId(facts::random());
    let secret = Secret::random().map_err(KeyringError::Root)?;
    let created = crate::clock::now().wall.0;
    dir.write_key(id, created, &secret, root)?;
    Ok((id, DataKey { secret, created }))
}
