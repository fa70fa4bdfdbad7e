//! `retouch-worker serve`: runs jobs until SIGTERM or Ctrl-C.

mod problems;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::config::ServeConfig;
use crate::consumer::Consumer;
use crate::job::JobRunner;
use crate::lease::Leases;
use crate::sample::Sampler;
use crate::select::Selector;
use crate::storage_probe::StorageProbe;
use crate::sweeper::Sweeper;
use crate::watchdog::{self, Watchdog};
use anyhow::Context;
use clap::Args;
use problems::State;
use retouch_catalog::{Factor, JobClass};
use retouch_core::queue::{JobEvent, Queue};
use retouch_core::storage::Storage;
use retouch_core::workers::{ServedModel, Worker};
use retouch_core::{Clock, WorkerId, db, janitor, telemetry};
use retouch_credentials::Credentials;
use retouch_inference::bindings::Scope;
use retouch_inference::registry::{ModelIdentity, Registry, Watcher};
use retouch_inference::runs::Runs;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{LimitArgs, ModelArgs, hardware};

/// The arguments of `serve`.
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    config: ServeConfig,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Serve {
    /// Serves until SIGTERM or Ctrl-C.
    pub async fn execute(self) -> anyhow::Result<()> {
        let config = self.config;
        let _telemetry = telemetry::start(&config.telemetry, "retouch-worker", None)?;
        let credentials = Credentials::open(&config.credentials, Clock::system().now())?;
        let stop = CancellationToken::new();
        // Before the models are loaded: the kernel discards a signal that the first process of a container does not handle.
        tokio::spawn(stop_on_signal(stop.clone()));
        let registry = Arc::new(self.models.registry_for_serving()?);
        let runs = registry.runs().clone();
        let is_ready = start_watchdog(&config, &registry)?;
        let loading = async {
            registry.load_all().await?;
            self.models.safety_checker(&registry).await
        };
        let Some(safety_checker) = stop.run_until_cancelled(loading).await else { return Ok(()) };
        let safety_checker = safety_checker?;
        let storage_probe = StorageProbe::default();
        let state = State {
            registry: registry.clone(),
            storage: storage_probe.clone(),
            credentials: credentials.clone(),
        };
        let hardware = hardware::describe(registry.device(), &self.models.cuda);
        let worker = describe(&config, &state, hardware)?;
        let classes: Vec<JobClass> = registry.classes();
        anyhow::ensure!(!classes.is_empty(), "tools.toml binds no model on {}", registry.device());
        tracing::info!(worker.id = %worker.id, device = worker.device, slots = worker.slots, "Starting");
        let (class_updates, classes) = watch::channel(classes);

        let pool = db::pool(&config.database).context("DATABASE_URL")?;
        let queue = Queue::new(&config.redis)?;
        let storage = Storage::new(&config.storage);
        let leases = Leases::default();
        // Fires after the last job, so that leases are renewed until then.
        let ended = CancellationToken::new();
        let worker_id = worker.id;
        let (worker, description) = watch::channel(worker);
        let renewing =
            leases.start_renewing(&config.database, description, config.lease(), ended.clone())?;
        let worker = Arc::new(worker);
        tokio::spawn(state.clone().report_storage(worker.clone()));
        tokio::spawn(state.clone().report_credentials(worker.clone()));
        tokio::spawn(report_loads(registry.clone(), worker.clone()));
        let watcher = Watcher::new(registry.clone())
            .watch(config.models_poll(), describe_anew(worker, state, class_updates));
        // A stopping process loads no more models.
        let stopping = stop.clone();
        tokio::spawn(async move { stopping.run_until_cancelled(watcher).await });
        tokio::spawn(storage_probe.clone().run(pool.clone(), storage.clone(), stop.clone()));
        let sweeper = Sweeper {
            pool: pool.clone(),
            queue: queue.clone(),
            registry: registry.clone(),
            classes: classes.clone(),
            lease: config.lease(),
        };
        tokio::spawn(sweeper.run(stop.clone()));
        tokio::spawn(janitor::run(pool.clone(), storage.clone(), stop.clone()));
        tokio::spawn(watch_cancellations(queue.clone(), pool.clone(), leases.clone()));
        let (events, unpublished) = mpsc::unbounded_channel();
        let publishing = tokio::spawn(publish_events(queue.clone(), unpublished));

        let runner = JobRunner {
            pool,
            queue,
            storage,
            storage_probe,
            settings: self.limits.settings(&registry),
            registry,
            safety_checker,
            pixels: self.models.pixel_pool()?,
            worker: worker_id,
            leases,
            events,
            abort: CancellationToken::new(),
            faults: config.faults,
            credentials,
        };
        let selector = selector(&runner, config.select_memory_mib);
        tokio::spawn(selector.run(runner.queue.clone(), stop.clone()));
        tokio::spawn(sampler(&runner).run(runner.queue.clone(), stop.clone()));
        tokio::spawn(stop_on_device_loss(runs.clone(), stop.clone(), runner.abort.clone()));
        let consumer = Consumer::new(
            runner,
            classes,
            config.jobs_in_flight,
            config.picture_memory_mib,
            config.lease(),
        );
        is_ready.store(true, Ordering::Relaxed);
        let outcome = consumer.run(stop.clone(), config.drain()).await;
        ended.cancel();
        // A job that waits for the database keeps its sender.
        let _ = tokio::time::timeout(PUBLISHING_LIMIT, publishing).await;
        let _ = tokio::task::spawn_blocking(move || renewing.join()).await;
        if let Some(reason) = runs.device_lost() {
            watchdog::end(&format!("The device is lost: {reason}"));
        }
        outcome?;
        anyhow::ensure!(stop.is_cancelled(), "the consumer ended unexpectedly");
        tracing::info!("Stopped");
        Ok(())
    }
}

