//! The library's settings: it opens no connections, makes no thumbnails, and decompresses nothing.

use std::io::Cursor;
use std::sync::Arc;

use c2pa::jumbf_io::load_jumbf_from_memory;
use c2pa::{Context, Error, Reader};

use crate::{Format, bounds, heif};

/// Returns the settings for signing, and for reading the manifests of ingredients.
pub(crate) fn offline() -> c2pa::Result<Arc<Context>> {
    with_anchors(None)
}

/// Like [`offline`]; certificates under `anchors` (PEM) are trusted.
pub(crate) fn with_anchors(anchors: Option<&str>) -> c2pa::Result<Arc<Context>> {
    let settings = serde_json::json!({
        "verify": {
            "verify_after_sign": false, // would read the picture again; tests do
            "remote_manifest_fetch": false,
            "ocsp_fetch": false,
        },
        "builder": { "thumbnail": { "enabled": false } },
        "core": {
            "allowed_network_hosts": [],
            // Refuses compressed manifests: a small file may hold any number of them, and each would take megabytes.
            "max_decompressed_manifest_size_in_mb": 0,
        },
        "trust": { "trust_anchors": anchors },
    });
    Ok(Context::new().with_settings(settings.to_string())?.into_shared())
}

/// Opens the manifests of a file.
///
/// # Errors
/// If it has none, or they are damaged, compressed, or out of bounds.
pub(crate) fn reader(context: &Arc<Context>, file: &[u8], format: Format) -> c2pa::Result<Reader> {
    if matches!(format, Format::Heic | Format::Avif) && heif::may_be_compressed(file) {
        return Err(Error::InvalidAsset("its manifest is compressed".to_owned()));
    }
    let store = load_jumbf_from_memory(format.media_type(), file)?;
    bounds::check(&store).map_err(|reason| Error::InvalidAsset(reason.to_owned()))?;
    drop(store);
    Reader::from_shared_context(context).with_stream(format.media_type(), Cursor::new(file))
}
