//! `retouch-worker run`: a tool on a file, without any server.

use std::fs;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use retouch_core::magic_fix::{FixMode, Prompt};
use retouch_core::tool::{Count, Factor, Tier, Tool};
use retouch_worker::models::bindings::Demand;
use retouch_worker::models::registry::{ModelHandle, ModelIdentity, Registry};
use retouch_worker::tools::magic_fix::{Engines, Tell, Wish, magic_fix};
use retouch_worker::tools::remove_background::remove_background;
use retouch_worker::tools::stage::{Stage, StageTimes};
use retouch_worker::tools::upscale::{Progress, Upscaled, Upscaler, upscale};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{LimitArgs, ModelArgs};

/// The tools that run on a file.
#[derive(Subcommand)]
pub enum Run {
    /// Cut the subject of a picture out of its background.
    RemoveBg(RemoveBg),
    /// Make a picture larger.
    Upscale(Upscale),
    /// Repaint a masked area of a picture as words say.
    Fix(Fix),
}

/// `run fix IN --mask MASK --prompt WORDS -o OUT`.
#[derive(Args)]
pub struct Fix {
    /// The picture: PNG, JPEG or WebP.
    input: PathBuf,
    /// Where to work: a PNG of the picture's shape. Where it is transparent anywhere, what is opaque is
    /// meant; else what is white.
    #[arg(short, long)]
    mask: PathBuf,
    /// What is wanted there, e.g. "remove the object".
    #[arg(short, long)]
    prompt: String,
    /// Where the PNG goes.
    #[arg(short, long)]
    output: PathBuf,
    /// The model; by default the one that paid jobs with such a prompt get.
    #[arg(long)]
    model: Option<String>,
    /// Where randomness begins: the same seed gives the same picture.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// `run remove-bg IN -o OUT`.
#[derive(Args)]
pub struct RemoveBg {
    /// The picture: PNG, JPEG or WebP.
    input: PathBuf,
    /// Where the PNG goes.
    #[arg(short, long)]
    output: PathBuf,
    /// The model; by default the one that paid jobs get.
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// `run upscale IN -o OUT`.
#[derive(Args)]
pub struct Upscale {
    /// The picture: PNG, JPEG or WebP.
    input: PathBuf,
    /// Where the PNG goes.
    #[arg(short, long)]
    output: PathBuf,
    /// How many times as wide and high: 2 or 4.
    #[arg(short, long, default_value = "4", value_parser = factor)]
    factor: Factor,
    /// The model; by default the one that paid jobs get.
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Run {
    /// Runs the tool.
    pub async fn execute(self) -> anyhow::Result<()> {
        match self {
            Self::RemoveBg(command) => command.execute().await,
            Self::Upscale(command) => command.execute().await,
            Self::Fix(command) => command.execute().await,
        }
    }
}

impl RemoveBg {
    async fn execute(self) -> anyhow::Result<()> {
        let input = read_other_than(&self.input, &self.output)?;
        let pixels = self.models.pixel_pool()?;
        let started = Instant::now();
        let registry = self.models.registry()?;
        let model = chosen_model(&registry, self.model.as_deref(), Tool::RemoveBackground).await?;
        let loading = started.elapsed();

        let limits = self.limits.limits();
        let cancel = CancellationToken::new();
        let started = Instant::now();
        let result =
            remove_background(input.into(), &model, &pixels, &limits, &cancel, |_| {}).await;
        let total = started.elapsed();
        let cutout = result.with_context(|| self.input.display().to_string())?;
        let mut file = WholeFile::create(&self.output)?;
        file.write(&cutout.png)?;
        let size_bytes = file.finish()?;
        let (width, height) = (cutout.width, cutout.height);
        println!("{}  {width} × {height}, {} kB", self.output.display(), size_bytes.div_ceil(1000));
        print_times(&cutout.model, &cutout.stages, loading, total);
        Ok(())
    }
}

impl Fix {
    async fn execute(self) -> anyhow::Result<()> {
        let prompt = Prompt::read(&self.prompt)?;
        let input = read_other_than(&self.input, &self.output)?;
        let mask = read_other_than(&self.mask, &self.output)?;
        let pixels = self.models.pixel_pool()?;
        let started = Instant::now();
        let registry = self.models.registry()?;
        let demand = |mode| Demand { tool: Tool::MagicFix(mode), tier: Tier::Paid };
        let bound = match &self.model {
            Some(name) => registry.load(name).await?,
            None if !registry.is_served(demand(prompt.mode())) => {
                bail!("no model is bound that could {} on {}", prompt.mode(), registry.device())
            }
            None => registry.model_for(demand(prompt.mode())).await?,
        };
        if let Some(vocabulary) = bound.task().vocabulary()
            && prompt.mode().needs_words()
        {
            let unknown = prompt.words_outside(vocabulary);
            if !unknown.is_empty() {
                bail!("{} does not know {}", bound.identity().name, unknown.join(", "));
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

        let limits = self.limits.limits();
        let cancel = CancellationToken::new();
        let started = Instant::now();
        let judge = self.models.judge(&registry).await?;
        let (mode, engines) = (prompt.mode(), Engines { bound, clarifier, judge });
        let wish = Wish { prompt, mode, mask: mask.into(), seed: self.seed };
        let tell: Tell = Arc::new(|_, _, _| {});
        let fixed = magic_fix(input.into(), wish, &engines, &pixels, &limits, &cancel, &tell)
            .await
            .with_context(|| self.input.display().to_string())?;
        let total = started.elapsed();
        let mut file = WholeFile::create(&self.output)?;
        file.write(&fixed.png)?;
        let size_bytes = file.finish()?;
        let (width, height) = (fixed.width, fixed.height);
        println!("{}  {width} × {height}, {} kB", self.output.display(), size_bytes.div_ceil(1000));
        println!("mode        {mode}");
        print_times(&fixed.model, &fixed.stages, loading, total);
        Ok(())
    }
}

impl Upscale {
    async fn execute(self) -> anyhow::Result<()> {
        let input = read_other_than(&self.input, &self.output)?;
        let pixels = self.models.pixel_pool()?;
        let started = Instant::now();
        let registry = self.models.registry()?;
        let tool = Tool::Upscale(self.factor);
        let net = Upscaler::new(chosen_model(&registry, self.model.as_deref(), tool).await?)?;
        let loading = started.elapsed();

        let settings = self.models.settings(self.limits, registry.device());
        let cancel = CancellationToken::new();
        let started = Instant::now();
        let (out, mut parts) = mpsc::channel(1);
        let factor = self.factor;
        let making = async {
            upscale(input.into(), factor, &net, &pixels, &settings, &cancel, show, out)
                .await
                .with_context(|| self.input.display().to_string())
        };
        let writing = async {
            let mut file = WholeFile::create(&self.output)?;
            while let Some(bytes) = parts.recv().await {
                file.write(&bytes)?;
            }
            Ok(file)
        };
        let (made, file) = tokio::try_join!(making, writing)?;
        let size_bytes = file.finish()?;
        let total = started.elapsed();
        let Upscaled { width, height, stages, .. } = made;
        println!("{}  {width} × {height}, {} kB", self.output.display(), size_bytes.div_ceil(1000));
        print_times(net.identity(), &stages, loading, total);
        Ok(())
    }
}

/// 2 or 4, with or without an x.
pub fn factor(text: &str) -> Result<Factor, String> {
    let number = text.trim_end_matches(['x', 'X']).parse().ok();
    number.and_then(Factor::from_number).ok_or_else(|| "it must be 2 or 4".to_owned())
}

/// Shows how far a run is, where somebody watches.
fn show(at: Progress) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let left = at.left.map_or(String::new(), |left| format!(", {} s left", left.as_secs()));
    let end = if at.fraction < 1.0 { '\r' } else { '\n' };
    let Count { done, total, .. } = at.tiles;
    eprint!("{:>3.0} % (tile {done} of {total}){left}        {end}", at.fraction * 100.0);
}

/// The model by name, or the one that paid runs of a tool get.
pub async fn chosen_model(
    registry: &Registry,
    name: Option<&str>,
    tool: Tool,
) -> anyhow::Result<ModelHandle> {
    Ok(match name {
        Some(name) => registry.load(name).await?,
        None => registry.model_for(Demand { tool, tier: Tier::Paid }).await?,
    })
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

/// A file that is written beside its place first: nobody ever sees half a picture. What is not finished
/// is removed.
struct WholeFile {
    path: PathBuf,
    partial: PathBuf,
    file: Option<BufWriter<fs::File>>,
    size_bytes: u64,
}

impl WholeFile {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let file =
            fs::File::create(&partial).with_context(|| format!("writing {}", partial.display()))?;
        let file = Some(BufWriter::new(file));
        Ok(Self { path: path.to_owned(), partial, file, size_bytes: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.size_bytes += bytes.len() as u64;
        match &mut self.file {
            Some(file) => {
                file.write_all(bytes).with_context(|| format!("writing {}", self.partial.display()))
            }
            None => Ok(()),
        }
    }

    /// Puts the file in its place; its size.
    fn finish(mut self) -> anyhow::Result<u64> {
        let flushed = self.file.take().map_or(Ok(()), |mut file| file.flush());
        flushed
            .and_then(|()| fs::rename(&self.partial, &self.path))
            .with_context(|| format!("writing {}", self.path.display()))?;
        Ok(self.size_bytes)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // It stays where even removing fails.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

fn print_times(model: &ModelIdentity, stages: &StageTimes, loading: Duration, total: Duration) {
    println!("model       {model}");
    println!("load        {:>8.1} ms", millis(loading));
    for stage in Stage::ALL {
        println!("{:<11} {:>8.1} ms", stage.as_str(), millis(stages.get(stage)));
    }
    println!("total       {:>8.1} ms, without the load", millis(total));
    if let Some(peak_kib) = peak_memory_kib() {
        println!("peak memory {:>8} MiB", peak_kib / 1024);
    }
}

/// The most memory that this process has had at once: `VmHWM` in `/proc/self/status`.
fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim_end().parse().ok()
}

/// Milliseconds with their fraction.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
