//! The memory that the models of a process share: its limit, the share of each model, and the queue of waiting models.
//!
//! A model's thread reserves memory before it loads the model and releases it after unloading. Waiting models form a
//! queue. The least recently used models are asked to give way until the first in the queue fits: an idle one gives way
//! after a moment, a busy one after its turn. A model reserves memory only while it holds none, so no two can wait for
//! each other. An engine that is built beside its model takes only memory that is free, and never waits.
//!
//! Order of the locks: first the reservation, then [`Memory::begin_load`], then the state. A thread that waits for
//! memory holds neither lock, so a thread that holds a lock never waits for a model to give way.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

mod builds;
mod probe;
#[cfg(test)]
mod tests;

pub use builds::Build;
use builds::Builds;
pub use probe::{MemorySettings, Probe, Reading};

/// How often a waiting model checks whether it is still needed.
const LOOK: Duration = Duration::from_millis(20);
/// Minimum and maximum turn of a model while others wait.
const TURN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// The length of a turn in loading times: loading then takes at most an eighth of the time.
const LOADS_PER_TURN: u32 = 8;
/// Maximum wait of an idle model for more work before it gives way. A model that loads faster waits for less.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The memory of a process's models. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Shared>);

struct Shared {
    limit: Option<u64>,
    state: Mutex<State>,
    changed: Condvar,
    /// Exclusive while a load is measured, shared by all other loads: the device's memory shows only their sum.
    loading: RwLock<()>,
    /// The number of unloads, and of loads that did not wait for a measured one to end; and how many of these are in
    /// progress.
    spoiled: AtomicU64,
    beside: AtomicU64,
    /// The number of loads and unloads so far.
    changes: watch::Sender<u64>,
    builds: Builds,
}

#[derive(Default)]
struct State {
    tenants: BTreeMap<u64, Tenancy>,
    waiting: VecDeque<Waiting>,
    /// Counts models, uses and loads.
    ids: u64,
    uses: u64,
    loads: u64,
    /// When the models began to exceed the limit, because one turned out larger than expected.
    over_since: Option<Instant>,
}

struct Tenancy {
    name: String,
    wake: Box<dyn Fn() + Send>,
    /// The bytes it holds; `None` while it is not loaded.
    held: Option<u64>,
    /// When it was loaded last; `None` before.
    loaded_at: Option<Instant>,
    last_used: u64,
    /// Whether it is asked to give way.
    is_asked: bool,
}

struct Waiting {
    id: u64,
    since: Instant,
}

/// A model is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TooLarge {
    /// In bytes.
    pub needed: u64,
    pub is_estimate: bool,
    /// In bytes.
    pub limit: u64,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed_mib, limit_mib) = (self.needed.div_ceil(1 << 20), self.limit >> 20);
        let (needs, remedy) = if self.is_estimate {
            (
                "by the size of its files, it is estimated to need",
                "if it needs less, state that as memory_mib in its manifest; otherwise ",
            )
        } else {
            ("it needs about", "")
        };
        write!(
            f,
            "{needs} {needed_mib} MiB, but all models together may take {limit_mib} MiB; {remedy}raise \
             RETOUCH_MODEL_MEMORY_MIB, lower RETOUCH_TILE_MEMORY_MIB for an upscaler, or bind a smaller model"
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The memory is reserved.
    Over,
    /// The model is no longer needed.
    Abandoned,
}

