//! The identity that a token proves.

use chrono::{DateTime, Utc};

/// A person at the identity provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The identity provider.
    pub issuer: String,
    /// The provider's id of the person, which never changes.
    pub subject: String,
    /// The email address, if the token contains it.
    pub email: Option<String>,
    /// When the token was issued, if it says so.
    pub token_issued_at: Option<DateTime<Utc>>,
}
