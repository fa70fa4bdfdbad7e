//! Real worker processes, with Postgres, Redis and S3 of their own for each test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use retouch_catalog::{Tier, Tool};
use retouch_core::jobs::{self, JobState, NewJob};
use retouch_core::queue::Queue;
use retouch_core::{ImageId, JobId, UserId, credits};
use retouch_standins::redis_server::RedisServer;
use retouch_standins::testing::{Bucket, always_reachable, eventually, image, object_keys, user};
use sqlx::{ConnectOptions, PgPool};

use crate::repository;

/// Everything that jobs need except a worker.
pub struct Services {
    pub pool: PgPool,
    pub bucket: Bucket,
    pub redis: RedisServer,
    pub queue: Queue,
    pub ada: UserId,
    picture: Vec<u8>,
}

impl Services {
    /// Starts the services, with a user, Ada, who can pay for `runs` runs of remove background.
    pub async fn start(pool: PgPool, runs: i32) -> Self {
        // In production API processes keep recording that the database is reachable while workers restart.
        always_reachable(&pool).await;
        let (bucket, redis) = (Bucket::of(&pool).await, RedisServer::start());
        let queue = Queue::new(&redis.config()).expect("a queue");
        let ada = user(&pool, "ada", (runs * 5 - 20).max(0)).await;
        Self { pool, bucket, redis, queue, ada, picture: picture(64, 48) }
    }

    /// Configures a worker with the tiny models.
    pub fn worker(&self) -> WorkerSettings {
        let url = self.pool.connect_options().to_url_lossy().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_retouch-worker"));
        command
            .arg("serve")
            .env("DATABASE_URL", url)
            .env("DATABASE_CONNECTIONS", "6")
            .env("REDIS_URL", self.redis.url())
            .env("REDIS_PREFIX", "test")
            .env("S3_ENDPOINT", self.bucket.config.s3_endpoint.as_deref().unwrap_or_default())
            .env("S3_BUCKET", "test")
            .env("S3_ACCESS_KEY_ID", "test")
            .env("S3_SECRET_ACCESS_KEY", "test-secret")
            .env("RETOUCH_MODELS_DIR", repository().join("models/tiny"))
            .env("RETOUCH_DEVICE", "cpu")
            .env("RETOUCH_LEASE_SECS", "2")
            .current_dir(repository());
        WorkerSettings { command }
    }

    /// Stores a readable image.
    pub async fn image(&self) -> ImageId {
        image(&self.pool, Some(&self.bucket.storage), self.ada, &self.picture).await
    }

    /// Submits a paid job on a new image and rings its doorbell.
    pub async fn submit(&self) -> JobId {
        let image = self.image().await;
        self.submit_on(image).await
    }

    pub async fn submit_on(&self, image: ImageId) -> JobId {
        self.submit_as(image, Tier::Paid).await
    }

    pub async fn submit_as(&self, image: ImageId, tier: Tier) -> JobId {
        let new = NewJob {
            owner: Some(self.ada),
            image,
            tool: Tool::RemoveBackground,
            tier,
            idempotency_key: None,
            fix: None,
            queue_limit: None,
        };
        let job = jobs::submit(&self.pool, &new).await.expect("submitted").into_job();
        // The sweeper replaces lost doorbells.
        let _ = self.queue.ring(job.class(), job.id).await;
        job.id
    }

    pub async fn count(&self, state: JobState) -> i64 {
        sqlx::query_scalar("select count(*) from jobs where state = $1")
            .bind(state)
            .fetch_one(&self.pool)
            .await
            .expect("counted")
    }

    pub async fn until(&self, state: JobState, count: i64, timeout: Duration) {
        eventually(timeout, &format!("{count} jobs {state:?}"), || async {
            (self.count(state).await >= count).then_some(())
        })
        .await;
    }

    /// Asserts that every finished job has one result with its objects, every paid one a debit, and that the ledger adds
    /// up.
    pub async fn assert_consistent(&self) {
        assert_eq!(credits::audit(&self.pool).await.expect("audited"), []);
        let (done, results, paid, debits): (i64, i64, i64, i64) = sqlx::query_as(
            "select (select count(*) from jobs where state = 'done'), (select count(*) from results),
                    (select count(*) from jobs where state = 'done' and cost > 0),
                    (select count(*) from ledger where kind = 'job')",
        )
        .fetch_one(&self.pool)
        .await
        .expect("counted");
        assert_eq!((results, debits), (done, paid));
        let keys: Vec<String> = sqlx::query_scalar(
            "select object_key from results union select thumbnail_key from results",
        )
        .fetch_all(&self.pool)
        .await
        .expect("listed");
        let stored = object_keys(&self.bucket.storage).await;
        for key in keys {
            assert!(stored.contains(&key), "{key} is recorded but not stored");
        }
    }
}

/// Encodes a picture with a bright rectangle in the middle.
pub fn picture(width: u32, height: u32) -> Vec<u8> {
    let pixels = image::RgbImage::from_fn(width, height, |x, y| {
        let inside = x > width / 4 && x < width * 3 / 4 && y > height / 4 && y < height * 3 / 4;
        image::Rgb(if inside { [240, 230, 200] } else { [20, 40, 30] })
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, image::ImageFormat::Png).expect("encoded");
    bytes.into_inner()
}

pub struct WorkerSettings {
    command: Command,
}

impl WorkerSettings {
    pub fn set(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.command.env(name, value.as_ref());
        self
    }

    /// Starts the worker. Its log goes to a file in `target/`.
    pub fn start(mut self) -> WorkerProcess {
        let log = log_file();
        let file = File::create(&log).expect("a log file");
        self.command.stderr(file.try_clone().expect("a log file")).stdout(file);
        WorkerProcess { child: self.command.spawn().expect("started"), log, command: self.command }
    }
}

fn log_file() -> PathBuf {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("workers");
    std::fs::create_dir_all(&folder).expect("a folder");
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    folder.join(format!("{}-{number}.log", std::process::id()))
}

/// A running worker; killed when dropped.
pub struct WorkerProcess {
    child: Child,
    command: Command,
    pub log: PathBuf,
}

impl WorkerProcess {
    /// Kills the worker (`SIGKILL`) and starts it again, like a restart policy.
    pub fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.child = self.command.spawn().expect("started again");
    }

    /// Starts the worker again if it has exited; returns true if it had.
    pub fn restart_if_dead(&mut self) -> bool {
        let is_dead = !self.is_alive();
        if is_dead {
            self.child = self.command.spawn().expect("started again");
        }
        is_dead
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("waited").is_none()
    }

    /// Sends `SIGTERM`.
    pub fn terminate(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("sent");
        assert!(sent.success());
    }

    pub fn wait(&mut self, timeout: Duration) -> ExitStatus {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait().expect("waited") {
                return status;
            }
            assert!(Instant::now() < deadline, "still running; see {}", self.log.display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
