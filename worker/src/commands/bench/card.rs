//! Samples the state of the GPU during a measurement with `nvidia-smi`, which reads it from NVML.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Milliseconds between samples.
const INTERVAL: &str = "200";

/// The means of the samples within a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CardUse {
    /// The share of the time in which a kernel ran, 0 to 1, as NVML defines it.
    pub busy: f64,
    pub watts: f64,
    /// At the end, in use by all processes.
    pub memory_mib: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    busy: f64,
    watts: f64,
    memory_mib: f64,
}

/// Samples a GPU until dropped.
pub struct Sampler {
    process: Child,
    samples: Arc<Mutex<Vec<(Instant, Sample)>>>,
}

impl Sampler {
    /// Starts `nvidia-smi` from `PATH` for the card with this UUID. Returns `None` if it cannot be started.
    pub fn start(uuid: &str) -> Option<Self> {
        Self::start_program(Path::new("nvidia-smi"), uuid)
    }

    fn start_program(program: &Path, uuid: &str) -> Option<Self> {
        let query = "--query-gpu=utilization.gpu,power.draw,memory.used";
        let mut process = Command::new(program)
            .args([
                &format!("--id={uuid}"),
                query,
                "--format=csv,noheader,nounits",
                "-lms",
                INTERVAL,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let lines = BufReader::new(process.stdout.take()?).lines();
        let samples = Arc::<Mutex<Vec<_>>>::default();
        let kept = Arc::clone(&samples);
        // Ends with the process, which closes the pipe.
        thread::spawn(move || {
            for sample in lines.map_while(Result::ok).filter_map(|line| parse(&line)) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), sample));
            }
        });
        Some(Self { process, samples })
    }

    /// Returns the use since `start`; `None` without a sample since then.
    pub fn since(&self, start: Instant) -> Option<CardUse> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let within: Vec<_> =
            samples.iter().filter(|(at, _)| *at >= start).map(|(_, sample)| *sample).collect();
        let last = within.last()?;
        let mean =
            |of: fn(&Sample) -> f64| within.iter().map(of).sum::<f64>() / within.len() as f64;
        Some(CardUse {
            busy: mean(|sample| sample.busy),
            watts: mean(|sample| sample.watts),
            memory_mib: last.memory_mib,
        })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads a line such as `98, 612.40, 23109`. A card that does not report its power has `[N/A]` there, which counts as
/// 0 W.
fn parse(line: &str) -> Option<Sample> {
    let mut fields = line.split(',').map(str::trim);
    let busy = fields.next()?.parse::<f64>().ok()? / 100.0;
    let watts = fields.next()?.parse().unwrap_or(0.0);
    let memory_mib = fields.next()?.parse().ok()?;
    Some(Sample { busy, watts, memory_mib })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_is_parsed() {
        let sample = Sample { busy: 0.98, watts: 612.4, memory_mib: 23109.0 };
        assert_eq!(parse("98, 612.40, 23109"), Some(sample));
        assert_eq!(parse("98, [N/A], 23109"), Some(Sample { watts: 0.0, ..sample }));
        assert_eq!(parse("No devices were found"), None);
    }

    #[test]
    fn samples_since_a_moment_are_averaged() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nvidia-smi");
        // Another card has other samples.
        let script = "#!/bin/sh\n[ \"$1\" = --id=GPU-1 ] || echo '7, 7, 7'\n\
                      echo '50, 100, 1000'\necho '100, 300, 2000'\nsleep 60\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let start = Instant::now();
        let sampler = Sampler::start_program(&program, "GPU-1").unwrap();
        let until = start + Duration::from_secs(20);
        let both = CardUse { busy: 0.75, watts: 200.0, memory_mib: 2000.0 };
        while sampler.since(start) != Some(both) && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(sampler.since(start), Some(both));
        assert_eq!(sampler.since(Instant::now()), None);
        assert!(Sampler::start_program(&folder.path().join("missing"), "GPU-1").is_none());
    }
}
