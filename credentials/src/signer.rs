//! Signs pictures.

use std::io::Cursor;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::error::{KeyError, SignError};
use crate::key::{Key, TimestampAuthority};
use crate::report::{State, Verifier};
use crate::{Format, Parent, PngSeal, Statement, container, xmp};

/// Signs pictures. Cheap to clone.
#[derive(Clone)]
pub struct Signer(Arc<Key>);

impl Signer {
    /// Reads a certificate chain, the leaf first, and the leaf's key, both PEM. Signs a tiny picture and reads it back,
    /// to find a mismatched key at the start; this does not contact `authority`.
    pub fn new(
        chain: &str,
        key: &str,
        authority: Option<Arc<dyn TimestampAuthority>>,
        now: DateTime<Utc>,
    ) -> Result<Self, KeyError> {
        Self(Arc::new(Key::read(chain, key, now)?)).try_out(now)?;
        Ok(Self(Arc::new(Key::read(chain, key, now)?.with_authority(authority))))
    }

    /// Returns the name in the leaf certificate.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns when the leaf certificate expires.
    pub fn expires(&self) -> DateTime<Utc> {
        self.0.expires
    }

    /// Returns the certificate chain in PEM.
    pub fn chain(&self) -> &str {
        &self.0.chain
    }

    /// Returns whether a timestamp authority confirms signatures.
    pub fn has_timestamps(&self) -> bool {
        self.0.has_timestamps()
    }

    /// Returns the key, for tests that sign what this crate does not.
    #[cfg(test)]
    pub(crate) fn key(&self) -> &Key {
        &self.0
    }

    /// Prepares the marks of a PNG that is yet to come.
    pub fn seal(
        &self,
        statement: &Statement,
        parent: &Parent<'_>,
        now: DateTime<Utc>,
    ) -> Result<PngSeal, SignError> {
        PngSeal::new(self.0.clone(), statement, parent, now)
    }

    /// Signs a whole file and returns it with its marks. The compressed pixels do not change. Blocks for a time
    /// that grows with the file, and for a timestamp.
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
            return self.seal(statement, parent, now)?.mark(file);
        }
        let marked = container::with_xmp(file, format, &packet)?;
        let mut builder = self.0.builder(format, statement, parent, now)?;
        let mut signed = Cursor::new(Vec::with_capacity(marked.len() + 64 * 1024));
        let stamping = self.0.stamping();
        builder.sign(&stamping, format.media_type(), &mut Cursor::new(&marked), &mut signed)?;
        Ok(signed.into_inner())
    }

    fn try_out(&self, now: DateTime<Utc>) -> Result<(), KeyError> {
        let trial = |error: &dyn std::fmt::Display| KeyError::Trial(error.to_string());
        let statement = Statement::of_rendering(Format::Png, true, None);
        let parent = Parent { picture: TINY_PNG, provenance: None };
        let signed =
            self.sign(TINY_PNG, &statement, &parent, now).map_err(|error| trial(&error))?;
        let report =
            Verifier::new(Some(self.chain()), None).map_err(|error| trial(&error))?.read(&signed);
        if report.state == State::Invalid || report.claim.is_none() {
            let first = report.problems.first();
            return Err(trial(&first.map_or("it cannot be read back", |it| it.code.as_str())));
        }
        Ok(())
    }
}

/// A black pixel.
const TINY_PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x7e, 0x9b,
    0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x01, 0x48, 0xaf, 0xa4, 0x71, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae,
    0x42, 0x60, 0x82,
];
