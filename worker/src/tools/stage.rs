//! The steps of a tool: each runs where it belongs, is timed, and can be called off.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use retouch_inference::registry::ModelHandle;

/// A step of a tool, in the order they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// File to pixels.
    Decode,
    /// Pixels to the model's input.
    Preprocess,
    /// The model.
    Infer,
    /// The model's output to alpha, or to pixels.
    Postprocess,
    /// Foreground colours at the edge.
    Foreground,
    /// Pixels to the PNG and its thumbnail.
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

    /// The stage's name.
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

/// How long each stage took, waiting for a thread or for the model not counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTimes([Duration; Stage::ALL.len()]);

impl StageTimes {
    /// The time of one stage.
    pub const fn get(&self, stage: Stage) -> Duration {
        self.0[stage as usize]
    }

    /// Everything but the model.
    pub fn pixels(&self) -> Duration {
        Stage::ALL
            .into_iter()
            .filter(|stage| *stage != Stage::Infer)
            .map(|stage| self.get(stage))
            .sum()
    }

    /// Adds to the time of a stage; tools that take a picture apart come back to it.
    pub fn add(&mut self, stage: Stage, took: Duration) {
        self.0[stage as usize] += took;
    }
}

/// Runs stages one after the other, each where it belongs, timed and cancellable.
pub struct Steps<'a, P> {
    pixels: &'a PixelPool,
    cancel: &'a CancellationToken,
    progress: P,
    /// What the stages have taken so far.
    pub times: StageTimes,
}

impl<'a, P: Fn(Stage)> Steps<'a, P> {
    /// Nothing has been done yet. `progress` is told each stage as it begins.
    pub fn new(pixels: &'a PixelPool, cancel: &'a CancellationToken, progress: P) -> Self {
        Self { pixels, cancel, progress, times: StageTimes::default() }
    }

    /// A stage that works on pixels.
    pub async fn on_pixels<T: Send + 'static>(
        &mut self,
        stage: Stage,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let run = self.pixels.run_timed(work);
        let (outcome, took) = self.unless_cancelled(stage, run).await?;
        self.times.add(stage, took);
        outcome
    }

    /// A stage that waits for something else than pixels; its time is for the caller to add.
    pub async fn on<T>(
        &self,
        stage: Stage,
        run: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        self.unless_cancelled(stage, run).await
    }

    /// The threads that pixels are worked on.
    pub const fn pixels(&self) -> &'a PixelPool {
        self.pixels
    }

    /// The stage that runs the model.
    pub async fn on_model(
        &mut self,
        model: &ModelHandle,
        tensor: ndarray::Array4<f32>,
    ) -> Result<ndarray::Array4<f32>, ToolError> {
        let run = async { Ok(model.infer(tensor).await?) };
        let inference = self.unless_cancelled(Stage::Infer, run).await?;
        self.times.add(Stage::Infer, inference.ran);
        Ok(inference.output)
    }

    async fn unless_cancelled<T>(
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
