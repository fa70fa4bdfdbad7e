//! A model that is loaded: a thread that owns it, and handles that reach the thread.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ndarray::Array4;
use retouch_catalog::Count;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{Span, info};

use super::checks::{self, How, LoadStep, Loaded, Refusal, StepReport};
use super::thread::{self, Request, Work};
use super::{LoadError, files};
use crate::device::Device;
use crate::manifest::{Manifest, Task};
use crate::painter::{PaintError, Painting};
use crate::session::{Runtime, SessionError};

/// Pictures that may wait in front of a model before their senders wait themselves.
const WAITING_ROOM: usize = 8;

/// Which bytes ran, and where: what a result says about its making.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelIdentity {
    /// The model's name.
    pub name: String,
    /// The SHA-256 of the ONNX file that was loaded.
    pub sha256: String,
    /// The device that is really active.
    pub device: Device,
}

impl ModelIdentity {
    /// Both of two models that made one picture, on the same device: their names and checksums with a plus between.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let joined = |one: &str, two: &str| format!("{one} + {two}");
        Self {
            name: joined(&self.name, &other.name),
            sha256: joined(&self.sha256, &other.sha256),
            device: self.device,
        }
    }
}

impl fmt::Display for ModelIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}) on {}",
            self.name,
            &self.sha256[..12.min(self.sha256.len())],
            self.device
        )
    }
}

