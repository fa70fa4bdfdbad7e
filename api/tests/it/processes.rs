//! Runs the real programs with private services, for tests of whole processes.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use retouch_standins::issuer::Issuer;
use retouch_standins::redis_server::RedisServer;
use retouch_standins::testing::{Bucket, eventually};
use sqlx::{ConnectOptions, PgPool};

use crate::app::AUDIENCE;

/// The services that the programs need.
pub struct Services {
    pub pool: PgPool,
    pub issuer: Issuer,
    pub bucket: Bucket,
    pub http: reqwest::Client,
    redis: RedisServer,
}

impl Services {
    pub async fn start(pool: PgPool) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
        let (issuer, bucket) = (Issuer::start().await, Bucket::of(&pool).await);
        Self { pool, issuer, bucket, http, redis: RedisServer::start() }
    }

    fn program(&self, path: impl AsRef<Path>) -> Program {
        let mut command = Command::new(path.as_ref());
        let url = self.pool.connect_options().to_url_lossy().to_string();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        command
            .arg("serve")
            .env("DATABASE_URL", url)
            .env("DATABASE_CONNECTIONS", "6")
            .env("REDIS_URL", self.redis.url())
            .env("REDIS_PREFIX", "test")
            .env("S3_ENDPOINT", self.bucket.config.s3_endpoint.as_deref().unwrap())
            .env("S3_BUCKET", "test")
            .env("S3_ACCESS_KEY_ID", "test")
            .env("S3_SECRET_ACCESS_KEY", "test-secret")
            // Exports spans after 100 ms instead of five seconds.
            .env("OTEL_BSP_SCHEDULE_DELAY", "100")
            .current_dir(repository);
        Program { command, set: Vec::new() }
    }

    /// Returns the API, not started yet, and its address.
    pub fn api(&self) -> (Program, String) {
        let listen = format!("127.0.0.1:{}", free_port());
        let program = self
            .program(env!("CARGO_BIN_EXE_retouch-api"))
            .set("OIDC_ISSUER", &self.issuer.url)
            .set("OIDC_AUDIENCE", AUDIENCE)
            .set("RETOUCH_URL_SECRET", "a secret of the tests")
            .set("RETOUCH_LISTEN", &listen);
        (program, format!("http://{listen}"))
    }

    /// Returns a worker with the test models, not started yet.
    pub fn worker(&self) -> Program {
        let program = Path::new(env!("CARGO_BIN_EXE_retouch-api")).with_file_name("retouch-worker");
        assert!(program.is_file(), "{} is missing; build the whole workspace", program.display());
        self.program(program).set("RETOUCH_MODELS_DIR", "models/tiny").set("RETOUCH_DEVICE", "cpu")
    }

    /// Waits for any response from `address`.
    pub async fn wait_for(&self, address: &str, process: &Process) {
        let what = format!("a response from {address}; see {}", process.log.display());
        eventually(Duration::from_secs(30), &what, || async {
            self.http.get(address).send().await.ok()
        })
        .await;
    }
}

/// Returns a free port.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program and its environment.
pub struct Program {
    command: Command,
    /// The names of the variables that the test set.
    set: Vec<String>,
}

impl Program {
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.set.push(name.to_owned());
        self.command.env(name, value);
        self
    }

    /// Starts the program. Its log goes to a file below `target/`.
    pub fn start(mut self) -> Process {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        // The developer's own telemetry settings must not affect the tests.
        for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "RETOUCH_METRICS_LISTEN", "RETOUCH_LOG"] {
            if !self.set.iter().any(|set| set == name) {
                self.command.env_remove(name);
            }
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("processes");
        std::fs::create_dir_all(&folder).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let log = folder.join(format!("{}-{number}.log", std::process::id()));
        let file = File::create(&log).unwrap();
        self.command.stderr(file.try_clone().unwrap()).stdout(file);
        Process { child: self.command.spawn().unwrap(), log }
    }
}

/// A running program; killed when dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Returns the log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Returns a field of `/proc/PID/status` such as `VmHWM`, the peak of resident memory, in MiB.
    pub fn memory_mib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<u64>().unwrap() / 1024
    }

    /// Sends SIGTERM and waits for the exit.
    pub async fn stop(&mut self, timeout: Duration) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let what = format!("the exit of a process; see {}", self.log.display());
        let child = std::cell::RefCell::new(&mut self.child);
        eventually(timeout, &what, || async { child.borrow_mut().try_wait().unwrap() }).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
