//! The memory of a loaded model: its part of the memory of all models, and how to load it again after it gave way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::{info, warn};

use super::candidate::{self, Order};
use super::checks::{self, Reference};
use super::kept::Kept;
use super::message::Message;
use super::opened::{Candidate, Opened};
use crate::device::Device;
use crate::manifest::{Manifest, Task};
use crate::memory::{Load, Reading, Tenant, TooLarge, Wait};
use crate::session::{Runtime, SessionError};

/// With its batches, a model may take at most `1 / BATCHES_SHARE` of the limit. The rest is for other models.
const BATCHES_SHARE: u64 = 2;
/// A measurement counts for at most this many times the estimate. It includes runs of other models, but the activations
/// of an honest net can take ten times its files.
const MOST_ESTIMATES: u64 = 16;
/// A measurement up to this many bytes always counts in full: a net of a few megabytes may work on large pictures.
const ALWAYS_CREDIBLE: u64 = 1 << 30;
/// How long a model that is needed again waits for another one that is being measured.
const PATIENCE: Duration = Duration::from_secs(10);

/// A model's part of the memory, with everything needed to load it again.
pub struct Residence {
    manifest: Manifest,
    runtime: Runtime,
    tenant: Tenant,
    pub kept: Kept,
    /// In bytes.
    needed: u64,
    /// How long the last load took.
    load_time: Duration,
    is_loaded: Arc<AtomicBool>,
    has_engine: Arc<AtomicBool>,
    /// Sends to the model's thread.
    messages: mpsc::WeakSender<Message>,
}

pub enum NotLoaded {
    /// No caller waits for it anymore.
    Abandoned,
    Failed(SessionError),
}

/// The state before a measured load.
#[derive(Clone, Copy)]
pub struct Before {
    /// The memory in use, in bytes.
    used: u64,
    /// How many measurements were spoiled until then; `None` if this one was.
    spoiled: Option<u64>,
}

impl Residence {
    /// Registers a model whose thread receives from `messages`. Reserves nothing yet.
    pub fn new(
        manifest: &Manifest,
        runtime: &Runtime,
        messages: mpsc::WeakSender<Message>,
    ) -> Self {
        let own = messages.clone();
        let wake = move || {
            // A full queue needs no waking: the thread looks before each request.
            if let Some(messages) = own.upgrade() {
                let _ = messages.try_send(Message::GiveWay);
            }
        };
        let memory = runtime.memory();
        Self {
            tenant: memory.register(&manifest.name, wake),
            kept: Kept::new(memory.limit().is_some()),
            needed: manifest.memory_bytes.unwrap_or_else(|| estimate(manifest, runtime)),
            manifest: manifest.clone(),
            runtime: runtime.clone(),
            load_time: Duration::ZERO,
            is_loaded: Arc::default(),
            has_engine: Arc::default(),
            messages,
        }
    }

    /// Builds the engine of the model in the background if the settings say so. `opened` serves until then.
    pub fn order_engine(&self, opened: &mut Opened) {
        let waits = self.runtime.engines().is_some_and(|engines| engines.in_background);
        let (true, Opened::Net(net), Some(task)) = (waits, opened, self.manifest.task.net()) else {
            return;
        };
        let name = &self.manifest.name;
        match Reference::record(net, task) {
            Ok(reference) => Order {
                manifest: self.manifest.clone(),
                runtime: self.runtime.opening_engines(true),
                rewrites: self.kept.rewrites,
                needed: self.needed,
                reference,
                messages: self.messages.clone(),
            }
            .start(),
            Err(reason) => {
                warn!(model.name = name, reason, "Building no engine for {name}: {reason}");
            }
        }
    }

    /// Replaces `own` with the engine. If `own` has given way, unloads the engine: the next load opens it.
    pub fn swap(&mut self, own: &mut Option<Opened>, candidate: Candidate) {
        let runtime = if own.is_some() {
            let Candidate { opened, runtime, tenant } = candidate;
            // Both are in memory until here.
            *own = Some(opened);
            self.has_engine.store(true, Ordering::Release);
            drop(tenant);
            runtime
        } else {
            candidate.unload()
        };
        self.adopt(runtime);
    }

    /// From now on, opens the model on `runtime`.
    fn adopt(&mut self, runtime: Runtime) {
        let builder = runtime.engines().map_or("", |engines| engines.builder.as_str());
        self.runtime = runtime;
        let name = &self.manifest.name;
        info!(model.name = name, "Model {name} runs on {builder} from now on");
        candidate::count("swapped", name);
    }

    /// Opens the model without an engine, from now on: the engine fails for `reason`.
    ///
    /// # Errors
    /// Why it cannot be opened, in one sentence.
    pub fn open_without_engine(&mut self, reason: &str) -> Result<Opened, String> {
        let name = &self.manifest.name;
        warn!(model.name = name, reason, "Model {name} runs without its engine again: {reason}");
        candidate::count("abandoned", name);
        self.runtime = self.runtime.opening_engines(false);
        self.has_engine.store(false, Ordering::Release);
        checks::load_again(&self.manifest, &self.runtime, &mut self.kept)
    }

