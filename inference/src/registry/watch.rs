//! Follows the models directory while jobs run: what changes there takes every step of a load beside what
//! serves, and only what passes all of them serves next.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tracing::{error, info};

use super::{LoadError, LoadStep, ModelHandle, Problem, Registry, Slot, Table, load_model};
use crate::bindings::Bindings;
use crate::device::Device;
use crate::manifest::Manifest;

/// Folders inside of a model's folder that are looked into: `golden/` and its like.
const DEPTH: u32 = 2;

/// How the files look from outside: enough to know that something changed. They are asked for, not
/// listened to: inotify hears nothing of what another machine writes to NFS, nor always through a bind
/// mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The text of `tools.toml`, or why it cannot be read.
    tools: Result<String, String>,
    /// The files of each bound model, by the folder's name.
    folders: BTreeMap<String, Stamps>,
}

type Stamps = BTreeMap<PathBuf, Stamp>;

/// A file that is written anew differs in one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    size_bytes: u64,
    inode: u64,
}

impl Snapshot {
    /// Looks at `tools.toml` and at the folders of the models that it binds; where it cannot be read, at
    /// those of `last`.
    pub(super) fn take(models_dir: &Path, device: Device, last: Option<&Bindings>) -> Self {
        let tools =
            fs::read_to_string(models_dir.join("tools.toml")).map_err(|error| error.to_string());
        let written = tools.as_ref().ok().and_then(|text| Bindings::parse(text).ok());
        let names = written.as_ref().or(last).map(|bindings| bindings.models(device));
        let stamps_of = |name: &str| {
            let mut stamps = Stamps::new();
            add_stamps(&models_dir.join(name), DEPTH, &mut stamps);
            (name.to_owned(), stamps)
        };
        let folders = names.unwrap_or_default().into_iter().map(stamps_of).collect();
        Self { tools, folders }
    }
}

fn add_stamps(folder: &Path, depth: u32, stamps: &mut Stamps) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        // Through links: it is the content that counts.
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                if depth > 0 {
                    add_stamps(&path, depth - 1, stamps);
                }
            }
            Ok(found) => {
                let stamp = Stamp {
                    modified: (found.mtime(), found.mtime_nsec()),
                    size_bytes: found.len(),
                    inode: found.ino(),
                };
                stamps.insert(path, stamp);
            }
            Err(_) => {}
        }
    }
}

/// What came of looking at a model's files.
struct Verdict {
    /// The files that were looked at: while they stay, so does the verdict.
    stamps: Stamps,
    outcome: Result<ModelHandle, Problem>,
}

/// Keeps a registry in step with its files. It begins with what [`Registry::open`] has read.
pub struct Watcher {
    registry: Arc<Registry>,
    /// The last bindings that could be read.
    bindings: Bindings,
    verdicts: BTreeMap<String, Verdict>,
    /// What the table stands for.
    followed: Snapshot,
    /// What was seen the last time.
    seen: Snapshot,
}

impl Watcher {
    /// A watcher of what `registry` has loaded.
    pub fn new(registry: Arc<Registry>) -> Self {
        let (snapshot, bindings) = registry.opened.clone();
        let mut verdicts = BTreeMap::new();
        for (_, slot) in &registry.table().routes {
            if let Some(model) = slot.model.get() {
                metrics::gauge!("retouch_model_refused", "model" => slot.name.clone()).set(0.0);
                let stamps = snapshot.folders.get(&slot.name).cloned().unwrap_or_default();
                let verdict = Verdict { stamps, outcome: Ok(model.clone()) };
                verdicts.insert(slot.name.clone(), verdict);
            }
        }
        Self { registry, bindings, verdicts, followed: snapshot.clone(), seen: snapshot }
    }

