//! Signatures of deliveries, as the Standard Webhooks specification defines them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, Mac};
use retouch_core::webhooks::SigningSecret;
use sha2::Sha256;

/// The prefix of secrets as users see them.
pub const SECRET_PREFIX: &str = "whsec_";

/// Returns a secret as its owner sees it.
pub fn secret_text(secret: &[u8]) -> String {
    format!("{SECRET_PREFIX}{}", STANDARD.encode(secret))
}

/// Returns the header `webhook-signature`: one signature for each secret, separated by spaces.
pub fn sign(secrets: &[SigningSecret], id: &str, time: DateTime<Utc>, body: &[u8]) -> String {
    let signatures = secrets.iter().map(|SigningSecret(secret)| {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{}.", time.timestamp()).as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_specification() {
        // The example of the specification's reference libraries.
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let time = DateTime::from_timestamp(1_614_265_330, 0).unwrap();
        let body = br#"{"test": 2432232314}"#;
        let secrets = [SigningSecret(secret.clone()), SigningSecret(vec![1; 24])];
        let signatures = sign(&secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", time, body);
        let (one, other) = signatures.split_once(' ').unwrap();
        assert_eq!(one, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(other.starts_with("v1,") && other != one);
        assert_eq!(secret_text(&secret), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    }
}