    /// Returns whether the model is in memory as an engine, now and later.
    pub fn has_engine(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_engine)
    }

    /// Waits for the memory of the first load, which the caller then does between [`Self::before`] and [`Self::settle`],
    /// within one [`crate::memory::Memory::begin_load`].
    ///
    /// # Errors
    /// [`TooLarge`] if the model can never fit.
    pub fn reserve(&self, is_wanted: impl FnMut() -> bool) -> Result<Wait, TooLarge> {
        let is_estimate = self.is_measured();
        let wait = self.tenant.acquire(self.needed, is_wanted);
        wait.map_err(|error| TooLarge { is_estimate, ..error })
    }

    /// Returns whether the first load is measured. A model that states its size is not.
    pub const fn is_measured(&self) -> bool {
        self.manifest.memory_bytes.is_none()
    }

    /// Reads the memory in use before the first load; `None` if that is not possible, or an engine is being built, whose
    /// memory would count for the model.
    pub fn before(&self) -> Option<Before> {
        let memory = self.runtime.memory();
        let spoiled = memory.spoiled();
        let used = (!memory.is_building()).then(|| self.runtime.read_memory(Reading::Used))??;
        Some(Before { used, spoiled })
    }

    /// Measures the model after its first load, which included a run of one input, or of two if it takes batches. Ends
    /// the load. Returns how many inputs may run together, of `batch` at most.
    pub fn settle(
        &mut self,
        load: Load<'_>,
        before: Option<Before>,
        batch: usize,
        load_time: Duration,
    ) -> usize {
        let peak = self.runtime.read_memory(Reading::Peak);
        drop(load);
        // A model that came back meanwhile would count for this one, and one that was unloaded would be missing.
        let spoiled = self.runtime.memory().spoiled();
        let (before, batch) = match before {
            Some(Before { used, spoiled: earlier }) if earlier.is_some() && earlier == spoiled => {
                (Some(used), batch)
            }
            // Nobody knows what a larger batch would take.
            Some(_) => (None, batch.min(2)),
            None => (None, batch),
        };
        let measured = before.zip(peak).map(|(before, peak)| peak.saturating_sub(before));
        let limit = self.runtime.memory().limit();
        let mut inputs = batch;
        // The measurement includes other work of the process, so a stated size takes precedence. The size of the files
        // is the minimum.
        if let (None, Some(measured)) = (self.manifest.memory_bytes, measured) {
            let weights = file_bytes(&self.manifest);
            let measured = measured.max(weights) + tiles_bytes(&self.manifest.task, &self.runtime);
            self.needed = self.credible(measured);
            if let (Some(limit), Task::Segmentation(_) | Task::SdInpaint(_)) =
                (limit, &self.manifest.task)
            {
                let proven = batch.min(2) as u64;
                let sessions = sessions(&self.manifest.task, &self.runtime, batch);
                // A session for single pictures ran one more input.
                let ran = proven + sessions - 1;
                let per_input = (self.needed.saturating_sub(sessions * weights) / ran).max(1);
                let room = (limit / BATCHES_SHARE).saturating_sub(self.needed);
                let more = (batch as u64 - proven).min(room / per_input);
                self.needed += more * per_input;
                inputs = (proven + more) as usize;
            }
        }
        self.load_time = load_time;
        self.tenant.correct(self.needed);
        self.is_loaded.store(true, Ordering::Release);
        inputs
    }

    /// Returns the credible part of a measurement. The model has just run within the device's memory, so a measurement
    /// above the limit makes it run alone instead of refusing it.
    fn credible(&self, measured: u64) -> u64 {
        // Until now, `needed` is the estimate, which fits: it was reserved.
        let most = self.needed.saturating_mul(MOST_ESTIMATES).max(ALWAYS_CREDIBLE);
        let most = most.min(self.runtime.memory().limit().unwrap_or(u64::MAX));
        if measured > most {
            let name = &self.manifest.name;
            let (measured_mib, counted_mib) = (measured >> 20, most >> 20);
            warn!(
                model.name = name,
                measured_mib,
                counted_mib,
                "Measured {measured_mib} MiB for model {name}, but counting {counted_mib} MiB; if it needs more, state \
                 memory_mib in its manifest"
            );
        }
        measured.min(most)
    }

    /// Returns the memory that the model needs while it is loaded, in bytes.
    pub const fn needed(&self) -> u64 {
        self.needed
    }

    /// Returns whether the model is loaded, now and later.
    pub fn is_loaded(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_loaded)
    }

    /// Records a use.
    pub fn touch(&self) {
        self.tenant.touch();
    }

    /// Returns whether another model has asked for the memory.
    pub fn is_asked(&self) -> bool {
        self.tenant.is_asked()
    }

    /// Returns whether the model must give way now. `idle` is how long it has had no work; `None` while it has some.
    pub fn must_yield(&self, idle: Option<Duration>) -> bool {
        self.tenant.must_yield(idle, self.load_time)
    }

    /// Returns whether other models hold memory that this one could use.
    pub fn has_company(&self) -> bool {
        let memory = self.runtime.memory();
        let own = if self.is_loaded.load(Ordering::Acquire) { self.needed } else { 0 };
        memory.limit().is_some() && memory.held() > own
    }

    /// Unloads the model; `None` if the opened model is dropped already.
    pub fn unload(&self, opened: Option<Opened>) {
        drop(opened);
        self.is_loaded.store(false, Ordering::Release);
        self.has_engine.store(false, Ordering::Release);
        self.tenant.release();
        let model = self.manifest.name.clone();
        info!(model.name = model, "Unloaded model {model} to free its memory");
        metrics::counter!("retouch_model_unloads_total", "model" => model).increment(1);
    }

    /// Loads the model again, from the files of its first load, once there is memory for it; with `alone` once no other
    /// model is loaded. Then no other is loaded until [`Self::admit_others`]. An engine of the model that has arrived, or
    /// arrives meanwhile, gives up the memory that this may wait for; the model is then opened as that engine.
    ///
    /// # Errors
    /// Why it is not loaded. It holds no memory then.
    pub fn load_again(
        &mut self,
        alone: bool,
        mut is_wanted: impl FnMut() -> bool,
        mut arrived: impl FnMut() -> Option<Candidate>,
    ) -> Result<Opened, NotLoaded> {
        let limit = self.runtime.memory().limit().unwrap_or(self.needed);
        let bytes = if alone { limit } else { self.needed.min(limit) };
        let mut engine = None;
        let wait = self.tenant.acquire(bytes, || {
            engine = arrived().map(Candidate::unload).or(engine.take());
            is_wanted()
        });
        if let Some(runtime) = engine {
            self.adopt(runtime);
        }
        match wait {
            Ok(Wait::Over) => {}
            Ok(Wait::Abandoned) => return Err(NotLoaded::Abandoned),
            Err(error) => return Err(NotLoaded::Failed(SessionError::Failed(error.to_string()))),
        }
        let memory = self.runtime.memory().clone();
        let load = memory.begin_load_again(PATIENCE);
        // Not while it waits for memory: others may hold that for long.
        let watched = self.runtime.runs().start_load(&self.manifest.name);
        let started = Instant::now();
        let mut opened = self
            .runtime
            .faults()
            .inject_into_load(memory.loads())
            .and_then(|()| checks::load_again(&self.manifest, &self.runtime, &mut self.kept));
        if let (Err(reason), true) = (&opened, self.was_swapped()) {
            let reason = reason.clone();
            opened = self.open_without_engine(&reason);
        }
        drop((load, watched));
        let name = &self.manifest.name;
        match opened {
            Ok(opened) => {
                self.load_time = started.elapsed();
                if !alone {
                    self.tenant.correct(self.needed);
                }
                self.is_loaded.store(true, Ordering::Release);
                self.has_engine.store(self.was_swapped(), Ordering::Release);
                let duration_ms = self.load_time.as_millis() as u64;
                info!(model.name = name, duration_ms, "Loaded model {name} again");
                Ok(opened)
            }
            Err(reason) => {
                self.tenant.release();
                let text = format!("model {name} cannot be loaded again: {reason}");
                Err(NotLoaded::Failed(SessionError::from_message(text)))
            }
        }
    }

    /// Returns whether an engine has replaced what served first.
    fn was_swapped(&self) -> bool {
        let in_background = self.runtime.engines().is_some_and(|engines| engines.in_background);
        in_background && self.runtime.opens_engines()
    }

    /// Lets other models load beside this one again.
    pub fn admit_others(&self) {
        self.tenant.correct(self.needed);
    }
}

