//! `retouch-worker models`: checks models and measures their speed.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::bail;
use clap::{Args, Subcommand};
use ndarray::Array4;
use retouch_inference::bindings::Bindings;
use retouch_inference::device::Device;
use retouch_inference::diffusion::verify::{Tolerance, Verification, verify};
use retouch_inference::manifest::{
    Manifest, ManifestError, NetTask, PictureInput, Precision, Task, dead_link,
};
use retouch_inference::registry::{
    Inspection, LoadStep, ModelHandle, PaintControl, StepReport, inspect_files, inspect_model,
    load_model, sample_painting,
};
use retouch_inference::session::{Runtime, Session, SessionError};
use tokio_util::sync::CancellationToken;

use super::ModelArgs;
use super::run::millis;

/// The number of runs for a speed measurement, after the warm-up.
const SPEED_RUNS: u32 = 3;

/// The share of the time under ONNX Runtime's defaults above which `models check` warns.
const SLOW: f64 = 1.1;

/// The subcommands of `models`.
#[derive(Subcommand)]
pub enum Models {
    /// Run every step of loading a model, report all problems, and measure the speed.
    Check(CheckArgs),
    /// Compare a text-guided pipeline with recorded reference vectors, case by case.
    Verify(VerifyArgs),
}

/// The arguments of `models verify`.
#[derive(Args)]
pub struct VerifyArgs {
    /// The pipeline: a folder in the layout of diffusers or optimum.
    model_dir: PathBuf,
    /// The folder with `meta.json` and one file per case.
    #[arg(long)]
    reference: PathBuf,
    #[command(flatten)]
    models: ModelArgs,
}

/// The arguments of `models check`.
#[derive(Args)]
pub struct CheckArgs {
    /// The models, by name or folder [default: all models in tools.toml; on a CPU, models bound only for GPUs are then
    /// checked without running them]
    names: Vec<String>,
    #[command(flatten)]
    models: ModelArgs,
}

/// The outcome of the check of one model.
enum Verdict {
    Right,
    Wrong,
    /// Its memory does not fit on this device now, which says nothing about the model.
    Unchecked,
}

impl Models {
    pub async fn execute(self) -> anyhow::Result<()> {
        match self {
            Self::Check(command) => command.execute().await,
            Self::Verify(command) => command.execute(),
        }
    }
}

impl VerifyArgs {
    fn execute(&self) -> anyhow::Result<()> {
        let runtime = self.models.runtime()?;
        println!("device      {}", runtime.device());
        let Verification { precision, cases } = verify(&self.model_dir, &self.reference, &runtime)?;
        let Tolerance { latents, image } = precision.tolerance();
        println!(
            "precision   {precision}: latents may differ by {latents:e}, pictures by {image}/255"
        );
        let mut worst = 0.0_f64;
        for case in &cases {
            println!("{case}");
            worst = worst.max(case.worst_difference());
        }
        let failed = cases.iter().filter(|case| !case.passed()).count();
        println!("{} cases compared, largest latent difference {worst:.1e}", cases.len());
        if failed > 0 {
            bail!("{failed} of {} cases are out of tolerance", cases.len());
        }
        Ok(())
    }
}

impl CheckArgs {
    async fn execute(self) -> anyhow::Result<()> {
        let runtime = self.models.runtime()?;
        println!("device      {}", runtime.device());
        let dir = &self.models.models_dir;
        let bindings = if self.names.is_empty() { Some(Bindings::read(dir)?) } else { None };
        let folders: Vec<_> = match &bindings {
            Some(bindings) => {
                print_served(bindings, runtime.device());
                bindings.all_models().into_iter().map(|name| dir.join(name)).collect()
            }
            None => self.names.iter().map(|name| self.folder_of(name)).collect(),
        };
        let (mut wrong, mut unchecked) = (Vec::new(), Vec::new());
        for folder in folders {
            println!("\n{}", folder.display());
            match self.judge(&folder, bindings.as_ref(), &runtime).await {
                Verdict::Right => {}
                Verdict::Wrong => wrong.push(folder.display().to_string()),
                Verdict::Unchecked => unchecked.push(folder.display().to_string()),
            }
        }
        if !wrong.is_empty() {
            bail!("do not use {}: see the lines marked WRONG", wrong.join(", "));
        }
        if !unchecked.is_empty() {
            bail!("could not check {}: see the lines marked UNCHECKED", unchecked.join(", "));
        }
        Ok(())
    }