/// A load in progress. Ends when dropped.
#[derive(Debug)]
pub enum Load<'a> {
    /// No other load runs at the same time, so the growth of the memory in use belongs to this load.
    Measured(RwLockWriteGuard<'a, ()>),
    /// Other loads of this kind may run at the same time.
    Unmeasured(RwLockReadGuard<'a, ()>),
    /// It did not wait for a measured load to end.
    BesideMeasured(Beside<'a>),
}

/// Counts a load beside a measured one until it is dropped.
#[derive(Debug)]
pub struct Beside<'a>(&'a AtomicU64);

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Memory {
    /// Creates the memory of a process; `None` for no limit.
    pub fn new(limit: Option<u64>) -> Self {
        if let Some(limit) = limit {
            metrics::gauge!("retouch_model_memory_limit_bytes").set(limit as f64);
        }
        Self(Arc::new(Shared {
            limit,
            state: Mutex::default(),
            changed: Condvar::new(),
            loading: RwLock::default(),
            spoiled: AtomicU64::default(),
            beside: AtomicU64::default(),
            changes: watch::Sender::new(0),
            builds: Builds::default(),
        }))
    }

    /// Returns the limit, in bytes.
    pub fn limit(&self) -> Option<u64> {
        self.0.limit
    }

    /// Returns the memory that loaded models hold, in bytes.
    pub fn held(&self) -> u64 {
        self.0.lock().held()
    }

    /// Returns how often memory was reserved for a load.
    pub fn loads(&self) -> u64 {
        self.0.lock().loads
    }

    /// Returns a counter that changes whenever a model is loaded or unloaded.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Begins a load whose memory is already reserved. Blocks while a measured load runs; a measured one also waits for
    /// all others to end. Never call [`Tenant::acquire`] before the load has ended.
    pub fn begin_load(&self, is_measured: bool) -> Load<'_> {
        let loading = &self.0.loading;
        if is_measured {
            Load::Measured(loading.write().unwrap_or_else(PoisonError::into_inner))
        } else {
            Load::Unmeasured(loading.read().unwrap_or_else(PoisonError::into_inner))
        }
    }

    /// Begins to load a model again for a waiting caller. Waits up to `patience` for a measured load, which may check a
    /// large model for minutes, and then goes ahead, which spoils the measurement.
    pub fn begin_load_again(&self, patience: Duration) -> Load<'_> {
        let until = Instant::now() + patience;
        loop {
            match self.0.loading.try_read() {
                Ok(guard) => return Load::Unmeasured(guard),
                Err(TryLockError::Poisoned(error)) => return Load::Unmeasured(error.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOOK),
                Err(TryLockError::WouldBlock) => {
                    self.0.spoiled.fetch_add(1, Ordering::SeqCst);
                    self.0.beside.fetch_add(1, Ordering::SeqCst);
                    return Load::BesideMeasured(Beside(&self.0.beside));
                }
            }
        }
    }

    /// Returns a number that changes when a load or an unload spoils a measurement; `None` while one would spoil the next.
    pub fn spoiled(&self) -> Option<u64> {
        let is_alone = self.0.beside.load(Ordering::SeqCst) == 0;
        is_alone.then(|| self.0.spoiled.load(Ordering::SeqCst))
    }

    /// Begins the build of an engine. Blocks until no other one runs and models have stopped loading: they come first, and
    /// the memory that a build takes must not be measured as theirs.
    pub fn begin_build(&self) -> Build<'_> {
        let Shared { builds, changes, .. } = &*self.0;
        builds.begin(|| self.begin_load(false), || *changes.borrow())
    }

    /// Returns whether an engine is being built. Nothing can be measured during a build.
    pub fn is_building(&self) -> bool {
        self.0.builds.is_running()
    }

    /// Returns the number of builds that have ended, given up or not.
    pub fn builds(&self) -> u64 {
        self.0.builds.ended()
    }

    /// Registers a model, which holds nothing yet. `wake` must make its thread check [`Tenant::must_yield`], and must
    /// not block.
    pub fn register(&self, name: &str, wake: impl Fn() + Send + 'static) -> Tenant {
        let mut state = self.0.lock();
        state.ids += 1;
        let id = state.ids;
        let tenancy = Tenancy {
            name: name.to_owned(),
            wake: Box::new(wake),
            held: None,
            loaded_at: None,
            last_used: 0,
            is_asked: false,
        };
        state.tenants.insert(id, tenancy);
        Tenant { memory: self.clone(), id }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a load or an unload, and wakes the waiting models.
    fn notify(&self, state: &State) {
        for tenancy in state.tenants.values() {
            let held = state.held_under(&tenancy.name);
            let model = tenancy.name.clone();
            metrics::gauge!("retouch_model_memory_bytes", "model" => model).set(held as f64);
        }
        metrics::gauge!("retouch_models_waiting").set(state.waiting.len() as f64);
        self.changes.send_modify(|changes| *changes += 1);
        self.changed.notify_all();
    }
}

