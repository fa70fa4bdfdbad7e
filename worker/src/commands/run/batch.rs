//! Runs a tool on many pictures: several in flight, with progress, and a summary of failures.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::pictures::Item;

pub struct Written {
    /// Width and height in pixels.
    pub size: (u32, u32),
    pub size_bytes: u64,
}

/// Runs `process` on every item, `in_flight` at a time, and reports each. A failure does not stop the others.
///
/// # Errors
/// If any picture failed, or standard output is closed.
pub async fn run_all(
    items: &[Item],
    skipped: usize,
    in_flight: usize,
    process: impl AsyncFn(&Item) -> anyhow::Result<Written>,
) -> anyhow::Result<()> {
    let board = Board::new(items.len());
    let started = Instant::now();
    let mut failed = Vec::new();
    let process = &process;
    let runs = items.iter().map(async |item| {
        let started = Instant::now();
        (item, process(item).await, started.elapsed())
    });
    let mut ended = stream::iter(runs).buffer_unordered(in_flight);
    while let Some((item, outcome, took)) = ended.next().await {
        match outcome {
            // If the reader has closed standard output, it wants no more results. The pictures in progress leave
            // nothing behind.
            Ok(written) => board.done(&item.output, &written, took)?,
            Err(error) => {
                board.failed(&format!("{error:#}"));
                failed.push(item);
            }
        }
    }
    board.clear();
    let (total, took) = (items.len(), started.elapsed());
    let done = total - failed.len();
    let rate = done as f64 / took.as_secs_f64().max(f64::MIN_POSITIVE);
    let left_out = if skipped > 0 { format!(", {skipped} left out") } else { String::new() };
    eprintln!(
        "{done} of {total} pictures done in {:.1} s ({rate:.2} pictures/s){left_out}",
        took.as_secs_f64()
    );
    if failed.is_empty() {
        return Ok(());
    }
    for item in &failed {
        eprintln!("failed: {}", item.input.display());
    }
    bail!("{} of {total} pictures failed", failed.len())
}

/// Shows the progress: a bar if standard error is a terminal, and a line for each picture unless the bar and the lines
/// would share the terminal.
struct Board {
    bar: Option<ProgressBar>,
    has_lines: bool,
}

impl Board {
    fn new(total: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            bar.with_style(style())
        });
        let has_lines = bar.is_none() || !io::stdout().is_terminal();
        Self { bar, has_lines }
    }

    fn done(&self, output: &Path, written: &Written, took: Duration) -> anyhow::Result<()> {
        let Written { size: (width, height), size_bytes } = written;
        if let Some(bar) = &self.bar {
            bar.set_message(output.display().to_string());
            bar.inc(1);
        }
        if !self.has_lines {
            return Ok(());
        }
        writeln!(
            io::stdout(),
            "{}  {width} × {height}, {} kB, {:.2} s",
            output.display(),
            size_bytes.div_ceil(1000),
            took.as_secs_f64()
        )
        .context("writing to standard output")
    }

    fn failed(&self, reason: &str) {
        if let Some(bar) = &self.bar {
            bar.println(reason);
            bar.inc(1);
        } else {
            eprintln!("{reason}");
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    let template = "{bar:30} {pos}/{len}  {rate}  {eta} left  {wide_msg}";
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
        "rate",
        |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = write!(out, "{:.2} pictures/s", state.per_sec());
        },
    )
}
