//! One process of `bench --all`: measures a model under one setting and prints a line of JSON per result.
//!
//! A process of its own keeps a crash, a full card, and the peak of memory apart from the other measurements.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use retouch_inference::device::Device;
use retouch_inference::manifest::{Manifest, Precision, Task};
use retouch_inference::registry::{ModelHandle, PaintControl, Registry, sample_painting};
use retouch_inference::session::{PrecisionPolicy, Runtime, SessionError};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::super::models::{noise, run_plain, sample_input};
use super::super::super::{LimitArgs, ModelArgs};
use super::super::card::Sampler;
use super::super::overlap::{Amount, Pipeline, Work, cpu_seconds, generate_photo};
use super::super::steps::{Easel, Times};
use super::compare;
use super::plan::{Load, REFERENCE, tool_of};
use super::record::{Comparison, Measures, Outcome};
use crate::tools::stage::Stage;
use crate::tools::upscale::tile_shapes;

/// The picture whose result is compared, in pixels: small enough for a large upscaler on a CPU.
const COMPARED_SIZE: (u32, u32) = (160, 120);

/// What a cutout of a large picture takes beside the model, at most, per megapixel. Predicts whether one can be measured
/// in the time that is left.
const CUTOUT_SECONDS_PER_MEGAPIXEL: f64 = 0.2;

/// How many runs a net that gets few shapes needs until it runs in the size of batch that a load asks for.
const SETTLING_RUNS: u32 = 6;

/// The arguments of `bench case`.
#[derive(Args)]
pub struct CaseArgs {
    /// The model.
    #[arg(long)]
    model: String,
    /// The name of the setting; other arguments select it.
    #[arg(long)]
    setting: String,
    /// Whether the setting is about batches.
    #[arg(long)]
    about_batches: bool,
    /// The folder of results.
    #[arg(long)]
    out: PathBuf,
    /// A size in megapixels and the number of concurrent pictures, such as `12x4`; may be repeated.
    #[arg(long = "load", value_parser = parse_load)]
    loads: Vec<Load>,
    /// How long to measure each load, in seconds.
    #[arg(long, value_parser = time)]
    seconds: f64,
    /// Maximum time for one load, in seconds.
    #[arg(long)]
    longest: f64,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// A line that the process prints.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    Load(Load, Outcome),
    /// The difference of the result from the reference.
    Comparison(Comparison),
    /// Last line of a process. Freeing the device comes after it and may be slow or fail.
    End,
}

fn say(line: &Line) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}

/// Parses a time, of any unit, that a measurement may take.
pub fn time(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(time) if (0.0..=1e6).contains(&time) => Ok(time),
        _ => Err("must be a number from 0 to 1000000".to_owned()),
    }
}

/// Formats a load as [`CaseArgs`] expects it.
pub fn load_argument(Load { megapixels, in_flight }: Load) -> String {
    format!("--load={megapixels}x{in_flight}")
}

fn parse_load(text: &str) -> Result<Load, String> {
    let parse = || {
        let (megapixels, in_flight) = text.split_once('x')?;
        Some(Load { megapixels: megapixels.parse().ok()?, in_flight: in_flight.parse().ok()? })
    };
    parse().ok_or_else(|| "write megapixels, x, and pictures at once, such as 12x4".to_owned())
}

impl CaseArgs {
    pub async fn execute(self) -> anyhow::Result<()> {
        let folder = self.models.models_dir.join(&self.model);
        let manifest = Manifest::read(&folder)?;
        let first = self.models.cuda.first_device();
        let card = first.ok().and_then(|first| Sampler::start(&first.card.uuid));
        match &manifest.task {
            Task::SdInpaint(_) | Task::Flux2Klein(_) => self.pipeline(&folder, card.as_ref())?,
            _ => self.model(&manifest, card.as_ref()).await?,
        }
        say(&Line::End)
    }

