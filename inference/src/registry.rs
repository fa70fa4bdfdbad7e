//! Loads models and vouches for them: checksum, contract, warm-up, golden pictures. A model that fails a
//! step never serves anybody. Each loaded model is owned by one OS thread.
//!
//! Which model meets which demand is one table. A [`Watcher`] puts another in its place when the files
//! change: whoever asks gets a model of the old table or of the new one, and a job keeps the model that it
//! began with, whose thread ends with the last job that holds it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use retouch_catalog::{FixMode, JobClass};
use tokio::sync::OnceCell;

use crate::bindings::{Bindings, Demand};
use crate::device::Device;
use crate::manifest::{Manifest, ManifestError};
use crate::runs::Runs;
use crate::session::Runtime;

mod checks;
mod files;
mod handle;
mod thread;
mod watch;

pub use checks::{LoadStep, Refusal, StepReport, sample_painting};
pub use handle::{
    Follow, Inference, Inspection, ModelHandle, ModelIdentity, Painted, inspect_files,
    inspect_model, load_model,
};
use watch::Snapshot;
pub use watch::Watcher;

/// Why a model is not served.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// The manifest or `tools.toml` is at fault.
    #[error("{0}")]
    Manifest(String),
    /// No model is bound to this demand on this device.
    #[error("tools.toml binds no model to {demand} on {device}")]
    Unbound {
        /// What was asked for.
        demand: Demand,
        /// The device that is active.
        device: Device,
    },
    /// A step of the load failed.
    #[error("model {model} is not usable: {step}: {reason}")]
    Refused {
        /// The model's name.
        model: String,
        /// The step that failed.
        step: LoadStep,
        /// Why, in one sentence.
        reason: String,
    },
}

impl From<ManifestError> for LoadError {
    fn from(error: ManifestError) -> Self {
        Self::Manifest(error.to_string())
    }
}

/// Why a demand is not met as the files say. What met it before still does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The model's name, or `tools.toml`.
    pub model: String,
    /// The step that it did not pass.
    pub step: LoadStep,
    /// Why, in one sentence.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.model, self.step, self.reason)
    }
}

/// Every model of one models directory that is bound on this device, loaded when first asked for.
pub struct Registry {
    models_dir: PathBuf,
    runtime: Runtime,
    /// Taken for as long as it takes to clone or replace the table, never while a model loads.
    table: Mutex<Arc<Table>>,
    /// How the files were when they were first read.
    opened: (Snapshot, Bindings),
}

/// Which model meets which demand, and why it is not another.
#[derive(Clone, Default)]
struct Table {
    routes: Vec<(Demand, Arc<Slot>)>,
    problems: Vec<Problem>,
}

/// A model's place in the table.
struct Slot {
    name: String,
    model: OnceCell<ModelHandle>,
}

impl Slot {
    fn holds(&self, model: &ModelHandle) -> bool {
        self.model.get().is_some_and(|held| held.is_same(model))
    }
}

impl Table {
    fn slot(&self, demand: Demand) -> Option<&Arc<Slot>> {
        self.routes.iter().find(|(met, _)| *met == demand).map(|(_, slot)| slot)
    }

    fn demands(&self) -> impl Iterator<Item = Demand> {
        self.routes.iter().map(|(demand, _)| *demand)
    }

    fn classes(&self) -> Vec<JobClass> {
        let mut classes: Vec<_> = self.demands().map(Demand::class).collect();
        classes.sort();
        classes.dedup();
        classes.retain(|class| Demand::make_up(*class, |demand| self.slot(demand).is_some()));
        classes
    }
}

