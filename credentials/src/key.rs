//! The certificate chain and the signing key.

use std::sync::Arc;

use c2pa::crypto::cose::CertificateTrustPolicy;
use c2pa::crypto::time_stamp::verify_time_stamp;
use c2pa::status_tracker::StatusTracker;
use c2pa::{BoxedSigner, Builder, Context, SigningAlg};
use chrono::{DateTime, Utc};
use x509_parser::pem::Pem;

use crate::context::offline;
use crate::error::{KeyError, SignError};
use crate::guard::guard;
use crate::report::name_of;
use crate::{Format, Parent, Statement};

/// Space for the response of a timestamp authority, in bytes: a token with its certificate chain.
const TIMESTAMP_BYTES: usize = 10_000;
/// The algorithms by the DER of their identifiers (RFC 5480, RFC 8410, RFC 8017).
const ALGORITHMS: [(&[u8], SigningAlg); 5] = [
    (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], SigningAlg::Es256),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22], SigningAlg::Es384),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23], SigningAlg::Es512),
    (&[0x06, 0x03, 0x2b, 0x65, 0x70], SigningAlg::Ed25519),
    (&[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01], SigningAlg::Ps256),
];
/// The last possible position of the identifier in a PKCS #8 key, in bytes.
const ALGORITHM_WITHIN: usize = 40;

/// Confirms when something was signed (RFC 3161), so that a signature outlives its certificate.
pub trait TimestampAuthority: Send + Sync {
    /// Sends a request, a DER `TimeStampReq`, and returns the answer, a DER `TimeStampResp`. May block.
    ///
    /// # Errors
    /// If the authority cannot be reached, or refuses.
    fn stamp(&self, request: Vec<u8>) -> Result<Vec<u8>, TimestampError>;
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TimestampError(pub String);

/// A key with its certificates and, optionally, a timestamp authority.
pub(crate) struct Key {
    signer: BoxedSigner,
    authority: Option<Arc<dyn TimestampAuthority>>,
    pub chain: String,
    pub name: String,
    pub expires: DateTime<Utc>,
    context: Arc<Context>,
}

impl Key {
    /// Reads a certificate chain, the leaf first, and the leaf's key, both PEM.
    pub fn read(chain: &str, key: &str, now: DateTime<Utc>) -> Result<Self, KeyError> {
        let leaf = Pem::iter_from_buffer(chain.as_bytes()).next();
        let leaf = leaf.and_then(Result::ok).filter(|pem| pem.label == "CERTIFICATE");
        let leaf = leaf.ok_or(KeyError::Chain)?;
        let certificate = leaf.parse_x509().map_err(|_| KeyError::Chain)?;
        let from = time(certificate.validity().not_before.timestamp());
        let expires = time(certificate.validity().not_after.timestamp());
        if now < from || now > expires {
            let day = |time: DateTime<Utc>| time.format("%Y-%m-%d").to_string();
            return Err(KeyError::Expired { from: day(from), until: day(expires) });
        }
        let algorithm = algorithm(key)?;
        let signer =
            c2pa::create_signer::from_keys(chain.as_bytes(), key.as_bytes(), algorithm, None)
                .map_err(|error| KeyError::Trial(error.to_string()))?;
        let context = offline().map_err(|error| KeyError::Trial(error.to_string()))?;
        let name = name_of(&certificate);
        let chain = chain.to_owned();
        Ok(Self { signer, authority: None, chain, name, expires, context })
    }

    /// Returns the key with an authority that confirms when it signed.
    pub fn with_authority(self, authority: Option<Arc<dyn TimestampAuthority>>) -> Self {
        Self { authority, ..self }
    }

    /// Returns whether an authority confirms when it signed.
    pub fn has_timestamps(&self) -> bool {
        self.authority.is_some()
    }

    pub fn builder(
        &self,
        format: Format,
        statement: &Statement,
        parent: &Parent<'_>,
        now: DateTime<Utc>,
    ) -> Result<Builder, SignError> {
        if now > self.expires {
            return Err(SignError::Expired(self.expires.format("%Y-%m-%d").to_string()));
        }
        let definition = statement.definition(format, now).to_string();
        let mut builder = guard(|| {
            let mut builder =
                Builder::from_shared_context(&self.context).with_definition(definition)?;
            parent.add_to(&mut builder)?;
            Ok(builder)
        })?;
        builder.set_intent(c2pa::BuilderIntent::Edit);
        Ok(builder)
    }

    /// Returns the key as the library uses it.
    pub fn stamping(&self) -> Stamping<'_> {
        Stamping(self)
    }
}

/// A key that also asks for timestamps.
pub(crate) struct Stamping<'a>(&'a Key);

impl c2pa::Signer for Stamping<'_> {
    fn sign(&self, data: &[u8]) -> c2pa::Result<Vec<u8>> {
        self.0.signer.sign(data)
    }

    fn alg(&self) -> SigningAlg {
        self.0.signer.alg()
    }

    fn certs(&self) -> c2pa::Result<Vec<Vec<u8>>> {
        self.0.signer.certs()
    }

    fn reserve_size(&self) -> usize {
        let stamp = if self.0.authority.is_some() { TIMESTAMP_BYTES } else { 0 };
        self.0.signer.reserve_size() + stamp
    }

    fn send_timestamp_request(&self, message: &[u8]) -> Option<c2pa::Result<Vec<u8>>> {
        let authority = self.0.authority.as_ref()?;
        let stamped = self
            .timestamp_request_body(message)
            .map_err(|error| TimestampError(error.to_string()))
            .and_then(|request| authority.stamp(request))
            .and_then(|answer| {
                let (any, mut log) =
                    (CertificateTrustPolicy::passthrough(), StatusTracker::default());
                verify_time_stamp(&answer, message, &any, &mut log, true)
                    .map_err(|error| TimestampError(format!("its answer is not valid: {error}")))?;
                Ok(answer)
            });
        match stamped {
            Ok(answer) if answer.len() <= TIMESTAMP_BYTES => Some(Ok(answer)),
            // Without a timestamp, the signature stays valid as long as the certificate.
            Ok(answer) => {
                tracing::warn!(
                    bytes = answer.len(),
                    "A timestamp is too large; signing without it"
                );
                None
            }
            Err(error) => {
                tracing::warn!(%error, "The timestamp authority failed; signing without a timestamp");
                None
            }
        }
    }
}

fn algorithm(key: &str) -> Result<SigningAlg, KeyError> {
    let pem = Pem::iter_from_buffer(key.as_bytes()).next().and_then(Result::ok);
    let pem = pem.filter(|pem| pem.label == "PRIVATE KEY").ok_or(KeyError::Key)?;
    let head = &pem.contents[..pem.contents.len().min(ALGORITHM_WITHIN)];
    let found =
        ALGORITHMS.iter().find(|(id, _)| head.windows(id.len()).any(|window| window == *id));
    found.map(|(_, algorithm)| *algorithm).ok_or(KeyError::Algorithm)
}

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}
