//! Samples: upscales a small part of a picture with the model for paid runs, without a job.

use std::sync::Arc;

use bytes::Bytes;
use futures::future;
use retouch_catalog::{Factor, Tier, Tool};
use retouch_core::queue::Queue;
use retouch_core::sample::{MAX_SAMPLE_SIDE, SampleFailure, SampleReply, SampleRequest};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::{LoadError, Registry};
use retouch_pixels::Limits;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::requests::{self, Answerer};
use crate::tools::upscale::{Upscaler, upscale};
use crate::tools::{Settings, ToolError};

pub struct Sampler {
    pub registry: Arc<Registry>,
    pub pixels: PixelPool,
    pub settings: Settings,
}

impl Sampler {
    /// Answers requests until `stop`.
    pub async fn run(self, queue: Queue, stop: CancellationToken) {
        let registry = self.registry.clone();
        let serves = move |factor| registry.is_served(demand(factor));
        let is_available = move || serves(Factor::X2) || serves(Factor::X4);
        requests::answer(self, queue, is_available, stop).await;
    }

    async fn upscale(&self, request: &SampleRequest) -> Result<Bytes, SampleFailure> {
        let model = self
            .registry
            .model_for_picture(demand(request.factor), request.picture_pixels)
            .await
            .map_err(|error| match error {
                LoadError::Unbound { .. } => SampleFailure::NoModel,
                error => SampleFailure::Failed(error.to_string()),
            })?;
        let net = Upscaler::new(model).map_err(failure)?;
        let settings =
            Settings { limits: Limits { max_dimension: MAX_SAMPLE_SIDE }, ..self.settings };
        let never = CancellationToken::new();
        let (out, mut parts) = mpsc::channel(1);
        let (pixels, file) = (&self.pixels, request.file.clone());
        let upscaling = upscale(file, request.factor, &net, pixels, &settings, &never, |_| {}, out);
        let receiving = async {
            let mut png = Vec::new();
            while let Some(part) = parts.recv().await {
                png.extend_from_slice(&part);
            }
            png
        };
        let (upscaled, png) = future::join(upscaling, receiving).await;
        upscaled.map_err(failure)?;
        Ok(png.into())
    }
}

impl Answerer for Sampler {
    type To = SampleRequest;

    const FINISHES_LATE: bool = false;

    async fn answer(&mut self, request: &SampleRequest) -> SampleReply {
        let reply = self.upscale(request).await;
        if let Err(SampleFailure::Failed(reason)) = &reply {
            tracing::warn!(reason, "A sample failed");
        }
        reply
    }
}

const fn demand(factor: Factor) -> Demand {
    Demand { tool: Tool::Upscale(factor), tier: Tier::Paid }
}

fn failure(error: ToolError) -> SampleFailure {
    match error {
        ToolError::Pixels(_) => SampleFailure::Unreadable,
        error => SampleFailure::Failed(error.to_string()),
    }
}
