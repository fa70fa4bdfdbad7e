//! `retouch-worker bench steps`: what a text-guided pipeline adds to its nets.
//!
//! Each painting is measured twice at once: on the clock, and as what ONNX Runtime alone took of it. Measured one after
//! the other, the two would differ by what else the machine did meanwhile.

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

/// `bench steps MODEL`.
#[derive(Args)]
pub struct Steps {
    /// The pipeline: a folder with `model.toml`, or the name of one.
    model: PathBuf,
    /// How many crops to paint, after one that is not counted.
    #[arg(long, default_value_t = 5)]
    paintings: usize,
    /// How many steps each takes; by default what the manifest says.
    #[arg(long = "steps", value_name = "STEPS")]
    count: Option<usize>,
    #[command(flatten)]
    models: ModelArgs,
}

/// What one painting took.
struct Took {
    whole: Duration,
    /// From the end of the first step to the end of the last, and how many steps those are.
    steps: (Duration, usize),
    /// What ONNX Runtime alone took: the net of the steps, and all nets.
    stepping: Duration,
    nets: Duration,
}

impl Steps {
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
            bail!("{} is no text-guided pipeline", manifest.name);
        };
        let mut contract = contract.clone();
        contract.sampling.steps = self.count.unwrap_or(contract.sampling.steps);
        if contract.sampling.steps < 2 {
            bail!("steps are measured from one to the next: it takes at least 2");
        }
        let mut painter = match &manifest.task {
            Task::Flux2Klein(_) => InpaintPainter::flux2_klein(folder, &contract, &runtime)?,
            _ => InpaintPainter::sd_inpaint(folder, &contract, &runtime)?,
        };
        let mode = contract.strength.keys().next().copied().unwrap_or(FixMode::Edit);
        let painting = sample_painting(contract.canvas, mode);
        let mut all = Vec::with_capacity(self.paintings);
        for round in 0..=self.paintings {
            let took = paint(&mut painter, &painting)?;
            if round > 0 {
                all.push(took);
            }
        }
        let sum = |of: fn(&Took) -> Duration| all.iter().map(of).sum::<Duration>();
        let (whole, nets) = (sum(|took| took.whole), sum(|took| took.nets));
        let steps: usize = all.iter().map(|took| took.steps.1).sum();
        let rate = steps as f64 / sum(|took| took.steps.0).as_secs_f64();
        // Of the net's runs one belongs to the first step, whose begin nobody sees.
        let runs = (steps + all.len()) as f64;
        let bare = runs / sum(|took| took.stepping).as_secs_f64();
        let name = painter.nets_ran()[0].0;
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
        println!("a painting         {:>8.1} ms", millis(whole) / all.len() as f64);
        println!("steps              {rate:>8.2} /s");
        println!("bare session.run   {bare:>8.2} /s, the {name} in the same paintings");
        println!("reached            {:>8.1} %", 100.0 * rate / bare);
        let ours = 1.0 - nets.as_secs_f64() / whole.as_secs_f64();
        println!("not the nets       {:>8.1} % of a painting", 100.0 * ours);
        Ok(())
    }
}

fn paint(painter: &mut InpaintPainter, painting: &Painting) -> anyhow::Result<Took> {
    let before = painter.nets_ran();
    let ended = Mutex::new(Vec::new());
    let progress = |_| {
        if let Ok(mut ended) = ended.lock() {
            ended.push(Instant::now());
        }
    };
    let cancel = CancellationToken::new();
    let started = Instant::now();
    painter.paint(painting, Watch { progress: &progress, cancel: &cancel })?;
    let whole = started.elapsed();
    let after = painter.nets_ran();
    let ran: Vec<_> =
        after.iter().zip(before).map(|(after, before)| after.1.saturating_sub(before.1)).collect();
    let ended = ended.into_inner().context("a step was lost")?;
    let (Some(first), Some(last)) = (ended.first(), ended.last()) else {
        bail!("it told of no step");
    };
    Ok(Took {
        whole,
        steps: (*last - *first, ended.len() - 1),
        stepping: ran[0],
        nets: ran.iter().sum(),
    })
}