    /// Measures a pipeline with steps.
    fn pipeline(&self, folder: &Path, card: Option<&Sampler>) -> anyhow::Result<()> {
        let mut easel = Easel::open(folder, None, &self.models.runtime()?)?;
        let size = (easel.painting.width, easel.painting.height);
        self.compare(&compare::Samples::of_rgb(size, easel.paint()?.rgb), compare::PAINTING)?;
        for load in &self.loads {
            let (started, cpu) = (Instant::now(), cpu_seconds()?);
            let mut times = Times::default();
            while times.paintings == 0 || started.elapsed().as_secs_f64() < self.seconds {
                times.add(&easel.paint()?.times);
            }
            let measures = Measures {
                pictures: times.paintings,
                rate: times.paintings as f64 / times.total.as_secs_f64(),
                steps_per_second: Some(times.rate()),
                bare_rate: Some(times.bare_rate()),
                model_share: Some(times.nets_share()),
                cpu_seconds: (cpu_seconds()? - cpu) / times.paintings as f64,
                card: card.and_then(|card| card.since(started)),
                resident_mib: resident_mib(),
                ..Measures::default()
            };
            say(&Line::Load(*load, Outcome::Measured(Box::new(measures))))?;
        }
        Ok(())
    }

    /// Measures a model that a registry loads.
    async fn model(&self, manifest: &Manifest, card: Option<&Sampler>) -> anyhow::Result<()> {
        let registry = self.models.registry_remembering(self.out.join("passed-checks"))?;
        let model = registry.load(&manifest.name).await?;
        match tool_of(&manifest.task) {
            Some(tool) => {
                let work = Work {
                    files: vec![generate_photo(COMPARED_SIZE)?],
                    model,
                    tool,
                    pixels: self.models.pixel_pool()?,
                    settings: self.limits.settings(&registry),
                };
                self.sized(manifest, work, card).await
            }
            None => self.unsized_model(&registry, &model, card).await,
        }
    }

    /// Measures a tool for pictures of any size.
    async fn sized(
        &self,
        manifest: &Manifest,
        work: Work,
        card: Option<&Sampler>,
    ) -> anyhow::Result<()> {
        if self.models.precision == PrecisionPolicy::F16 && work.model.precision() == Precision::F32
        {
            for load in &self.loads {
                let reason = "16 bits are not enough for the net".to_owned();
                say(&Line::Load(*load, Outcome::Meaningless(reason)))?;
            }
            return Ok(());
        }
        let started = Instant::now();
        let mut png = Vec::new();
        work.process(0, |part| png.extend_from_slice(&part)).await?;
        let took = started.elapsed().as_secs_f64();
        self.compare(&compare::Samples::of_png(&png)?, compare::PICTURE)?;
        if self.loads.is_empty() {
            return Ok(());
        }
        let runtime = self.models.runtime()?;
        let is_on_cpu = runtime.device() == Device::Cpu;
        // The first picture of a shape says nothing about the next ones on a GPU, where cuDNN plans every convolution.
        let mut known = is_on_cpu.then_some((megapixels(COMPARED_SIZE), took));
        let plain_rate = self.plain_rate(manifest, &runtime, known.map_or(0.0, |(_, took)| took));
        let Work { model, tool, pixels, settings, .. } = work;
        for load in &self.loads {
            let size = size_of(load.megapixels);
            let expected = known
                .map_or(0.0, |known| expected_seconds(&manifest.task, known, megapixels(size)));
            // Once to warm up and once to measure.
            if expected * 2.0 > self.longest {
                let reason = format!("one picture would take about {expected:.0} s");
                say(&Line::Load(*load, Outcome::Skipped(reason)))?;
                continue;
            }
            let work = Arc::new(Work {
                files: vec![generate_photo(size)?],
                model: model.clone(),
                tool,
                pixels: pixels.clone(),
                settings,
            });
            // The warm-up prepares the net for a new shape, and shows how long the measurement will take.
            let mut warm_up = work.run(Amount::Pictures(1), 1).await?;
            if !is_on_cpu {
                warm_up = work.run(Amount::Pictures(1), 1).await?;
            }
            known = Some((megapixels(size), warm_up.wall));
            // Concurrent pictures share the cores of a CPU, or a GPU's net.
            let shared = if is_on_cpu { 1.0 } else { warm_up.model_share() };
            let expected = warm_up.wall * (load.in_flight as f64 * shared).max(1.0);
            if expected > self.longest {
                let reason = format!("the pictures would take about {expected:.0} s");
                say(&Line::Load(*load, Outcome::Skipped(reason)))?;
                continue;
            }
            let bare = self.bare(&work, &manifest.task, size).await?;
            // The bare net ran in full batches. The tiles of an upscale fill them, too.
            if work.model.has_few_shapes() && matches!(manifest.task, Task::Segmentation(_)) {
                let pictures = load.in_flight.max(SETTLING_RUNS as usize);
                work.run(Amount::Pictures(pictures), load.in_flight).await?;
            }
            if self.about_batches && bare.batch == 1 && self.models.batch != Some(1) {
                let reason = "the net takes one input at a time".to_owned();
                say(&Line::Load(*load, Outcome::Meaningless(reason)))?;
                continue;
            }
            let since = Instant::now();
            let time = Duration::from_secs_f64(self.seconds);
            let pipeline = work.run(Amount::Time(time), load.in_flight).await?;
            let measures = Measures {
                ms_per_megapixel: Some(1000.0 / pipeline.rate() / megapixels(size)),
                bare_rate: Some(bare.rate),
                plain_rate,
                batch: Some(bare.batch),
                card: card.and_then(|card| card.since(since)),
                ..measures_of(&pipeline)
            };
            say(&Line::Load(*load, Outcome::Measured(Box::new(measures))))?;
        }
        Ok(())
    }

