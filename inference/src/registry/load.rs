//! Loads a model on its own thread and returns a handle to it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tracing::{Span, info};

use super::alive::Alive;
use super::batches::Batches;
use super::checks::{self, Loaded};
use super::error::LoadError;
use super::handle::ModelHandle;
use super::identity::ModelIdentity;
use super::message::Message;
use super::opened::Opened;
use super::residence::Residence;
use super::steps::{CheckMode, LoadStep, Refusal, StepReport};
use super::{thread, version};
use crate::manifest::{Manifest, Precision, Task};
use crate::memory::{TooLarge, Wait};
use crate::session::{Runtime, SessionError};

/// Messages that can wait for a model; further senders wait until there is room.
const QUEUE_CAPACITY: usize = 8;

/// Loads one model on its own thread. Calls `report` after each step.
///
/// # Errors
/// [`LoadError::Refused`] with the failed step and the reason.
pub async fn load_model(
    manifest: Manifest,
    runtime: Runtime,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Result<ModelHandle, LoadError> {
    let name = manifest.name.clone();
    let Inspection { model, refusals } =
        start(manifest, runtime, CheckMode::FailFast, report).await;
    let step = refusals.first().map_or(LoadStep::Open, |refusal| refusal.step);
    match model {
        Some(model) if refusals.is_empty() => Ok(model),
        // One step may give several reasons.
        _ => {
            let reasons: Vec<_> = refusals.into_iter().map(|refusal| refusal.reason).collect();
            Err(LoadError::Refused { model: name, step, reason: reasons.join("; ") })
        }
    }
}

/// The result of a complete check of a model.
pub struct Inspection {
    /// The model, if it can run as its manifest says. A model with refusals must not serve; it is returned to measure
    /// its speed.
    pub model: Option<ModelHandle>,
    /// Every reason to refuse the model.
    pub refusals: Vec<Refusal>,
}

/// Takes every step of a load on its own thread, continues after a failed step as far as possible, and compares
/// every golden image. Calls `report` after each step.
pub async fn inspect_model(
    manifest: Manifest,
    runtime: Runtime,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Inspection {
    start(manifest, runtime, CheckMode::Thorough, report).await
}

/// Checks a model's files and contract without running it, for a model that would take minutes on this device. Returns
/// no model.
pub async fn inspect_files(
    manifest: Manifest,
    runtime: Runtime,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Inspection {
    start(manifest, runtime, CheckMode::WithoutRuns, report).await
}

async fn start(
    manifest: Manifest,
    runtime: Runtime,
    mode: CheckMode,
    report: impl FnMut(StepReport) + Send + 'static,
) -> Inspection {
    let (messages, inbox) = mpsc::channel(QUEUE_CAPACITY);
    let (ready, loaded) = oneshot::channel();
    let span = Span::current();
    let name = format!("model-{}", manifest.name);
    let residence = Residence::new(&manifest, &runtime, messages.downgrade());
    let own_model = move || own_model(&manifest, &runtime, mode, report, ready, inbox, residence);
    let alive = Alive::new();
    let started = std::thread::Builder::new().name(name).spawn(move || {
        let _alive = alive;
        span.in_scope(own_model);
    });
    let failed = |reason| {
        let refusal = Refusal { step: LoadStep::Open, reason };
        Inspection { model: None, refusals: vec![refusal] }
    };
    if let Err(error) = started {
        return failed(format!("the model's thread could not start: {error}"));
    }
    let Ok((ready, refusals)) = loaded.await else {
        return failed("the model's thread stopped".to_owned());
    };
    let model = ready.map(|ready| ModelHandle {
        identity: ready.identity,
        task: Arc::new(ready.task),
        version: ready.version.into(),
        messages,
        batches: ready.batches,
        precision: ready.precision,
        is_loaded: ready.is_loaded,
        has_engine: ready.has_engine,
        memory_bytes: ready.memory_bytes,
    });
    Inspection { model, refusals }
}

/// The facts about a loaded model that its handles need.
struct Ready {
    identity: ModelIdentity,
    task: Task,
    version: String,
    batches: Batches,
    precision: Precision,
    is_loaded: Arc<AtomicBool>,
    has_engine: Arc<AtomicBool>,
    memory_bytes: u64,
}

/// The body of a model's thread: loads the model, sends the result to `ready`, and serves requests until every handle
/// is dropped.
fn own_model(
    manifest: &Manifest,
    runtime: &Runtime,
    mode: CheckMode,
    mut report: impl FnMut(StepReport),
    ready: oneshot::Sender<(Option<Ready>, Vec<Refusal>)>,
    inbox: mpsc::Receiver<Message>,
    mut residence: Residence,
) {
    let started = Instant::now();
    match residence.reserve(|| !ready.is_closed()) {
        Ok(Wait::Over) => {}
        Ok(Wait::Abandoned) => return,
        Err(error) => {
            // The caller may be gone, which is fine.
            let _ = ready.send((None, vec![refuse(error, started, &mut report)]));
            return;
        }
    }
    let load = runtime.memory().begin_load(residence.is_measured());
    let (before, started) = (residence.before(), Instant::now());
    // Read the version before any check: a golden image that changes during the checks makes another version.
    let version = version::version(manifest);
    let Loaded { opened, refusals } =
        checks::load(manifest, runtime, mode, &mut residence.kept, &mut report);
    for refusal in refusals.iter().filter(|refusal| refusal.step.uses_device()) {
        runtime.note_loss(&SessionError::from_message(refusal.reason.clone()));
    }
    let Some(mut opened) = opened else {
        // The caller may be gone, which is fine.
        let _ = ready.send((None, refusals));
        return;
    };
    let identity = ModelIdentity {
        name: manifest.name.clone(),
        sha256: manifest.sha256(),
        device: runtime.device(),
    };
    let task = manifest.task.clone();
    let takes_several = match &opened {
        Opened::Net(net) => net.takes_batches(),
        Opened::Painter(painter) => painter.takes_batches(),
        Opened::SafetyChecker(_) | Opened::SegmentAnything(_) => false,
    };
    let most = if takes_several { runtime.batching().0 } else { 1 };
    let most = residence.settle(load, before, most, started.elapsed());
    let precision = residence.kept.rewrites.precision;
    let batches = Batches::new(runtime, &task, most, precision);
    let memory_bytes = residence.needed();
    if refusals.is_empty() {
        info!(
            model.name = identity.name,
            model.sha256 = identity.sha256,
            device = identity.device.as_str(),
            batch = batches.max_inputs(),
            precision = precision.as_str(),
            memory_mib = memory_bytes >> 20,
            duration_ms = started.elapsed().as_millis() as u64,
            "Loaded model {identity}"
        );
        residence.order_engine(&mut opened);
    }
    let (is_loaded, has_engine) = (residence.is_loaded(), residence.has_engine());
    let own = batches.clone();
    let facts =
        Ready { identity, task, version, batches, precision, is_loaded, has_engine, memory_bytes };
    if ready.send((Some(facts), refusals)).is_ok() {
        let serve = || thread::serve(opened, residence, manifest, runtime, inbox, own);
        // Without its thread, the model would fail all jobs. A new process can serve it again.
        if catch_unwind(AssertUnwindSafe(serve)).is_err() {
            let reason = format!("the thread of model {} panicked", manifest.name);
            runtime.runs().set_device_lost(&reason);
        }
    }
}

fn refuse(error: TooLarge, started: Instant, report: &mut impl FnMut(StepReport)) -> Refusal {
    let (step, reason) = (LoadStep::Memory, error.to_string());
    report(StepReport { step, took: started.elapsed(), outcome: Err(reason.clone()) });
    Refusal { step, reason }
}
