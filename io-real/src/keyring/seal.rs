//! One key, and what it encrypts: AES-256-GCM with a random nonce before the text.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of a key.
pub(super) const LENGTH: usize = 32;

/// A key.
pub(super) struct Secret {
    bytes: [u8; LENGTH],
    key: LessSafeKey,
}

impl Secret {
    /// The key of these bytes.
    pub(super) fn new(bytes: [u8; LENGTH]) -> Result<Secret, String> {
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| "it is no key".to_owned())?;
        let key = LessSafeKey::new(key);
        Ok(Secret { bytes, key })
    }

    /// A new one.
    pub(super) fn random() -> Result<Secret, String> {
        let mut bytes = [0; LENGTH];
        fill(&mut bytes)?;
        Secret::new(bytes)
    }

    /// Its bytes, for whoever keeps it.
    pub(super) fn bytes(&self) -> &[u8; LENGTH] {
        &self.bytes
    }

    /// Encrypts what belongs to `name`. Nonces are random: with fewer than 2^32 values for each key, two of
    /// them are equal less often than once in 2^32 keys.
    pub(super) fn seal(&self, name: &[u8], plain: &[u8]) -> Result<Vec<u8>, String> {
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce)?;
        let mut text = plain.to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name),
                &mut text,
            )
            .map_err(|_| "it cannot be encrypted".to_owned())?;
        Ok([nonce.as_slice(), text.as_slice()].concat())
    }

    /// What was encrypted for `name`; none if it was not, or not with this key.
    pub(super) fn open(&self, name: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.key.open_in_place(nonce, Aad::from(name), &mut text);
        let length = plain.ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), String> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| "the machine has no randomness yet".to_owned())
}
