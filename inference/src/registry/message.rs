//! Messages to a model's thread, and the results of requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ndarray::Array4;
use retouch_catalog::Count;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::batches::Announcement;
use super::opened::Candidate;
use crate::output::Output;
use crate::painter::{PaintError, Painting};
use crate::segment_anything::{Features, ObjectMask, Prompt};
use crate::session::SessionError;

/// A message to a model's thread.
pub enum Message {
    /// Do some work.
    Request(Request),
    /// Look whether another model needs the memory.
    GiveWay,
    /// Serve with this one from now on.
    Swap(Box<Candidate>),
}

pub struct Request {
    pub work: Work,
    pub sent: Instant,
    /// The caller's tracing span.
    pub span: Span,
}

/// The work of a request, and the channel for its result.
pub enum Work {
    /// Run a net on one picture.
    Infer {
        /// The picture, bytes `[1, row, column, 3]`.
        input: Array4<u8>,
        answer: oneshot::Sender<Result<Inference, SessionError>>,
        /// Ends when the thread takes the request.
        announcement: Option<Announcement>,
    },
    Paint {
        painting: Box<Painting>,
        control: PaintControl,
        answer: oneshot::Sender<Result<PaintResult, PaintError>>,
    },
    /// Check whether a picture may be shown.
    CheckSafety {
        /// R, G, B of every pixel.
        rgb: Vec<u8>,
        /// Width and height in pixels.
        size: (u32, u32),
        answer: oneshot::Sender<Result<f32, SessionError>>,
    },
    /// Find the features of a picture, for clicks.
    FindFeatures {
        /// The encoder's input tensor.
        picture: Array4<f32>,
        answer: oneshot::Sender<Result<Features, SessionError>>,
    },
    /// Find the mask of the object at a click.
    FindMask {
        features: Arc<Features>,
        /// The points or the box of the click.
        prompt: Prompt,
        answer: oneshot::Sender<Result<ObjectMask, SessionError>>,
    },
}

impl Work {
    /// Returns whether the caller has stopped waiting for the result.
    pub fn is_abandoned(&self) -> bool {
        match self {
            Self::Infer { answer, .. } => answer.is_closed(),
            Self::Paint { answer, .. } => answer.is_closed(),
            Self::CheckSafety { answer, .. } => answer.is_closed(),
            Self::FindFeatures { answer, .. } => answer.is_closed(),
            Self::FindMask { answer, .. } => answer.is_closed(),
        }
    }

    /// Answers that the model cannot do it.
    pub fn refuse(self, error: SessionError) {
        // The caller may be gone, which is fine.
        match self {
            Self::Infer { answer, .. } => drop(answer.send(Err(error))),
            Self::Paint { answer, .. } => drop(answer.send(Err(error.into()))),
            Self::CheckSafety { answer, .. } => drop(answer.send(Err(error))),
            Self::FindFeatures { answer, .. } => drop(answer.send(Err(error))),
            Self::FindMask { answer, .. } => drop(answer.send(Err(error))),
        }
    }
}

/// Observes a painting from another thread and can cancel it.
pub struct PaintControl {
    /// Called after each step with the progress.
    pub progress: Arc<dyn Fn(Count) + Send + Sync>,
    /// Cancels the painting at the next step.
    pub cancel: CancellationToken,
}

#[derive(Debug)]
pub struct PaintResult {
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// How long the crop waited for the model.
    pub waited: Duration,
    /// How long the model painted.
    pub ran: Duration,
}

/// The result of one run of a net.
#[derive(Debug)]
pub struct Inference {
    pub output: Output,
    /// How long the input waited for the model.
    pub waited: Duration,
    /// How long the model ran; the share of this input if it ran in a batch.
    pub ran: Duration,
}
