//! Encryption of what is stored, with a key that only the user has.
//!
//! AES-256-GCM with a random nonce, under a key of its own for each thing that is sealed: however many
//! there are, no two share key and nonce. Whoever has the key can read; nothing here manages keys.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// A key. Its `Debug` says nothing.
#[derive(Clone)]
pub struct Seal {
    key: [u8; 32],
}

/// Why there is no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SealError {
    /// The variable is not set.
    #[error("the variable {0}, which must hold the archive's key, is not set")]
    Unset(String),
    /// The variable holds something else.
    #[error(
        "the variable {0} must hold 64 hexadecimal digits, such as `openssl rand -hex 32` prints"
    )]
    Malformed(String),
}

/// A seal that does not fit: another key, or other bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CipherError;

impl Seal {
    /// Returns the key in an environment variable.
    pub fn from_env(variable: &str) -> Result<Seal, SealError> {
        let text = std::env::var(variable).unwrap_or_default();
        if text.trim().is_empty() {
            return Err(SealError::Unset(variable.to_owned()));
        }
        let key = blake3::Hash::from_hex(text.trim());
        let key = key.map_err(|_| SealError::Malformed(variable.to_owned()))?;
        Ok(Seal::new(*key.as_bytes()))
    }

    /// Returns a key that a program has from elsewhere.
    pub fn new(key: [u8; 32]) -> Seal {
        Seal { key }
    }

    /// Returns the sealed form of `plain`, bound to what it is (`name`) and to what stands beside it in the
    /// clear (`beside`).
    pub(crate) fn seal(
        &self,
        name: &[u8],
        beside: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, CipherError> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| CipherError)?;
        let mut sealed = plain.to_vec();
        let key = self.cipher_for(name)?;
        let nonce_of_it = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce_of_it, Aad::from(beside), &mut sealed)
            .map_err(|_| CipherError)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Returns what [`Self::seal`] was given.
    pub(crate) fn open(
        &self,
        name: &[u8],
        beside: &[u8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, CipherError> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(CipherError)?;
        let mut rest = rest.to_vec();
        let key = self.cipher_for(name)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = key.open_in_place(nonce, Aad::from(beside), &mut rest);
        plain.map(|plain| plain.to_vec()).map_err(|_| CipherError)
    }

    /// Returns a name that says nothing to whoever does not have the key, and is always the same.
    pub(crate) fn blind_word(&self, word: &str) -> String {
        let hash = blake3::keyed_hash(&self.derive_key("compact blind word 1"), word.as_bytes());
        hash.to_hex().chars().take(32).collect()
    }

    fn cipher_for(&self, name: &[u8]) -> Result<LessSafeKey, CipherError> {
        let key = blake3::keyed_hash(&self.derive_key("compact sealed bytes 1"), name);
        let key = UnboundKey::new(&AES_256_GCM, key.as_bytes()).map_err(|_| CipherError)?;
        Ok(LessSafeKey::new(key))
    }

    fn derive_key(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.key)
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_name_and_surroundings_open_a_seal() {
        let seal = Seal::new([7; 32]);
        let sealed = seal.seal(b"name", b"beside", b"secret").unwrap();
        assert_eq!(seal.open(b"name", b"beside", &sealed).unwrap(), b"secret");
        assert!(!sealed.windows(6).any(|w| w == b"secret"));
        let other = Seal::new([8; 32]);
        assert_eq!(other.open(b"name", b"beside", &sealed), Err(CipherError));
        assert_eq!(seal.open(b"names", b"beside", &sealed), Err(CipherError));
        assert_eq!(seal.open(b"name", b"besides", &sealed), Err(CipherError));
        assert_eq!(seal.open(b"name", b"beside", b"short"), Err(CipherError));
        assert_ne!(seal.blind_word("word"), other.blind_word("word"));
        assert_eq!(format!("{seal:?}"), "Seal(…)");
    }

    #[test]
    fn a_variable_without_a_key_is_named_and_never_quoted() {
        let unset = Seal::from_env("COMPACT_TEST_NO_SUCH_KEY").unwrap_err();
        assert!(unset.to_string().contains("COMPACT_TEST_NO_SUCH_KEY"));
        // Something that every process has, and that is no key.
        let malformed = Seal::from_env("PATH").unwrap_err();
        assert_eq!(malformed, SealError::Malformed("PATH".to_owned()));
    }
}