    /// Looks again and again, for ever; calls `changed` after each look that has changed what the registry
    /// says.
    pub async fn watch(mut self, every: Duration, changed: impl Fn(&Registry)) {
        let mut looks = tokio::time::interval(every);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if self.look().await {
                changed(&self.registry);
            }
        }
    }

    /// Looks once. What has changed since it was last followed is followed if it has not changed since the
    /// last look: a file that is still being written is left alone. True when the registry says something
    /// else than before.
    pub async fn look(&mut self) -> bool {
        let (registry, last) = (Arc::clone(&self.registry), self.bindings.clone());
        let look = move || Snapshot::take(&registry.models_dir, registry.device(), Some(&last));
        let Ok(now) = tokio::task::spawn_blocking(look).await else { return false };
        let is_quiet = now == self.seen;
        self.seen = now.clone();
        if !is_quiet || now == self.followed {
            return false;
        }
        let is_changed = self.follow(&now).await;
        self.followed = now;
        is_changed
    }

    /// Makes the table what the files say, as far as they are right. False when it was that already.
    async fn follow(&mut self, now: &Snapshot) -> bool {
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
        self.judge(now, &old).await;
        let new = self.route(&old, problems);
        let swapped = swaps(&old, &new);
        if swapped.is_empty() && new.problems == old.problems && new.demands().eq(old.demands()) {
            return false;
        }
        tell(&old, &new, &swapped);
        self.registry.replace_table(new);
        true
    }

    /// Loads the models that are bound on this device and whose files have changed.
    async fn judge(&mut self, now: &Snapshot, old: &Table) {
        let names = self.bindings.models(self.registry.device());
        let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
        self.verdicts.retain(|name, _| names.contains(name));
        for name in names {
            let stamps = now.folders.get(&name).cloned().unwrap_or_default();
            if self.verdicts.get(&name).is_some_and(|verdict| verdict.stamps == stamps) {
                continue;
            }
            let outcome = self.examine(&name, old).await;
            if let Err(problem) = &outcome {
                say_refused(problem);
            }
            self.verdicts.insert(name, Verdict { stamps, outcome });
        }
    }

    /// The model as its files are now: the one that serves, if it was loaded from them.
    async fn examine(&self, name: &str, old: &Table) -> Result<ModelHandle, Problem> {
        let refused = |step, reason| Problem { model: name.to_owned(), step, reason };
        let manifest = Manifest::read(&self.registry.models_dir.join(name))
            .map_err(|error| refused(LoadStep::Manifest, error.to_string()))?;
        let serving = old.routes.iter().filter_map(|(_, slot)| slot.model.get().cloned());
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

    /// The new table: each demand's bound model, if it is right, else what met the demand before. A demand that nothing
    /// met before and whose model is wrong stays unmet, and with it what jobs of its class may ask for besides.
    fn route(&self, old: &Table, problems: Vec<Problem>) -> Table {
        let mut fresh: BTreeMap<&str, Arc<Slot>> = BTreeMap::new();
        let mut new = Table { routes: Vec::new(), problems };
        for (demand, name) in self.bindings.served(self.registry.device()) {
            let before = old.slot(demand);
            let outcome = self.verdicts.get(name).map(|verdict| &verdict.outcome);
            let slot = match outcome {
                Some(Ok(model)) => match model.task().can_serve(demand.tool) {
                    Ok(()) => Some(match before {
                        Some(slot) if slot.holds(model) => slot.clone(),
                        _ => fresh.entry(name).or_insert_with(|| new_slot(name, model)).clone(),
                    }),
                    Err(why) => {
                        let reason = format!("it is bound to {demand} and cannot serve it: {why}");
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
            new.routes.extend(slot.map(|slot| (demand, slot)));
        }
        let whole = new.classes();
        new.routes.retain(|(demand, _)| whole.contains(&demand.class()));
        new
    }
}

fn new_slot(name: &str, model: &ModelHandle) -> Arc<Slot> {
    Arc::new(Slot { name: name.to_owned(), model: OnceCell::from(model.clone()) })
}

fn say_refused(problem: &Problem) {
    let Problem { model, step, reason } = problem;
    error!(
        model.name = model,
        step = step.as_str(),
        reason,
        "Refused {problem}; what served before serves on"
    );
    metrics::counter!("retouch_model_refusals_total", "model" => model.clone(), "step" => step.as_str())
        .increment(1);
}

/// The names of the models that took a demand over from another, each once.
fn swaps(old: &Table, new: &Table) -> Vec<String> {
    let mut swapped = Vec::new();
    for (demand, slot) in &new.routes {
        let before = old.slot(*demand).and_then(|slot| slot.model.get());
        if let (Some(was), Some(is)) = (before, slot.model.get())
            && !was.is_same(is)
        {
            info!("{demand} is served by {} now, no longer by {}", is.identity(), was.identity());
            swapped.push(slot.name.clone());
        }
    }
    swapped.sort_unstable();
    swapped.dedup();
    swapped
}

/// Says what a new table changes, in the log and as metrics.
fn tell(old: &Table, new: &Table, swapped: &[String]) {
    for demand in new.demands().filter(|demand| old.slot(*demand).is_none()) {
        info!("{demand} is served now");
    }
    for demand in old.demands().filter(|demand| new.slot(*demand).is_none()) {
        info!("{demand} is bound no more, and no longer served");
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
        // What a load has refused has been said when it was.
        if problem.step == LoadStep::Bindings && !old.problems.contains(problem) {
            say_refused(problem);
        }
    }
    for problem in old.problems.iter().filter(|problem| !new.problems.contains(problem)) {
        info!("Mended: {problem}");
    }
}
