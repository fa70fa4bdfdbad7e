//! `retouch-worker bench remove-bg` and `bench upscale`: how close a tool comes to the limit of the machine.
//!
//! If a picture takes `cpu` CPU-seconds of model and pixels, no scheduling can exceed `cores / cpu` pictures per
//! second. The bench reports that bound and the share of it that the pipeline reaches.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use retouch_catalog::{Factor, Tool};
use retouch_inference::registry::ModelHandle;

use super::super::models::{noise, sample_input};
use super::super::run::{choose_model, parse_factor};
use super::super::{LimitArgs, ModelArgs};
use super::overlap::{Amount, Work, cpu_seconds, generate_photo};
use crate::tools::stage::{Stage, StageTimes};

/// Runs of the bare model for measuring its speed.
const MODEL_RUNS: usize = 8;

/// The arguments of `bench remove-bg`.
#[derive(Args)]
pub struct ThroughputArgs {
    /// The pictures to process, in turn [default: a generated JPEG of 12 megapixels, or of a quarter megapixel for
    /// upscaling]
    files: Vec<PathBuf>,
    /// The model [default: the one bound for paid jobs]
    #[arg(long)]
    model: Option<String>,
    /// How many pictures to process in total.
    #[arg(long, default_value_t = 24)]
    pictures: usize,
    /// How many pictures to process at once.
    #[arg(long, default_value_t = 4)]
    in_flight: usize,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The arguments of `bench upscale`.
#[derive(Args)]
pub struct UpscaleThroughputArgs {
    /// The factor by which to enlarge the width and height: 2 or 4.
    #[arg(short, long, default_value = "4", value_parser = parse_factor)]
    pub factor: Factor,
    #[command(flatten)]
    pub throughput: ThroughputArgs,
}

impl ThroughputArgs {
    pub async fn execute(self, tool: Tool, generated_size: (u32, u32)) -> anyhow::Result<()> {
        if self.pictures == 0 || self.in_flight == 0 {
            bail!("--pictures and --in-flight must be at least 1");
        }
        let registry = self.models.registry()?;
        let work = Arc::new(Work {
            files: self.inputs(generated_size)?,
            model: choose_model(&registry, self.model.as_deref(), tool).await?,
            tool,
            pixels: self.models.pixel_pool()?,
            settings: self.limits.settings(&registry),
        });
        let cores = available_parallelism().map_or(1, usize::from).min(self.models.threads());

        let model = bare_model(&work.model).await?;
        let warm_up = work.run(Amount::Pictures(self.in_flight.min(2)), self.in_flight).await?;
        drop(warm_up);
        let pipeline = work.run(Amount::Pictures(self.pictures), self.in_flight).await?;

        let (cpu, rate) = (pipeline.cpu_per_picture(), pipeline.rate());
        let bound = cores as f64 / cpu;
        println!(
            "{} on {cores} cores, {} pictures, {} in flight",
            work.model.identity(),
            self.pictures,
            self.in_flight
        );
        let unit = work.model.task().net().map_or("input", |net| sample_input(net).1);
        println!("bare session.run   {:>8.2} runs/s, one {unit} each", model.rate);
        println!("                   {:>8.3} CPU-seconds per run", model.cpu);
        println!("pipeline           {rate:>8.2} pictures/s");
        println!("CPU per picture    {cpu:>8.3} s");
        println!("bound              {bound:>8.2} pictures/s = cores / CPU per picture");
        println!("reached            {:>8.1} % of the bound", 100.0 * rate / bound);
        println!("median per stage, while stages overlap:");
        for stage in Stage::ALL {
            let ms = pipeline.median_ms(|times| times.get(stage));
            println!("  {:<11} {ms:>8.1} ms", stage.as_str());
        }
        println!("  {:<11} {:>8.1} ms", "no model", pipeline.median_ms(StageTimes::pixels));
        Ok(())
    }

    fn inputs(&self, generated_size: (u32, u32)) -> anyhow::Result<Vec<Bytes>> {
        if self.files.is_empty() {
            return Ok(vec![generate_photo(generated_size)?]);
        }
        let read = |file: &PathBuf| {
            let bytes = fs::read(file).with_context(|| file.display().to_string())?;
            Ok(Bytes::from(bytes))
        };
        self.files.iter().map(read).collect()
    }
}

struct BareModel {
    /// Runs per second, one after the other.
    rate: f64,
    /// CPU-seconds per run.
    cpu: f64,
}

async fn bare_model(model: &ModelHandle) -> anyhow::Result<BareModel> {
    let Some((shape, _)) = model.task().net().map(sample_input) else {
        bail!("{} is not a single net", model.identity());
    };
    let (started, cpu) = (Instant::now(), cpu_seconds()?);
    for _ in 0..MODEL_RUNS {
        model.infer(noise(shape)).await.map_err(anyhow::Error::msg)?;
    }
    let runs = MODEL_RUNS as f64;
    Ok(BareModel {
        rate: runs / started.elapsed().as_secs_f64(),
        cpu: (cpu_seconds()? - cpu) / runs,
    })
}
