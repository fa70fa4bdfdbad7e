//! Ends a process that cannot end by itself: a run that hangs in a driver cannot be stopped from within, and whoever
//! starts the process again, or the next worker, does its jobs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use retouch_inference::runs::Runs;

/// The exit status of a process that cannot go on and should be started again (`EX_SOFTWARE`).
pub const CANNOT_GO_ON: i32 = 70;

/// How often it looks.
const ROUND: Duration = Duration::from_secs(1);
/// A health file older than this is of a process that is gone or stuck.
const FRESH: Duration = Duration::from_secs(20);
/// What the libraries of a device may take to let go of it when the process ends.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// What is watched.
#[derive(Debug)]
pub struct Watchdog {
    /// The models' runs.
    pub runs: Runs,
    /// How long a run, or the process, may give no sign of life.
    pub patience: Duration,
    /// Where to write that all is well, for [`check`].
    pub health_file: Option<PathBuf>,
}

/// What is in the health file.
#[derive(Debug, Serialize, Deserialize)]
struct Health {
    /// Which process wrote it.
    pid: u32,
    /// How long the longest run has been going, in seconds.
    longest_run_secs: u64,
}

impl Watchdog {
    /// Starts watching, from a thread of its own, for as long as the process lives.
    ///
    /// # Errors
    /// When the thread cannot start or the health file cannot be written.
    pub fn start(self, process: Handle) -> anyhow::Result<()> {
        self.write_health(Duration::ZERO)?;
        let thread = std::thread::Builder::new().name("watchdog".into());
        thread.spawn(move || self.watch(&process)).context("starting the watchdog").map(drop)
    }

    fn watch(&self, process: &Handle) {
        let started = Instant::now();
        let answered = Arc::new(AtomicU64::new(0));
        loop {
            std::thread::sleep(ROUND);
            let now = started.elapsed();
            let longest = self.runs.longest();
            if let Some((model, since)) = &longest
                && *since > self.patience
            {
                end(&format!(
                    "Model {model} has given no sign of life for {} s (RETOUCH_STALL_SECS)",
                    since.as_secs()
                ));
            }
            let silent =
                now.saturating_sub(Duration::from_millis(answered.load(Ordering::Relaxed)));
            if silent > self.patience.max(Duration::from_secs(30)) {
                end("The process has not answered itself for too long");
            }
            let answer = Arc::clone(&answered);
            process.spawn(async move {
                answer.store(started.elapsed().as_millis() as u64, Ordering::Relaxed);
            });
            let longest = longest.map_or(Duration::ZERO, |(_, since)| since);
            if let Err(error) = self.write_health(longest) {
                tracing::warn!("{error:#}");
            }
        }
    }

    fn write_health(&self, longest: Duration) -> anyhow::Result<()> {
        let Some(path) = &self.health_file else { return Ok(()) };
        let health = Health { pid: std::process::id(), longest_run_secs: longest.as_secs() };
        // Renamed into place: who reads it never sees half of it.
        let beside = path.with_extension("new");
        fs::write(&beside, serde_json::to_vec(&health)?)
            .and_then(|()| fs::rename(&beside, path))
            .with_context(|| format!("writing {} (RETOUCH_HEALTH_FILE)", path.display()))
    }
}

/// Ends the process at once; its leases run out, and its jobs are done by another one.
pub fn end(why: &str) -> ! {
    tracing::error!("{why}; ending this process so that its jobs are done by another one");
    // A device that hangs may hang its library's last words as well.
    std::thread::spawn(|| {
        std::thread::sleep(LAST_MOMENT);
        std::process::abort();
    });
    std::process::exit(CANNOT_GO_ON)
}

/// Whether the process that writes this health file lives and works.
///
/// # Errors
/// When it does not; the text says what was found.
pub fn check(health_file: &Path, now: SystemTime) -> anyhow::Result<()> {
    let path = health_file.display();
    let written = fs::metadata(health_file).and_then(|about| about.modified());
    let written = written.with_context(|| format!("no worker has written {path}"))?;
    let age = now.duration_since(written).unwrap_or_default();
    anyhow::ensure!(age < FRESH, "{path} is {} s old: its worker is gone or stuck", age.as_secs());
    let health: Health = serde_json::from_slice(&fs::read(health_file)?)
        .with_context(|| format!("reading {path}"))?;
    println!("Process {} works; its longest run takes {} s", health.pid, health.longest_run_secs);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_health_file_is_well_and_an_old_or_missing_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("health");
        let missing = check(&path, SystemTime::now()).unwrap_err();
        assert!(missing.to_string().contains("no worker has written"), "{missing}");
        let dog = Watchdog {
            runs: Runs::default(),
            patience: Duration::from_secs(9),
            health_file: Some(path.clone()),
        };
        dog.write_health(Duration::ZERO).unwrap();
        check(&path, SystemTime::now()).unwrap();
        let old = check(&path, SystemTime::now() + Duration::from_mins(1)).unwrap_err();
        assert!(old.to_string().contains("gone or stuck"), "{old}");
    }
}
