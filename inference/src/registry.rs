//! Loads, checks and serves models. Loading goes through the steps of [`LoadStep`]; a model that fails one never
//! serves. One OS thread owns each loaded model.
//!
//! One table maps each demand to its model. When the files change, a [`Watcher`] replaces the table: a request gets the
//! model of the old table or of the new one, and a job keeps the model that it started with. A model's thread ends with
//! the last job that holds a handle to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::bindings::{Bindings, Demand, Scope};
use crate::device::Device;
use crate::manifest::Manifest;
use crate::memory::Memory;
use crate::runs::Runs;
use crate::session::Runtime;
use retouch_catalog::{FixMode, JobClass};

mod alive;
mod batches;
mod candidate;
mod checks;
mod crops;
mod error;
mod handle;
mod identity;
mod kept;
mod load;
mod message;
mod opened;
mod residence;
mod snapshot;
mod steps;
mod streak;
mod table;
mod thread;
mod version;
mod watch;

pub use alive::wait_until_freed;
pub use batches::Announcement;
pub use checks::sample_painting;
pub use error::{LoadError, Problem};
pub use handle::{ModelHandle, ModelLoad};
pub use identity::ModelIdentity;
pub use load::{Inspection, inspect_files, inspect_model, load_model};
pub use message::{Inference, PaintControl, PaintResult};
use snapshot::Snapshot;
pub use steps::{LoadStep, Refusal, StepReport};
use table::{Slot, Table};
pub use watch::Watcher;

/// The models that one models directory binds on this device. Each is loaded on first use.
pub struct Registry {
    models_dir: PathBuf,
    runtime: Runtime,
    /// Locked only to clone or replace the table, never while a model loads.
    table: Mutex<Arc<Table>>,
    /// The state of the files, and the bindings, when the registry was opened.
    opened: (Snapshot, Bindings),
}

impl Registry {
    /// Reads `models_dir/tools.toml` and the manifests that it names. Loads no model yet.
    ///
    /// # Errors
    /// If one of the files is invalid.
    pub fn open(models_dir: &Path, runtime: Runtime) -> Result<Self, LoadError> {
        // Taken before the files are read, so that no later change is missed.
        let snapshot = Snapshot::take(models_dir, runtime.device(), None);
        let bindings = Bindings::read(models_dir)?;
        bindings.check(models_dir)?;
        let mut slots: Vec<Arc<Slot>> = Vec::new();
        let mut routes = Vec::new();
        for (scope, name) in bindings.served(runtime.device()) {
            let known = slots.iter().find(|slot| slot.name == name).cloned();
            let slot = known.unwrap_or_else(|| {
                let slot = Arc::new(Slot::empty(name));
                slots.push(Arc::clone(&slot));
                slot
            });
            routes.push((scope, slot));
        }
        let selector = bindings.selector_on(runtime.device()).map(Slot::empty).map(Arc::new);
        Ok(Self {
            models_dir: models_dir.to_owned(),
            runtime,
            table: Mutex::new(Arc::new(Table { routes, selector, problems: Vec::new() })),
            opened: (snapshot, bindings),
        })
    }

    pub const fn device(&self) -> Device {
        self.runtime.device()
    }

    /// Returns the maximum memory of one run of an upscaler, in bytes.
    pub fn tile_memory_bytes(&self) -> u64 {
        self.runtime.tile_memory_bytes()
    }

    pub const fn runs(&self) -> &Runs {
        self.runtime.runs()
    }

    pub const fn memory(&self) -> &Memory {
        self.runtime.memory()
    }

    /// Returns the classes of jobs that this worker can take.
    pub fn classes(&self) -> Vec<JobClass> {
        self.table().classes()
    }

    /// Returns the fix modes that this worker has a model for.
    pub fn modes(&self) -> Vec<FixMode> {
        let table = self.table();
        let mut modes: Vec<_> =
            table.scopes().filter_map(|scope| scope.demand.tool.mode()).collect();
        modes.dedup();
        modes
    }

