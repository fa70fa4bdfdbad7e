//! `retouch-worker bench steps`: measures the time that a text-guided pipeline adds to its nets.
//!
//! Each painting yields both the total time and the time in ONNX Runtime: in separate measurements, other load on the
//! machine would distort the difference.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use retouch_catalog::FixMode;
use retouch_inference::manifest::{Manifest, Task};
use retouch_inference::painter::{InpaintPainter, Painter, Painting, Watch};
use retouch_inference::registry::sample_painting;
use tokio_util::sync::CancellationToken;

use super::super::ModelArgs;
use super::super::run::millis;

/// The arguments of `bench steps`.
#[derive(Args)]
pub struct StepsArgs {
    /// The pipeline: a model's name, or a folder with `model.toml`.
    model: PathBuf,
    /// How many crops to paint, after a warm-up.
    #[arg(long, default_value_t = 5)]
    paintings: usize,
    /// The number of steps per painting [default: as in the manifest]
    #[arg(long = "steps", value_name = "STEPS")]
    count: Option<usize>,
    #[command(flatten)]
    models: ModelArgs,
}

/// The times of one painting.
struct Times {
    total: Duration,
    /// The time from the end of the first step to the end of the last, and the number of steps in between.
    steps: (Duration, usize),
    /// The time in ONNX Runtime for the net of the steps.
    step_net: Duration,
    /// The time in ONNX Runtime for all nets.
    nets: Duration,
}

impl StepsArgs {
    /// Runs the measurement.
    pub fn execute(self) -> anyhow::Result<()> {
        if self.paintings == 0 {
            bail!("--paintings must be at least 1");
        }
        let named = self.models.models_dir.join(&self.model);
        let folder = if self.model.join("model.toml").is_file() { &self.model } else { &named };
        let manifest = Manifest::read(folder)?;
        let runtime = self.models.runtime()?;
        let (Task::SdInpaint(contract) | Task::Flux2Klein(contract)) = &manifest.task else {
            bail!("{} is not a text-guided pipeline", manifest.name);
        };
        let mut contract = contract.clone();
        contract.sampling.steps = self.count.unwrap_or(contract.sampling.steps);
        if contract.sampling.steps < 2 {
            bail!(
                "--steps must be at least 2, because the measurement starts after the first step"
            );
        }
        let mut painter = match &manifest.task {
            Task::Flux2Klein(_) => InpaintPainter::flux2_klein(folder, &contract, &runtime)?,
            _ => InpaintPainter::sd_inpaint(folder, &contract, &runtime)?,
        };
        let mode = contract.strength.keys().next().copied().unwrap_or(FixMode::Edit);
        let painting = sample_painting(contract.canvas, mode);
        let mut all = Vec::with_capacity(self.paintings);
        for round in 0..=self.paintings {
            let times = paint(&mut painter, &painting)?;
            if round > 0 {
                all.push(times);
            }
        }
        let sum = |of: fn(&Times) -> Duration| all.iter().map(of).sum::<Duration>();
        let (total, nets) = (sum(|times| times.total), sum(|times| times.nets));
        let steps: usize = all.iter().map(|times| times.steps.1).sum();
        let rate = steps as f64 / sum(|times| times.steps.0).as_secs_f64();
        // The net also ran for the first step of each painting.
        let runs = (steps + all.len()) as f64;
        let bare = runs / sum(|times| times.step_net).as_secs_f64();
        let name = painter.run_times()[0].0;
        println!(
            "{} on {}, {} threads, {} paintings of {} steps at {} × {}",
            manifest.name,
            runtime.device(),
            self.models.threads(),
            all.len(),
            contract.sampling.steps,
            painting.width,
            painting.height
        );
        println!("painting           {:>8.1} ms", millis(total) / all.len() as f64);
        println!("steps              {rate:>8.2} /s");
        println!("bare session.run   {bare:>8.2} /s, the {name} in the same paintings");
        println!("reached            {:>8.1} %", 100.0 * rate / bare);
        let overhead = 1.0 - nets.as_secs_f64() / total.as_secs_f64();
        println!("outside the nets   {:>8.1} % of a painting", 100.0 * overhead);
        Ok(())
    }
}

fn paint(painter: &mut InpaintPainter, painting: &Painting) -> anyhow::Result<Times> {
    let before = painter.run_times();
    let ended = Mutex::new(Vec::new());
    let progress = |_| {
        if let Ok(mut ended) = ended.lock() {
            ended.push(Instant::now());
        }
    };
    let cancel = CancellationToken::new();
    let started = Instant::now();
    painter.paint(painting, Watch { progress: &progress, cancel: &cancel })?;
    let total = started.elapsed();
    let after = painter.run_times();
    let ran: Vec<_> =
        after.iter().zip(before).map(|(after, before)| after.1.saturating_sub(before.1)).collect();
    let ended = ended.into_inner().context("a step was lost")?;
    let (Some(first), Some(last)) = (ended.first(), ended.last()) else {
        bail!("the pipeline reported no step");
    };
    Ok(Times {
        total,
        steps: (*last - *first, ended.len() - 1),
        step_net: ran[0],
        nets: ran.iter().sum(),
    })
}