    /// Returns the folder of a model given by name or path.
    fn folder_of(&self, name: &str) -> PathBuf {
        let (as_given, in_dir) = (Path::new(name), self.models.models_dir.join(name));
        let is_path = as_given.is_dir() && !in_dir.is_dir();
        if is_path || as_given.join("model.toml").is_file() { as_given.to_owned() } else { in_dir }
    }

    /// Checks one model and prints every problem. With `bindings`, also checks that the model can serve the tools it is
    /// bound to.
    async fn judge(
        &self,
        folder: &Path,
        bindings: Option<&Bindings>,
        runtime: &Runtime,
    ) -> Verdict {
        let manifest = match Manifest::read(folder) {
            Ok(manifest) => manifest,
            Err(error) => {
                let reason = self.explain_missing_manifest(folder, &error, bindings);
                println!("  manifest  WRONG: {reason}");
                println!("  WRONG     nothing else can be checked without a manifest");
                return Verdict::Wrong;
            }
        };
        println!("  manifest  {}, {}", manifest.task.as_str(), license(&manifest));
        let binding_problems =
            bindings.map_or_else(Vec::new, |bindings| bindings.problems(&manifest));
        for problem in &binding_problems {
            println!("  bindings  WRONG: {problem}");
        }
        for notice in bindings.iter().flat_map(|bindings| bindings.notices(&manifest)) {
            println!("  bindings  {notice}");
        }
        let Inspection { model, refusals } = if is_for_gpus(bindings, &manifest, runtime) {
            println!(
                "  device    bound on cuda only; not run on this CPU, where it might take minutes"
            );
            inspect_files(manifest.clone(), runtime.clone(), print_step).await
        } else {
            inspect_model(manifest.clone(), runtime.clone(), print_step).await
        };
        if let Some(model) = &model {
            if model.memory_bytes() > 0 {
                println!("  needs     {}", needs(model, &manifest, runtime));
            }
            if manifest.task.net().is_some() || matches!(manifest.task, Task::SdInpaint(_)) {
                println!("  batches   {}", batches(model.max_batch()));
            }
            if !is_compared(&manifest) {
                println!("  golden    none; the results were not compared with anything");
            }
            if let Some(speed) = measured_speed(model).await {
                println!("  speed     {speed}");
                // On a CPU, 16 bits only show what a GPU would return.
                if model.precision() == Precision::F32 || runtime.device() == Device::Cuda {
                    compare_with_plain(&manifest, speed, runtime);
                }
                self.compare_speed(&manifest, speed, runtime).await;
            }
        }
        let lacks_memory = refusals.iter().any(|refusal| refusal.step == LoadStep::Memory);
        let problems = binding_problems.len() + refusals.len() - usize::from(lacks_memory);
        match (model, problems) {
            (_, 0) if lacks_memory => {
                println!(
                    "  UNCHECKED it has no room here; stop the worker that uses this device, or check on a free one"
                );
                return Verdict::Unchecked;
            }
            (Some(model), 0) => println!("  RIGHT     {}", model.identity()),
            (None, 0) => println!("  RIGHT     {}, as far as this device can tell", manifest.name),
            (_, 1) => println!("  WRONG     1 problem"),
            (_, problems) => println!("  WRONG     {problems} problems"),
        }
        if problems == 0 { Verdict::Right } else { Verdict::Wrong }
    }

