//! `retouch-worker models`: tells a maintainer whether a model is right, and how fast.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, Subcommand};
use ndarray::Array4;
use retouch_inference::bindings::Bindings;
use retouch_inference::device::Device;
use retouch_inference::diffusion::verify::verify;
use retouch_inference::manifest::{Manifest, ManifestError, NetTask, Task};
use retouch_inference::registry::{
    Follow, Inspection, ModelHandle, StepReport, inspect_files, inspect_model, load_model,
    sample_painting,
};
use retouch_inference::session::Runtime;
use tokio_util::sync::CancellationToken;

use super::ModelArgs;
use super::run::millis;

/// Runs that the speed is measured over, after the warm-up.
const SPEED_RUNS: u32 = 3;

/// What can be done with models.
#[derive(Subcommand)]
pub enum Models {
    /// Take every step of a load, say all that is wrong, and measure the speed.
    Check(Check),
    /// Compare a text-guided pipeline with recorded reference vectors, case by case.
    Verify(Verify),
}

/// `models verify MODEL_DIR --reference REF_DIR`.
#[derive(Args)]
pub struct Verify {
    /// The pipeline: a folder as diffusers or optimum write it.
    model_dir: PathBuf,
    /// The folder with `meta.json` and a file for each case.
    #[arg(long)]
    reference: PathBuf,
    #[command(flatten)]
    models: ModelArgs,
}

/// `models check [NAME…]`.
#[derive(Args)]
pub struct Check {
    /// The models, by name or by folder; by default all that tools.toml binds. On a processor, what it binds for
    /// GPUs only is then looked at without being run.
    names: Vec<String>,
    #[command(flatten)]
    models: ModelArgs,
}

impl Models {
    /// Runs the command.
    pub async fn execute(self) -> anyhow::Result<()> {
        match self {
            Self::Check(command) => command.execute().await,
            Self::Verify(command) => command.execute(),
        }
    }
}

impl Verify {
    fn execute(&self) -> anyhow::Result<()> {
        let runtime = self.models.runtime()?;
        println!("device      {}", runtime.device());
        let cases = verify(&self.model_dir, &self.reference, &runtime)?;
        let mut worst = 0.0_f64;
        for case in &cases {
            println!("{case}");
            worst = worst.max(case.worst_difference());
        }
        let wrong = cases.iter().filter(|case| !case.passed()).count();
        println!("{} compared, largest latent difference {worst:.1e}", cases.len());
        if wrong > 0 {
            bail!("{wrong} of {} are out of tolerance", cases.len());
        }
        Ok(())
    }
}

impl Check {
    async fn execute(self) -> anyhow::Result<()> {
        let runtime = self.models.runtime()?;
        println!("device      {}", runtime.device());
        let dir = &self.models.models_dir;
        let bindings = if self.names.is_empty() { Some(Bindings::read(dir)?) } else { None };
        let folders: Vec<_> = match &bindings {
            Some(bindings) => {
                print_served(bindings, runtime.device());
                bindings.names().into_iter().map(|name| dir.join(name)).collect()
            }
            None => self.names.iter().map(|name| self.folder_of(name)).collect(),
        };
        let mut wrong = Vec::new();
        for folder in folders {
            println!("\n{}", folder.display());
            if !self.is_right(&folder, bindings.as_ref(), &runtime).await {
                wrong.push(folder.display().to_string());
            }
        }
        if !wrong.is_empty() {
            bail!("{} must not be used as it is", wrong.join(", "));
        }
        Ok(())
    }

    /// The folder that is meant by a name; one that is given as a path may lie anywhere.
    fn folder_of(&self, name: &str) -> PathBuf {
        let (as_given, in_dir) = (Path::new(name), self.models.models_dir.join(name));
        let is_path = as_given.is_dir() && !in_dir.is_dir();
        if is_path || as_given.join("model.toml").is_file() { as_given.to_owned() } else { in_dir }
    }

