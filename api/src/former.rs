//! How somebody who deleted their account is remembered: by a keyed hash that leads nowhere without the key.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Makes the hashes. Their key comes from the secret that signs addresses: when that changes, whoever left
/// before is not recognised any more.
pub struct FormerUsers {
    key: Hmac<Sha256>,
}

impl FormerUsers {
    /// Hashes with `secret`.
    pub fn new(secret: &[u8]) -> Self {
        let mut key = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        // Other uses of the same secret must not yield the same hashes.
        key.update(b"former:");
        Self { key }
    }

    /// The hash of who `issuer` calls `subject`.
    pub fn hash(&self, issuer: &str, subject: &str) -> Vec<u8> {
        let mut mac = self.key.clone();
        // The length keeps two pairs apart that read the same when put together.
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
    fn a_hash_is_of_one_person_under_one_secret() {
        let former = FormerUsers::new(b"a secret of sixteen");
        let ada = former.hash("https://issuer.test", "ada");
        assert_eq!(ada, former.hash("https://issuer.test", "ada"));
        assert_eq!(ada.len(), 32);
        for other in [
            former.hash("https://issuer.test", "adb"),
            former.hash("https://issuer.tes", "tada"),
            FormerUsers::new(b"another secret of ours").hash("https://issuer.test", "ada"),
        ] {
            assert_ne!(ada, other);
        }
    }
}
