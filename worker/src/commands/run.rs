//! `retouch-worker run`: runs a tool on a file, without any server.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::tools::ToolError;
use crate::tools::magic_fix::{Engines, FixRequest, Fixed, ProgressFn, magic_fix};
use crate::tools::remove_background::{Cutout, remove_background};
use crate::tools::stage::{Stage, StageTimes};
use crate::tools::upscale::{Magnification, Progress, Upscaled, Upscaler, upscale};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use retouch_catalog::{Count, Factor, FixMode, Tier, Tool};
use retouch_core::magic_fix::{Prompt, is_mask_exact_by_default};
use retouch_core::telemetry;
use retouch_inference::bindings::{Demand, Scope};
use retouch_inference::manifest::Task;
use retouch_inference::registry::{ModelHandle, ModelIdentity, Registry};
use retouch_pixels::PixelError;
use retouch_pixels::decode::check;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::output::Output;
use super::{LimitArgs, ModelArgs};

/// The conventional exit status of a program ended by Ctrl-C (128 + SIGINT).
const EXIT_INTERRUPTED: i32 = 130;

/// The tools that run on a file.
#[derive(Subcommand)]
pub enum Run {
    /// Cut the subject of a picture out of its background.
    RemoveBg(RemoveBgArgs),
    /// Enlarge a picture.
    Upscale(UpscaleArgs),
    /// Repaint a masked area of a picture as a prompt says.
    Fix(FixArgs),
}

