//! The parameter `metadata` of uploads and downloads.

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::usecases::upload_image::Metadata;

/// What happens to the file's EXIF metadata: `strip` drops it, `keep` keeps it, including the place.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetadataChoice {
    #[default]
    Strip,
    Keep,
}

/// The query with nothing but this parameter.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MetadataQuery {
    /// Whether to keep the file's EXIF metadata: date, camera, settings, author, and the place. `strip` by default. The
    /// orientation is always applied, and the embedded thumbnail always dropped.
    #[serde(default)]
    #[param(inline, required = false)]
    pub metadata: MetadataChoice,
}

impl From<MetadataChoice> for Metadata {
    fn from(choice: MetadataChoice) -> Self {
        match choice {
            MetadataChoice::Strip => Self::Strip,
            MetadataChoice::Keep => Self::Keep,
        }
    }
}