    /// Explains in one sentence why a folder has no usable manifest.
    fn explain_missing_manifest(
        &self,
        folder: &Path,
        error: &ManifestError,
        bindings: Option<&Bindings>,
    ) -> String {
        let dir = &self.models.models_dir;
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let manifest = folder.join("model.toml");
        let what = if let Err(problem) = manifest.symlink_metadata()
            && !is_absence(&problem)
        {
            format!(
                "this folder cannot be read: {problem}; give the user that runs workers permission to read it and its \
                 files"
            )
        } else if let Some(link) = dead_link(folder) {
            format!("there is no such folder: {link}; install the model there, or remove the link")
        } else if manifest.symlink_metadata().is_ok() {
            format!("model.toml: {}", error.problem)
        } else if folder.is_dir() {
            "there is no model.toml in this folder; write one, as models/README.md says".to_owned()
        } else if dir.join("templates").join(format!("{name}.toml")).is_file() {
            format!("it is not installed; `scripts/models fetch {name}` installs it, or says how")
        } else {
            let names = names_in(dir);
            let names = if names.is_empty() { "no model".to_owned() } else { names.join(", ") };
            format!("there is no such folder; {} contains {names}", dir.display())
        };
        let lines = bindings.map_or_else(Vec::new, |bindings| bindings.describe_entries(name));
        if lines.is_empty() {
            what
        } else {
            format!("{what}; tools.toml binds it in {}", lines.join(", "))
        }
    }

    /// Compares the model's speed with the speed of the bound models of the same task, measured at the same time.
    async fn compare_speed(&self, manifest: &Manifest, speed: Speed, runtime: &Runtime) {
        let others = match self.bound_alternatives(manifest, runtime) {
            Ok(others) => others,
            Err(error) => {
                println!("  compared  with nothing: cannot read tools.toml: {}", error.problem);
                return;
            }
        };
        for other in others {
            let name = other.name.clone();
            match load_model(other, runtime.clone(), |_| {}).await {
                Ok(model) => {
                    let Some(other) = measured_speed(&model).await else { continue };
                    let ratio = format_number(speed.best_ms / other.best_ms, 2);
                    println!("  compared  {name}: {other}; this one takes {ratio} times as long");
                }
                Err(error) => println!("  compared  {error}"),
            }
        }
    }

    /// Returns the bound models of the same task; none if this model is bound itself.
    fn bound_alternatives(
        &self,
        manifest: &Manifest,
        runtime: &Runtime,
    ) -> Result<Vec<Manifest>, ManifestError> {
        let dir = &self.models.models_dir;
        let bindings = Bindings::read(dir)?;
        let bound = bindings.models_on(runtime.device());
        if bound.contains(&manifest.name.as_str()) {
            return Ok(Vec::new());
        }
        let bound = bound.into_iter().filter_map(|name| Manifest::read(&dir.join(name)).ok());
        Ok(bound.filter(|bound| is_same_task(&bound.task, &manifest.task)).collect())
    }
}

/// Prints which model serves each tool on this device, and which ones differ on the other device.
fn print_served(bindings: &Bindings, here: Device) {
    for (scope, model) in bindings.served(here) {
        println!("{:<26} {model}", scope.to_string());
    }
    if let Some(model) = bindings.selector_on(here) {
        println!("{:<26} {model}", "clicks");
    }
    let elsewhere = match here {
        Device::Cpu => Device::Cuda,
        Device::Cuda => Device::Cpu,
    };
    let served = bindings.served(here);
    for (scope, model) in bindings.served(elsewhere) {
        if !served.contains(&(scope, model)) {
            println!("{:<26} {model}, on {elsewhere}", scope.to_string());
        }
    }
    if let Some(model) = bindings.selector_on(elsewhere)
        && bindings.selector_on(here) != Some(model)
    {
        println!("{:<26} {model}, on {elsewhere}", "clicks");
    }
}

/// Returns true if this is a CPU and `bindings` bind the model for GPUs only.
fn is_for_gpus(bindings: Option<&Bindings>, manifest: &Manifest, runtime: &Runtime) -> bool {
    runtime.device() == Device::Cpu
        && bindings.is_some_and(|bindings| !bindings.is_bound_on(&manifest.name, Device::Cpu))
}

/// Returns whether two models do the same work, so that their speeds compare. A net that cleans is not an upscaler.
fn is_same_task(one: &Task, other: &Task) -> bool {
    let cleans = |task: &Task| matches!(task, Task::Upscale(upscale) if upscale.upscale.scale == 1);
    one.as_str() == other.as_str() && cleans(one) == cleans(other)
}

/// Returns true if the model's results are compared with expected ones: golden images for single nets, a reference for
/// pipelines. The exemplar fill has unit tests instead.
fn is_compared(manifest: &Manifest) -> bool {
    match &manifest.task {
        Task::Segmentation(_) | Task::Upscale(_) => !manifest.golden.is_empty(),
        Task::SdInpaint(pipeline) | Task::Flux2Klein(pipeline) => pipeline.reference.is_some(),
        Task::Exemplar(_) => true,
        Task::Fill(_) | Task::Safety(_) | Task::SegmentAnything(_) => false,
    }
}

