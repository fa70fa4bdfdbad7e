//! Watches the models directory while jobs run. A changed model takes every step of a load beside the model that
//! serves, and replaces it only if it passes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{error, info};

use super::Registry;
use super::error::{LoadError, Problem};
use super::handle::ModelHandle;
use super::load::load_model;
use super::snapshot::{Snapshot, Stamps};
use super::steps::LoadStep;
use super::table::{Slot, Table};
use crate::bindings::{Bindings, Scope};
use crate::manifest::{Manifest, Task};

/// The pauses before a refused model is loaded again, although its files have not changed.
const FIRST_RETRY: Duration = Duration::from_mins(1);
const LONGEST_RETRY: Duration = Duration::from_hours(1);

/// The result of checking a model's files.
struct Checked {
    /// The checked files. The result holds until they change or a retry is due.
    stamps: Stamps,
    outcome: Result<ModelHandle, Problem>,
    retry: Option<Retry>,
}

/// The delay before a retry of a model that was refused for a reason that may pass, such as a lack of memory.
#[derive(Clone, Copy)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Retry {
    /// Returns the retry after a refusal, which doubles the pause of `last`.
    fn after(problem: &Problem, last: Option<Self>, time: Instant) -> Option<Self> {
        let pause = last.map_or(FIRST_RETRY, |last| (last.pause * 2).min(LONGEST_RETRY));
        problem.step.may_pass_later().then(|| Self { at: time + pause, pause })
    }

    fn is_due(self, time: Instant) -> bool {
        self.at <= time
    }
}

/// Keeps a registry in step with its files, starting from what [`Registry::open`] read.
pub struct Watcher {
    registry: Arc<Registry>,
    /// The last valid bindings.
    bindings: Bindings,
    checked: BTreeMap<String, Checked>,
    /// The snapshot that the table reflects.
    applied: Snapshot,
    /// The snapshot of the last poll.
    seen: Snapshot,
}

impl Watcher {
    /// Creates a watcher for a registry with loaded models.
    pub fn new(registry: Arc<Registry>) -> Self {
        let (snapshot, bindings) = registry.opened.clone();
        let mut checked = BTreeMap::new();
        for slot in registry.table().slots() {
            if let Some(model) = slot.model.get() {
                metrics::gauge!("retouch_model_refused", "model" => slot.name.clone()).set(0.0);
                let stamps = snapshot.stamps(&slot.name);
                checked.insert(
                    slot.name.clone(),
                    Checked { stamps, outcome: Ok(model.clone()), retry: None },
                );
            }
        }
        Self { registry, bindings, checked, applied: snapshot.clone(), seen: snapshot }
    }

