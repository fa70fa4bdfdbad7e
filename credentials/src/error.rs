//! Errors of keys and of signing.

/// Why a certificate chain or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The chain is not PEM, or holds no certificate.
    #[error("the certificate chain is not a list of PEM certificates")]
    Chain,
    /// The key is not an unencrypted PKCS #8 key in PEM.
    #[error(
        "the key is not an unencrypted PKCS #8 key in PEM; `openssl pkcs8 -topk8 -nodes` converts others"
    )]
    Key,
    /// The key's algorithm cannot sign Content Credentials.
    #[error("the key must be P-256, P-384, P-521, Ed25519, or RSA")]
    Algorithm,
    /// The leaf certificate is not valid now.
    #[error("the certificate is valid from {from} to {until}, not today")]
    Expired { from: String, until: String },
    /// A trial signature is not valid: the key does not belong to the certificate, or the certificate may not sign.
    #[error("a trial signature is not valid: {0}")]
    Trial(String),
}

#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The library refused, or the picture is damaged.
    #[error("signing: {0}")]
    Library(String),
    /// The file is not a complete picture of its format.
    #[error("the file to sign is not a complete {0}")]
    Damaged(&'static str),
    /// Signatures are required, and there is no usable key.
    #[error("signatures are required, but there is no usable key")]
    NoKey,
    /// The certificate has expired since the program started.
    #[error("the certificate of Content Credentials expired on {0}")]
    Expired(String),
}

impl From<c2pa::Error> for SignError {
    fn from(error: c2pa::Error) -> Self {
        Self::Library(error.to_string())
    }
}

/// Why the settings of Content Credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(
        "RETOUCH_CREDENTIALS_REQUIRED needs RETOUCH_CREDENTIALS=generated or all: nothing is signed while it is off"
    )]
    Contradiction,
    #[error(
        "RETOUCH_CREDENTIALS_CHAIN and RETOUCH_CREDENTIALS_KEY belong together: set both, or neither"
    )]
    Incomplete,
    #[error("RETOUCH_CREDENTIALS_TRUST: {0}")]
    Trust(String),
    #[error("RETOUCH_CREDENTIALS_TIMESTAMPS: {0}")]
    Timestamps(String),
}
