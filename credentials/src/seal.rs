//! Marks a PNG while it streams by. Only its first bytes are held in memory.
//!
//! The manifest is near the start of the file but contains a hash of everything else, so it is known last. Its size is
//! known in advance: [`PngSeal::finish`] returns exactly the bytes that belong at [`INSERT_AT`], and the caller that stores
//! the file holds back its head until then.

use std::sync::Arc;

use c2pa::assertions::DataHash;
use c2pa::{Builder, HashRange, Signer as _};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::error::SignError;
use crate::key::Key;
use crate::png::INSERT_AT;
use crate::{Format, Parent, SourceType, Statement, container, png, xmp};

/// The signature and the start of the header, without the size of the picture.
const START: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A PNG that is being marked.
pub struct PngSeal {
    manifest: Option<Manifest>,
    source: SourceType,
    copies: CopyMark,
    /// The chunk with the mark in XMP.
    xmp: Vec<u8>,
    /// The file up to [`INSERT_AT`].
    head: Vec<u8>,
}

/// The mark for smaller copies of a picture, such as its thumbnail: XMP only.
#[derive(Clone)]
pub struct CopyMark(String);

impl CopyMark {
    /// Returns a PNG, JPEG, or WebP with the mark.
    ///
    /// # Errors
    /// If the file has another format or is damaged.
    pub fn put_on(&self, file: &[u8]) -> Result<Vec<u8>, SignError> {
        let format = Format::of(file).ok_or(SignError::Damaged("picture"))?;
        container::with_xmp(file, format, &self.0)
    }
}

/// A manifest that still lacks the hash of the file.
struct Manifest {
    key: Arc<Key>,
    builder: Builder,
    chunk_bytes: usize,
    hash: Sha256,
}

impl PngSeal {
    /// Prepares the manifest of a PNG that is yet to come.
    pub(crate) fn new(
        key: Arc<Key>,
        statement: &Statement,
        parent: &Parent<'_>,
        now: DateTime<Utc>,
    ) -> Result<Self, SignError> {
        let mut builder = key.builder(Format::Png, statement, parent, now)?;
        let reserved = key.stamping().reserve_size();
        let chunk = builder.data_hashed_placeholder(reserved, Format::Png.media_type())?;
        let manifest = Manifest { key, builder, chunk_bytes: chunk.len(), hash: Sha256::new() };
        Ok(Self { manifest: Some(manifest), ..Self::unsigned(statement.source()) })
    }

    /// Prepares only the mark in XMP.
    pub fn unsigned(source: &SourceType) -> Self {
        let packet = xmp::packet(source);
        let xmp = png::xmp_chunk(&packet);
        let copies = CopyMark(packet);
        let source = source.clone();
        Self { manifest: None, source, copies, xmp, head: Vec::with_capacity(INSERT_AT) }
    }

    pub fn source(&self) -> &SourceType {
        &self.source
    }

    /// Returns the mark for smaller copies.
    pub fn copies(&self) -> CopyMark {
        self.copies.clone()
    }

    /// Returns the size of the marks in bytes.
    pub fn size_bytes(&self) -> usize {
        self.manifest.as_ref().map_or(0, |manifest| manifest.chunk_bytes) + self.xmp.len()
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.head.len() < INSERT_AT {
            let (head, rest) = bytes.split_at(bytes.len().min(INSERT_AT - self.head.len()));
            self.head.extend_from_slice(head);
            bytes = rest;
            if self.head.len() < INSERT_AT {
                return;
            }
            if let Some(Manifest { hash, .. }) = &mut self.manifest {
                hash.update(&self.head);
                // The hash excludes the manifest itself, which is between the two.
                hash.update(&self.xmp);
            }
        }
        if let Some(Manifest { hash, .. }) = &mut self.manifest {
            hash.update(bytes);
        }
    }

    /// Signs, and returns the bytes to insert into the file at [`INSERT_AT`]. Blocks for a timestamp.
    pub fn finish(self) -> Result<Vec<u8>, SignError> {
        if !self.head.starts_with(START) || self.head.len() < INSERT_AT {
            return Err(SignError::Damaged("PNG"));
        }
        let mut marks = self.manifest.map_or(Ok(Vec::new()), Manifest::sign)?;
        marks.extend_from_slice(&self.xmp);
        Ok(marks)
    }

    /// Marks a whole file in memory. Blocks for a timestamp.
    pub fn mark(mut self, file: &[u8]) -> Result<Vec<u8>, SignError> {
        self.push(file);
        let marks = self.finish()?;
        let (head, rest) = file.split_at(INSERT_AT);
        Ok([head, &marks, rest].concat())
    }
}

impl Manifest {
    fn sign(mut self) -> Result<Vec<u8>, SignError> {
        // The name by which the library finds its placeholder.
        let mut hash = DataHash::new("jumbf manifest", "sha256");
        hash.add_exclusion(HashRange::new(INSERT_AT as u64, self.chunk_bytes as u64));
        hash.set_hash(self.hash.finalize().to_vec());
        let stamping = self.key.stamping();
        let media_type = Format::Png.media_type();
        let chunk = self.builder.sign_data_hashed_embeddable(&stamping, &hash, media_type)?;
        if chunk.len() != self.chunk_bytes {
            return Err(SignError::Library("the manifest outgrew its room".to_owned()));
        }
        Ok(chunk)
    }
}