impl State {
    fn held(&self) -> u64 {
        self.tenants.values().filter_map(|tenancy| tenancy.held).sum()
    }

    /// Two versions of a model share a name while one replaces the other.
    fn held_under(&self, name: &str) -> u64 {
        let same = self.tenants.values().filter(|tenancy| tenancy.name == name);
        same.filter_map(|tenancy| tenancy.held).sum()
    }

    /// Asks the least recently used models to give way until `bytes` more would fit. Never asks `not`.
    fn ask(&mut self, bytes: u64, limit: u64, not: u64) {
        let mut left = self.held();
        let mut loaded: Vec<_> = self
            .tenants
            .iter_mut()
            .filter(|(id, tenancy)| **id != not && tenancy.held.is_some())
            .collect();
        loaded.sort_by_key(|(_, tenancy)| tenancy.last_used);
        for (_, tenancy) in loaded {
            if left.saturating_add(bytes) <= limit {
                break;
            }
            left -= tenancy.held.unwrap_or(0);
            if !tenancy.is_asked {
                tenancy.is_asked = true;
                (tenancy.wake)();
            }
        }
    }

    /// Withdraws all requests to give way: no more is requested than the first in the queue needs.
    fn ask_nobody(&mut self) {
        for tenancy in self.tenants.values_mut() {
            tenancy.is_asked = false;
        }
    }

    fn stop_waiting(&mut self, id: u64) {
        self.waiting.retain(|waiting| waiting.id != id);
        // Above the limit, models must give way whether or not anybody waits.
        if self.over_since.is_none() {
            self.ask_nobody();
        }
    }
}

/// A model's share of the memory. Releases it when dropped.
#[derive(Debug)]
pub struct Tenant {
    memory: Memory,
    id: u64,
}

impl Tenant {
    /// Reserves memory, and blocks until there is enough. Calls `is_wanted` while it waits.
    ///
    /// # Errors
    /// [`TooLarge`] if it can never fit.
    pub fn acquire(
        &self,
        bytes: u64,
        mut is_wanted: impl FnMut() -> bool,
    ) -> Result<Wait, TooLarge> {
        let shared = &self.memory.0;
        let limit = shared.limit.unwrap_or(u64::MAX);
        if bytes > limit {
            return Err(TooLarge { needed: bytes, is_estimate: false, limit });
        }
        let (mut state, since) = (shared.lock(), Instant::now());
        state.waiting.push_back(Waiting { id: self.id, since });
        metrics::gauge!("retouch_models_waiting").set(state.waiting.len() as f64);
        let wait = loop {
            let is_first = state.waiting.front().is_some_and(|first| first.id == self.id);
            if is_first && state.held().saturating_add(bytes) <= limit {
                break Wait::Over;
            }
            if is_first {
                state.ask(bytes, limit, self.id);
            }
            drop(shared.changed.wait_timeout(state, LOOK));
            let is_wanted = is_wanted();
            state = shared.lock();
            if !is_wanted {
                break Wait::Abandoned;
            }
        };
        state.stop_waiting(self.id);
        if wait == Wait::Over {
            state.loads += 1;
            state.uses += 1;
            let uses = state.uses;
            if let Some(own) = state.tenants.get_mut(&self.id) {
                (own.held, own.last_used) = (Some(bytes), uses);
            }
            metrics::histogram!("retouch_model_memory_wait_seconds").record(since.elapsed());
        }
        shared.notify(&state);
        Ok(wait)
    }

