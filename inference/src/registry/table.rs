//! The routing table: which model meets which demand.

use std::sync::Arc;

use retouch_catalog::JobClass;
use tokio::sync::OnceCell;

use super::error::Problem;
use super::handle::ModelHandle;
use crate::bindings::Demand;

/// The model of each demand, and why it is not the model that the files name.
#[derive(Clone, Default)]
pub struct Table {
    pub routes: Vec<(Demand, Arc<Slot>)>,
    pub problems: Vec<Problem>,
}

/// The place of one model in the table. Its model is loaded on first use.
pub struct Slot {
    pub name: String,
    pub model: OnceCell<ModelHandle>,
}

impl Slot {
    /// Returns a slot that holds a loaded model.
    pub fn loaded(name: &str, model: &ModelHandle) -> Self {
        Self { name: name.to_owned(), model: OnceCell::from(model.clone()) }
    }

    /// Returns whether the slot holds this load of the model.
    pub fn holds(&self, model: &ModelHandle) -> bool {
        self.model.get().is_some_and(|held| held.is_same(model))
    }
}

impl Table {
    /// Returns the slot of the model that meets a demand.
    pub fn slot(&self, demand: Demand) -> Option<&Arc<Slot>> {
        self.routes.iter().find(|(met, _)| *met == demand).map(|(_, slot)| slot)
    }

    /// Returns every demand that is met.
    pub fn demands(&self) -> impl Iterator<Item = Demand> {
        self.routes.iter().map(|(demand, _)| *demand)
    }

    /// Returns the classes of jobs whose demands are met.
    pub fn classes(&self) -> Vec<JobClass> {
        let mut classes: Vec<_> = self.demands().map(Demand::class).collect();
        classes.sort();
        classes.dedup();
        classes.retain(|class| Demand::suffice_for(*class, |demand| self.slot(demand).is_some()));
        classes
    }
}
