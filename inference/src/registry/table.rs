//! The routing table: which model serves which demand.

use std::sync::Arc;

use retouch_catalog::JobClass;
use tokio::sync::OnceCell;

use super::error::Problem;
use super::handle::ModelHandle;
use crate::bindings::{Demand, Scope};

/// The models of each demand, and why they are not those that the files name.
#[derive(Clone, Default)]
pub struct Table {
    /// For each demand, the first scope that includes a picture wins.
    pub routes: Vec<(Scope, Arc<Slot>)>,
    /// The model that answers clicks, if one is bound.
    pub selector: Option<Arc<Slot>>,
    pub problems: Vec<Problem>,
}

/// The place of one model in the table. Its model is loaded on first use.
pub struct Slot {
    pub name: String,
    pub model: OnceCell<ModelHandle>,
}

impl Slot {
    /// Returns a slot whose model is not loaded yet.
    pub fn empty(name: &str) -> Self {
        Self { name: name.to_owned(), model: OnceCell::new() }
    }

    pub fn loaded(name: &str, model: &ModelHandle) -> Self {
        Self { name: name.to_owned(), model: OnceCell::from(model.clone()) }
    }

    /// Returns whether the slot holds this load of the model.
    pub fn holds(&self, model: &ModelHandle) -> bool {
        self.model.get().is_some_and(|held| held.is_same(model))
    }
}

impl Table {
    /// Returns the slot of the model that meets a demand for pictures of this many pixels.
    pub fn slot_for(&self, demand: Demand, pixels: u64) -> Option<&Arc<Slot>> {
        let fits = |scope: &Scope| scope.demand == demand && scope.includes(pixels);
        self.routes.iter().find(|(scope, _)| fits(scope)).map(|(_, slot)| slot)
    }

    /// Returns the slot of the model that serves exactly this scope.
    pub fn slot(&self, scope: Scope) -> Option<&Arc<Slot>> {
        self.routes.iter().find(|(served, _)| *served == scope).map(|(_, slot)| slot)
    }

    /// Returns every slot; a model that serves several scopes is in it several times.
    pub fn slots(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.routes.iter().map(|(_, slot)| slot).chain(&self.selector)
    }

    /// Returns everything that is served.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.routes.iter().map(|(scope, _)| *scope)
    }

    /// Returns whether a demand is met for pictures of any size.
    pub fn meets(&self, demand: Demand) -> bool {
        self.slot(Scope { demand, largest_pixels: None }).is_some()
    }

    /// Returns the classes of jobs whose demands are met.
    pub fn classes(&self) -> Vec<JobClass> {
        let mut classes: Vec<_> = self.scopes().map(|scope| scope.demand.class()).collect();
        classes.sort();
        classes.dedup();
        classes.retain(|class| Demand::suffice_for(*class, |demand| self.meets(demand)));
        classes
    }
}
