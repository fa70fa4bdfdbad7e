//! Recognizes people who deleted their account, by a keyed hash of their identity.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Hashes identities. The key is derived from the URL secret: after that changes, users who deleted their account
/// earlier are no longer recognized.
pub struct DeletedUsers {
    key: Hmac<Sha256>,
}

impl DeletedUsers {
    /// Creates a hasher keyed with `secret`.
    pub fn new(secret: &[u8]) -> Self {
        let mut key = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        // Separates these hashes from other uses of the same secret.
        key.update(b"former:");
        Self { key }
    }

    /// Returns the hash of the person whom `issuer` calls `subject`.
    pub fn hash(&self, issuer: &str, subject: &str) -> Vec<u8> {
        let mut mac = self.key.clone();
        // Without the length, two pairs with the same concatenation would collide.
        mac.update(&(issuer.len() as u64).to_be_bytes());
        mac.update(issuer.as_bytes());
        mac.update(subject.as_bytes());
        mac.finalize().into_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_issuer_subject_and_secret() {
        let users = DeletedUsers::new(b"a secret of sixteen");
        let ada = users.hash("https://issuer.test", "ada");
        assert_eq!(ada, users.hash("https://issuer.test", "ada"));
        assert_eq!(ada.len(), 32);
        for other in [
            users.hash("https://issuer.test", "adb"),
            users.hash("https://issuer.tes", "tada"),
            DeletedUsers::new(b"another secret of ours").hash("https://issuer.test", "ada"),
        ] {
            assert_ne!(ada, other);
        }
    }
}