    /// Measures a fill, or a net that answers clicks.
    async fn unsized_model(
        &self,
        registry: &Registry,
        model: &ModelHandle,
        card: Option<&Sampler>,
    ) -> anyhow::Result<()> {
        let first = run_once(model).await?;
        if let Some(samples) = first {
            self.compare(&samples, compare::PAINTING)?;
        }
        for load in &self.loads {
            let (started, cpu, mut pictures) = (Instant::now(), cpu_seconds()?, 0);
            while pictures == 0 || started.elapsed().as_secs_f64() < self.seconds {
                run_once(model).await?;
                pictures += 1;
            }
            let measures = Measures {
                pictures,
                rate: pictures as f64 / started.elapsed().as_secs_f64(),
                cpu_seconds: (cpu_seconds()? - cpu) / pictures as f64,
                card: card.and_then(|card| card.since(started)),
                resident_mib: resident_mib(),
                ..Measures::default()
            };
            say(&Line::Load(*load, Outcome::Measured(Box::new(measures))))?;
        }
        debug_assert!(registry.problems().is_empty());
        Ok(())
    }

    /// Writes the result as the reference, or compares it with the reference.
    fn compare(&self, result: &compare::Samples, tolerance: f64) -> anyhow::Result<()> {
        let file = self.out.join("results").join(format!("{}.png", self.model));
        if self.setting == REFERENCE {
            return result.write(&file);
        }
        if !file.is_file() {
            return Ok(());
        }
        let reference = compare::Samples::read(&file)?;
        let (largest, mean) = result.difference(&reference)?;
        let (model, setting) = (self.model.clone(), self.setting.clone());
        say(&Line::Comparison(Comparison { model, setting, largest, mean, tolerance }))
    }

    /// Measures the net with ONNX Runtime's defaults, one input at a time, in inputs per second. `None` if it takes
    /// more than one file, or cannot run that way.
    fn plain_rate(&self, manifest: &Manifest, runtime: &Runtime, expected: f64) -> Option<f64> {
        let (Some(net), [file]) = (manifest.task.net(), manifest.files.as_slice()) else {
            return None;
        };
        if self.setting != REFERENCE && self.setting != "CUDA" || expected * 2.0 > self.longest {
            return None;
        }
        let mut session = runtime.open_plain(&manifest.folder.join(&file.file)).ok()?;
        run_plain(&mut session, net).ok()?;
        let (started, mut runs) = (Instant::now(), 0);
        while runs == 0 || started.elapsed().as_secs_f64() < self.seconds / 2.0 {
            run_plain(&mut session, net).ok()?;
            runs += 1;
        }
        Some(f64::from(runs) / started.elapsed().as_secs_f64())
    }

