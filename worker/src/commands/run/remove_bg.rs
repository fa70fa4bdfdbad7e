//! `retouch-worker run remove-bg`.

use bytes::Bytes;
use clap::Args;
use retouch_catalog::Tool;
use retouch_inference::registry::{ModelHandle, Registry};
use retouch_pixels::finish::mask_of;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

use super::choose::choose_model;
use super::format::parse_color;
use super::report::Finished;
use super::tool::{Common, PictureTool, RunArgs};
use crate::commands::{LimitArgs, ModelArgs};
use crate::tools::remove_background::remove_background;

/// The arguments of `run remove-bg`.
#[derive(Args)]
pub struct RemoveBgArgs {
    /// Put this color behind the subject, such as `#ffffff` [default: transparent]
    #[arg(long, value_name = "COLOR", value_parser = parse_color)]
    background: Option<[u8; 3]>,
    /// Write the mask instead: gray, white where the subject is.
    #[arg(long, conflicts_with = "background")]
    only_mask: bool,
    /// The model [default: the one bound for paid jobs]
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl RemoveBgArgs {
    pub async fn execute(self) -> anyhow::Result<()> {
        let plan = self.run.plan(None)?;
        let common = Common {
            pixels: self.models.pixel_pool()?,
            limits: self.limits.limits(),
            background: self.background,
            credentials: self.run.credentials()?,
            heif: self.run.heif()?,
        };
        let registry = self.models.registry_for_one_run()?;
        let Self { model: name, only_mask, .. } = &self;
        let (name, model) = (name.as_deref(), OnceCell::new());
        let tool = RemoveBg { registry, name, model, common: &common, only_mask: *only_mask };
        self.run.execute(&plan, &tool, &common).await
    }
}

struct RemoveBg<'a> {
    registry: Registry,
    name: Option<&'a str>,
    model: OnceCell<ModelHandle>,
    common: &'a Common,
    only_mask: bool,
}

impl PictureTool for RemoveBg<'_> {
    fn statement(&self) -> Tool {
        Tool::RemoveBackground
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        self.model((0, 0)).await.map(|_| ())
    }

    async fn model(&self, _: (u32, u32)) -> anyhow::Result<ModelHandle> {
        let choose = || choose_model(&self.registry, self.name, Tool::RemoveBackground);
        self.model.get_or_try_init(choose).await.cloned()
    }

    async fn run(
        &self,
        model: ModelHandle,
        input: Bytes,
        _: bool,
        out: mpsc::Sender<Bytes>,
    ) -> anyhow::Result<Finished> {
        let Common { pixels, limits, .. } = self.common;
        let never = CancellationToken::new();
        let (mut png, made) =
            remove_background(input, &model, pixels, limits, &never, |_| {}).await?;
        if self.only_mask {
            png = pixels.run(move || mask_of(&png)).await??;
        }
        // If the receiver is gone, it has already reported its own error.
        let _ = out.send(png).await;
        Ok(Finished { made, model: model.identity().clone(), has_net: true })
    }
}