    /// Judges one model and says all that is found. `bindings` are judged with it, when it is looked at because of
    /// them.
    async fn is_right(
        &self,
        folder: &Path,
        bindings: Option<&Bindings>,
        runtime: &Runtime,
    ) -> bool {
        let manifest = match Manifest::read(folder) {
            Ok(manifest) => manifest,
            Err(error) => {
                println!("  manifest  WRONG: {}", self.without_manifest(folder, &error, bindings));
                println!("  WRONG     nothing else can be judged without a manifest");
                return false;
            }
        };
        println!("  manifest  {}, {}", manifest.task.as_str(), licence(&manifest));
        let faults = bindings.map_or_else(Vec::new, |bindings| bindings.faults(&manifest));
        for fault in &faults {
            println!("  bindings  WRONG: {fault}");
        }
        let Inspection { model, refusals } = if is_for_gpus(bindings, &manifest, runtime) {
            println!("  device    bound for cuda only: not run here, where it might take minutes");
            inspect_files(manifest.clone(), runtime.clone(), print_step).await
        } else {
            inspect_model(manifest.clone(), runtime.clone(), print_step).await
        };
        if let Some(model) = &model {
            if !is_compared(&manifest) {
                println!("  golden    none: its results were compared with nothing");
            }
            if let Some(speed) = told_speed(model).await {
                println!("  speed     {speed}");
                self.measure_beside(&manifest, speed, runtime).await;
            }
        }
        let reasons = faults.len() + refusals.len();
        match (model, reasons) {
            (Some(model), 0) => println!("  RIGHT     {}", model.identity()),
            (None, 0) => println!("  RIGHT     {}, as far as it can be seen here", manifest.name),
            (_, 1) => println!("  WRONG     for one reason"),
            (_, reasons) => println!("  WRONG     for {reasons} reasons"),
        }
        reasons == 0
    }

    /// Why a folder has no manifest that can be used, in one sentence.
    fn without_manifest(
        &self,
        folder: &Path,
        error: &ManifestError,
        bindings: Option<&Bindings>,
    ) -> String {
        let what = if folder.join("model.toml").exists() {
            format!("model.toml: {}", error.problem)
        } else if folder.is_dir() {
            "there is no model.toml in this folder".to_owned()
        } else {
            let dir = &self.models.models_dir;
            let names = names_in(dir);
            let there = if names.is_empty() { "no model".to_owned() } else { names.join(", ") };
            format!("there is no such folder; {} holds {there}", dir.display())
        };
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let lines = bindings.map_or_else(Vec::new, |bindings| bindings.lines_of(name));
        if lines.is_empty() {
            what
        } else {
            format!("{what}; tools.toml binds it in {}", lines.join(", "))
        }
    }

    /// How fast the models are that this one would replace, measured in the same minute.
    async fn measure_beside(&self, manifest: &Manifest, speed: Speed, runtime: &Runtime) {
        let replaced = match self.replaced_by(manifest, runtime) {
            Ok(replaced) => replaced,
            Err(error) => {
                println!(
                    "  beside    nothing, because tools.toml cannot be read: {}",
                    error.problem
                );
                return;
            }
        };
        for replaced in replaced {
            let name = replaced.name.clone();
            match load_model(replaced, runtime.clone(), |_| {}).await {
                Ok(model) => {
                    let Some(other) = told_speed(&model).await else { continue };
                    let ratio = digits(speed.best_ms / other.best_ms, 2);
                    println!("  beside    {name}: {other}; this one takes {ratio} times as long");
                }
                Err(error) => println!("  beside    {error}"),
            }
        }
    }

    /// The bound models of the same task, unless this is one of them.
    fn replaced_by(
        &self,
        manifest: &Manifest,
        runtime: &Runtime,
    ) -> Result<Vec<Manifest>, ManifestError> {
        let dir = &self.models.models_dir;
        let bindings = Bindings::read(dir)?;
        let bound = bindings.models(runtime.device());
        if bound.contains(&manifest.name.as_str()) {
            return Ok(Vec::new());
        }
        let bound = bound.into_iter().filter_map(|name| Manifest::read(&dir.join(name)).ok());
        Ok(bound.filter(|bound| bound.task.as_str() == manifest.task.as_str()).collect())
    }
}

/// Tells which model serves what on this device, and what others serve elsewhere.
fn print_served(bindings: &Bindings, here: Device) {
    for (demand, model) in bindings.served(here) {
        println!("{:<26} {model}", demand.to_string());
    }
    let elsewhere = match here {
        Device::Cpu => Device::Cuda,
        Device::Cuda => Device::Cpu,
    };
    for (demand, model) in bindings.served(elsewhere) {
        if bindings.model_for(demand, here) != Some(model) {
            println!("{:<26} {model}, on {elsewhere}", demand.to_string());
        }
    }
}

