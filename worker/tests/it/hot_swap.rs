//! Models change while a worker runs jobs: a valid model takes over, an invalid one is reported and changes nothing.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use retouch_core::jobs::JobState;
use retouch_core::workers::{self, WorkerProblem};
use retouch_standins::testing::eventually;
use sqlx::PgPool;
use tempfile::TempDir;

use crate::onnx::{Model, bind, bind_tiers};
use crate::process::Services;

/// The limit for a switch, with inferences of less than a second.
const SWITCH: Duration = Duration::from_secs(10);

/// A defect: the step that finds it, how to write it, its description, and a part of the reason.
type Breakage = (&'static str, fn(&Path, &Model), &'static str, fn(&Model) -> String);

/// Returns one defect for each step of a load.
fn breakages() -> Vec<Breakage> {
    fn path(models: &Path) -> std::path::PathBuf {
        models.join("made/made.onnx")
    }
    fn write_instead(models: &Path, wrong: &Model) {
        wrong.write(models, "made");
    }
    vec![
        (
            "checksum",
            |models, next| {
                next.write(models, "made");
                let bytes = next.bytes();
                fs::write(path(models), &bytes[..bytes.len() / 2]).unwrap();
            },
            "truncated",
            |next| {
                let whole = next.bytes().len();
                format!("made.onnx has {} bytes, but the manifest says {whole}", whole / 2)
            },
        ),
        (
            "checksum",
            |models, next| {
                next.write(models, "made");
                let mut bytes = next.bytes();
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                fs::write(path(models), &bytes).unwrap();
            },
            "one bit wrong",
            |next| format!("the manifest says {}", next.sha256()),
        ),
        (
            "contract",
            |models, next| write_instead(models, &Model { side: 16, ..next.clone() }),
            "another shape",
            |_| {
                "input \"input\" has shape [1, 3, 16, 16], but the manifest expects [1, 3, 32, 32]"
                    .into()
            },
        ),
        (
            "warm-up",
            |models, _| write_instead(models, &Model::new(f32::NAN)),
            "values that are not finite",
            |_| "1024 of 1024 output values are not finite".into(),
        ),
        (
            "golden",
            |models, next| write_instead(models, &Model::new(-next.weight)),
            "the background instead of the subject",
            |_| "golden.png: the mean error is 0.".into(),
        ),
        (
            "files",
            |models, next| {
                let outside = "../../weights.bin".to_owned();
                let wrong = Model { external_data: Some(outside), ..next.clone() };
                let folder = wrong.write(models, "made");
                let manifest = wrong.manifest("made");
                let (head, golden) = manifest.split_once("[[extra]]").unwrap();
                let golden = &golden[golden.find("[[golden]]").unwrap()..];
                fs::write(folder.join("model.toml"), [head, golden].concat()).unwrap();
            },
            "weights outside the folder",
            |_| {
                "made.onnx keeps tensors in \"../../weights.bin\", which is outside the model's folder"
                    .into()
            },
        ),
    ]
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn no_job_fails_while_models_change(pool: PgPool) {
    let services = Arc::new(Services::start(pool, 2_000).await);
    let models = TempDir::new().unwrap();
    let first = Model::new(1.0);
    first.write(models.path(), "made");
    bind(models.path(), "made");
    let metrics = free_port();
    let mut worker = services
        .worker()
        .set("RETOUCH_MODELS_DIR", models.path())
        .set("RETOUCH_MODELS_POLL_MS", "100")
        .set("RETOUCH_JOBS_IN_FLIGHT", "4")
        .set("RETOUCH_FAULT_DELAY_MS", "60")
        .set("RETOUCH_METRICS_LISTEN", &metrics)
        .start();
    let feeding = tokio::spawn(feed(Arc::clone(&services)));
    services.until(JobState::Running, 4, SWITCH).await;
    services.served_by(&first, SWITCH).await;

    // A new file and its manifest.
    let second = Model::new(1.1);
    second.write(models.path(), "made");
    services.served_by(&second, SWITCH).await;

    // Another model in tools.toml.
    let third = Model::new(1.2);
    third.write(models.path(), "other");
    bind(models.path(), "other");
    services.served_by(&third, SWITCH).await;
    let mut serving = Model::new(1.3);
    serving.write(models.path(), "made");
    bind(models.path(), "made");
    services.served_by(&serving, SWITCH).await;

    // Each defect: the old model keeps serving, the reason is reported, and the repaired model serves.
    for (round, (step, spoil, what, words)) in (1..).zip(breakages()) {
        let next = Model::new(1.3 + round as f32 / 10.0);
        spoil(models.path(), &next);
        let problem = services.problem().await;
        assert_eq!((problem.model.as_str(), problem.step.as_str()), ("made", step), "{what}");
        assert!(problem.reason.contains(&words(&next)), "{what}: {}", problem.reason);
        services.served_by(&serving, SWITCH).await;
        let scraped = scrape(&metrics);
        assert!(scraped.contains("retouch_model_refused{model=\"made\"} 1"), "{what}: {scraped}");
        let counted = format!("retouch_model_refusals_total{{model=\"made\",step=\"{step}\"}}");
        assert!(scraped.contains(&counted), "{what}: {scraped}");
        next.write(models.path(), "made");
        services.served_by(&next, SWITCH).await;
        services.no_problem().await;
        assert!(scrape(&metrics).contains("retouch_model_refused{model=\"made\"} 0"), "{what}");
        serving = next;
    }

    feeding.abort();
    eventually(SWITCH, "every submitted job is done", || async {
        let open = services.count(JobState::Queued).await + services.count(JobState::Running).await;
        (open == 0).then_some(())
    })
    .await;
    assert_eq!(services.count(JobState::Failed).await, 0);
    assert!(services.count(JobState::Done).await > 100, "too few jobs ran to prove anything");
    let again: i64 = sqlx::query_scalar("select count(*) from jobs where attempt > 1")
        .fetch_one(&services.pool)
        .await
        .unwrap();
    assert_eq!(again, 0, "a job needed a second attempt");
    assert!(worker.is_alive());
    services.assert_consistent().await;
    let log = fs::read_to_string(&worker.log).unwrap();
    assert_eq!(
        log.matches("Refused made: ").count(),
        breakages().len(),
        "each refusal is logged once"
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_running_worker_starts_and_stops_serving_a_tool_with_its_binding(pool: PgPool) {
    let services = Services::start(pool, 2_000).await;
    let models = TempDir::new().unwrap();
    Model::new(1.0).write(models.path(), "made");
    bind_tiers(models.path(), "made", &["free"]);
    let mut worker = services
        .worker()
        .set("RETOUCH_MODELS_DIR", models.path())
        .set("RETOUCH_MODELS_POLL_MS", "100")
        .start();
    let job = services.submit().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(services.count(JobState::Queued).await, 1, "no worker serves job {job}");
    bind_tiers(models.path(), "made", &["free", "paid"]);
    services.until(JobState::Done, 1, SWITCH).await;
    // Once unbound again, jobs wait.
    bind_tiers(models.path(), "made", &["free"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    services.submit().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(services.count(JobState::Queued).await, 1);
    worker.terminate();
    tokio::task::spawn_blocking(move || worker.wait(SWITCH)).await.unwrap();
}

/// Keeps jobs in the queue, so that the worker is always fully occupied.
async fn feed(services: Arc<Services>) {
    loop {
        if services.count(JobState::Queued).await < 4 {
            services.submit().await;
        } else {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Services {
    /// Waits until the worker reports that `model` serves, and checks that it makes the next result.
    async fn served_by(&self, model: &Model, patience: Duration) {
        let sha256 = model.sha256();
        eventually(patience, "the worker reports the model", || async {
            let workers = workers::live(&self.pool).await.unwrap();
            let models = workers.into_iter().flat_map(|worker| worker.models);
            let reported: Vec<_> = models.map(|model| model.sha256).collect();
            let all_match = reported.iter().all(|reported| *reported == sha256);
            (!reported.is_empty() && all_match).then_some(())
        })
        .await;
        let job = self.submit().await;
        let made = eventually(patience, "a result", || async {
            sqlx::query_scalar::<_, String>("select model_sha256 from results where job_id = $1")
                .bind(job)
                .fetch_optional(&self.pool)
                .await
                .unwrap()
        })
        .await;
        assert_eq!(made, sha256);
    }

    async fn problems(&self) -> Vec<WorkerProblem> {
        let workers = workers::live(&self.pool).await.unwrap();
        workers.into_iter().flat_map(|worker| worker.problems).collect()
    }

    async fn problem(&self) -> WorkerProblem {
        eventually(SWITCH, "the worker reports a problem", || async { self.problems().await.pop() })
            .await
    }

    async fn no_problem(&self) {
        eventually(SWITCH, "the worker reports no problem", || async {
            self.problems().await.is_empty().then_some(())
        })
        .await;
    }
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
