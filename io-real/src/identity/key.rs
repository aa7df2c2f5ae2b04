//! The key that tokens are signed with.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustix::fs::{Mode, OFlags, openat, renameat};
use rustix::io::Errno;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::facts;

/// The file in the directory for it.
const FILE: &str = "key";
/// Until it is whole.
const NEW: &str = "key.new";
/// Bytes of it.
const LENGTH: usize = 32;

/// An Ed25519 key, and its name.
pub struct Key {
    pair: Ed25519KeyPair,
    name: String,
}

impl Key {
    /// The key in this directory of the agent's own, which is made at the first time.
    ///
    /// # Errors
    /// The disk says no, or what is there is no key.
    pub fn of(dir: BorrowedFd<'_>) -> io::Result<Key> {
        if let Some(seed) = read(dir)? {
            return Key::new(&seed);
        }
        let mut seed = [0; LENGTH];
        let (low, high) = seed.split_at_mut(LENGTH / 2);
        low.copy_from_slice(&facts::random().to_ne_bytes());
        high.copy_from_slice(&facts::random().to_ne_bytes());
        write(dir, &seed)?;
        Key::new(&seed)
    }

    fn new(seed: &[u8]) -> io::Result<Key> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        let pair = pair.map_err(|_| io::Error::other("the stored identity key is invalid"))?;
        let name = Sha256::digest(pair.public_key().as_ref());
        let name = name
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Key { pair, name })
    }

    /// Its name: whoever checks a token finds the key by it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The signature of these bytes.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).as_ref().to_vec()
    }

    /// The public half, as a JSON Web Key Set.
    pub fn public(&self) -> Value {
        json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA",
            "kid": self.name,
            "x": BASE64_URL_SAFE_NO_PAD.encode(self.pair.public_key()),
        }] })
    }
}

fn read(dir: BorrowedFd<'_>) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(dir, FILE, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut seed = Vec::new();
    file.take(LENGTH as u64 + 1).read_to_end(&mut seed)?;
    Ok(Some(seed))
}

fn write(dir: BorrowedFd<'_>, seed: &[u8]) -> io::Result<()> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, NEW, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(seed)?;
    file.sync_all()?;
    renameat(dir, NEW, dir, FILE)?;
    Ok(())
}
