//! `retouch-worker serve`: take jobs until told to stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use retouch_catalog::JobClass;
use retouch_core::queue::{JobNews, Queue};
use retouch_core::storage::Storage;
use retouch_core::workers::{ModelProblem, ServedModel, Worker};
use retouch_core::{WorkerId, db, janitor, telemetry};
use retouch_inference::registry::{ModelIdentity, Problem, Registry, Watcher};
use retouch_inference::runs::Runs;
use retouch_worker::config::ServeConfig;
use retouch_worker::consumer::Consumer;
use retouch_worker::job::JobRunner;
use retouch_worker::lease::Leases;
use retouch_worker::sweeper;
use retouch_worker::watchdog::{self, Watchdog};
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{LimitArgs, ModelArgs, hardware};

/// `serve`.
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
        let _telemetry = telemetry::start(&config.telemetry, "retouch-worker")?;
        let registry = Arc::new(self.models.registry()?);
        let runs = registry.runs().clone();
        Watchdog {
            runs: runs.clone(),
            patience: config.patience(registry.device()),
            health_file: config.health_file.clone(),
        }
        .start(tokio::runtime::Handle::current())?;
        registry.load_all().await?;
        let judge = self.models.judge(&registry).await?;
        let worker = describe(&config, &registry)?;
        let classes: Vec<JobClass> = registry.classes();
        anyhow::ensure!(
            !classes.is_empty(),
            "tools.toml binds no model to any tool on {}",
            registry.device()
        );
        tracing::info!(worker.id = %worker.id, device = worker.device, slots = worker.slots, "Starting");
        let (classes_are, classes) = watch::channel(classes);

        let pool = db::pool(&config.database)?;
        let queue = Queue::new(&config.redis)?;
        let storage = Storage::new(&config.storage);
        let leases = Leases::default();
        let stop = CancellationToken::new();
        // The keeper goes on until the last job has ended.
        let ended = CancellationToken::new();
        let worker_id = worker.id;
        let (worker, described) = watch::channel(worker);
        let keeper = leases.keep(&config.database, described, config.lease(), ended.clone())?;
        let watcher = Watcher::new(registry.clone()).watch(config.models_poll(), move |registry| {
            worker.send_modify(|worker| {
                worker.models = served_models(registry);
                worker.problems = problems(registry);
            });
            classes_are.send_if_modified(|classes| {
                let are = registry.classes();
                let is_changed = *classes != are;
                *classes = are;
                is_changed
            });
        });
        // Nothing is loaded any more once the process is to end.
        let stopping = stop.clone();
        tokio::spawn(async move { stopping.run_until_cancelled(watcher).await });
        tokio::spawn(sweeper::run(pool.clone(), queue.clone(), stop.clone()));
        tokio::spawn(janitor::run(pool.clone(), storage.clone(), stop.clone()));
        tokio::spawn(heed_cancellations(queue.clone(), pool.clone(), leases.clone()));
        let (news, untold) = mpsc::unbounded_channel();
        let telling = tokio::spawn(tell(queue.clone(), untold));

        let runner = JobRunner {
            pool,
            queue,
            storage,
            settings: self.models.settings(self.limits, registry.device()),
            registry,
            judge,
            pixels: self.models.pixel_pool()?,
            worker: worker_id,
            leases,
            news,
            hurry: CancellationToken::new(),
            faults: config.faults,
        };
        tokio::spawn(leave_with_device(runs.clone(), stop.clone(), runner.hurry.clone()));
        let consumer = Consumer::new(
            runner,
            classes,
            config.jobs_in_flight,
            config.picture_memory_mib,
            config.lease(),
        );
        let signal = stop.clone();
        tokio::spawn(async move {
            telemetry::shutdown_signal().await;
            tracing::info!("Stopping: finishing what runs, taking nothing new");
            signal.cancel();
        });
        let outcome = consumer.run(stop.clone(), config.drain()).await;
        ended.cancel();
        let _ = telling.await;
        let _ = tokio::task::spawn_blocking(move || keeper.join()).await;
        if let Some(why) = runs.lost() {
            watchdog::end(&format!("The device is lost: {why}"));
        }
        outcome?;
        // A consumer that ends without being told to has met something it cannot heal by itself.
        anyhow::ensure!(stop.is_cancelled(), "the consumer ended although nobody stopped it");
        tracing::info!("Stopped");
        Ok(())
    }
}

