//! `retouch-worker run upscale`.

use bytes::Bytes;
use clap::Args;
use retouch_catalog::{FixMode, Tier, Tool};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::{ModelHandle, Registry};
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

use super::choose::{choose_restorer, named_model};
use super::factor::parse_magnification;
use super::progress;
use super::report::Finished;
use super::tool::{Common, PictureTool, RunArgs};
use crate::commands::{LimitArgs, ModelArgs};
use crate::tools::Settings;
use crate::tools::upscale::{Magnification, Progress, Upscaler, upscale};

/// The arguments of `run upscale`.
#[derive(Args)]
pub struct UpscaleArgs {
    /// The factor by which to enlarge the width and height: 2 or 4. With 1, a model of scale 1 cleans the picture and
    /// keeps its size.
    #[arg(short, long, default_value = "4", value_parser = parse_magnification)]
    factor: Magnification,
    /// The model [default: the one bound for paid jobs; for factor 1, the one of scale 1 that is bound to enhance or
    /// restore]
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl UpscaleArgs {
    pub async fn execute(self) -> anyhow::Result<()> {
        let plan = self.run.plan(None)?;
        let common = Common {
            pixels: self.models.pixel_pool()?,
            limits: self.limits.limits(),
            background: None,
            credentials: self.run.credentials()?,
            heif: self.run.heif()?,
        };
        let registry = self.models.registry_for_one_run()?;
        let settings = self.limits.settings(&registry);
        let (name, model) = (self.model.as_deref(), OnceCell::new());
        let tool =
            Enlarge { registry, name, model, factor: self.factor, settings, common: &common };
        self.run.execute(&plan, &tool, &common).await
    }
}

struct Enlarge<'a> {
    registry: Registry,
    name: Option<&'a str>,
    /// The model for all pictures; empty if the size of each decides.
    model: OnceCell<ModelHandle>,
    factor: Magnification,
    settings: Settings,
    common: &'a Common,
}

impl PictureTool for Enlarge<'_> {
    fn statement(&self) -> Tool {
        match self.factor {
            Magnification::Same => Tool::MagicFix(FixMode::Enhance),
            Magnification::By(factor) => Tool::Upscale(factor),
        }
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        // Even a small picture needs a model.
        self.model((1, 1)).await.map(|_| ())
    }

    async fn model(&self, (width, height): (u32, u32)) -> anyhow::Result<ModelHandle> {
        let registry = &self.registry;
        if let (Magnification::By(factor), None) = (self.factor, self.name) {
            let demand = Demand { tool: Tool::Upscale(factor), tier: Tier::Paid };
            let pixels = u64::from(width) * u64::from(height);
            return Ok(registry.model_for_picture(demand, pixels).await?);
        }
        let choose = async || match (self.factor, self.name) {
            (Magnification::By(factor), Some(name)) => {
                named_model(registry, name, Tool::Upscale(factor)).await
            }
            (_, name) => choose_restorer(registry, name).await,
        };
        self.model.get_or_try_init(choose).await.cloned()
    }

    fn result_size(&self, (width, height): (u32, u32)) -> (u32, u32) {
        let factor = match self.factor {
            Magnification::Same => 1,
            Magnification::By(factor) => u32::from(factor.get()),
        };
        (width.saturating_mul(factor), height.saturating_mul(factor))
    }

    async fn run(
        &self,
        model: ModelHandle,
        input: Bytes,
        is_alone: bool,
        out: mpsc::Sender<Bytes>,
    ) -> anyhow::Result<Finished> {
        let identity = model.identity().clone();
        let net = Upscaler::new(model)?;
        let never = CancellationToken::new();
        let line = progress::Line::new(is_alone);
        let progress = |at: Progress| line.show(at.fraction, Some(at.tiles), at.left);
        let (pixels, settings) = (&self.common.pixels, &self.settings);
        let made =
            upscale(input, self.factor, &net, pixels, settings, &never, progress, out).await?;
        Ok(Finished { made, model: identity, has_net: true })
    }
}
