//! `retouch-worker run fix`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use retouch_catalog::{FixMode, Tier, Tool};
use retouch_core::Clock;
use retouch_core::magic_fix::{Prompt, is_mask_exact_by_default};
use retouch_credentials::{Credentials, CredentialsConfig, Parent};
use retouch_heif::{Heif, HeifConfig};
use retouch_inference::bindings::Demand;
use retouch_pixels::PixelError;
use retouch_pixels::decode::check;
use tokio_util::sync::CancellationToken;

use super::choose::named_model;
use super::format::{Format, WriteArgs};
use super::metadata::Metadata;
use super::output::Output;
use super::pictures::is_same;
use super::report::Report;
use super::tool::{Finishing, marked_model, provenance};
use crate::commands::{LimitArgs, ModelArgs};
use crate::tools::ToolError;
use crate::tools::magic_fix::{FixModels, FixRequest, Fixed, ProgressFn, magic_fix};

/// The arguments of `run fix`.
#[derive(Args)]
pub struct FixArgs {
    /// The picture: PNG, JPEG, WebP, HEIC or AVIF.
    input: PathBuf,
    /// The mask: a PNG with the picture's aspect ratio. If it has transparency, its opaque pixels are repainted;
    /// otherwise its white ones.
    #[arg(short, long)]
    mask: PathBuf,
    /// What to do there, e.g. "remove the object".
    #[arg(short, long)]
    prompt: String,
    /// Where to write the result.
    #[arg(short, long)]
    output: PathBuf,
    /// The format of the result [default: as the name of the output says, otherwise png]
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    write: WriteArgs,
    /// The model [default: the one bound to the prompt's mode for paid jobs]
    #[arg(long)]
    model: Option<String>,
    /// Whether no pixel outside the mask may change [default: true for prompts that edit, add, or restore]
    #[arg(long)]
    exact_mask: Option<bool>,
    /// The random seed: the same seed gives the same picture.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What happens to what the camera wrote into the picture: date, camera, author, place (EXIF).
    #[arg(long, value_enum, default_value = "strip")]
    metadata: Metadata,
    #[command(flatten)]
    credentials: CredentialsConfig,
    #[command(flatten)]
    heif: HeifConfig,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl FixArgs {
    /// Runs the tool.
    pub async fn execute(self) -> anyhow::Result<()> {
        let prompt = Prompt::parse(&self.prompt)?;
        let credentials = Credentials::open(&self.credentials, Clock::system().now())?;
        let format = Format::of_output(&self.output, self.format)?;
        let file = Bytes::from(read_other_than(&self.input, &self.output)?);
        let mask = read_other_than(&self.mask, &self.output)?;
        let mut output = Output::open(&self.output)?;
        let limits = self.limits.limits();
        let name = || self.input.display().to_string();
        let (provenance, exif) = (provenance(&file), self.metadata.of(&file));
        let input = Heif::new(&self.heif)?.readable(file, &limits).await.with_context(name)?;
        check(&input, &limits).with_context(name)?;
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
        let (mode, models) = (prompt.mode(), FixModels { bound, clarifier, safety_checker });
        let is_mask_exact = self.exact_mask.unwrap_or(is_mask_exact_by_default(mode));
        let request =
            FixRequest { prompt, mode, mask: mask.into(), is_mask_exact, seed: self.seed };
        let on_progress: ProgressFn = Arc::new(|_, _, _| {});
        let settings = self.limits.settings(&registry);
        let fixed =
            magic_fix(input.clone(), request, &models, &pixels, &settings, &cancel, &on_progress)
                .await
                .map_err(|error| {
                    let file = if matches!(error, ToolError::Pixels(PixelError::Mask(_))) {
                        &self.mask
                    } else {
                        &self.input
                    };
                    anyhow::Error::new(error).context(file.display().to_string())
                })?;
        let Fixed { png, made, model, has_net, .. } = fixed;
        let parent = Parent { picture: &input, provenance: provenance.as_ref() };
        let (made_by, now) = (marked_model(&model, has_net), Clock::system().now());
        let seal = credentials.seal(Tool::MagicFix(mode), &made_by, &parent, now)?;
        let (write, background) = (self.write, None);
        let finishing = Finishing { write, format, background, exif, seal, credentials };
        output.write(&pixels.run(move || finishing.finish(png)).await??)?;
        let total = started.elapsed();
        Report { made, model, mode: Some(mode), loading, total }.print(output)
    }
}

fn read_other_than(input: &Path, output: &Path) -> anyhow::Result<Vec<u8>> {
    ensure!(!is_same(input, output), "{} is the input; choose another output", output.display());
    fs::read(input).with_context(|| input.display().to_string())
}
