//! The arguments of the tools. Their comments are what models read.

use retouch_catalog::Factor;
use retouch_core::selection::{ImageBox, ImagePoint};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Which picture: exactly one of its properties.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with id, url or base64")]
#[schemars(inline)]
pub struct PictureArgument {
    /// The id of an uploaded image or of an earlier result.
    pub id: Option<String>,
    /// An address of this server that an earlier answer contained. Other addresses are not fetched.
    pub url: Option<String>,
    /// A PNG, JPEG, WebP, HEIC or AVIF of at most 5 MB in base64. It and its results are deleted after an hour.
    pub base64: Option<String>,
}

/// The arguments of `remove_background`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveBackground {
    pub image: PictureArgument,
    /// Equal calls within ten minutes return the same result and are paid once. Another value here makes another run.
    pub idempotency_key: Option<String>,
}

/// The arguments of `upscale`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upscale {
    pub image: PictureArgument,
    /// How many times as wide and high the result is.
    #[serde(deserialize_with = "factor")]
    #[schemars(schema_with = "factor_schema")]
    pub factor: Factor,
    /// Equal calls within ten minutes return the same result and are paid once. Another value here makes another run.
    pub idempotency_key: Option<String>,
}

/// A pixel: its column and row, counted from 0 at the top left.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with x and y")]
#[schemars(inline)]
pub struct PointArgument {
    #[serde(deserialize_with = "pixels")]
    pub x: u32,
    #[serde(deserialize_with = "pixels")]
    pub y: u32,
}

/// A rectangle in pixels, counted from 0 at the top left.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with x, y, width and height")]
#[schemars(inline)]
pub struct BoxArgument {
    #[serde(deserialize_with = "pixels")]
    pub x: u32,
    #[serde(deserialize_with = "pixels")]
    pub y: u32,
    #[serde(deserialize_with = "pixels")]
    pub width: u32,
    #[serde(deserialize_with = "pixels")]
    pub height: u32,
}

/// Which part of the picture: exactly one of `mask_base64`, `box`, `points`, and `subject`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with mask_base64, box, points or subject")]
#[schemars(inline)]
pub struct AreaArgument {
    /// A PNG of at most 2 MB in base64, of the size or the aspect ratio of the picture: white, or opaque, where to work.
    pub mask_base64: Option<String>,
    /// All pixels of a rectangle.
    #[serde(rename = "box")]
    pub area: Option<BoxArgument>,
    /// The object at these points.
    pub points: Option<Vec<PointArgument>>,
    /// With `points`: points that do not belong to the object.
    pub negative_points: Option<Vec<PointArgument>>,
    /// `true` for the main subject of the picture.
    pub subject: Option<bool>,
}

/// The arguments of `magic_fix`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MagicFix {
    pub image: PictureArgument,
    /// What to do there, in 1 to 500 characters, for example "remove the object".
    pub prompt: String,
    pub area: AreaArgument,
    /// Whether no pixel outside the area may change. By default true for prompts that edit, add, or restore, otherwise false.
    pub exact_mask: Option<bool>,
    /// Equal calls within ten minutes return the same result and are paid once. Another value here makes another run.
    pub idempotency_key: Option<String>,
}

/// The arguments of `account`: none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Account {}

// Serde's own messages name Rust types.

fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Factor, D::Error> {
    let number = Value::deserialize(deserializer)?.as_i64().and_then(|it| i16::try_from(it).ok());
    number.and_then(Factor::from_number).ok_or_else(|| D::Error::custom("it must be 2 or 4"))
}

fn factor_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "enum": [2, 4]})
}

fn pixels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = Value::deserialize(deserializer)?.as_u64().and_then(|it| u32::try_from(it).ok());
    number.ok_or_else(|| D::Error::custom("it must be a whole number of pixels, at least 0"))
}

impl From<PointArgument> for ImagePoint {
    fn from(PointArgument { x, y }: PointArgument) -> Self {
        Self { x, y }
    }
}

impl From<BoxArgument> for ImageBox {
    fn from(BoxArgument { x, y, width, height }: BoxArgument) -> Self {
        Self { x, y, width, height }
    }
}