    /// Measures the loaded net alone, in pictures per second, with enough inputs waiting to fill its batches.
    async fn bare(&self, work: &Work, task: &Task, size: (u32, u32)) -> anyhow::Result<Bare> {
        let shapes = match (task, work.tool.factor()) {
            (Task::Upscale(contract), Some(factor)) => {
                let has_few = work.model.has_few_shapes();
                tile_shapes(size, factor, contract, has_few, &work.settings)?
            }
            (task, _) => {
                let Some(((_, rows, columns, _), _)) = task.net().map(sample_input) else {
                    bail!("a tool for pictures needs a net");
                };
                vec![(rows, columns)]
            }
        };
        let pixels = |(rows, columns): &(usize, usize)| rows * columns;
        let largest = shapes.iter().max_by_key(|shape| pixels(shape)).context("no tiles")?;
        // In tiles of the largest size.
        let tiles = shapes.iter().map(pixels).sum::<usize>() as f64 / pixels(largest) as f64;
        let batch = work.model.largest_batch(largest.0, largest.1);
        let shape = (1, largest.0, largest.1, 3);
        if work.model.has_few_shapes() {
            run_in_lanes(&work.model, shape, 2 * batch, |runs| runs < SETTLING_RUNS).await?;
        }
        let started = Instant::now();
        let until = started + Duration::from_secs_f64(self.seconds / 2.0);
        let goes_on = move |runs| runs == 0 || Instant::now() < until;
        let runs = run_in_lanes(&work.model, shape, 2 * batch, goes_on).await?;
        Ok(Bare { rate: f64::from(runs) / started.elapsed().as_secs_f64() / tiles, batch })
    }
}

/// Runs a net in lanes that each have one input waiting, as long as `goes_on` says for the runs of a lane. Returns the
/// number of runs.
async fn run_in_lanes(
    model: &ModelHandle,
    shape: (usize, usize, usize, usize),
    count: usize,
    goes_on: impl Fn(u32) -> bool + Copy + Send + 'static,
) -> anyhow::Result<u32> {
    let mut lanes = JoinSet::new();
    for _ in 0..count {
        let model = model.clone();
        lanes.spawn(async move {
            let mut runs = 0;
            while goes_on(runs) {
                model.infer(noise(shape)).await?;
                runs += 1;
            }
            Ok::<_, SessionError>(runs)
        });
    }
    let mut runs = 0;
    while let Some(lane) = lanes.join_next().await {
        runs += lane??;
    }
    Ok(runs)
}

/// The speed of a net alone.
struct Bare {
    /// Pictures per second.
    rate: f64,
    /// Maximum number of inputs that run together.
    batch: usize,
}

fn measures_of(pipeline: &Pipeline) -> Measures {
    let stage = |stage: Stage| (stage.as_str().to_owned(), pipeline.median_ms(|at| at.get(stage)));
    Measures {
        pictures: pipeline.times.len(),
        rate: pipeline.rate(),
        model_share: Some(pipeline.model_share()),
        cpu_seconds: pipeline.cpu_per_picture(),
        stages_ms: Stage::ALL.into_iter().map(stage).collect(),
        resident_mib: resident_mib(),
        ..Measures::default()
    }
}

/// Runs a fill or an encoder once. Returns the painted crop, if it paints.
async fn run_once(model: &ModelHandle) -> anyhow::Result<Option<compare::Samples>> {
    if let Task::SegmentAnything(contract) = model.task() {
        let (width, height) = (contract.input.width as usize, contract.input.height as usize);
        model.find_features(noise((1, 3, height, width)).mapv(f32::from)).await?;
        return Ok(None);
    }
    let (Some(canvas), Some(mode)) = (model.task().canvas(), model.task().modes().first().copied())
    else {
        bail!("{} has no sample input", model.identity().name);
    };
    let painting = sample_painting(canvas, mode);
    let size = (painting.width, painting.height);
    let control = PaintControl { progress: Arc::new(|_| {}), cancel: CancellationToken::new() };
    let painted = model.paint(painting, control).await?;
    Ok(Some(compare::Samples::of_rgb(size, painted.rgb)))
}

/// Predicts the seconds that a picture takes from a measured picture, given as megapixels and seconds.
fn expected_seconds(task: &Task, (known, took): (f64, f64), megapixels: f64) -> f64 {
    match task {
        Task::Upscale(_) => took * megapixels / known,
        _ => took + CUTOUT_SECONDS_PER_MEGAPIXEL * (megapixels - known).max(0.0),
    }
}

/// Returns the size of a picture of 4:3, or 3:2 for the largest.
const fn size_of(megapixels: u32) -> (u32, u32) {
    match megapixels {
        0 | 1 => (1152, 864),
        2..=12 => (4000, 3000),
        _ => (6000, 4000),
    }
}

fn megapixels((width, height): (u32, u32)) -> f64 {
    f64::from(width) * f64::from(height) / 1e6
}

/// Returns the peak resident memory of this process, in MiB.
fn resident_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}