    /// Reserves memory if it is free now. Never asks other models to give way, and is itself asked last. Returns whether it
    /// reserved the memory.
    pub fn try_acquire(&self, bytes: u64) -> bool {
        let shared = &self.memory.0;
        let mut state = shared.lock();
        let limit = shared.limit.unwrap_or(u64::MAX);
        let fits = state.waiting.is_empty() && state.held().saturating_add(bytes) <= limit;
        if fits && let Some(own) = state.tenants.get_mut(&self.id) {
            (own.held, own.last_used) = (Some(bytes), u64::MAX);
            shared.notify(&state);
        }
        fits
    }

    /// Corrects the size of the share once the model is loaded, which begins its turn. If it exceeds the limit, other models
    /// are asked to give way.
    pub fn correct(&self, bytes: u64) {
        let shared = &self.memory.0;
        let mut state = shared.lock();
        if let Some(own) = state.tenants.get_mut(&self.id).filter(|own| own.held.is_some()) {
            (own.held, own.loaded_at) = (Some(bytes), Some(Instant::now()));
        }
        // The first in the queue asks again if it still does not fit.
        state.ask_nobody();
        if let Some(limit) = shared.limit {
            let is_over = state.held() > limit;
            state.over_since = is_over.then(|| state.over_since.unwrap_or_else(Instant::now));
            if is_over {
                state.ask(0, limit, self.id);
            }
        }
        shared.notify(&state);
    }

    /// Records a use, for the order in which models give way.
    pub fn touch(&self) {
        let mut state = self.memory.0.lock();
        state.uses += 1;
        let uses = state.uses;
        if let Some(own) = state.tenants.get_mut(&self.id) {
            own.last_used = uses;
        }
    }

    /// Returns whether others have asked for this model's memory.
    pub fn is_asked(&self) -> bool {
        self.memory.0.lock().tenants.get(&self.id).is_some_and(|own| own.is_asked)
    }

    /// Returns whether the model must give way now: it was asked to, and has been idle for a moment, or its turn is over.
    /// `idle` is how long it has had no work, `None` while it has some, and `load` how long it takes to load.
    pub fn must_yield(&self, idle: Option<Duration>, load: Duration) -> bool {
        let state = self.memory.0.lock();
        let Some(own) = state.tenants.get(&self.id).filter(|own| own.is_asked) else {
            return false;
        };
        if let Some(idle) = idle {
            return idle >= (load / 2).min(LONGEST_PAUSE);
        }
        // Others may have waited before it was loaded, and the load does not count toward its turn.
        let first = state.waiting.front().and_then(|first| own.loaded_at.max(Some(first.since)));
        let since = [first, state.over_since].into_iter().flatten().min();
        let turn = (load * LOADS_PER_TURN).clamp(TURN.0, TURN.1);
        since.is_some_and(|since| since.elapsed() >= turn)
    }

    pub fn release(&self) {
        let shared = &self.memory.0;
        let mut state = shared.lock();
        if let Some(own) = state.tenants.get_mut(&self.id) {
            own.is_asked = false;
            if own.held.take().is_some() {
                // The growth of a load that is being measured would lack what this one has freed.
                shared.spoiled.fetch_add(1, Ordering::SeqCst);
            }
        }
        if state.over_since.is_some() && shared.limit.is_some_and(|limit| state.held() <= limit) {
            state.over_since = None;
            // The first in the queue asks again if it still does not fit.
            state.ask_nobody();
        }
        shared.notify(&state);
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        self.release();
        let mut state = self.memory.0.lock();
        state.tenants.remove(&self.id);
        state.stop_waiting(self.id);
        drop(state);
        self.memory.0.changed.notify_all();
    }
}
