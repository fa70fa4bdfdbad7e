//! The stages of a tool: each runs on the right threads, is timed, and can be canceled.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use retouch_inference::output::Output;
use retouch_inference::registry::{Announcement, ModelHandle};

/// A stage of a tool, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Decode,
    /// Computes the model's input.
    Preprocess,
    Infer,
    /// Turns the model's output into alpha or pixels.
    Postprocess,
    /// Estimates foreground colors at the edge.
    Foreground,
    /// Encodes the PNG, its thumbnail and its preview.
    Encode,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 6] = [
        Self::Decode,
        Self::Preprocess,
        Self::Infer,
        Self::Postprocess,
        Self::Foreground,
        Self::Encode,
    ];

    /// Returns the stage's name, which is also its metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Preprocess => "preprocess",
            Self::Infer => "infer",
            Self::Postprocess => "postprocess",
            Self::Foreground => "foreground",
            Self::Encode => "encode",
        }
    }
}

/// How long each stage took, without waiting for a thread or the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTimes([Duration; Stage::ALL.len()]);

impl StageTimes {
    pub const fn get(&self, stage: Stage) -> Duration {
        self.0[stage as usize]
    }

    /// Returns the time of all stages except the model.
    pub fn pixels(&self) -> Duration {
        Stage::ALL
            .into_iter()
            .filter(|stage| *stage != Stage::Infer)
            .map(|stage| self.get(stage))
            .sum()
    }

    /// Adds to the time of a stage, which a tool may run once per tile or region.
    pub fn add(&mut self, stage: Stage, took: Duration) {
        self.0[stage as usize] += took;
    }
}

/// Runs stages one after the other, timed and cancelable.
pub struct Steps<'a, P> {
    pixels: &'a PixelPool,
    cancel: &'a CancellationToken,
    progress: P,
    /// How long each stage has taken so far.
    pub times: StageTimes,
}

impl<'a, P: Fn(Stage)> Steps<'a, P> {
    /// Creates the steps; `progress` is called when a stage starts.
    pub fn new(pixels: &'a PixelPool, cancel: &'a CancellationToken, progress: P) -> Self {
        Self { pixels, cancel, progress, times: StageTimes::default() }
    }

    /// Runs a stage on the pixel threads.
    ///
    /// # Errors
    /// [`ToolError::Canceled`] if the run was canceled; otherwise the error of `work`.
    pub async fn on_pixels<T: Send + 'static>(
        &mut self,
        stage: Stage,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let run = self.pixels.run_timed(work);
        let (outcome, took) = self.unless_canceled(stage, run).await?;
        self.times.add(stage, took);
        outcome
    }

    /// Runs a stage that waits for something else. The caller adds its time.
    ///
    /// # Errors
    /// [`ToolError::Canceled`] if the run was canceled; otherwise the error of `run`.
    pub async fn on<T>(
        &self,
        stage: Stage,
        run: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        self.unless_canceled(stage, run).await
    }

    pub const fn pixels(&self) -> &'a PixelPool {
        self.pixels
    }

    /// Runs the model on bytes `[1, height, width, 3]`.
    ///
    /// # Errors
    /// [`ToolError::Canceled`] if the run was canceled; otherwise the model's error.
    pub async fn on_model(
        &mut self,
        model: &ModelHandle,
        announcement: Announcement,
        input: ndarray::Array4<u8>,
    ) -> Result<Output, ToolError> {
        let run = async { Ok(model.infer_announced(announcement, input).await?) };
        let inference = self.unless_canceled(Stage::Infer, run).await?;
        self.times.add(Stage::Infer, inference.ran);
        Ok(inference.output)
    }

    async fn unless_canceled<T>(
        &self,
        stage: Stage,
        run: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::Canceled);
        }
        (self.progress)(stage);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ToolError::Canceled),
            outcome = run => outcome,
        }
    }
}
