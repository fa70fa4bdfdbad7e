//! The library's settings: it opens no connections and makes no thumbnails.

use std::sync::Arc;

use c2pa::Context;

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
        "core": { "allowed_network_hosts": [] },
        "trust": { "trust_anchors": anchors },
    });
    Ok(Context::new().with_settings(settings.to_string())?.into_shared())
}
