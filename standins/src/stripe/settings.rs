//! The settings of the stand-in.

use std::path::PathBuf;

#[derive(Clone)]
pub struct Settings {
    /// `sk_test_…`
    pub secret_key: String,
    /// `whsec_…`
    pub webhook_secret: String,
    /// The address at which browsers reach the stand-in, without a trailing slash.
    pub public_url: String,
    /// The address to send events to; without one, they are only stored.
    pub webhook: Option<String>,
    /// The folder to store everything in; without one, everything is in memory.
    pub data: Option<PathBuf>,
}
