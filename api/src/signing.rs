//! Signed URLs of pictures: they work without a token for a limited time, so that `<img>` can load them.

use chrono::{DateTime, Duration, DurationRound, Utc};
use hmac::{Hmac, Mac};
use retouch_core::{Clock, ImageId, ResultId};
use sha2::Sha256;

/// The longest time that a URL works.
pub const LONGEST: Duration = Duration::hours(2);

/// The file that a URL refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    Image(ImageId),
    ImageThumbnail(ImageId),
    ImagePreview(ImageId),
    Result(ResultId),
    ResultThumbnail(ResultId),
    ResultPreview(ResultId),
}

impl File {
    /// Parses the last two segments of a file's path; `None` for any other path.
    pub fn parse(kind: &str, id: &str) -> Option<Self> {
        Some(match kind {
            "images" => Self::Image(id.parse().ok()?),
            "image-thumbnails" => Self::ImageThumbnail(id.parse().ok()?),
            "image-previews" => Self::ImagePreview(id.parse().ok()?),
            "results" => Self::Result(id.parse().ok()?),
            "result-thumbnails" => Self::ResultThumbnail(id.parse().ok()?),
            "result-previews" => Self::ResultPreview(id.parse().ok()?),
            _ => return None,
        })
    }

    fn path(self) -> String {
        match self {
            Self::Image(id) => format!("images/{id}"),
            Self::ImageThumbnail(id) => format!("image-thumbnails/{id}"),
            Self::ImagePreview(id) => format!("image-previews/{id}"),
            Self::Result(id) => format!("results/{id}"),
            Self::ResultThumbnail(id) => format!("result-thumbnails/{id}"),
            Self::ResultPreview(id) => format!("result-previews/{id}"),
        }
    }
}

/// Signs URLs and verifies signatures.
pub struct UrlSigner {
    key: Hmac<Sha256>,
    clock: Clock,
}

impl UrlSigner {
    /// Creates a signer keyed with `secret`.
    pub fn new(secret: &[u8], clock: Clock) -> Self {
        let mut key = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        // Separates these signatures from other uses of the same secret.
        key.update(b"file:");
        Self { key, clock }
    }

    /// Returns a URL on this origin that works for one to two hours. It stays the same within the hour, so
    /// that lists and caches stay valid. The caller must have checked who owns the file.
    pub fn sign(&self, file: File) -> String {
        let earliest = self.clock.now() + LONGEST / 2;
        let expires =
            earliest.duration_round_up(Duration::hours(1)).unwrap_or(earliest).timestamp();
        let path = file.path();
        let signature = hex::encode(self.mac(&path, expires).finalize().into_bytes());
        format!("/api/files/{path}?expires={expires}&signature={signature}")
    }

    /// Returns when the URL with this signature expires; `None` if it has expired or the signature is wrong.
    pub fn verify(&self, file: File, expires: i64, signature: &str) -> Option<DateTime<Utc>> {
        let signature = hex::decode(signature).ok()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> (UrlSigner, Clock) {
        let clock = Clock::fixed("2026-03-01T10:20:00Z".parse().expect("a time"));
        (UrlSigner::new(b"0123456789abcdef", clock.clone()), clock)
    }

    fn parts(url: &str) -> (i64, String) {
        let (_, query) = url.split_once("?expires=").expect("expires");
        let (expires, signature) = query.split_once("&signature=").expect("signature");
        (expires.parse().expect("a number"), signature.to_owned())
    }

    #[test]
    fn a_url_stays_the_same_within_the_hour_and_works_for_at_least_an_hour() {
        let (signer, clock) = signer();
        let file = File::Image(ImageId::new());
        let url = signer.sign(file);
        clock.advance(Duration::minutes(39));
        assert_eq!(signer.sign(file), url);
        clock.advance(Duration::minutes(2));
        assert_ne!(signer.sign(file), url);
        clock.advance(Duration::minutes(58));
        let (expires, signature) = parts(&url);
        assert!(signer.verify(file, expires, &signature).is_some());
        clock.advance(Duration::minutes(2));
        assert!(signer.verify(file, expires, &signature).is_none(), "expired");
    }

    #[test]
    fn a_signature_is_valid_for_one_file_and_one_expiry() {
        let (signer, _) = signer();
        let id = ImageId::new();
        let (expires, signature) = parts(&signer.sign(File::Image(id)));
        assert!(signer.verify(File::ImageThumbnail(id), expires, &signature).is_none());
        assert!(signer.verify(File::Image(ImageId::new()), expires, &signature).is_none());
        assert!(signer.verify(File::Image(id), expires + 3600, &signature).is_none());
        for nonsense in ["", "zz", &signature[1..], "é"] {
            assert!(signer.verify(File::Image(id), expires, nonsense).is_none());
        }
    }
}