/// Without its device this process can do nothing more: what it does is handed back, and it ends.
async fn leave_with_device(runs: Runs, stop: CancellationToken, hurry: CancellationToken) {
    runs.wait_for_loss().await;
    tracing::error!("The device is lost; handing back what runs");
    stop.cancel();
    // The job that lost it is put back with its attempt counted; that takes a moment.
    tokio::time::sleep(Duration::from_secs(1)).await;
    hurry.cancel();
}

/// How this worker reports itself.
fn describe(config: &ServeConfig, registry: &Registry) -> anyhow::Result<Worker> {
    let name = match &config.worker_name {
        Some(name) => name.clone(),
        None => std::fs::read_to_string("/proc/sys/kernel/hostname")
            .context("reading the host's name; set RETOUCH_WORKER_NAME")?
            .trim()
            .to_owned(),
    };
    Ok(Worker {
        id: WorkerId::new(),
        name,
        device: registry.device().to_string(),
        hardware: hardware::of(registry.device()),
        models: served_models(registry),
        problems: problems(registry),
        slots: i32::try_from(config.jobs_in_flight).unwrap_or(i32::MAX),
        version: env!("CARGO_PKG_VERSION").into(),
        seen_at: retouch_core::Clock::system().now(),
    })
}

/// Only what is really loaded counts.
fn served_models(registry: &Registry) -> Vec<ServedModel> {
    let mut models = Vec::new();
    for (demand, handle) in registry.serving() {
        let ModelIdentity { name: model, sha256, .. } = handle.identity().clone();
        let served = ServedModel {
            tool: demand.tool.name(),
            tier: demand.tier,
            model,
            sha256,
            mode: demand.tool.mode(),
            vocabulary: handle.task().vocabulary().map(<[String]>::to_vec),
            is_demo: handle.task().is_demo(),
        };
        // Both factors of an upscale usually have the same model.
        if !models.contains(&served) {
            models.push(served);
        }
    }
    models
}

fn problems(registry: &Registry) -> Vec<ModelProblem> {
    let told = |Problem { model, step, reason }| ModelProblem {
        model,
        step: step.as_str().to_owned(),
        reason,
    };
    registry.problems().into_iter().map(told).collect()
}

/// How long progress is collected before the last of it is told: a run of a few milliseconds is not worth
/// seven messages, and nobody sees more than ten a second.
const GATHER: Duration = Duration::from_millis(100);

/// Passes news on: changes in order and at once, of progress what is newest. Redis being away loses them; what
/// matters is in Postgres.
async fn tell(queue: Queue, mut untold: mpsc::UnboundedReceiver<JobNews>) {
    let mut gathered = HashMap::new();
    let mut rounds = tokio::time::interval(GATHER);
    loop {
        let told = tokio::select! {
            news = untold.recv() => match news {
                None => return,
                Some(news) if news.progress.is_some() => {
                    if gathered.is_empty() {
                        rounds.reset();
                    }
                    gathered.insert(news.job, news);
                    continue;
                }
                Some(news) => {
                    gathered.remove(&news.job);
                    vec![news]
                }
            },
            _ = rounds.tick(), if !gathered.is_empty() => gathered.drain().map(|(_, news)| news).collect(),
        };
        for news in told {
            if let Err(error) = queue.tell(news).await {
                tracing::debug!(%error, "News about job {} got lost", news.job);
            }
        }
    }
}

/// Stops jobs that were called off as soon as that is heard of; the keeper would notice seconds later.
async fn heed_cancellations(queue: Queue, pool: db::PgPool, leases: Leases) {
    let (sender, mut heard) = broadcast::channel(1024);
    tokio::spawn(async move { queue.listen(sender).await });
    loop {
        match heard.recv().await {
            Ok(news) if news.may_be_its_end() && leases.contains(news.job) => {
                let job = retouch_core::jobs::get(&pool, news.job).await;
                if job.is_ok_and(|job| job.is_none_or(|job| job.state.is_final())) {
                    leases.revoke(news.job);
                }
            }
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