    /// Polls forever. Calls `on_change` after each poll that changed the registry.
    pub async fn watch(mut self, interval: Duration, on_change: impl Fn(&Registry)) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.poll(Instant::now()).await {
                on_change(&self.registry);
            }
        }
    }

    /// Takes a snapshot, at `time`, and applies it if it differs from the applied one and equals that of the last poll:
    /// files that are still being written are left alone. Loads a refused model again once its retry is due. Returns
    /// true if the registry changed.
    pub async fn poll(&mut self, time: Instant) -> bool {
        let (registry, last) = (Arc::clone(&self.registry), self.bindings.clone());
        let take = move || Snapshot::take(&registry.models_dir, registry.device(), Some(&last));
        let Ok(now) = tokio::task::spawn_blocking(take).await else { return false };
        let is_settled = now == self.seen;
        self.seen = now.clone();
        let mut retries = self.checked.values().filter_map(|checked| checked.retry);
        let is_retry_due = retries.any(|retry| retry.is_due(time));
        if !is_settled || now == self.applied && !is_retry_due {
            return false;
        }
        let is_changed = self.apply(&now, time).await;
        self.applied = now;
        is_changed
    }

    /// Brings the table in line with the files, as far as they are valid. Returns false if nothing changed.
    async fn apply(&mut self, now: &Snapshot, time: Instant) -> bool {
        let old = self.registry.table();
        let mut problems = Vec::new();
        match now.tools.clone().and_then(|text| Bindings::parse(&text)) {
            Ok(bindings) => self.bindings = bindings,
            Err(reason) => problems.push(Problem {
                model: "tools.toml".to_owned(),
                step: LoadStep::Bindings,
                reason,
            }),
        }
        self.check_models(now, &old, time).await;
        let new = self.build_table(&old, problems);
        let swapped = swaps(&old, &new);
        let is_same_selector = match (&old.selector, &new.selector) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        let is_same = swapped.is_empty() && new.scopes().eq(old.scopes()) && is_same_selector;
        if is_same && new.problems == old.problems {
            return false;
        }
        report_changes(&old, &new, &swapped);
        self.registry.replace_table(new);
        true
    }

    /// Loads the models that are bound on this device and whose files have changed, or whose retry is due.
    async fn check_models(&mut self, now: &Snapshot, old: &Table, time: Instant) {
        let names = self.bindings.models_on(self.registry.device());
        let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
        self.checked.retain(|name, _| names.contains(name));
        for name in names {
            let stamps = now.stamps(&name);
            let last = self.checked.get(&name).filter(|checked| checked.stamps == stamps);
            let last_retry = last.and_then(|checked| checked.retry);
            if last.is_some() && !last_retry.is_some_and(|retry| retry.is_due(time)) {
                continue;
            }
            let outcome = self.check_model(&name, old).await;
            let retry = outcome.as_ref().err().and_then(|problem| {
                report_refusal(problem);
                Retry::after(problem, last_retry, time)
            });
            self.checked.insert(name, Checked { stamps, outcome, retry });
        }
    }

    /// Returns the model of the current files: the serving model if it was loaded from them, otherwise a new load.
    async fn check_model(&self, name: &str, old: &Table) -> Result<ModelHandle, Problem> {
        let refused = |step, reason| Problem { model: name.to_owned(), step, reason };
        let manifest = Manifest::read(&self.registry.models_dir.join(name))
            .map_err(|error| refused(LoadStep::Manifest, error.to_string()))?;
        let serving = old.slots().filter_map(|slot| slot.model.get().cloned());
        let serving: Vec<_> = serving.filter(|model| model.identity().name == name).collect();
        if !serving.is_empty() {
            let manifest = manifest.clone();
            let find = move || serving.into_iter().find(|model| model.is_current(&manifest));
            if let Ok(Some(current)) = tokio::task::spawn_blocking(find).await {
                return Ok(current);
            }
        }
        let loaded = load_model(manifest, self.registry.runtime.clone(), |_| {}).await;
        loaded.map_err(|error| match error {
            LoadError::Refused { step, reason, .. } => refused(step, reason),
            other => refused(LoadStep::Open, other.to_string()),
        })
    }

    /// Builds the new table. A scope gets its bound model if that passed, otherwise the model that served it before. A
    /// newly bound scope whose model is refused stays unserved, and so does its class if the rest does not suffice.
    fn build_table(&self, old: &Table, problems: Vec<Problem>) -> Table {
        let mut fresh: BTreeMap<&str, Arc<Slot>> = BTreeMap::new();
        let mut new = Table { routes: Vec::new(), selector: None, problems };
        for (scope, name) in self.bindings.served(self.registry.device()) {
            let before = old.slot(scope);
            let outcome = self.checked.get(name).map(|checked| &checked.outcome);
            let slot = match outcome {
                Some(Ok(model)) => match model.task().can_serve(scope.demand.tool) {
                    Ok(()) => Some(match before {
                        Some(slot) if slot.holds(model) => slot.clone(),
                        _ => fresh
                            .entry(name)
                            .or_insert_with(|| Arc::new(Slot::loaded(name, model)))
                            .clone(),
                    }),
                    Err(reason) => {
                        let reason =
                            format!("it is bound to {scope} but cannot serve it: {reason}");
                        let (model, step) = (name.to_owned(), LoadStep::Bindings);
                        new.problems.push(Problem { model, step, reason });
                        before.cloned()
                    }
                },
                Some(Err(problem)) => {
                    if !new.problems.contains(problem) {
                        new.problems.push(problem.clone());
                    }
                    before.cloned()
                }
                None => before.cloned(),
            };
            new.routes.extend(slot.map(|slot| (scope, slot)));
        }
        new.selector = self.build_selector(old, &mut new.problems);
        let complete = new.classes();
        // Without a model for the largest pictures, a demand is not met, and smaller pictures must not be promised
        // either.
        let met: Vec<_> =
            new.scopes().map(|scope| scope.demand).filter(|own| new.meets(*own)).collect();
        new.routes.retain(|(Scope { demand, .. }, _)| {
            complete.contains(&demand.class()) && met.contains(demand)
        });
        new
    }

    /// Returns the slot of the bound model that answers clicks; if that model is refused, the previous slot.
    fn build_selector(&self, old: &Table, problems: &mut Vec<Problem>) -> Option<Arc<Slot>> {
        let name = self.bindings.selector_on(self.registry.device())?;
        let before = old.selector.clone();
        match &self.checked.get(name)?.outcome {
            Ok(model) => match model.task() {
                Task::SegmentAnything(_) => match before {
                    Some(slot) if slot.holds(model) => Some(slot),
                    _ => Some(Arc::new(Slot::loaded(name, model))),
                },
                other => {
                    let reason =
                        format!("it is bound to answer clicks, but its task is {}", other.as_str());
                    let (model, step) = (name.to_owned(), LoadStep::Bindings);
                    problems.push(Problem { model, step, reason });
                    before
                }
            },
            Err(problem) => {
                if !problems.contains(problem) {
                    problems.push(problem.clone());
                }
                before
            }
        }
    }
}

