//! The source picture as an ingredient, with its own manifest if it has one.

use std::io::Cursor;

use c2pa::{Builder, Error};
use serde_json::json;

use crate::context::offline;
use crate::guard::guard;
use crate::statement::PARENT;
use crate::{Format, SourceType, container, report, xmp};

/// Maximum size of an upload's kept manifest store, in bytes. The quota does not count it.
pub const MAX_MANIFEST_BYTES: usize = 1 << 20;
/// Maximum size of a result's manifest store that goes into a picture made from it, in bytes: our manifest and the kept
/// store of the upload.
const MAX_RESULT_MANIFEST_BYTES: usize = 4 << 20;
/// The title of an upload in the manifests of pictures made from it.
const UPLOAD: &str = "Uploaded picture";
/// The title of a result in the manifests of pictures made from it.
const RESULT: &str = "Result";

/// The provenance of an upload, read before its metadata was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// An archive of the ingredient, with the file's manifests and the outcome of validating them against the file;
    /// `None` if it had none, or a manifest that cannot be kept.
    pub ingredient: Option<Vec<u8>>,
    /// The source type, from its manifest or XMP.
    pub source: Option<SourceType>,
}

impl Provenance {
    /// Reads the provenance of a file; `None` if it has no marks. Takes a few milliseconds if the file has a manifest,
    /// and almost no time otherwise.
    pub fn read(file: &[u8], format: Format) -> Option<Self> {
        let stated = stated_in_xmp(file, format);
        let manifest = container::manifest_bytes(file, format);
        let Some(bytes) = manifest.filter(|bytes| *bytes <= MAX_MANIFEST_BYTES) else {
            if let Some(bytes) = manifest {
                tracing::warn!(bytes, "An upload's manifest is too large to keep");
            }
            return stated.map(|source| Self { ingredient: None, source: Some(source) });
        };
        match guard(|| archive(file, format)) {
            Ok((ingredient, claimed)) => {
                let source = claimed.into_iter().chain(stated).max_by_key(SourceType::weight);
                Some(Self { ingredient: Some(ingredient), source })
            }
            Err(error) => {
                tracing::info!(%error, bytes, "An upload's manifest is damaged and cannot be kept");
                stated.map(|source| Self { ingredient: None, source: Some(source) })
            }
        }
    }
}

/// Returns the source type in a file's XMP.
fn stated_in_xmp(file: &[u8], format: Format) -> Option<SourceType> {
    let packet = container::xmp(file, format)?;
    xmp::source_type(packet)
}

/// Returns the archived ingredient of a file with a manifest, and the source type that its manifest claims.
fn archive(file: &[u8], format: Format) -> c2pa::Result<(Vec<u8>, Option<SourceType>)> {
    let context = offline()?;
    let reader = crate::context::reader(&context, file, format)?;
    let claimed = report::claimed_source(&reader);
    let mut builder = Builder::from_shared_context(&context);
    let described = described(UPLOAD, format).to_string();
    builder.add_ingredient_from_stream(described, format.media_type(), &mut Cursor::new(file))?;
    let mut archive = Cursor::new(Vec::new());
    builder.write_ingredient_archive(PARENT, &mut archive)?;
    Ok((archive.into_inner(), claimed))
}

/// The input picture of a tool, as stored.
#[derive(Clone, Copy, Debug)]
pub struct Parent<'a> {
    /// The stored file: an upload without its metadata, or a result with its manifest.
    pub picture: &'a [u8],
    pub provenance: Option<&'a Provenance>,
}

impl Parent<'_> {
    /// Returns its source type, if its marks have one.
    pub fn source(&self) -> Option<SourceType> {
        if let Some(Provenance { source: Some(source), .. }) = self.provenance {
            return Some(source.clone());
        }
        stated_in_xmp(self.picture, Format::of(self.picture)?)
    }

    /// Returns whether it has a manifest or is marked as generated: such marks must not get lost.
    pub fn is_marked(&self) -> bool {
        let format = Format::of(self.picture);
        self.provenance.is_some_and(|provenance| provenance.ingredient.is_some())
            || format
                .is_some_and(|format| container::manifest_bytes(self.picture, format).is_some())
            || self.source().is_some_and(|source| source.is_generated())
    }

    /// Adds it to a manifest as the picture that was opened.
    pub(crate) fn add_to(&self, builder: &mut Builder) -> c2pa::Result<()> {
        let format = Format::of(self.picture).ok_or(Error::UnsupportedType)?;
        if let Some(Provenance { ingredient: Some(archive), .. }) = self.provenance {
            let added = builder.add_ingredient_from_archive(&mut Cursor::new(archive))?;
            added.set_is_parent().set_label(PARENT).set_title(UPLOAD);
            return Ok(());
        }
        let manifest = container::manifest_bytes(self.picture, format);
        // Uploads are stored without their manifests.
        let title = if manifest.is_some() { RESULT } else { UPLOAD };
        let described = described(title, format).to_string();
        if manifest.is_some_and(|bytes| bytes <= MAX_RESULT_MANIFEST_BYTES) {
            let mut picture = Cursor::new(self.picture);
            builder.add_ingredient_from_stream(described, format.media_type(), &mut picture)?;
        } else {
            builder.add_ingredient(c2pa::Ingredient::from_json(&described)?);
        }
        Ok(())
    }
}

fn described(title: &str, format: Format) -> serde_json::Value {
    json!({
        "title": title,
        "format": format.media_type(),
        "relationship": "parentOf",
        "label": PARENT,
    })
}