impl Registry {
    /// Reads `models_dir/tools.toml` and the manifests it names. Opens no model yet.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn open(models_dir: &Path, runtime: Runtime) -> Result<Self, LoadError> {
        // Before anything is read: what changes from now on is noticed.
        let snapshot = Snapshot::take(models_dir, runtime.device(), None);
        let bindings = Bindings::read(models_dir)?;
        bindings.check(models_dir)?;
        let mut slots: Vec<Arc<Slot>> = Vec::new();
        let mut routes = Vec::new();
        for (demand, name) in bindings.served(runtime.device()) {
            let known = slots.iter().find(|slot| slot.name == name).cloned();
            let slot = known.unwrap_or_else(|| {
                let slot = Arc::new(Slot { name: name.to_owned(), model: OnceCell::new() });
                slots.push(Arc::clone(&slot));
                slot
            });
            routes.push((demand, slot));
        }
        Ok(Self {
            models_dir: models_dir.to_owned(),
            runtime,
            table: Mutex::new(Arc::new(Table { routes, problems: Vec::new() })),
            opened: (snapshot, bindings),
        })
    }

    /// The device that models run on.
    pub const fn device(&self) -> Device {
        self.runtime.device()
    }

    /// What its models are running.
    pub const fn runs(&self) -> &Runs {
        self.runtime.runs()
    }

    /// The classes of jobs that this worker has models for.
    pub fn classes(&self) -> Vec<JobClass> {
        self.table().classes()
    }

    /// What this worker has a model for, of the things that a Magic Fix can be asked to do.
    pub fn modes(&self) -> Vec<FixMode> {
        let table = self.table();
        let mut modes: Vec<_> =
            table.routes.iter().filter_map(|(demand, _)| demand.tool.mode()).collect();
        modes.dedup();
        modes
    }

    /// Every demand that this worker meets, with the name of the model that meets it.
    pub fn served(&self) -> Vec<(Demand, String)> {
        let table = self.table();
        table.routes.iter().map(|(demand, slot)| (*demand, slot.name.clone())).collect()
    }

    /// Every demand that this worker meets, with the model that does; only what is loaded counts.
    pub fn serving(&self) -> Vec<(Demand, ModelHandle)> {
        let table = self.table();
        let loaded = table
            .routes
            .iter()
            .filter_map(|(demand, slot)| slot.model.get().map(|model| (*demand, model.clone())));
        loaded.collect()
    }

    /// Why it is not what the files say, if it is not.
    pub fn problems(&self) -> Vec<Problem> {
        self.table().problems.clone()
    }

    /// The model that meets a demand, loading it if it is not loaded yet. Callers that ask for the same cold
    /// model at once share one load; after a failed load the next caller tries again.
    ///
    /// # Errors
    /// When none is bound, or the load fails.
    pub async fn model_for(&self, demand: Demand) -> Result<ModelHandle, LoadError> {
        let table = self.table();
        let device = self.device();
        let slot = table.slot(demand).ok_or(LoadError::Unbound { demand, device })?;
        slot.model.get_or_try_init(|| self.load(&slot.name)).await.cloned()
    }

    /// Whether a model is bound to a demand on this device.
    pub fn is_served(&self, demand: Demand) -> bool {
        self.table().slot(demand).is_some()
    }

    /// What a model's folder says of it, whether or not it is bound; nothing is loaded.
    ///
    /// # Errors
    /// When the manifest cannot be used.
    pub fn manifest(&self, name: &str) -> Result<Manifest, LoadError> {
        Ok(Manifest::read(&self.models_dir.join(name))?)
    }

    /// A model by name, whether or not it is bound.
    ///
    /// # Errors
    /// When its manifest cannot be used or a step of the load fails.
    pub async fn load(&self, name: &str) -> Result<ModelHandle, LoadError> {
        let manifest = Manifest::read(&self.models_dir.join(name))?;
        load_model(manifest, self.runtime.clone(), |_| {}).await
    }

    /// Loads every model that is bound on this device.
    ///
    /// # Errors
    /// The first load that fails.
    pub async fn load_all(&self) -> Result<(), LoadError> {
        for (demand, _) in self.served() {
            self.model_for(demand).await?;
        }
        Ok(())
    }

    /// The models that are loaded, each once.
    pub fn loaded(&self) -> Vec<ModelIdentity> {
        let serving = self.serving().into_iter();
        let mut loaded: Vec<_> = serving.map(|(_, model)| model.identity().clone()).collect();
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