fn report_refusal(problem: &Problem) {
    let Problem { model, step, reason } = problem;
    error!(
        model.name = model,
        step = step.as_str(),
        reason,
        "Refused {problem}; keeping the current models"
    );
    metrics::counter!("retouch_model_refusals_total", "model" => model.clone(), "step" => step.as_str())
        .increment(1);
}

/// Returns the names of the models that replaced another one, each once.
fn swaps(old: &Table, new: &Table) -> Vec<String> {
    let mut swapped = Vec::new();
    let tools = new.routes.iter().map(|(scope, slot)| (scope.to_string(), old.slot(*scope), slot));
    let clicks = new.selector.iter().map(|slot| ("clicks".to_owned(), old.selector.as_ref(), slot));
    for (what, before, slot) in tools.chain(clicks) {
        if let (Some(was), Some(is)) = (before.and_then(|slot| slot.model.get()), slot.model.get())
            && !was.is_same(is)
        {
            info!("Switched {what} from {} to {}", was.identity(), is.identity());
            swapped.push(slot.name.clone());
        }
    }
    swapped.sort_unstable();
    swapped.dedup();
    swapped
}

/// Reports the changes of a new table, in the log and as metrics.
fn report_changes(old: &Table, new: &Table, swapped: &[String]) {
    match (&old.selector, &new.selector) {
        (None, Some(slot)) => info!("Started answering clicks with {}", slot.name),
        (Some(slot), None) => info!("Stopped answering clicks with {}", slot.name),
        (None, None) | (Some(_), Some(_)) => {}
    }
    for scope in new.scopes().filter(|scope| old.slot(*scope).is_none()) {
        info!("Started serving {scope}");
    }
    for scope in old.scopes().filter(|scope| new.slot(*scope).is_none()) {
        info!("Stopped serving {scope}: tools.toml no longer binds it");
    }
    for model in swapped {
        metrics::counter!("retouch_model_swaps_total", "model" => model.clone()).increment(1);
    }
    let gauge = |problem: &Problem, value| {
        metrics::gauge!("retouch_model_refused", "model" => problem.model.clone()).set(value);
    };
    for problem in &old.problems {
        gauge(problem, 0.0);
    }
    for problem in &new.problems {
        gauge(problem, 1.0);
        // A refused load was already reported after the load.
        if problem.step == LoadStep::Bindings && !old.problems.contains(problem) {
            report_refusal(problem);
        }
    }
    for problem in old.problems.iter().filter(|problem| !new.problems.contains(problem)) {
        info!("Resolved: {problem}");
    }
}
