//! `retouch-worker run fix`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use retouch_catalog::{FixMode, Tier, Tool};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::{ModelHandle, Registry};
use retouch_pixels::PixelError;
use retouch_prompts::Prompt;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

use super::choose::named_model;
use super::progress;
use super::report::Finished;
use super::tool::{Common, PictureTool, RunArgs};
use crate::commands::{LimitArgs, ModelArgs};
use crate::tools::magic_fix::{FixModels, FixRequest, Fixed, ProgressFn, magic_fix};
use crate::tools::stage::Stage;
use crate::tools::{Settings, ToolError};

/// The arguments of `run fix`.
#[derive(Args)]
pub struct FixArgs {
    /// The mask: a PNG with the aspect ratio of the pictures. If it has transparency, its opaque pixels are repainted;
    /// otherwise its white ones.
    #[arg(short, long)]
    mask: PathBuf,
    /// What to do there, e.g. "remove the object".
    #[arg(short, long)]
    prompt: String,
    /// The model [default: the one bound to the prompt's mode for paid jobs]
    #[arg(long)]
    model: Option<String>,
    /// Whether no pixel outside the mask may change [default: true for prompts that edit, add, or restore]
    #[arg(long)]
    exact_mask: Option<bool>,
    /// The random seed: the same seed gives the same picture.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl FixArgs {
    pub async fn execute(self) -> anyhow::Result<()> {
        let prompt = Prompt::parse(&self.prompt)?;
        let plan = self.run.plan(Some(&self.mask))?;
        let mask = fs::read(&self.mask).with_context(|| self.mask.display().to_string())?;
        let common = Common {
            pixels: self.models.pixel_pool()?,
            limits: self.limits.limits(),
            background: None,
            credentials: self.run.credentials()?,
            heif: self.run.heif()?,
        };
        let registry = self.models.registry_for_one_run()?;
        let mode = prompt.mode();
        let is_mask_exact = self.exact_mask.unwrap_or(mode.is_mask_exact_by_default());
        let request =
            FixRequest { prompt, mode, mask: mask.into(), is_mask_exact, seed: self.seed };
        let settings = self.limits.settings(&registry);
        let models = OnceCell::new();
        let tool = Fix { args: &self, registry, models, request, settings, common: &common };
        self.run.execute(&plan, &tool, &common).await
    }
}

struct Fix<'a> {
    args: &'a FixArgs,
    registry: Registry,
    models: OnceCell<FixModels>,
    request: FixRequest,
    settings: Settings,
    common: &'a Common,
}

impl Fix<'_> {
    async fn load(&self) -> anyhow::Result<FixModels> {
        let Self { registry, request: FixRequest { prompt, mode, .. }, .. } = self;
        let demand = |mode| Demand { tool: Tool::MagicFix(mode), tier: Tier::Paid };
        let bound = match &self.args.model {
            Some(name) => named_model(registry, name, Tool::MagicFix(*mode)).await?,
            None if !registry.is_served(demand(*mode)) => {
                bail!("no model is bound to Magic Fix ({mode}) on {}", registry.device())
            }
            None => registry.model_for(demand(*mode)).await?,
        };
        check_words(&bound, prompt)?;
        let may_clarify = self.args.model.is_none()
            && *mode == FixMode::Restore
            && registry.is_served(demand(FixMode::Enhance));
        let clarifier = if may_clarify {
            Some(registry.model_for(demand(FixMode::Enhance)).await?)
        } else {
            None
        };
        let safety_checker = self.args.models.safety_checker(registry).await?;
        Ok(FixModels { bound, clarifier, safety_checker })
    }
}

impl PictureTool for Fix<'_> {
    fn statement(&self) -> Tool {
        Tool::MagicFix(self.request.mode)
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        self.model((0, 0)).await.map(|_| ())
    }

    async fn model(&self, _: (u32, u32)) -> anyhow::Result<ModelHandle> {
        Ok(self.models.get_or_try_init(|| self.load()).await?.bound.clone())
    }

    async fn run(
        &self,
        _: ModelHandle,
        input: Bytes,
        is_alone: bool,
        out: mpsc::Sender<Bytes>,
    ) -> anyhow::Result<Finished> {
        let models = self.models.get_or_try_init(|| self.load()).await?;
        let line = progress::Line::new(is_alone);
        let on_progress: ProgressFn = Arc::new(move |stage, fraction, count| match stage {
            Stage::Infer if fraction < 1.0 => line.show(fraction, count, None),
            // A fill counts nothing.
            Stage::Encode => line.show(1.0, None, None),
            _ => {}
        });
        let (pixels, settings) = (&self.common.pixels, &self.settings);
        let (request, never) = (self.request.clone(), CancellationToken::new());
        let fixed = magic_fix(input, request, models, pixels, settings, &never, &on_progress);
        let Fixed { png, made, model, has_net, .. } = fixed.await.map_err(|error| {
            let is_of_mask = matches!(error, ToolError::Pixels(PixelError::Mask(_)));
            let error = anyhow::Error::new(error);
            if is_of_mask { error.context(self.args.mask.display().to_string()) } else { error }
        })?;
        // If the receiver is gone, it has already reported its own error.
        let _ = out.send(png).await;
        Ok(Finished { made, model, has_net })
    }
}

/// Checks that a demo model knows the words of a prompt that it follows.
fn check_words(model: &ModelHandle, prompt: &Prompt) -> anyhow::Result<()> {
    let Some(known) = model.task().vocabulary().filter(|_| prompt.mode().needs_words()) else {
        return Ok(());
    };
    let unknown = prompt.unknown_words(known);
    ensure!(
        unknown.is_empty(),
        "{} does not know {}; it knows {}. See models/README.md for how to install a model that takes any prompt",
        model.identity().name,
        unknown.join(", "),
        known.join(", ")
    );
    Ok(())
}
