//! Samples: a small part of a picture, upscaled by the model for paid runs so that people can compare before they pay.
//! Nothing is stored or charged.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use retouch_catalog::Factor;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::queue::{Reply, Request};

/// The largest width and height of a part, in pixels.
pub const MAX_SAMPLE_SIDE: u32 = 128;

/// Asks a worker to upscale a part of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRequest {
    /// Distinguishes the reply from others.
    pub id: Uuid,
    /// The part, as the file that the caller sent; at most [`MAX_SAMPLE_SIDE`] pixels wide and high.
    #[serde(with = "base64_text")]
    pub file: Bytes,
    /// How much wider and higher it becomes.
    pub factor: Factor,
    /// Width times height of the whole picture, which decides between models.
    pub picture_pixels: u64,
}

impl SampleRequest {
    pub fn new(file: Bytes, factor: Factor, picture_pixels: u64) -> Self {
        Self { id: Uuid::now_v7(), file, factor, picture_pixels }
    }
}

impl Request for SampleRequest {
    const KIND: &'static str = "samples";
    type Failure = SampleFailure;

    fn id(&self) -> Uuid {
        self.id
    }

    fn unreadable_reply(reason: String) -> SampleFailure {
        SampleFailure::Failed(reason)
    }
}

/// A worker's reply: the upscaled part as a PNG, or why there is none.
pub type SampleReply = Reply<SampleRequest>;

/// Why a worker made no sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleFailure {
    Unreadable,
    /// No model of this worker upscales such pictures by this factor.
    NoModel,
    /// The model or the worker failed; the text is for the operator.
    Failed(String),
}

/// JSON has no bytes.
mod base64_text {
    use super::{Bytes, Deserialize, Engine, STANDARD};

    pub fn serialize<S: serde::Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_its_way_through_redis() {
        let request = SampleRequest::new(Bytes::from_static(b"\0\xff"), Factor::X4, 12_000_000);
        let text = serde_json::to_string(&request).expect("it serializes");
        assert_eq!(serde_json::from_str::<SampleRequest>(&text).expect("it is complete"), request);
    }
}