    /// Returns what this worker serves, with the names of the models.
    pub fn served(&self) -> Vec<(Scope, String)> {
        let table = self.table();
        table.routes.iter().map(|(scope, slot)| (*scope, slot.name.clone())).collect()
    }

    /// Returns what this worker serves with loaded models, with the models.
    pub fn serving(&self) -> Vec<(Scope, ModelHandle)> {
        let table = self.table();
        let loaded = table
            .routes
            .iter()
            .filter_map(|(scope, slot)| slot.model.get().map(|model| (*scope, model.clone())));
        loaded.collect()
    }

    /// Returns the problems that keep the registry from serving the models that the files specify.
    pub fn problems(&self) -> Vec<Problem> {
        self.table().problems.clone()
    }

    /// Returns the model that meets a demand for pictures of any size; see [`Self::model_for_picture`].
    ///
    /// # Errors
    /// If no model is bound to the demand, or the load fails.
    pub async fn model_for(&self, demand: Demand) -> Result<ModelHandle, LoadError> {
        self.model_for_picture(demand, u64::MAX).await
    }

    /// Returns the model that meets a demand for a picture of this many pixels, and loads it on first use. Concurrent
    /// callers share one load. After a failed load, the next caller tries again.
    ///
    /// # Errors
    /// If no model is bound to the demand, or the load fails.
    pub async fn model_for_picture(
        &self,
        demand: Demand,
        pixels: u64,
    ) -> Result<ModelHandle, LoadError> {
        let table = self.table();
        let device = self.device();
        let slot = table.slot_for(demand, pixels).ok_or(LoadError::Unbound { demand, device })?;
        self.filled(slot).await
    }

    /// Returns whether a model that answers clicks is bound on this device.
    pub fn has_selector(&self) -> bool {
        self.table().selector.is_some()
    }

    /// Returns the model that answers clicks, or `None` if none is bound on this device.
    ///
    /// # Errors
    /// If the load fails.
    pub async fn selector(&self) -> Result<Option<ModelHandle>, LoadError> {
        match &self.table().selector {
            Some(slot) => self.filled(slot).await.map(Some),
            None => Ok(None),
        }
    }

    async fn filled(&self, slot: &Slot) -> Result<ModelHandle, LoadError> {
        slot.model.get_or_try_init(|| self.load(&slot.name)).await.cloned()
    }

    /// Returns whether a model is bound to a demand on this device.
    pub fn is_served(&self, demand: Demand) -> bool {
        self.table().meets(demand)
    }

    /// Reads the manifest of a model, bound or not.
    ///
    /// # Errors
    /// If the manifest is invalid.
    pub fn manifest(&self, name: &str) -> Result<Manifest, LoadError> {
        Ok(Manifest::read(&self.models_dir.join(name))?)
    }

    /// Loads a model by name, bound or not.
    ///
    /// # Errors
    /// If the manifest is invalid or a step of the load fails.
    pub async fn load(&self, name: &str) -> Result<ModelHandle, LoadError> {
        let manifest = Manifest::read(&self.models_dir.join(name))?;
        load_model(manifest, self.runtime.clone(), |_| {}).await
    }

    /// Loads every model that is bound on this device.
    ///
    /// # Errors
    /// The first load that fails.
    pub async fn load_all(&self) -> Result<(), LoadError> {
        for slot in self.table().slots() {
            self.filled(slot).await?;
        }
        Ok(())
    }

    /// Returns the loaded models, each once.
    pub fn loaded(&self) -> Vec<ModelIdentity> {
        let table = self.table();
        let models = table.slots().filter_map(|slot| slot.model.get());
        let mut loaded: Vec<_> = models.map(|model| model.identity().clone()).collect();
        loaded.sort_by(|a, b| a.name.cmp(&b.name));
        loaded.dedup();
        loaded
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace_table(&self, table: Table) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }
}