/// Returns whether an error says that a file does not exist, rather than that it cannot be reached.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the sorted names of the models in a folder.
fn names_in(models_dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(models_dir).into_iter().flatten().flatten();
    let models = entries.filter(|entry| entry.path().join("model.toml").is_file());
    let mut names: Vec<_> =
        models.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn print_step(report: StepReport) {
    let StepReport { step, took, outcome } = report;
    let name = step.to_string();
    match outcome {
        Ok(finding) => println!("  {name:<9} {finding} ({} ms)", format_number(millis(took), 0)),
        Err(reason) if step == LoadStep::Memory => println!("  {name:<9} UNCHECKED: {reason}"),
        Err(reason) => println!("  {name:<9} WRONG: {reason}"),
    }
}

/// Formats a number above 0 with at least two significant digits and at least `least` decimals.
fn format_number(value: f64, least: usize) -> String {
    let decimals = match value {
        value if value >= 10.0 => 0,
        value if value >= 1.0 => 1,
        value if value >= 0.1 => 2,
        value if value >= 0.01 => 3,
        _ => 4,
    };
    let decimals = least.max(decimals);
    format!("{value:.decimals$}")
}

/// How long a run takes, in milliseconds.
#[derive(Clone, Copy)]
pub struct Speed {
    mean_ms: f64,
    best_ms: f64,
    unit: &'static str,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean_ms, best_ms, unit } = self;
        let (mean_ms, best_ms) = (format_number(*mean_ms, 0), format_number(*best_ms, 0));
        write!(f, "{mean_ms} ms per {unit}, best {best_ms} ms")
    }
}

/// Measures the speed; prints why if the model cannot run.
async fn measured_speed(model: &ModelHandle) -> Option<Speed> {
    match measure(model).await {
        Ok(speed) => Some(speed),
        Err(reason) => {
            println!("  speed     cannot measure {}: {reason}", model.identity().name);
            None
        }
    }
}

/// Measures how long a run takes.
///
/// # Errors
/// Why the model cannot run.
pub async fn measure(model: &ModelHandle) -> Result<Speed, String> {
    if let Task::SegmentAnything(contract) = model.task() {
        return measure_encoder(model, &contract.input).await;
    }
    let Some((shape, unit)) = model.task().net().map(sample_input) else {
        return measure_painter(model).await;
    };
    let (mut best_ms, mut sum_ms) = (f64::INFINITY, 0.0);
    for _ in 0..SPEED_RUNS {
        let inference = model.infer(noise(shape)).await;
        let ran_ms = millis(inference.map_err(|error| error.to_string())?.ran);
        best_ms = best_ms.min(ran_ms);
        sum_ms += ran_ms;
    }
    Ok(Speed { mean_ms: sum_ms / f64::from(SPEED_RUNS), best_ms, unit })
}

/// Measures the encoder: a user waits for it before the first answer to a click.
async fn measure_encoder(model: &ModelHandle, input: &PictureInput) -> Result<Speed, String> {
    let (mut best_ms, mut sum_ms) = (f64::INFINITY, 0.0);
    for _ in 0..SPEED_RUNS {
        let picture = noise((1, 3, input.height as usize, input.width as usize)).mapv(f32::from);
        let started = Instant::now();
        model.find_features(picture).await.map_err(|error| error.to_string())?;
        let ran_ms = millis(started.elapsed());
        best_ms = best_ms.min(ran_ms);
        sum_ms += ran_ms;
    }
    Ok(Speed { mean_ms: sum_ms / f64::from(SPEED_RUNS), best_ms, unit: "new picture" })
}

