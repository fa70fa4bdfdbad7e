//! `retouch-worker bench steps`: measures the time that a text-guided pipeline adds to its nets.
//!
//! Each painting yields both the total time and the time in ONNX Runtime: in separate measurements, other load on the
//! machine would distort the difference.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use retouch_catalog::FixMode;
use retouch_inference::manifest::{Manifest, Task};
use retouch_inference::painter::{InpaintPainter, Painter, Painting, Watch};
use retouch_inference::registry::sample_painting;
use retouch_inference::session::Runtime;
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

impl StepsArgs {
    pub fn execute(self) -> anyhow::Result<()> {
        if self.paintings == 0 {
            bail!("--paintings must be at least 1");
        }
        let named = self.models.models_dir.join(&self.model);
        let folder = if self.model.join("model.toml").is_file() { &self.model } else { &named };
        let runtime = self.models.runtime()?;
        let mut easel = Easel::open(folder, self.count, &runtime)?;
        let mut times = Times::default();
        easel.paint()?;
        for _ in 0..self.paintings {
            times.add(&easel.paint()?.times);
        }
        println!(
            "{} on {}, {} threads, {} paintings of {} steps at {} × {}",
            easel.name,
            runtime.device(),
            self.models.threads(),
            times.paintings,
            easel.steps,
            easel.painting.width,
            easel.painting.height
        );
        println!("painting           {:>8.1} ms", millis(times.total) / times.paintings as f64);
        println!("steps              {:>8.2} /s", times.rate());
        println!(
            "bare session.run   {:>8.2} /s, the {} in the same paintings",
            times.bare_rate(),
            easel.painter.run_times()[0].0
        );
        println!("reached            {:>8.1} %", 100.0 * times.rate() / times.bare_rate());
        println!("outside the nets   {:>8.1} % of a painting", 100.0 * (1.0 - times.nets_share()));
        Ok(())
    }
}

/// A text-guided pipeline and the crop that it paints.
pub struct Easel {
    name: String,
    /// Steps per painting.
    steps: usize,
    painter: InpaintPainter,
    pub painting: Painting,
}

pub struct Painted {
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    pub times: Times,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    pub paintings: usize,
    /// From the start of each painting to its end.
    pub total: Duration,
    /// The time from the end of the first step to the end of the last, and the number of steps in between.
    steps: (Duration, usize),
    /// In ONNX Runtime, for the net of the steps.
    step_net: Duration,
    /// In ONNX Runtime, for all nets.
    nets: Duration,
}

impl Times {
    pub fn add(&mut self, other: &Self) {
        self.paintings += other.paintings;
        self.total += other.total;
        self.steps = (self.steps.0 + other.steps.0, self.steps.1 + other.steps.1);
        self.step_net += other.step_net;
        self.nets += other.nets;
    }

    /// Returns the steps per second.
    pub fn rate(&self) -> f64 {
        self.steps.1 as f64 / self.steps.0.as_secs_f64()
    }

    /// Returns the steps per second that the net alone would reach.
    pub fn bare_rate(&self) -> f64 {
        // The net also ran for the first step of each painting.
        (self.steps.1 + self.paintings) as f64 / self.step_net.as_secs_f64()
    }

    /// Returns the share of the time in which a net ran.
    pub fn nets_share(&self) -> f64 {
        self.nets.as_secs_f64() / self.total.as_secs_f64()
    }
}

impl Easel {
    /// Opens a pipeline. `steps` replaces the number in the manifest.
    ///
    /// # Errors
    /// If the model is not a text-guided pipeline, paints in one step, or cannot be opened.
    pub fn open(folder: &Path, steps: Option<usize>, runtime: &Runtime) -> anyhow::Result<Self> {
        let manifest = Manifest::read(folder)?;
        let (Task::SdInpaint(contract) | Task::Flux2Klein(contract)) = &manifest.task else {
            bail!("{} is not a text-guided pipeline", manifest.name);
        };
        let mut contract = contract.clone();
        contract.sampling.steps = steps.unwrap_or(contract.sampling.steps);
        let steps = contract.sampling.steps;
        if steps < 2 {
            bail!(
                "--steps must be at least 2, because the measurement starts after the first step"
            );
        }
        let painter = match &manifest.task {
            Task::Flux2Klein(_) => InpaintPainter::flux2_klein(folder, &contract, runtime)?,
            _ => InpaintPainter::sd_inpaint(folder, &contract, runtime)?,
        };
        let mode = contract.strength.keys().next().copied().unwrap_or(FixMode::Edit);
        let painting = sample_painting(contract.canvas, mode);
        Ok(Self { name: manifest.name, steps, painter, painting })
    }

    /// Paints the crop once.
    pub fn paint(&mut self) -> anyhow::Result<Painted> {
        let before = self.painter.run_times();
        let ended = Mutex::new(Vec::new());
        let progress = |_| {
            if let Ok(mut ended) = ended.lock() {
                ended.push(Instant::now());
            }
        };
        let cancel = CancellationToken::new();
        let started = Instant::now();
        let watch = Watch { progress: &progress, heartbeat: &|| {}, cancel: &cancel };
        let rgb = self.painter.paint(&self.painting, watch)?;
        let total = started.elapsed();
        let after = self.painter.run_times();
        let runs = after.iter().zip(before);
        let ran: Vec<_> = runs.map(|(after, before)| after.1.saturating_sub(before.1)).collect();
        let ended = ended.into_inner().context("a step was lost")?;
        let (Some(first), Some(last)) = (ended.first(), ended.last()) else {
            bail!("the pipeline reported no step");
        };
        let times = Times {
            paintings: 1,
            total,
            steps: (*last - *first, ended.len() - 1),
            step_net: ran[0],
            nets: ran.iter().sum(),
        };
        Ok(Painted { rgb, times })
    }
}
