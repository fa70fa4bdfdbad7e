//! The parameter `metadata` of uploads and downloads.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::usecases::upload_image::Metadata;

/// The query with only this parameter.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MetadataQuery {
    /// Whether to keep the file's EXIF metadata: date, camera, settings, author, and location. `strip` by default. The
    /// orientation is always applied, and the embedded thumbnail always dropped.
    #[serde(default)]
    #[param(inline, required = false)]
    pub metadata: Metadata,
}
