//! Random secrets.

use anyhow::Context;

/// Returns 32 random bytes from the system.
pub fn random_secret() -> anyhow::Result<[u8; 32]> {
    let mut random = [0; 32];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut random).ok().context("reading random numbers from the system")?;
    Ok(random)
}