/// Starts the watchdog. Returns the flag to set once the process serves.
fn start_watchdog(config: &ServeConfig, registry: &Registry) -> anyhow::Result<Arc<AtomicBool>> {
    let is_ready = Arc::<AtomicBool>::default();
    let watchdog = Watchdog {
        runs: registry.runs().clone(),
        stall_timeout: config.stall_timeout(registry.device()),
        health_file: config.health_file.clone(),
        is_ready: Arc::clone(&is_ready),
    };
    watchdog.start(tokio::runtime::Handle::current())?;
    Ok(is_ready)
}

/// Creates the selector, which shares the models and pixel threads of jobs.
fn selector(runner: &JobRunner, memory_mib: u32) -> Selector {
    Selector {
        storage: runner.storage.clone(),
        registry: runner.registry.clone(),
        pixels: runner.pixels.clone(),
        limits: runner.settings.limits,
        memory_mib,
    }
}

/// Creates the sampler, which shares the models and pixel threads of jobs.
fn sampler(runner: &JobRunner) -> Sampler {
    Sampler {
        registry: runner.registry.clone(),
        pixels: runner.pixels.clone(),
        settings: runner.settings,
    }
}

/// Minimum interval between reports of changes in the loaded models.
const LOADS_INTERVAL: Duration = Duration::from_secs(1);

/// Reports which models are loaded, whenever one gives way to another.
async fn report_loads(registry: Arc<Registry>, worker: Arc<watch::Sender<Worker>>) {
    let mut changes = registry.memory().changes();
    while changes.changed().await.is_ok() {
        let models = served_models(&registry);
        worker.send_if_modified(|worker| {
            let is_changed = worker.models != models;
            worker.models = models;
            is_changed
        });
        tokio::time::sleep(LOADS_INTERVAL).await;
    }
}

/// Stops the process gracefully on SIGTERM or Ctrl-C.
async fn stop_on_signal(stop: CancellationToken) {
    telemetry::shutdown_signal().await;
    tracing::info!("Stopping: finishing running jobs, claiming no new ones");
    stop.cancel();
}

/// Stops the process when its device is lost; running jobs are handed back.
async fn stop_on_device_loss(runs: Runs, stop: CancellationToken, abort: CancellationToken) {
    runs.wait_for_device_loss().await;
    tracing::error!("The device is lost; handing back running jobs");
    stop.cancel();
    // Gives the job that lost the device time to be retried with its attempt counted.
    tokio::time::sleep(Duration::from_secs(1)).await;
    abort.cancel();
}