/// Loads one model on a thread of its own, telling `report` about each step.
///
/// # Errors
/// [`LoadError::Refused`] with the step that failed and why.
pub async fn load_model(
    manifest: Manifest,
    runtime: Runtime,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Result<ModelHandle, LoadError> {
    let name = manifest.name.clone();
    let Inspection { model, refusals } = start(manifest, runtime, How::StopAtFirst, report).await;
    let step = refusals.first().map_or(LoadStep::Open, |refusal| refusal.step);
    match model {
        Some(model) if refusals.is_empty() => Ok(model),
        // One step may have found several things.
        _ => {
            let reasons: Vec<_> = refusals.into_iter().map(|refusal| refusal.reason).collect();
            Err(LoadError::Refused { model: name, step, reason: reasons.join("; ") })
        }
    }
}

/// What a look at every side of a model has found.
pub struct Inspection {
    /// The model, if it could be run as its manifest says. Beside refusals it must serve nobody; it is here
    /// to be measured.
    pub model: Option<ModelHandle>,
    /// Everything that is wrong with it.
    pub refusals: Vec<Refusal>,
}

/// Takes every step of a load on a thread of its own, goes on after one that failed as far as anything can
/// still be judged, and tries every golden picture.
pub async fn inspect_model(
    manifest: Manifest,
    runtime: Runtime,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Inspection {
    start(manifest, runtime, How::EveryReason, report).await
}

/// The same without a run, for a model that would take minutes on this device: what its files hold, and whether
/// they can be opened as the manifest says. There is no model to be measured afterwards.
pub async fn inspect_files(
    manifest: Manifest,
    runtime: Runtime,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Inspection {
    start(manifest, runtime, How::WithoutRuns, report).await
}

async fn start(
    manifest: Manifest,
    runtime: Runtime,
    how: How,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Inspection {
    let (requests, inbox) = mpsc::channel(WAITING_ROOM);
    let (ready, loaded) = oneshot::channel();
    let span = Span::current();
    let started = std::thread::Builder::new()
        .name(format!("model-{}", manifest.name))
        .spawn(move || span.in_scope(|| own_model(&manifest, &runtime, how, report, ready, inbox)));
    let failed = |refusal| Inspection { model: None, refusals: vec![refusal] };
    if let Err(error) = started {
        let reason = format!("its thread could not start: {error}");
        return failed(Refusal { step: LoadStep::Open, reason });
    }
    let Ok((running, refusals)) = loaded.await else { return failed(stopped()) };
    let model = running.map(|Running { identity, task, version }| ModelHandle {
        identity,
        task: Arc::new(task),
        version: version.into(),
        requests,
    });
    Inspection { model, refusals }
}

fn stopped() -> Refusal {
    Refusal { step: LoadStep::Open, reason: "its thread stopped".to_owned() }
}

/// What is known of a model that runs.
struct Running {
    identity: ModelIdentity,
    task: Task,
    version: String,
}

/// The life of a model's thread: load, say so, run what comes in until every handle is gone.
fn own_model(
    manifest: &Manifest,
    runtime: &Runtime,
    how: How,
    report: impl FnMut(StepReport),
    ready: oneshot::Sender<(Option<Running>, Vec<Refusal>)>,
    inbox: mpsc::Receiver<Request>,
) {
    let started = Instant::now();
    // Before anything is tried: a golden picture that changes meanwhile makes another version.
    let version = files::version(manifest);
    let Loaded { engine, refusals } = checks::load(manifest, runtime, how, report);
    let Some(engine) = engine else {
        // A caller that has gone asks again.
        let _ = ready.send((None, refusals));
        return;
    };
    let identity = ModelIdentity {
        name: manifest.name.clone(),
        sha256: manifest.sha256(),
        device: runtime.device(),
    };
    if refusals.is_empty() {
        info!(
            model.name = identity.name,
            model.sha256 = identity.sha256,
            device = identity.device.as_str(),
            duration_ms = started.elapsed().as_millis() as u64,
            "Loaded model {identity}"
        );
    }
    let task = manifest.task.clone();
    if ready.send((Some(Running { identity, task, version }), refusals)).is_ok() {
        thread::serve(engine, &manifest.name, &manifest.task, runtime, inbox);
    }
}

/// Who follows a painting from another thread.
pub struct Follow {
    /// Is told how much is done, from 0 to 1.
    pub progress: Arc<dyn Fn(Count) + Send + Sync>,
    /// Ends the work at its next step.
    pub cancel: CancellationToken,
}

/// A crop with its hole painted.
#[derive(Debug)]
pub struct Painted {
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// How long the crop waited for the model.
    pub waited: Duration,
    /// How long the model painted.
    pub ran: Duration,
}

/// What a model made of one input.
#[derive(Debug)]
pub struct Inference {
    /// The output tensor.
    pub output: Array4<f32>,
    /// How long the input waited for the model.
    pub waited: Duration,
    /// How long the model ran.
    pub ran: Duration,
}

/// A loaded model. Cheap to clone; the model's thread ends when the last clone is gone.
#[derive(Clone, Debug)]
pub struct ModelHandle {
    identity: ModelIdentity,
    /// The contract that it was loaded with, whatever its manifest says by now.
    task: Arc<Task>,
    version: Arc<str>,
    requests: mpsc::Sender<Request>,
}

impl ModelHandle {
    /// Which bytes run, and where.
    pub const fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    /// What the model does, and its contract.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Whether the files that `manifest` describes are those that this model was loaded from.
    pub(super) fn is_current(&self, manifest: &Manifest) -> bool {
        self.identity.name == manifest.name
            && *self.version == *files::version(manifest)
            && files::are_as_stated(manifest)
    }

    /// Whether both are the same load of the same model.
    pub fn is_same(&self, other: &Self) -> bool {
        self.requests.same_channel(&other.requests)
    }

    /// Runs the model on one input; waits while others are before it. When the returned future is
    /// dropped before the model has begun, the run is skipped.
    ///
    /// # Errors
    /// [`SessionError::OutOfMemory`] when a smaller input may fit; else ONNX Runtime's own words.
    pub async fn infer(&self, input: Array4<f32>) -> Result<Inference, SessionError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::Infer { input, answer }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Paints one crop; waits while others are before it. When the returned future is dropped before the
    /// model has begun, the painting is skipped; afterwards `follow.cancel` ends it.
    ///
    /// # Errors
    /// See [`PaintError`].
    pub async fn paint(&self, painting: Painting, follow: Follow) -> Result<Painted, PaintError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::Paint { painting: Box::new(painting), follow, answer }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped().into()))
    }

    /// How probably a picture is unsafe, from 0 to 1. `rgb` is R, G, B of every pixel.
    ///
    /// # Errors
    /// As [`ModelHandle::infer`].
    pub async fn judge(&self, rgb: Vec<u8>, size: (u32, u32)) -> Result<f32, SessionError> {
        let (answer, answered) = oneshot::channel();
        self.send(Work::CheckSafety { rgb, size, answer }).await?;
        answered.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    async fn send(&self, work: Work) -> Result<(), SessionError> {
        let request = Request { work, sent: Instant::now(), span: Span::current() };
        self.requests.send(request).await.map_err(|_| self.stopped())
    }

    fn stopped(&self) -> SessionError {
        SessionError::Failed(format!("the thread of model {} has stopped", self.identity().name))
    }
}
