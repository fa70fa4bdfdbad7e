//! `retouch-worker bench`: measures how close the pipeline comes to the limit of the machine.
//!
//! If a picture takes `cpu` CPU-seconds of model and pixels, no scheduling can exceed `cores / cpu` pictures per
//! second. The bench reports that bound and the share of it that the pipeline reaches.

mod select;
mod steps;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use crate::pixel_pool::PixelPool;
use crate::tools::remove_background::remove_background;
use crate::tools::stage::{Stage, StageTimes};
use crate::tools::upscale::{Settings, Upscaler, upscale};
use anyhow::{Context, bail};
use bytes::Bytes;
use clap::{Args, Subcommand};
use ndarray::Array4;
use retouch_catalog::{Factor, Tool};
use retouch_inference::registry::ModelHandle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::select::SelectArgs;
use self::steps::StepsArgs;
use super::models::sample_input;
use super::run::{choose_model, millis, parse_factor};
use super::{LimitArgs, ModelArgs};

/// Runs of the bare model for measuring its speed.
const MODEL_RUNS: usize = 8;

/// The kernel counts CPU time in ticks of 1/100 s (`USER_HZ`, the same on every Linux).
const TICKS_PER_SECOND: f64 = 100.0;

/// The subcommands of `bench`.
#[derive(Subcommand)]
pub enum Bench {
    /// Measure the throughput of background removal, with stages of several pictures overlapping.
    RemoveBg(ThroughputArgs),
    /// Measure the throughput of upscaling, with tiles and stages overlapping.
    Upscale(UpscaleThroughputArgs),
    /// Measure the steps per second of a text-guided pipeline, and of its net alone.
    Steps(StepsArgs),
    /// Measure how well and how fast one click selects, on pictures whose masks are known.
    Select(SelectArgs),
}

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
    factor: Factor,
    #[command(flatten)]
    throughput: ThroughputArgs,
}

impl Bench {
    /// Runs the measurement.
    pub async fn execute(self) -> anyhow::Result<()> {
        match self {
            Self::RemoveBg(command) => command.execute(Tool::RemoveBackground, (4000, 3000)).await,
            Self::Upscale(command) => {
                let tool = Tool::Upscale(command.factor);
                command.throughput.execute(tool, (512, 512)).await
            }
            Self::Steps(command) => command.execute(),
            Self::Select(command) => command.execute().await,
        }
    }
}

impl ThroughputArgs {
    async fn execute(self, tool: Tool, generated_size: (u32, u32)) -> anyhow::Result<()> {
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
        let warm_up = run_overlapped(&work, self.in_flight.min(2), self.in_flight).await?;
        drop(warm_up);
        let pipeline = run_overlapped(&work, self.pictures, self.in_flight).await?;

        let pictures = self.pictures as f64;
        let cpu = pipeline.cpu / pictures;
        let bound = cores as f64 / cpu;
        let rate = pictures / pipeline.wall;
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
            println!(
                "  {:<11} {:>8.1} ms",
                stage.as_str(),
                median(&pipeline.times, |times| times.get(stage))
            );
        }
        println!("  {:<11} {:>8.1} ms", "no model", median(&pipeline.times, StageTimes::pixels));
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

struct Work {
    files: Vec<Bytes>,
    model: ModelHandle,
    tool: Tool,
    pixels: PixelPool,
    settings: Settings,
}

impl Work {
    /// Processes one picture, from its file to the bytes of its PNG, which are discarded.
    async fn process(&self, index: usize) -> anyhow::Result<StageTimes> {
        let input = self.files[index % self.files.len()].clone();
        let Self { model, pixels, settings, .. } = self;
        let cancel = CancellationToken::new();
        match self.tool {
            Tool::RemoveBackground => {
                let limits = &settings.limits;
                let cutout =
                    remove_background(input, model, pixels, limits, &cancel, |_| {}).await?;
                Ok(cutout.stages)
            }
            Tool::MagicFix(_) => bail!("`bench steps` measures Magic Fix"),
            Tool::Upscale(factor) => {
                let net = Upscaler::new(model.clone())?;
                let (out, mut parts) = mpsc::channel(1);
                let upscaling =
                    upscale(input, factor, &net, pixels, settings, &cancel, |_| {}, out);
                let discarding = async { while parts.recv().await.is_some() {} };
                let (upscaled, ()) = tokio::join!(upscaling, discarding);
                Ok(upscaled?.stages)
            }
        }
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
        model.infer(Array4::zeros(shape)).await.map_err(anyhow::Error::msg)?;
    }
    let runs = MODEL_RUNS as f64;
    Ok(BareModel {
        rate: runs / started.elapsed().as_secs_f64(),
        cpu: (cpu_seconds()? - cpu) / runs,
    })
}

struct Pipeline {
    /// Seconds from the first picture to the last.
    wall: f64,
    /// CPU-seconds of the process.
    cpu: f64,
    times: Vec<StageTimes>,
}

/// Processes `pictures` pictures, `in_flight` at a time.
async fn run_overlapped(
    work: &Arc<Work>,
    pictures: usize,
    in_flight: usize,
) -> anyhow::Result<Pipeline> {
    let next = Arc::new(AtomicUsize::new(0));
    let (started, cpu) = (Instant::now(), cpu_seconds()?);
    let mut lanes = JoinSet::new();
    for _ in 0..in_flight.min(pictures) {
        lanes.spawn(lane(Arc::clone(work), Arc::clone(&next), pictures));
    }
    let mut times = Vec::new();
    while let Some(lane) = lanes.join_next().await {
        times.extend(lane??);
    }
    Ok(Pipeline { wall: started.elapsed().as_secs_f64(), cpu: cpu_seconds()? - cpu, times })
}

async fn lane(
    work: Arc<Work>,
    next: Arc<AtomicUsize>,
    pictures: usize,
) -> anyhow::Result<Vec<StageTimes>> {
    let mut times = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= pictures {
            return Ok(times);
        }
        times.push(work.process(index).await?);
    }
}

/// Returns the user and system time of this process: fields 14 and 15 of `/proc/self/stat`, counted after the command's
/// closing parenthesis because its name may contain spaces.
fn cpu_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
    let fields = stat.rsplit_once(')').context("/proc/self/stat has no command")?.1;
    let ticks: f64 = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Ok(ticks / TICKS_PER_SECOND)
}

fn median(times: &[StageTimes], of: impl Fn(&StageTimes) -> Duration) -> f64 {
    let mut values: Vec<_> = times.iter().map(of).collect();
    values.sort();
    values.get(values.len() / 2).copied().map_or(0.0, millis)
}

/// Generates a JPEG with a bright subject, gradients and grain, so that it compresses like a photo.
fn generate_photo((width, height): (u32, u32)) -> anyhow::Result<Bytes> {
    let mut noise = 1_u32;
    let photo = image::RgbImage::from_fn(width, height, |x, y| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let grain = (noise >> 28) as u8;
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height / 2));
        let (across, down) = ((x * 80 / width) as u8, (y * 60 / height) as u8);
        if dx * dx + dy * dy < width * height / 12 {
            image::Rgb([220 + grain, 120 + across, 60 + down])
        } else {
            image::Rgb([30 + across, 60 + down, 90 + grain])
        }
    });
    let mut jpeg = Vec::new();
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 90);
    photo.write_with_encoder(encoder).context("encoding the generated photo")?;
    Ok(jpeg.into())
}
