//! Handles to a loaded model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ndarray::Array4;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use super::batches::{Announcement, Batches};
use super::identity::ModelIdentity;
use super::message::{Inference, Message, PaintControl, PaintResult, Request, Work};
use super::version;
use crate::manifest::{Manifest, Precision, Task};
use crate::painter::{PaintError, Painting};
use crate::segment_anything::{Features, ObjectMask, Prompt};
use crate::session::SessionError;

/// A handle to a loaded model. Cheap to clone; the model's thread ends with the last clone.
#[derive(Clone, Debug)]
pub struct ModelHandle {
    pub(super) identity: ModelIdentity,
    /// The contract at load time; the manifest may have changed since.
    pub(super) task: Arc<Task>,
    pub(super) version: Arc<str>,
    pub(super) messages: mpsc::Sender<Message>,
    pub(super) batches: Batches,
    pub(super) precision: Precision,
    pub(super) is_loaded: Arc<AtomicBool>,
    pub(super) has_engine: Arc<AtomicBool>,
    pub(super) memory_bytes: u64,
}

/// Which load of a model made something. Does not keep the model's thread.
#[derive(Clone, Debug)]
pub struct ModelLoad(mpsc::WeakSender<Message>);

impl ModelLoad {
    /// Returns whether the handle is one to this load.
    pub fn is_of(&self, model: &ModelHandle) -> bool {
        self.0.upgrade().is_some_and(|messages| messages.same_channel(&model.messages))
    }
}

impl ModelHandle {
    /// Returns which load of the model this is.
    pub fn to_load(&self) -> ModelLoad {
        ModelLoad(self.messages.downgrade())
    }

    pub const fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns how precisely the model computes: in 16 bits only if the settings ask for it, and a check proved it enough.
    pub const fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns whether the model is in memory. A model that gave way to others is loaded again for the next request.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Acquire)
    }

    /// Returns whether the model is in memory as an engine that was built in the background.
    pub fn has_engine(&self) -> bool {
        self.has_engine.load(Ordering::Acquire)
    }

    /// Returns the model's part of the memory of all models while it is loaded, in bytes.
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns whether the model was loaded from the files that `manifest` describes.
    pub(super) fn is_current(&self, manifest: &Manifest) -> bool {
        self.identity.name == manifest.name
            && *self.version == *version::version(manifest)
            && version::files_match(manifest)
    }

    /// Returns whether both are handles to the same load of the same model.
    pub fn is_same(&self, other: &Self) -> bool {
        self.messages.same_channel(&other.messages)
    }

    /// Runs the model on one picture, bytes `[1, row, column, 3]`, after earlier requests. Dropping the future before the
    /// run starts skips the run.
    ///
    /// # Errors
    /// [`SessionError::OutOfMemory`] if a smaller input may fit; otherwise ONNX Runtime's message.
    pub async fn infer(&self, input: Array4<u8>) -> Result<Inference, SessionError> {
        self.infer_announced(self.announce(), input).await
    }

    /// Announces an input for [`Self::infer_announced`], before it is prepared.
    pub fn announce(&self) -> Announcement {
        self.batches.announce()
    }

    /// Same as [`Self::infer`], for an input that was announced: a batch that is filling waits for it.
    ///
    /// # Errors
    /// Same as [`Self::infer`].
    pub async fn infer_announced(
        &self,
        announcement: Announcement,
        input: Array4<u8>,
    ) -> Result<Inference, SessionError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::Infer { input, answer, announcement: Some(announcement) }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Returns how many inputs of `rows` and `columns` one run takes at most.
    pub fn largest_batch(&self, rows: usize, columns: usize) -> usize {
        self.batches.largest(rows, columns)
    }

    /// Returns whether inputs should have few shapes.
    pub const fn has_few_shapes(&self) -> bool {
        self.batches.has_few_shapes()
    }

    /// Returns how many inputs one run takes at most, if they are small.
    pub fn max_batch(&self) -> usize {
        self.batches.max_inputs()
    }

    /// Paints one crop, after earlier requests. Dropping the future before the painting starts skips it;
    /// afterwards `control.cancel` ends it.
    pub async fn paint(
        &self,
        painting: Painting,
        control: PaintControl,
    ) -> Result<PaintResult, PaintError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::Paint { painting: Box::new(painting), control, answer }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped().into()))
    }

    /// Returns the probability that a picture is unsafe, 0 to 1. `rgb` holds R, G, B of every pixel, `size` the width
    /// and height.
    ///
    /// # Errors
    /// Same as [`ModelHandle::infer`].
    pub async fn check_safety(&self, rgb: Vec<u8>, size: (u32, u32)) -> Result<f32, SessionError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::CheckSafety { rgb, size, answer }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Returns the features of a picture, for [`Self::find_mask`]. `picture` is the encoder's input tensor.
    ///
    /// # Errors
    /// Same as [`ModelHandle::infer`].
    pub async fn find_features(&self, picture: Array4<f32>) -> Result<Features, SessionError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::FindFeatures { picture, answer }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Returns the mask of the object at a click.
    ///
    /// # Errors
    /// Same as [`ModelHandle::infer`].
    pub async fn find_mask(
        &self,
        features: Arc<Features>,
        prompt: Prompt,
    ) -> Result<ObjectMask, SessionError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::FindMask { features, prompt, answer }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    async fn send(&self, work: Work) -> Result<(), SessionError> {
        let request = Request { work, sent: Instant::now(), span: Span::current() };
        self.messages.send(Message::Request(request)).await.map_err(|_| self.stopped())
    }

    fn stopped(&self) -> SessionError {
        SessionError::Failed(format!("the thread of model {} has stopped", self.identity().name))
    }
}
