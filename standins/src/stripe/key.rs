//! Whether a request carries the secret key, in either of the two ways that Stripe takes it.

/// Whether the `Authorization` header is `Bearer KEY`, or `Basic` with the key as user name and no password.
pub fn opens(authorization: &str, key: &str) -> bool {
    match authorization.split_once(' ') {
        Some((scheme, given)) if scheme.eq_ignore_ascii_case("bearer") => given.trim() == key,
        Some((scheme, given)) if scheme.eq_ignore_ascii_case("basic") => {
            given.trim() == base64(format!("{key}:").as_bytes())
        }
        _ => false,
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at > chunk.len() { '=' } else { letter.into() });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_opens_as_bearer_and_as_user_name() {
        assert!(opens("Bearer sk_test_1", "sk_test_1"));
        // printf 'sk_test_1:' | base64
        assert!(opens("Basic c2tfdGVzdF8xOg==", "sk_test_1"));
        assert_eq!(base64(b"sk_test_12:"), "c2tfdGVzdF8xMjo=");
        assert_eq!(base64(b"sk_test_123:"), "c2tfdGVzdF8xMjM6");
    }

    #[test]
    fn nothing_else_opens() {
        for wrong in
            ["", "sk_test_1", "Bearer", "Bearer sk_test_2", "Basic sk_test_1", "Digest sk_test_1"]
        {
            assert!(!opens(wrong, "sk_test_1"), "{wrong}");
        }
    }
}
