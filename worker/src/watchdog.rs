//! Ends the process if a run or a load hangs. A call that hangs in a driver cannot be canceled; the restarted process or
//! another worker repeats its jobs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use retouch_inference::runs::{Kind, Runs};

/// The exit status of a process that hangs or lost its device and should be restarted (`EX_SOFTWARE`).
pub const EXIT_HUNG: i32 = 70;

const INTERVAL: Duration = Duration::from_secs(1);
/// How long loading a model again may take, if that is more than a run may be silent: files may be large, and disks slow.
const LOAD_TIMEOUT: Duration = Duration::from_mins(10);
/// An older health file means that its process is gone or hangs.
const MAX_AGE: Duration = Duration::from_secs(20);
/// How long the device's libraries may take to exit before the process aborts.
const EXIT_GRACE: Duration = Duration::from_secs(5);

/// Watches the runs of a process and its async runtime.
#[derive(Debug)]
pub struct Watchdog {
    pub runs: Runs,
    /// How long a run or the async runtime may go without a heartbeat.
    pub stall_timeout: Duration,
    /// The health file for [`check`]; `None` writes none.
    pub health_file: Option<PathBuf>,
    /// Whether the process serves. Before that it writes no health file, so that it counts as started only once its models
    /// are loaded.
    pub is_ready: Arc<AtomicBool>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Health {
    pid: u32,
    /// The longest time that a run has gone without a heartbeat, in seconds.
    longest_run_secs: u64,
}

impl Watchdog {
    /// Starts the watchdog thread, which runs as long as the process.
    ///
    /// # Errors
    /// If the thread cannot start or an old health file cannot be removed.
    pub fn start(self, runtime: Handle) -> anyhow::Result<()> {
        // Left by an earlier process in the same container.
        if let Some(path) = self.health_file.as_ref().filter(|path| path.exists()) {
            fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        }
        let thread = std::thread::Builder::new().name("watchdog".into());
        thread.spawn(move || self.watch(&runtime)).context("starting the watchdog").map(drop)
    }

    fn watch(&self, runtime: &Handle) {
        let started = Instant::now();
        let responded = Arc::new(AtomicU64::new(0));
        loop {
            std::thread::sleep(INTERVAL);
            let now = started.elapsed();
            let longest = self.runs.longest_silent(Kind::Run);
            if let Some((model, since)) = &longest
                && *since > self.stall_timeout
            {
                end(&format!(
                    "Model {model} has made no progress for {} s (RETOUCH_STALL_SECS)",
                    since.as_secs()
                ));
            }
            if let Some((model, since)) = self.runs.longest_silent(Kind::Load)
                && since > self.stall_timeout.max(LOAD_TIMEOUT)
            {
                end(&format!("Model {model} has been loading for {} s", since.as_secs()));
            }
            let silent =
                now.saturating_sub(Duration::from_millis(responded.load(Ordering::Relaxed)));
            if silent > self.stall_timeout.max(Duration::from_secs(30)) {
                end(&format!("The async runtime has not responded for {} s", silent.as_secs()));
            }
            let response = Arc::clone(&responded);
            runtime.spawn(async move {
                response.store(started.elapsed().as_millis() as u64, Ordering::Relaxed);
            });
            let longest = longest.map_or(Duration::ZERO, |(_, since)| since);
            if self.is_ready.load(Ordering::Relaxed)
                && let Err(error) = self.write_health(longest)
            {
                tracing::warn!("{error:#}");
            }
        }
    }

    fn write_health(&self, longest: Duration) -> anyhow::Result<()> {
        let Some(path) = &self.health_file else { return Ok(()) };
        let health = Health { pid: std::process::id(), longest_run_secs: longest.as_secs() };
        // Renaming is atomic, so readers never see half a file.
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec(&health)?)
            .and_then(|()| fs::rename(&new, path))
            .with_context(|| format!("writing {} (RETOUCH_HEALTH_FILE)", path.display()))
    }
}

/// Ends the process at once. Its leases expire, and another process repeats its jobs.
pub fn end(reason: &str) -> ! {
    tracing::error!("{reason}; exiting so that another process can take over its jobs");
    // A hanging device may also hang the exit handlers of its libraries.
    std::thread::spawn(|| {
        std::thread::sleep(EXIT_GRACE);
        std::process::abort();
    });
    std::process::exit(EXIT_HUNG)
}

/// Checks that the process which writes this health file is alive and working.
///
/// # Errors
/// If it is not; the text says why.
pub fn check(health_file: &Path, now: SystemTime) -> anyhow::Result<()> {
    let path = health_file.display();
    let written = fs::metadata(health_file).and_then(|about| about.modified());
    let written = written.with_context(|| format!("no worker has written {path}"))?;
    let age = now.duration_since(written).unwrap_or_default();
    anyhow::ensure!(
        age < MAX_AGE,
        "{path} is {} s old: its worker has stopped or hangs",
        age.as_secs()
    );
    let health: Health = serde_json::from_slice(&fs::read(health_file)?)
        .with_context(|| format!("reading {path}"))?;
    println!(
        "Process {} is healthy; its longest run takes {} s",
        health.pid, health.longest_run_secs
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fresh_health_file_is_healthy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("health");
        let missing = check(&path, SystemTime::now()).unwrap_err();
        assert!(missing.to_string().contains("no worker has written"), "{missing}");
        let watchdog = Watchdog {
            runs: Runs::default(),
            stall_timeout: Duration::from_secs(9),
            health_file: Some(path.clone()),
            is_ready: Arc::default(),
        };
        watchdog.write_health(Duration::ZERO).unwrap();
        check(&path, SystemTime::now()).unwrap();
        let old = check(&path, SystemTime::now() + Duration::from_mins(1)).unwrap_err();
        assert!(old.to_string().contains("has stopped or hangs"), "{old}");
    }

    #[tokio::test]
    async fn a_process_that_loads_its_models_is_not_healthy_yet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("health");
        fs::write(&path, "of the process before").unwrap();
        let is_ready = Arc::new(AtomicBool::new(false));
        let watchdog = Watchdog {
            runs: Runs::default(),
            stall_timeout: Duration::from_secs(9),
            health_file: Some(path.clone()),
            is_ready: Arc::clone(&is_ready),
        };
        watchdog.start(Handle::current()).unwrap();
        tokio::time::sleep(INTERVAL + INTERVAL / 2).await;
        assert!(!path.exists());
        is_ready.store(true, Ordering::Relaxed);
        tokio::time::sleep(INTERVAL + INTERVAL / 2).await;
        check(&path, SystemTime::now()).unwrap();
    }
}
