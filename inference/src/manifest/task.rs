//! The tasks that a model can have, and which tools each can serve.

use retouch_catalog::{Factor, FixMode, Tool};

use retouch_pixels::patch::Canvas;

use super::paint::{Exemplar, Fill, Inpaint};
use super::safety::Safety;
use super::segmentation::Segmentation;
use super::text::readable;
use super::upscale::{Enlargement, Upscale};

/// What a model does. Each task has a contract of its own; adding a task is adding a variant.
#[derive(Clone, Debug)]
pub enum Task {
    /// A picture in, how much of each pixel belongs to the subject out.
    Segmentation(Segmentation),
    /// A picture in, a larger one out.
    Upscale(Upscale),
    /// A picture with a hole in, the same filled from the rest of itself out.
    Exemplar(Exemplar),
    /// A picture and a mask in, the picture filled by a net out.
    Fill(Fill),
    /// A picture, a mask and words in, what the words say out: Stable Diffusion's inpainting.
    SdInpaint(Inpaint),
    /// The same by FLUX.2 \[klein\].
    Flux2Klein(Inpaint),
    /// A picture in, whether it may be shown out.
    Safety(Safety),
}

/// A task that one net does: one tensor in, one out.
#[derive(Clone, Copy, Debug)]
pub enum NetTask<'a> {
    /// A picture in, how much of each pixel belongs to the subject out.
    Segmentation(&'a Segmentation),
    /// A picture in, a larger one out.
    Upscale(&'a Upscale),
}

impl<'a> NetTask<'a> {
    /// The name of the one input tensor.
    pub fn input(self) -> &'a str {
        match self {
            Self::Segmentation(segmentation) => &segmentation.input.name,
            Self::Upscale(upscale) => &upscale.input.name,
        }
    }

    /// The name of the one output tensor that is asked for.
    pub fn output(self) -> &'a str {
        match self {
            Self::Segmentation(segmentation) => &segmentation.output.name,
            Self::Upscale(upscale) => &upscale.output.name,
        }
    }
}

impl Task {
    /// The task of one net, if it is one.
    pub const fn net(&self) -> Option<NetTask<'_>> {
        match self {
            Self::Segmentation(segmentation) => Some(NetTask::Segmentation(segmentation)),
            Self::Upscale(upscale) => Some(NetTask::Upscale(upscale)),
            Self::Exemplar(_)
            | Self::Fill(_)
            | Self::SdInpaint(_)
            | Self::Flux2Klein(_)
            | Self::Safety(_) => None,
        }
    }

    /// The task's name, as `model.toml` spells it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Segmentation(_) => "segmentation",
            Self::Upscale(_) => "upscale",
            Self::Exemplar(_) => "exemplar-fill",
            Self::Fill(_) => "fill",
            Self::SdInpaint(_) => "sd-inpaint",
            Self::Flux2Klein(_) => "flux2-klein",
            Self::Safety(_) => "safety",
        }
    }

    /// Whether its files are those of a folder of nets, rather than of one net.
    pub const fn is_pipeline(&self) -> bool {
        matches!(self, Self::SdInpaint(_) | Self::Flux2Klein(_))
    }

    /// What it paints on, if it paints.
    pub const fn canvas(&self) -> Option<Canvas> {
        match self {
            Self::Exemplar(model) => Some(model.canvas),
            Self::Fill(model) => Some(model.canvas),
            Self::SdInpaint(model) | Self::Flux2Klein(model) => Some(model.canvas),
            Self::Segmentation(_) | Self::Upscale(_) | Self::Safety(_) => None,
        }
    }

    /// The words it knows, where it knows only some.
    pub fn vocabulary(&self) -> Option<&[String]> {
        match self {
            Self::SdInpaint(model) | Self::Flux2Klein(model) => model.vocabulary.as_deref(),
            _ => None,
        }
    }

    /// Whether it only shows that the way works.
    pub const fn is_demo(&self) -> bool {
        matches!(self, Self::SdInpaint(model) | Self::Flux2Klein(model) if model.demo)
    }

    /// What it can do with a mask, if it paints.
    pub fn modes(&self) -> Vec<FixMode> {
        FixMode::ALL.into_iter().filter(|mode| self.can_fix(*mode)).collect()
    }

    fn can_fix(&self, mode: FixMode) -> bool {
        match self {
            Self::Segmentation(_) | Self::Safety(_) => false,
            Self::Upscale(_) => mode == FixMode::Enhance,
            Self::Exemplar(model) => model.modes.contains(&mode),
            Self::Fill(model) => model.modes.contains(&mode),
            Self::SdInpaint(model) | Self::Flux2Klein(model) => model.strength.contains_key(&mode),
        }
    }

    /// Whether a model of this task can serve a tool.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn can_serve(&self, tool: Tool) -> Result<(), String> {
        match (self, tool) {
            (Self::Segmentation(_), Tool::RemoveBackground)
            | (
                Self::Upscale(Upscale { upscale: Enlargement { scale: 4 }, .. }),
                Tool::Upscale(_),
            )
            | (
                Self::Upscale(Upscale { upscale: Enlargement { scale: 2 }, .. }),
                Tool::Upscale(Factor::X2),
            ) => Ok(()),
            (Self::Upscale(model), Tool::Upscale(factor)) => {
                Err(format!("its scale is {}, not {}", model.upscale.scale, factor.get()))
            }
            (_, Tool::MagicFix(mode)) if self.can_fix(mode) => Ok(()),
            (Self::Segmentation(_) | Self::Upscale(_) | Self::Safety(_), Tool::MagicFix(_))
            | (_, Tool::RemoveBackground | Tool::Upscale(_)) => {
                Err(format!("its task is {}", self.as_str()))
            }
            (_, Tool::MagicFix(mode)) => Err(format!("its modes do not include {mode}")),
        }
    }

    pub(super) fn parse(name: &str, own: toml::Table) -> Result<Self, String> {
        let told = |error: toml::de::Error| readable(&error);
        let task = match name {
            "segmentation" => Self::Segmentation(own.try_into().map_err(told)?),
            "upscale" => Self::Upscale(own.try_into().map_err(told)?),
            "exemplar-fill" => Self::Exemplar(own.try_into().map_err(told)?),
            "fill" => Self::Fill(own.try_into().map_err(told)?),
            "sd-inpaint" => Self::SdInpaint(own.try_into().map_err(told)?),
            "flux2-klein" => Self::Flux2Klein(own.try_into().map_err(told)?),
            "safety" => Self::Safety(own.try_into().map_err(told)?),
            other => {
                return Err(format!(
                    "task {other:?} is unknown; known are \"segmentation\", \"upscale\", \"exemplar-fill\", \
                     \"fill\", \"sd-inpaint\", \"flux2-klein\" and \"safety\""
                ));
            }
        };
        match &task {
            Self::Segmentation(segmentation) => segmentation.input.check()?,
            Self::Upscale(upscale) => upscale.check()?,
            Self::Exemplar(exemplar) => exemplar.check()?,
            Self::Fill(fill) => fill.check()?,
            Self::SdInpaint(inpaint) => {
                inpaint.check()?;
                inpaint.check_steps()?;
            }
            Self::Flux2Klein(inpaint) => {
                inpaint.check()?;
                inpaint.check_unguided()?;
            }
            Self::Safety(safety) => safety.check()?,
        }
        Ok(task)
    }
}