/// Compares the speed of a net with the speed of the same file under ONNX Runtime's defaults, and warns if the defaults
/// are faster.
fn compare_with_plain(manifest: &Manifest, speed: Speed, runtime: &Runtime) {
    let (Some(net), [file]) = (manifest.task.net(), manifest.files.as_slice()) else { return };
    let plain = || {
        let mut session = runtime.open_plain(&manifest.folder.join(&file.file))?;
        let mut best_ms = f64::INFINITY;
        // The first run allocates.
        for _ in 0..=SPEED_RUNS {
            let started = Instant::now();
            run_plain(&mut session, net)?;
            best_ms = best_ms.min(millis(started.elapsed()));
        }
        Ok::<_, SessionError>(best_ms)
    };
    match plain() {
        Ok(best_ms) => {
            let (share, best) = (speed.best_ms / best_ms, format_number(best_ms, 0));
            println!(
                "  plain     {best} ms under ONNX Runtime's defaults; ours takes {share:.2} of that"
            );
            if share > SLOW {
                println!(
                    "  WARNING   this model is slower here than it could be; please report it"
                );
            }
        }
        Err(error) => println!("  plain     cannot run under ONNX Runtime's defaults: {error}"),
    }
}

async fn measure_painter(model: &ModelHandle) -> Result<Speed, String> {
    let (Some(canvas), Some(mode)) = (model.task().canvas(), model.task().modes().first().copied())
    else {
        return Err("there is no sample input for its task".to_owned());
    };
    let painting = sample_painting(canvas, mode);
    let (mut best_ms, mut sum_ms) = (f64::INFINITY, 0.0);
    for _ in 0..SPEED_RUNS {
        let control = PaintControl { progress: Arc::new(|_| {}), cancel: CancellationToken::new() };
        let painted = model.paint(painting.clone(), control).await;
        let ran_ms = millis(painted.map_err(|error| error.to_string())?.ran);
        best_ms = best_ms.min(ran_ms);
        sum_ms += ran_ms;
    }
    Ok(Speed { mean_ms: sum_ms / f64::from(SPEED_RUNS), best_ms, unit: "painting" })
}

/// Returns the shape of an input for measuring the speed, and its name.
pub fn sample_input(task: NetTask<'_>) -> ((usize, usize, usize, usize), &'static str) {
    match task {
        NetTask::Segmentation(segmentation) => {
            let (width, height) = (segmentation.input.width, segmentation.input.height);
            ((1, height as usize, width as usize, 3), "picture")
        }
        NetTask::Upscale(upscale) => {
            if let (Some(width), Some(height)) = (upscale.input.width, upscale.input.height) {
                return ((1, height as usize, width as usize, 3), "tile of its size");
            }
            let side = 128_u32.next_multiple_of(upscale.tiling.multiple_of) as usize;
            ((1, side, side, 3), "tile of 128 × 128")
        }
    }
}

/// Returns pictures of noise, for measuring the speed: a GPU is faster on blank ones than on any photo.
pub fn noise(shape: (usize, usize, usize, usize)) -> Array4<u8> {
    let mut noise = 1_u32;
    Array4::from_shape_simple_fn(shape, || {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    })
}

/// Runs a net whose file is open as it is on a picture of [`sample_input`], of noise.
pub fn run_plain(session: &mut Session, net: NetTask<'_>) -> Result<(), SessionError> {
    let ((batch, rows, columns, channels), _) = sample_input(net);
    let tensors = net.tensors();
    let picture = noise((batch, channels, rows, columns)).mapv(|sample| f32::from(sample) / 255.0);
    session.run_flat((tensors.input, tensors.input_format), &picture, tensors.output)?;
    Ok(())
}

/// Says how much memory a model counts for.
fn needs(model: &ModelHandle, manifest: &Manifest, runtime: &Runtime) -> String {
    let mib = model.memory_bytes().div_ceil(1 << 20);
    let is_capped = runtime.memory().limit().is_some_and(|limit| model.memory_bytes() >= limit);
    if is_capped && manifest.memory_bytes.is_none() {
        format!(
            "at least {mib} MiB, which is the limit: it runs alone; do not state this as memory_mib"
        )
    } else {
        format!("{mib} MiB while it is loaded")
    }
}

/// Says how many inputs one run takes.
fn batches(most: usize) -> String {
    match most {
        1 => "one input at a time".to_owned(),
        most => format!("up to {most} inputs at a time"),
    }
}

fn license(manifest: &Manifest) -> String {
    let allowed = if manifest.commercial_use { "allowed" } else { "NOT allowed" };
    format!("{}, commercial use {allowed}, by {}", manifest.licence, manifest.attribution)
}
