//! `retouch-worker models`: tells a maintainer whether a model is right, and how fast.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, Subcommand};
use ndarray::Array4;
use retouch_worker::diffusion::verify::verify;
use retouch_worker::models::bindings::Bindings;
use retouch_worker::models::manifest::{Manifest, NetTask};
use retouch_worker::models::registry::{
    Follow, Inspection, ModelHandle, StepReport, inspect_model, load_model, sample_painting,
};
use retouch_worker::models::session::Runtime;
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
    /// The models, by name or by folder; by default all that tools.toml binds.
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
        let mut wrong = Vec::new();
        for folder in self.folders(&runtime)? {
            println!("\n{}", folder.display());
            if !self.is_right(&folder, &runtime).await {
                wrong.push(folder.display().to_string());
            }
        }
        if !wrong.is_empty() {
            bail!("{} must not be used as it is", wrong.join(", "));
        }
        Ok(())
    }

    fn folders(&self, runtime: &Runtime) -> anyhow::Result<Vec<PathBuf>> {
        let dir = &self.models.models_dir;
        let in_dir = |name: &str| {
            let as_given = Path::new(name);
            if as_given.join("model.toml").is_file() { as_given.to_owned() } else { dir.join(name) }
        };
        if !self.names.is_empty() {
            return Ok(self.names.iter().map(|name| in_dir(name)).collect());
        }
        let bindings = Bindings::read(dir)?;
        bindings.check(dir)?;
        for (demand, model) in bindings.served(runtime.device()) {
            println!("{:<26} {model}", demand.to_string());
        }
        Ok(bindings.models(runtime.device()).into_iter().map(|name| dir.join(name)).collect())
    }

    async fn is_right(&self, folder: &Path, runtime: &Runtime) -> bool {
        let manifest = match Manifest::read(folder) {
            Ok(manifest) => manifest,
            Err(error) => {
                println!("  manifest  WRONG: {}", error.problem);
                println!("  WRONG     nothing else can be judged without a manifest");
                return false;
            }
        };
        println!("  manifest  {}, {}", manifest.task.as_str(), licence(&manifest));
        let Inspection { model, refusals } =
            inspect_model(manifest.clone(), runtime.clone(), print_step).await;
        if let Some(model) = &model
            && let Some(speed) = told_speed(model).await
        {
            println!("  speed     {speed}");
            self.measure_beside(&manifest, speed, runtime).await;
        }
        match (model, refusals.len()) {
            (Some(model), 0) => println!("  RIGHT     {}", model.identity()),
            (_, 1) => println!("  WRONG     for one reason"),
            (_, reasons) => println!("  WRONG     for {reasons} reasons"),
        }
        refusals.is_empty()
    }

    /// How fast the models are that this one would replace, measured in the same minute.
    async fn measure_beside(&self, manifest: &Manifest, speed: Speed, runtime: &Runtime) {
        for replaced in self.replaced_by(manifest, runtime) {
            let name = replaced.name.clone();
            match load_model(replaced, runtime.clone(), |_| {}).await {
                Ok(model) => {
                    let Some(other) = told_speed(&model).await else { continue };
                    let ratio = speed.best_ms / other.best_ms;
                    println!(
                        "  beside    {name}: {other}; this one takes {ratio:.2} times as long"
                    );
                }
                Err(error) => println!("  beside    {error}"),
            }
        }
    }

    /// The bound models of the same task, unless this is one of them.
    fn replaced_by(&self, manifest: &Manifest, runtime: &Runtime) -> Vec<Manifest> {
        let dir = &self.models.models_dir;
        let Ok(bindings) = Bindings::read(dir) else { return Vec::new() };
        let bound = bindings.models(runtime.device());
        if bound.contains(&manifest.name.as_str()) {
            return Vec::new();
        }
        let bound = bound.into_iter().filter_map(|name| Manifest::read(&dir.join(name)).ok());
        bound.filter(|bound| bound.task.as_str() == manifest.task.as_str()).collect()
    }
}

fn print_step(report: StepReport) {
    let StepReport { step, took, outcome } = report;
    let step = step.to_string();
    match outcome {
        Ok(finding) => println!("  {step:<9} {finding} ({:.0} ms)", millis(took)),
        Err(reason) => println!("  {step:<9} WRONG: {reason}"),
    }
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
        write!(f, "{mean_ms:.0} ms {what}, best {best_ms:.0} ms")
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
