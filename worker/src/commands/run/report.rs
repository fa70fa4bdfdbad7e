//! The summary of a run on one picture.

use std::fs;
use std::time::Duration;

use retouch_catalog::FixMode;
use retouch_inference::registry::ModelIdentity;

use super::output::Output;
use crate::tools::Made;
use crate::tools::stage::Stage;

/// The output of a tool, and what it was made with.
pub struct Finished {
    pub made: Made,
    /// The model that ran, or both if two ran.
    pub model: ModelIdentity,
    /// Whether a net made some of the pixels.
    pub has_net: bool,
}

pub struct Report {
    pub finished: Finished,
    pub mode: Option<FixMode>,
    pub loading: Duration,
    pub total: Duration,
}

impl Report {
    /// Finishes the output and prints the summary: to standard error if the result may go to standard output.
    pub fn print(self, output: Output) -> anyhow::Result<()> {
        let (path, is_stream) = (output.path().display().to_string(), output.is_stream());
        let size_bytes = output.finish()?;
        let text = self.text(&path, size_bytes);
        if is_stream {
            eprint!("{text}");
        } else {
            print!("{text}");
        }
        Ok(())
    }

    fn text(&self, path: &str, size_bytes: u64) -> String {
        let Finished { made, model, .. } = &self.finished;
        let Made { size: (width, height), stages, .. } = made;
        let mut lines =
            vec![format!("{path}  {width} × {height}, {} kB", size_bytes.div_ceil(1000))];
        lines.extend(self.mode.map(|mode| format!("mode        {mode}")));
        lines.push(format!("model       {model}"));
        lines.push(format!("load        {:>8.1} ms", millis(self.loading)));
        lines.extend(
            Stage::ALL.map(|stage| {
                format!("{:<11} {:>8.1} ms", stage.as_str(), millis(stages.get(stage)))
            }),
        );
        lines.push(format!("total       {:>8.1} ms, without loading", millis(self.total)));
        lines.extend(
            peak_memory_kib().map(|peak_kib| format!("peak memory {:>8} MiB", peak_kib / 1024)),
        );
        lines.join("\n") + "\n"
    }
}

/// Returns a duration in milliseconds with a fraction.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns the peak resident memory of this process: `VmHWM` in `/proc/self/status`.
fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim_end().parse().ok()
}
