//! The certificate chain and the key that sign.

use std::io::Cursor;
use std::sync::Arc;

use c2pa::crypto::cose::CertificateTrustPolicy;
use c2pa::crypto::time_stamp::verify_time_stamp;
use c2pa::status_tracker::StatusTracker;
use c2pa::{BoxedSigner, Builder, Context, SigningAlg};
use chrono::{DateTime, Utc};
use x509_parser::pem::Pem;

use crate::context::offline;
use crate::error::{KeyError, SignError};
use crate::report::{self, State, Verifier};
use crate::{Format, Parent, PngSeal, Statement, container, xmp};

/// Room for the answer of a timestamp authority, in bytes: a token with the chain of its certificates.
const TIMESTAMP_BYTES: usize = 10_000;
/// The algorithms by the DER of their identifiers (RFC 5480, RFC 8410, RFC 8017).
const ALGORITHMS: [(&[u8], SigningAlg); 5] = [
    (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], SigningAlg::Es256),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22], SigningAlg::Es384),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23], SigningAlg::Es512),
    (&[0x06, 0x03, 0x2b, 0x65, 0x70], SigningAlg::Ed25519),
    (&[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01], SigningAlg::Ps256),
];
/// Where the identifier stands at the latest in a PKCS #8 key, in bytes.
const ALGORITHM_WITHIN: usize = 40;

/// Confirms when something was signed (RFC 3161), so that a signature outlives its certificate.
pub trait TimestampAuthority: Send + Sync {
    /// Sends a request, a DER `TimeStampReq`, and returns the answer, a DER `TimeStampResp`. May block.
    ///
    /// # Errors
    /// If the authority cannot be reached, or refuses.
    fn stamp(&self, request: Vec<u8>) -> Result<Vec<u8>, TimestampError>;
}

/// Why there is no timestamp.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TimestampError(pub String);

/// Signs pictures. Cheap to clone.
#[derive(Clone)]
pub struct Signer {
    key: Arc<Key>,
    authority: Option<Arc<dyn TimestampAuthority>>,
}

struct Key {
    signer: BoxedSigner,
    chain: String,
    name: String,
    expires: DateTime<Utc>,
    context: Arc<Context>,
}

impl Signer {
    /// Reads a certificate chain, the leaf first, and the leaf's key, both PEM. Signs a tiny picture and reads it back, so a
    /// key that does not fit is found at the start; `authority` is not asked for that.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn new(
        chain: &str,
        key: &str,
        authority: Option<Arc<dyn TimestampAuthority>>,
        now: DateTime<Utc>,
    ) -> Result<Self, KeyError> {
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
        let name = report::name_of(&certificate);
        let key = Arc::new(Key { signer, chain: chain.to_owned(), name, expires, context });
        let signer = Self { key, authority: None };
        signer.try_out(now)?;
        Ok(Self { authority, ..signer })
    }

    /// Returns the name in the leaf certificate.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// Returns when the leaf certificate expires.
    pub fn expires(&self) -> DateTime<Utc> {
        self.key.expires
    }

    /// Returns the certificate chain in PEM.
    pub(crate) fn chain(&self) -> &str {
        &self.key.chain
    }

    /// Returns whether a timestamp authority confirms signatures.
    pub fn has_timestamps(&self) -> bool {
        self.authority.is_some()
    }

    /// Signs a whole file and returns it with its marks. The compressed pixels do not change. Blocks, the longer the larger
    /// the file, and for a timestamp.
    ///
    /// # Errors
    /// See [`SignError`].
    pub fn sign(
        &self,
        file: &[u8],
        statement: &Statement,
        parent: &Parent<'_>,
        now: DateTime<Utc>,
    ) -> Result<Vec<u8>, SignError> {
        let format = Format::of(file).ok_or(SignError::Damaged("picture"))?;
        let packet = xmp::packet(statement.source());
        if format == Format::Png {
            return PngSeal::new(self, statement, parent, now)?.mark(file);
        }
        let marked = container::with_xmp(file, format, &packet)?;
        let mut builder = self.builder(format, statement, parent, now)?;
        let mut signed = Cursor::new(Vec::with_capacity(marked.len() + 64 * 1024));
        let stamping = self.stamping();
        builder.sign(&stamping, format.media_type(), &mut Cursor::new(&marked), &mut signed)?;
        Ok(signed.into_inner())
    }

    /// Returns a builder of a manifest.
    pub(crate) fn builder(
        &self,
        format: Format,
        statement: &Statement,
        parent: &Parent<'_>,
        now: DateTime<Utc>,
    ) -> Result<Builder, SignError> {
        if now > self.key.expires {
            return Err(SignError::Expired(self.key.expires.format("%Y-%m-%d").to_string()));
        }
        let definition = statement.definition(format, now).to_string();
        let mut builder = crate::guard::guard(|| {
            let mut builder =
                Builder::from_shared_context(&self.key.context).with_definition(definition)?;
            parent.add_to(&mut builder)?;
            Ok(builder)
        })?;
        builder.set_intent(c2pa::BuilderIntent::Edit);
        Ok(builder)
    }

    pub(crate) fn stamping(&self) -> Stamping<'_> {
        Stamping(self)
    }

    fn try_out(&self, now: DateTime<Utc>) -> Result<(), KeyError> {
        let trial = |error: &dyn std::fmt::Display| KeyError::Trial(error.to_string());
        let statement = Statement::of_rendering(Format::Png, true, None);
        let parent = Parent { picture: TINY_PNG, provenance: None };
        let signed =
            self.sign(TINY_PNG, &statement, &parent, now).map_err(|error| trial(&error))?;
        let report = Verifier::new(Some(self), None).map_err(|error| trial(&error))?.read(&signed);
        if report.state == State::Invalid || report.claim.is_none() {
            let first = report.problems.first();
            return Err(trial(&first.map_or("it cannot be read back", |it| it.code.as_str())));
        }
        Ok(())
    }
}

/// A key that also asks for timestamps.
pub(crate) struct Stamping<'a>(&'a Signer);

impl c2pa::Signer for Stamping<'_> {
    fn sign(&self, data: &[u8]) -> c2pa::Result<Vec<u8>> {
        self.0.key.signer.sign(data)
    }

    fn alg(&self) -> SigningAlg {
        self.0.key.signer.alg()
    }

    fn certs(&self) -> c2pa::Result<Vec<Vec<u8>>> {
        self.0.key.signer.certs()
    }

    fn reserve_size(&self) -> usize {
        let stamp = if self.0.authority.is_some() { TIMESTAMP_BYTES } else { 0 };
        self.0.key.signer.reserve_size() + stamp
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
            // The signature is valid without, as long as the certificate is.
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

/// A black pixel.
const TINY_PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x7e, 0x9b,
    0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x01, 0x48, 0xaf, 0xa4, 0x71, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae,
    0x42, 0x60, 0x82,
];
