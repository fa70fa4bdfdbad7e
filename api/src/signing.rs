//! Addresses of pictures that work without a token, for a while: so that `<img>` can show them.

use chrono::{DateTime, Duration, DurationRound, Utc};
use hmac::{Hmac, Mac};
use retouch_core::{Clock, ImageId, ResultId};
use sha2::Sha256;

/// What an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// An uploaded picture.
    Image(ImageId),
    /// Its small copy.
    ImageThumbnail(ImageId),
    /// A result.
    Result(ResultId),
    /// Its small copy.
    ResultThumbnail(ResultId),
}

impl File {
    /// The file that a path names; `None` for any other path.
    pub fn parse(kind: &str, id: &str) -> Option<Self> {
        Some(match kind {
            "images" => Self::Image(id.parse().ok()?),
            "image-thumbnails" => Self::ImageThumbnail(id.parse().ok()?),
            "results" => Self::Result(id.parse().ok()?),
            "result-thumbnails" => Self::ResultThumbnail(id.parse().ok()?),
            _ => return None,
        })
    }

    fn path(self) -> String {
        match self {
            Self::Image(id) => format!("images/{id}"),
            Self::ImageThumbnail(id) => format!("image-thumbnails/{id}"),
            Self::Result(id) => format!("results/{id}"),
            Self::ResultThumbnail(id) => format!("result-thumbnails/{id}"),
        }
    }
}

/// Signs addresses and checks them.
pub struct UrlSigner {
    key: Hmac<Sha256>,
    clock: Clock,
}

impl UrlSigner {
    /// A signer for `secret`.
    pub fn new(secret: &[u8], clock: Clock) -> Self {
        let mut key = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        // Other uses of the same secret must not yield signatures that are valid here.
        key.update(b"file:");
        Self { key, clock }
    }

    /// An address on this origin that works for one to two hours. It stays the same within the hour, so
    /// that lists and caches stay valid. Make one only after the owner has been checked.
    pub fn sign(&self, file: File) -> String {
        let earliest = self.clock.now() + Duration::minutes(60);
        let expires =
            earliest.duration_round_up(Duration::hours(1)).unwrap_or(earliest).timestamp();
        let path = file.path();
        let signature = hex(&self.mac(&path, expires).finalize().into_bytes());
        format!("/api/files/{path}?expires={expires}&signature={signature}")
    }

    /// Until when an address with this signature works; `None` when it does not (any more).
    pub fn check(&self, file: File, expires: i64, signature: &str) -> Option<DateTime<Utc>> {
        let signature = unhex(signature)?;
        self.mac(&file.path(), expires).verify_slice(&signature).ok()?;
        let expires = DateTime::from_timestamp(expires, 0)?;
        (self.clock.now() < expires).then_some(expires)
    }

    fn mac(&self, path: &str, expires: i64) -> Hmac<Sha256> {
        let mut mac = self.key.clone();
        mac.update(path.as_bytes());
        mac.update(&expires.to_be_bytes());
        mac
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> (UrlSigner, Clock) {
        let clock = Clock::fixed("2026-03-01T10:20:00Z".parse().expect("a time"));
        (UrlSigner::new(b"0123456789abcdef", clock.clone()), clock)
    }

    fn parts(address: &str) -> (i64, String) {
        let (_, query) = address.split_once("?expires=").expect("expires");
        let (expires, signature) = query.split_once("&signature=").expect("signature");
        (expires.parse().expect("a number"), signature.to_owned())
    }

    #[test]
    fn an_address_is_the_same_within_the_hour_and_works_for_an_hour_at_least() {
        let (signer, clock) = signer();
        let file = File::Image(ImageId::new());
        let address = signer.sign(file);
        clock.advance(Duration::minutes(39));
        assert_eq!(signer.sign(file), address);
        clock.advance(Duration::minutes(2));
        assert_ne!(signer.sign(file), address);
        clock.advance(Duration::minutes(58));
        let (expires, signature) = parts(&address);
        assert!(signer.check(file, expires, &signature).is_some());
        clock.advance(Duration::minutes(2));
        assert!(signer.check(file, expires, &signature).is_none(), "expired");
    }

    #[test]
    fn a_signature_fits_one_file_and_one_time() {
        let (signer, _) = signer();
        let id = ImageId::new();
        let (expires, signature) = parts(&signer.sign(File::Image(id)));
        assert!(signer.check(File::ImageThumbnail(id), expires, &signature).is_none());
        assert!(signer.check(File::Image(ImageId::new()), expires, &signature).is_none());
        assert!(signer.check(File::Image(id), expires + 3600, &signature).is_none());
        for nonsense in ["", "zz", &signature[1..], "é"] {
            assert!(signer.check(File::Image(id), expires, nonsense).is_none());
        }
    }
}