/// Returns a callback that updates this worker's description when its models change.
fn describe_anew(
    worker: Arc<watch::Sender<Worker>>,
    state: State,
    class_updates: watch::Sender<Vec<JobClass>>,
) -> impl Fn(&Registry) {
    move |registry| {
        worker.send_modify(|worker| {
            worker.models = served_models(registry);
            worker.problems = state.problems();
        });
        class_updates.send_if_modified(|classes| {
            let current = registry.classes();
            let is_changed = *classes != current;
            *classes = current;
            is_changed
        });
    }
}

/// Describes this worker for its row in the database.
fn describe(config: &ServeConfig, state: &State, hardware: String) -> anyhow::Result<Worker> {
    let name = match &config.worker_name {
        Some(name) => name.clone(),
        None => std::fs::read_to_string("/proc/sys/kernel/hostname")
            .context("reading the host name; set RETOUCH_WORKER_NAME")?
            .trim()
            .to_owned(),
    };
    Ok(Worker {
        id: WorkerId::new(),
        name,
        device: state.registry.device().to_string(),
        hardware,
        models: served_models(&state.registry),
        problems: state.problems(),
        slots: i32::try_from(config.jobs_in_flight).unwrap_or(i32::MAX),
        version: env!("CARGO_PKG_VERSION").into(),
        seen_at: Clock::system().now(),
    })
}

/// Lists the models that are loaded, with the tool and tier that each serves.
fn served_models(registry: &Registry) -> Vec<ServedModel> {
    let mut models = Vec::new();
    for (Scope { demand, largest_pixels }, handle) in registry.serving() {
        let ModelIdentity { name: model, sha256, .. } = handle.identity().clone();
        let served = ServedModel {
            tool: demand.tool.name(),
            tier: demand.tier,
            model,
            sha256,
            mode: demand.tool.mode(),
            factor: demand.tool.factor().map(Factor::get),
            largest_pixels,
            vocabulary: handle.task().vocabulary().map(<[String]>::to_vec),
            is_demo: handle.task().is_demo(),
            is_loaded: handle.is_loaded(),
        };
        models.push(served);
    }
    models
}

/// Grace period for a stopping worker to publish its last events.
const PUBLISHING_LIMIT: Duration = Duration::from_secs(5);

/// How long to collect progress events before publishing the latest one of each job. A run of a few milliseconds then
/// publishes one message instead of seven.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Publishes events: changes at once and in order, and the latest progress of each job every [`PROGRESS_INTERVAL`]. If
/// Redis is unavailable the events are lost; the state itself is in Postgres.
async fn publish_events(queue: Queue, mut unpublished: mpsc::UnboundedReceiver<JobEvent>) {
    let mut latest = HashMap::new();
    let mut rounds = tokio::time::interval(PROGRESS_INTERVAL);
    loop {
        let events = tokio::select! {
            event = unpublished.recv() => match event {
                None => return,
                Some(event) if event.progress.is_some() => {
                    if latest.is_empty() {
                        rounds.reset();
                    }
                    latest.insert(event.job, event);
                    continue;
                }
                Some(event) => {
                    latest.remove(&event.job);
                    vec![event]
                }
            },
            _ = rounds.tick(), if !latest.is_empty() => latest.drain().map(|(_, event)| event).collect(),
        };
        for event in events {
            if let Err(error) = queue.publish(event).await {
                tracing::debug!(%error, "Cannot publish an event of job {}", event.job);
            }
        }
    }
}

/// Stops canceled jobs as soon as the event arrives. Without it, the next lease renewal would notice, seconds later.
async fn watch_cancellations(queue: Queue, pool: db::PgPool, leases: Leases) {
    let (sender, mut events) = broadcast::channel(1024);
    tokio::spawn(async move { queue.forward_events(sender).await });
    loop {
        match events.recv().await {
            Ok(event) if event.may_be_final() && leases.contains(event.job) => {
                let job = db::within(retouch_core::jobs::get(&pool, event.job)).await;
                if job.is_ok_and(|job| job.is_none_or(|job| job.state.is_final())) {
                    leases.revoke(event.job);
                }
            }
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