/// Whether a model is looked at because of lines that bind it for GPUs only, and this is none.
fn is_for_gpus(bindings: Option<&Bindings>, manifest: &Manifest, runtime: &Runtime) -> bool {
    runtime.device() == Device::Cpu
        && bindings.is_some_and(|bindings| !bindings.is_bound_on(&manifest.name, Device::Cpu))
}

/// Whether something says what should come out of a model: golden pictures, which only nets of one picture are tried
/// with, or the reference of a pipeline. The fill of our own has tests instead.
fn is_compared(manifest: &Manifest) -> bool {
    match &manifest.task {
        Task::Segmentation(_) | Task::Upscale(_) => !manifest.golden.is_empty(),
        Task::SdInpaint(pipeline) | Task::Flux2Klein(pipeline) => pipeline.reference.is_some(),
        Task::Exemplar(_) => true,
        Task::Fill(_) | Task::Safety(_) => false,
    }
}

/// The models of a folder, by name.
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
    let step = step.to_string();
    match outcome {
        Ok(finding) => println!("  {step:<9} {finding} ({} ms)", digits(millis(took), 0)),
        Err(reason) => println!("  {step:<9} WRONG: {reason}"),
    }
}

/// A number above 0 with as many decimals as it takes to tell it from another, and no fewer than `least`.
fn digits(value: f64, least: usize) -> String {
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

/// How long a run takes.
#[derive(Clone, Copy)]
pub struct Speed {
    mean_ms: f64,
    best_ms: f64,
    what: &'static str,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean_ms, best_ms, what } = self;
        write!(f, "{} ms {what}, best {} ms", digits(*mean_ms, 0), digits(*best_ms, 0))
    }
}

/// What [`measure`] finds, told; nothing, when the model cannot run.
async fn told_speed(model: &ModelHandle) -> Option<Speed> {
    match measure(model).await {
        Ok(speed) => Some(speed),
        Err(reason) => {
            println!("  speed     {} cannot be measured: {reason}", model.identity().name);
            None
        }
    }
}

/// How long a run takes; else why the model cannot run.
pub async fn measure(model: &ModelHandle) -> Result<Speed, String> {
    let Some((shape, what)) = model.task().net().map(sample_input) else {
        return measure_painter(model).await;
    };
    let (mut best_ms, mut sum_ms) = (f64::INFINITY, 0.0);
    for _ in 0..SPEED_RUNS {
        let inference = model.infer(Array4::zeros(shape)).await;
        let ran_ms = millis(inference.map_err(|error| error.to_string())?.ran);
        best_ms = best_ms.min(ran_ms);
        sum_ms += ran_ms;
    }
    Ok(Speed { mean_ms: sum_ms / f64::from(SPEED_RUNS), best_ms, what })
}

async fn measure_painter(model: &ModelHandle) -> Result<Speed, String> {
    let (Some(canvas), Some(mode)) = (model.task().canvas(), model.task().modes().first().copied())
    else {
        return Err("nothing is known to try it with".to_owned());
    };
    let painting = sample_painting(canvas, mode);
    let (mut best_ms, mut sum_ms) = (f64::INFINITY, 0.0);
    for _ in 0..SPEED_RUNS {
        let follow = Follow { progress: Arc::new(|_| {}), cancel: CancellationToken::new() };
        let painted = model.paint(painting.clone(), follow).await;
        let ran_ms = millis(painted.map_err(|error| error.to_string())?.ran);
        best_ms = best_ms.min(ran_ms);
        sum_ms += ran_ms;
    }
    Ok(Speed { mean_ms: sum_ms / f64::from(SPEED_RUNS), best_ms, what: "a painting" })
}

/// An input to measure the speed with, and what it is.
pub fn sample_input(task: NetTask<'_>) -> ((usize, usize, usize, usize), &'static str) {
    match task {
        NetTask::Segmentation(segmentation) => {
            let (width, height) = (segmentation.input.width, segmentation.input.height);
            ((1, 3, height as usize, width as usize), "a picture")
        }
        NetTask::Upscale(upscale) => {
            let side = 128_u32.next_multiple_of(upscale.tiling.multiple_of) as usize;
            ((1, 3, side, side), "a tile of 128 × 128")
        }
    }
}

fn licence(manifest: &Manifest) -> String {
    let allowed = if manifest.commercial_use { "allowed" } else { "NOT allowed" };
    format!("{}, commercial use {allowed}, by {}", manifest.licence, manifest.attribution)
}