fn file_bytes(manifest: &Manifest) -> u64 {
    manifest.files.iter().map(|file| file.size_bytes).sum()
}

/// Returns how many sessions have the weights of a model that takes batches of this size.
fn sessions(task: &Task, runtime: &Runtime, batch: usize) -> u64 {
    if batch > 1 && runtime.separates_batches(task) { 2 } else { 1 }
}

/// Estimates the memory that a model needs before it is measured: twice its files for each session, because weights in 16
/// bits may become 32, and on a GPU some memory that its libraries take for each model.
fn estimate(manifest: &Manifest, runtime: &Runtime) -> u64 {
    let files = file_bytes(manifest);
    let around = match runtime.device() {
        Device::Cuda if files > 0 => 256 << 20,
        Device::Cuda | Device::Cpu => 0,
    };
    let sessions = sessions(&manifest.task, runtime, runtime.batching().0);
    2 * sessions * files + around + tiles_bytes(&manifest.task, runtime)
}

/// Returns the maximum memory of one run of an upscaler, whose tiles are larger than the picture of its checks.
fn tiles_bytes(task: &Task, runtime: &Runtime) -> u64 {
    let Task::Upscale(upscale) = task else { return 0 };
    let tiling = upscale.tiling;
    let side = u64::from(tiling.largest + 2 * tiling.padding);
    let tile = side * side * u64::from(tiling.memory_bytes_per_pixel);
    let batch = runtime.batching().0 as u64;
    runtime.tile_memory_bytes().min(tile.saturating_mul(batch))
}