/// The arguments of `run fix`.
#[derive(Args)]
pub struct FixArgs {
    /// The picture: PNG, JPEG or WebP.
    input: PathBuf,
    /// The mask: a PNG with the picture's aspect ratio. If it has transparency, its opaque pixels are repainted;
    /// otherwise its white ones.
    #[arg(short, long)]
    mask: PathBuf,
    /// What to do there, e.g. "remove the object".
    #[arg(short, long)]
    prompt: String,
    /// Where to write the PNG.
    #[arg(short, long)]
    output: PathBuf,
    /// The model [default: the one bound to the prompt's mode for paid jobs]
    #[arg(long)]
    model: Option<String>,
    /// Whether no pixel outside the mask may change [default: true for prompts that edit or add]
    #[arg(long)]
    exact_mask: Option<bool>,
    /// The random seed: the same seed gives the same picture.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The arguments of `run remove-bg`.
#[derive(Args)]
pub struct RemoveBgArgs {
    /// The picture: PNG, JPEG or WebP.
    input: PathBuf,
    /// Where to write the PNG.
    #[arg(short, long)]
    output: PathBuf,
    /// The model [default: the one bound for paid jobs]
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The arguments of `run upscale`.
#[derive(Args)]
pub struct UpscaleArgs {
    /// The picture: PNG, JPEG or WebP.
    input: PathBuf,
    /// Where to write the PNG.
    #[arg(short, long)]
    output: PathBuf,
    /// The factor by which to enlarge the width and height: 2 or 4. With 1, a model of scale 1 cleans the picture and
    /// keeps its size.
    #[arg(short, long, default_value = "4", value_parser = parse_magnification)]
    factor: Magnification,
    /// The model [default: the one bound for paid jobs; for factor 1, the one of scale 1 that is bound to enhance or
    /// restore]
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Run {
    /// Runs the tool. An interrupt leaves no partial file behind.
    pub async fn execute(self) -> anyhow::Result<()> {
        let work = async {
            match self {
                Self::RemoveBg(command) => command.execute().await,
                Self::Upscale(command) => command.execute().await,
                Self::Fix(command) => command.execute().await,
            }
        };
        let ended = tokio::select! {
            done = work => Ok(done),
            () = telemetry::shutdown_signal() => Err(()),
        };
        ended.unwrap_or_else(|()| {
            eprintln!("retouch-worker: interrupted; no file was written");
            // A running model cannot be canceled, so this does not wait for it.
            std::process::exit(EXIT_INTERRUPTED)
        })
    }
}

impl RemoveBgArgs {
    async fn execute(self) -> anyhow::Result<()> {
        let input = read_other_than(&self.input, &self.output)?;
        let mut output = Output::open(&self.output)?;
        let limits = self.limits.limits();
        check(&input, &limits).with_context(|| self.input.display().to_string())?;
        let pixels = self.models.pixel_pool()?;
        let started = Instant::now();
        let registry = self.models.registry_for_one_run()?;
        let model = choose_model(&registry, self.model.as_deref(), Tool::RemoveBackground).await?;
        let loading = started.elapsed();

        let cancel = CancellationToken::new();
        let started = Instant::now();
        let result =
            remove_background(input.into(), &model, &pixels, &limits, &cancel, |_| {}).await;
        let total = started.elapsed();
        let cutout = result.with_context(|| self.input.display().to_string())?;
        output.write(&cutout.png)?;
        let Cutout { model, width, height, stages, .. } = cutout;
        Report { model, size: (width, height), mode: None, stages, loading, total }.print(output)
    }
}

impl FixArgs {
    async fn execute(self) -> anyhow::Result<()> {
        let prompt = Prompt::parse(&self.prompt)?;
        let input = read_other_than(&self.input, &self.output)?;
        let mask = read_other_than(&self.mask, &self.output)?;
        let mut output = Output::open(&self.output)?;
        let limits = self.limits.limits();
        check(&input, &limits).with_context(|| self.input.display().to_string())?;
        let pixels = self.models.pixel_pool()?;
        let started = Instant::now();
        let registry = self.models.registry_for_one_run()?;
        let demand = |mode| Demand { tool: Tool::MagicFix(mode), tier: Tier::Paid };
        let bound = match &self.model {
            Some(name) => named_model(&registry, name, Tool::MagicFix(prompt.mode())).await?,
            None if !registry.is_served(demand(prompt.mode())) => {
                bail!("no model is bound to Magic Fix ({}) on {}", prompt.mode(), registry.device())
            }
            None => registry.model_for(demand(prompt.mode())).await?,
        };
        if let Some(vocabulary) = bound.task().vocabulary()
            && prompt.mode().needs_words()
        {
            let unknown = prompt.unknown_words(vocabulary);
            if !unknown.is_empty() {
                bail!(
                    "{} does not know {}; it knows {}. See models/README.md for how to install a model that takes any \
                     prompt",
                    bound.identity().name,
                    unknown.join(", "),
                    vocabulary.join(", ")
                );
            }
        }
        let may_clarify = self.model.is_none()
            && prompt.mode() == FixMode::Restore
            && registry.is_served(demand(FixMode::Enhance));
        let clarifier = if may_clarify {
            Some(registry.model_for(demand(FixMode::Enhance)).await?)
        } else {
            None
        };
        let loading = started.elapsed();

        let cancel = CancellationToken::new();
        let started = Instant::now();
        let safety_checker = self.models.safety_checker(&registry).await?;
        let (mode, engines) = (prompt.mode(), Engines { bound, clarifier, safety_checker });
        let is_mask_exact = self.exact_mask.unwrap_or(is_mask_exact_by_default(mode));
        let request =
            FixRequest { prompt, mode, mask: mask.into(), is_mask_exact, seed: self.seed };
        let on_progress: ProgressFn = Arc::new(|_, _, _| {});
        let fixed =
            magic_fix(input.into(), request, &engines, &pixels, &limits, &cancel, &on_progress)
                .await
                .map_err(|error| {
                    let file = if matches!(error, ToolError::Pixels(PixelError::Mask(_))) {
                        &self.mask
                    } else {
                        &self.input
                    };
                    anyhow::Error::new(error).context(file.display().to_string())
                })?;
        let total = started.elapsed();
        output.write(&fixed.png)?;
        let Fixed { model, width, height, stages, .. } = fixed;
        let mode = Some(mode);
        Report { model, size: (width, height), mode, stages, loading, total }.print(output)
    }
}

impl UpscaleArgs {
    async fn execute(self) -> anyhow::Result<()> {
        let input = read_other_than(&self.input, &self.output)?;
        let mut output = Output::open(&self.output)?;
        let (width, height) = check(&input, &self.limits.limits())
            .with_context(|| self.input.display().to_string())?;
        let pixels = self.models.pixel_pool()?;
        let started = Instant::now();
        let registry = self.models.registry_for_one_run()?;
        let model = match (self.factor, &self.model) {
            (Magnification::Same, name) => choose_restorer(&registry, name.as_deref()).await?,
            (Magnification::By(factor), Some(name)) => {
                named_model(&registry, name, Tool::Upscale(factor)).await?
            }
            (Magnification::By(factor), None) => {
                let picture_pixels = u64::from(width) * u64::from(height);
                let demand = Demand { tool: Tool::Upscale(factor), tier: Tier::Paid };
                registry.model_for_picture(demand, picture_pixels).await?
            }
        };
        let net = Upscaler::new(model)?;
        let loading = started.elapsed();

        let settings = self.models.settings(self.limits, registry.device());
        let cancel = CancellationToken::new();
        let started = Instant::now();
        let (out, mut parts) = mpsc::channel(1);
        let factor = self.factor;
        let upscaling = async {
            upscale(input.into(), factor, &net, &pixels, &settings, &cancel, show_progress, out)
                .await
                .with_context(|| self.input.display().to_string())
        };
        let writing = async {
            while let Some(bytes) = parts.recv().await {
                output.write(&bytes)?;
            }
            Ok(())
        };
        let (upscaled, ()) = tokio::try_join!(upscaling, writing)?;
        let total = started.elapsed();
        let Upscaled { width, height, stages, .. } = upscaled;
        let model = net.identity().clone();
        Report { model, size: (width, height), mode: None, stages, loading, total }.print(output)
    }
}

/// Parses `2` or `4`, with or without an `x`.
pub fn parse_factor(text: &str) -> Result<Factor, String> {
    factor_number(text).and_then(Factor::from_number).ok_or_else(|| "it must be 2 or 4".to_owned())
}

/// Parses `1`, `2` or `4`, with or without an `x`.
fn parse_magnification(text: &str) -> Result<Magnification, String> {
    let magnification = match factor_number(text) {
        Some(1) => Some(Magnification::Same),
        Some(number) => Factor::from_number(number).map(Magnification::By),
        None => None,
    };
    magnification.ok_or_else(|| "it must be 1, 2 or 4".to_owned())
}

fn factor_number(text: &str) -> Option<i16> {
    text.trim_end_matches(['x', 'X']).parse().ok()
}

/// Shows the progress on a terminal.
fn show_progress(at: Progress) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let left = at.left.map_or(String::new(), |left| format!(", {} s left", left.as_secs()));
    let end = if at.fraction < 1.0 { '\r' } else { '\n' };
    let Count { done, total, .. } = at.tiles;
    eprint!("{:>3.0} % (tile {done} of {total}){left}        {end}", at.fraction * 100.0);
}

/// Loads the named model, or the one bound to the tool for paid jobs.
pub async fn choose_model(
    registry: &Registry,
    name: Option<&str>,
    tool: Tool,
) -> anyhow::Result<ModelHandle> {
    Ok(match name {
        Some(name) => named_model(registry, name, tool).await?,
        None => registry.model_for(Demand { tool, tier: Tier::Paid }).await?,
    })
}

/// Loads the named model of scale 1, or the one that is bound to enhance or restore for paid jobs.
async fn choose_restorer(registry: &Registry, name: Option<&str>) -> anyhow::Result<ModelHandle> {
    let can_restore = |name: &str| match registry.manifest(name)?.task {
        Task::Upscale(contract) => Ok::<_, anyhow::Error>(contract.can_make(1)),
        other => Ok(Err(format!("its task is {}", other.as_str()))),
    };
    if let Some(name) = name {
        return match can_restore(name)? {
            Ok(()) => Ok(registry.load(name).await?),
            Err(reason) => bail!("{name}: {reason}; --factor 1 takes an upscaler of scale 1"),
        };
    }
    let tools = [FixMode::Enhance, FixMode::Restore].map(Tool::MagicFix);
    for (Scope { demand, .. }, name) in registry.served() {
        if demand.tier == Tier::Paid && tools.contains(&demand.tool) && can_restore(&name)?.is_ok()
        {
            return Ok(registry.model_for(demand).await?);
        }
    }
    bail!(
        "no model of scale 1 is bound to enhance or restore of Magic Fix on {}; bind one in tools.toml, or name one \
         with --model",
        registry.device()
    )
}

/// Loads the named model. Checks first that it can serve the tool, before reading its weights.
async fn named_model(registry: &Registry, name: &str, tool: Tool) -> anyhow::Result<ModelHandle> {
    let task = registry.manifest(name)?.task;
    if let Err(reason) = task.can_serve(tool) {
        bail!("{name}: {reason}");
    }
    Ok(registry.load(name).await?)
}

fn read_other_than(input: &Path, output: &Path) -> anyhow::Result<Vec<u8>> {
    let is_same = match (input.canonicalize(), output.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => input == output,
    };
    if is_same {
        bail!("{} is the input; choose another output", output.display());
    }
    fs::read(input).with_context(|| input.display().to_string())
}

/// The summary of a finished run.
struct Report {
    model: ModelIdentity,
    /// Width and height of the result, in pixels.
    size: (u32, u32),
    mode: Option<FixMode>,
    stages: StageTimes,
    loading: Duration,
    total: Duration,
}

impl Report {
    /// Finishes the output and prints the summary: to standard error if the result may go to standard output.
    fn print(self, output: Output) -> anyhow::Result<()> {
        let (path, is_stream) = (output.path().display().to_string(), output.is_stream());
        let size_bytes = output.finish()?;
        let text = self.text(&path, size_bytes);
        if is_stream {
            eprint!("{text}");
        } else {
            print!("{text}");
        }
        Ok(())
    }

    fn text(&self, path: &str, size_bytes: u64) -> String {
        let (width, height) = self.size;
        let mut lines =
            vec![format!("{path}  {width} × {height}, {} kB", size_bytes.div_ceil(1000))];
        lines.extend(self.mode.map(|mode| format!("mode        {mode}")));
        lines.push(format!("model       {}", self.model));
        lines.push(format!("load        {:>8.1} ms", millis(self.loading)));
        lines.extend(Stage::ALL.map(|stage| {
            format!("{:<11} {:>8.1} ms", stage.as_str(), millis(self.stages.get(stage)))
        }));
        lines.push(format!("total       {:>8.1} ms, without loading", millis(self.total)));
        lines.extend(
            peak_memory_kib().map(|peak_kib| format!("peak memory {:>8} MiB", peak_kib / 1024)),
        );
        lines.join("\n") + "\n"
    }
}

/// Returns the peak resident memory of this process: `VmHWM` in `/proc/self/status`.
fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim_end().parse().ok()
}

/// Returns a duration in milliseconds with a fraction.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
