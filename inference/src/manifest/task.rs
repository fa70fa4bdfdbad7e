//! The tasks of models, and the tools that each task can serve.

use retouch_catalog::{FixMode, Tool};
use retouch_pixels::patch::Canvas;

use super::paint::{Exemplar, Fill, Inpaint};
use super::safety::Safety;
use super::segment_anything::SegmentAnything;
use super::segmentation::Segmentation;
use super::text::readable;
use super::upscale::Upscale;
use crate::tensor::{Format, Precision, Returns, Tensors};

/// A model's task, with its contract.
#[derive(Clone, Debug)]
pub enum Task {
    /// Takes a picture and returns how much of each pixel belongs to the subject.
    Segmentation(Segmentation),
    /// Takes a picture and returns a larger one, or a cleaner one.
    Upscale(Upscale),
    /// Fills a hole from the rest of the picture, without a net.
    Exemplar(Exemplar),
    /// Fills a hole with a net, without a prompt.
    Fill(Fill),
    /// Repaints a hole as a prompt describes: Stable Diffusion inpainting.
    SdInpaint(Inpaint),
    /// Repaints a hole as a prompt describes: FLUX.2 \[klein\].
    Flux2Klein(Inpaint),
    /// Takes a picture and returns the probability that it is unsafe to show.
    Safety(Safety),
    /// Takes a picture and clicks, and returns a mask of the clicked object.
    SegmentAnything(SegmentAnything),
}

/// A task of one net with one input tensor and one output tensor.
#[derive(Clone, Copy, Debug)]
pub enum NetTask<'a> {
    Segmentation(&'a Segmentation),
    Upscale(&'a Upscale),
}

impl<'a> NetTask<'a> {
    /// Returns the name of the input tensor.
    pub fn input(self) -> &'a str {
        match self {
            Self::Segmentation(segmentation) => &segmentation.input.name,
            Self::Upscale(upscale) => &upscale.input.name,
        }
    }

    /// Returns the name of the output tensor to fetch.
    pub fn output(self) -> &'a str {
        match self {
            Self::Segmentation(segmentation) => &segmentation.output.name,
            Self::Upscale(upscale) => &upscale.output.name,
        }
    }

    /// Returns how precisely the net computes on a GPU.
    pub const fn precision(self) -> Precision {
        match self {
            Self::Segmentation(segmentation) => segmentation.precision,
            Self::Upscale(upscale) => upscale.precision,
        }
    }

    /// Returns both tensors, as the manifest describes them.
    pub fn tensors(self) -> Tensors<'a> {
        let (element, layout, normalization, output, returns) = match self {
            Self::Segmentation(Segmentation { input, output, .. }) => {
                (input.element, input.layout, input.normalization(), output, Returns::Map)
            }
            Self::Upscale(Upscale { input, output, .. }) => {
                (input.element, input.layout, input.normalization(), output, Returns::Picture)
            }
        };
        Tensors {
            input: self.input(),
            input_format: Format { element, layout },
            normalization,
            output: self.output(),
            output_format: Format { element: output.element, layout: output.layout },
            white: output.white(),
            returns,
        }
    }
}

impl Task {
    /// Returns this task as a [`NetTask`], if one net with one input and one output does it.
    pub const fn net(&self) -> Option<NetTask<'_>> {
        match self {
            Self::Segmentation(segmentation) => Some(NetTask::Segmentation(segmentation)),
            Self::Upscale(upscale) => Some(NetTask::Upscale(upscale)),
            Self::Exemplar(_)
            | Self::Fill(_)
            | Self::SdInpaint(_)
            | Self::Flux2Klein(_)
            | Self::Safety(_)
            | Self::SegmentAnything(_) => None,
        }
    }

    /// Returns the name of the task in `model.toml`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Segmentation(_) => "segmentation",
            Self::Upscale(_) => "upscale",
            Self::Exemplar(_) => "exemplar-fill",
            Self::Fill(_) => "fill",
            Self::SdInpaint(_) => "sd-inpaint",
            Self::Flux2Klein(_) => "flux2-klein",
            Self::Safety(_) => "safety",
            Self::SegmentAnything(_) => "segment-anything",
        }
    }

    /// Returns whether the model is a folder of several nets.
    pub const fn is_pipeline(&self) -> bool {
        matches!(self, Self::SdInpaint(_) | Self::Flux2Klein(_) | Self::SegmentAnything(_))
    }

    /// Returns the canvas, if the model paints.
    pub const fn canvas(&self) -> Option<Canvas> {
        match self {
            Self::Exemplar(model) => Some(model.canvas),
            Self::Fill(model) => Some(model.canvas),
            Self::SdInpaint(model) | Self::Flux2Klein(model) => Some(model.canvas),
            Self::Segmentation(_)
            | Self::Upscale(_)
            | Self::Safety(_)
            | Self::SegmentAnything(_) => None,
        }
    }

    /// Returns the known words, if the model has a limited vocabulary.
    pub fn vocabulary(&self) -> Option<&[String]> {
        match self {
            Self::SdInpaint(model) | Self::Flux2Klein(model) => model.vocabulary.as_deref(),
            _ => None,
        }
    }

    pub const fn is_demo(&self) -> bool {
        matches!(self, Self::SdInpaint(model) | Self::Flux2Klein(model) if model.demo)
    }

    /// Returns whether a net computes the pixels, not an algorithm without learned weights.
    pub const fn has_net(&self) -> bool {
        !matches!(self, Self::Exemplar(_))
    }

    pub fn modes(&self) -> Vec<FixMode> {
        FixMode::ALL.into_iter().filter(|mode| self.can_fix(*mode)).collect()
    }

    fn can_fix(&self, mode: FixMode) -> bool {
        match self {
            Self::Segmentation(_) | Self::Safety(_) | Self::SegmentAnything(_) => false,
            Self::Upscale(model) => match mode {
                FixMode::Enhance => true,
                // A net that does not enlarge was trained to clean.
                FixMode::Restore => model.upscale.scale == 1,
                FixMode::Edit | FixMode::Remove | FixMode::Add => false,
            },
            Self::Exemplar(model) => model.modes.contains(&mode),
            Self::Fill(model) => model.modes.contains(&mode),
            Self::SdInpaint(model) | Self::Flux2Klein(model) => model.strength.contains_key(&mode),
        }
    }

    /// Checks that a model of this task can serve a tool.
    ///
    /// # Errors
    /// The reason if it cannot.
    pub fn can_serve(&self, tool: Tool) -> Result<(), String> {
        match (self, tool) {
            (Self::Segmentation(_), Tool::RemoveBackground) => Ok(()),
            (Self::Upscale(model), Tool::Upscale(factor)) => model.can_make(factor.get().into()),
            (_, Tool::MagicFix(mode)) if self.can_fix(mode) => Ok(()),
            (
                Self::Segmentation(_)
                | Self::Upscale(_)
                | Self::Safety(_)
                | Self::SegmentAnything(_),
                Tool::MagicFix(_),
            )
            | (_, Tool::RemoveBackground | Tool::Upscale(_)) => {
                Err(format!("its task is {}", self.as_str()))
            }
            (_, Tool::MagicFix(mode)) => Err(format!("its modes do not include {mode}")),
        }
    }

    pub(super) fn parse(name: &str, own: toml::Table) -> Result<Self, String> {
        let on_one_line = |error: toml::de::Error| readable(&error);
        let mut task = match name {
            "segmentation" => Self::Segmentation(own.try_into().map_err(on_one_line)?),
            "upscale" => Self::Upscale(own.try_into().map_err(on_one_line)?),
            "exemplar-fill" => Self::Exemplar(own.try_into().map_err(on_one_line)?),
            "fill" => Self::Fill(own.try_into().map_err(on_one_line)?),
            "sd-inpaint" => Self::SdInpaint(own.try_into().map_err(on_one_line)?),
            "flux2-klein" => Self::Flux2Klein(own.try_into().map_err(on_one_line)?),
            "safety" => Self::Safety(own.try_into().map_err(on_one_line)?),
            "segment-anything" => Self::SegmentAnything(own.try_into().map_err(on_one_line)?),
            other => {
                return Err(format!(
                    "task {other:?} is unknown; accepted are \"segmentation\", \"upscale\", \"exemplar-fill\", \
                     \"fill\", \"sd-inpaint\", \"flux2-klein\", \"safety\" and \"segment-anything\""
                ));
            }
        };
        match &mut task {
            Self::Segmentation(segmentation) => segmentation.check()?,
            Self::Upscale(upscale) => upscale.complete()?,
            Self::Exemplar(exemplar) => exemplar.check()?,
            Self::Fill(fill) => fill.check()?,
            Self::SdInpaint(inpaint) => {
                inpaint.check()?;
                inpaint.check_steps()?;
                inpaint.check_no_reference_image()?;
            }
            Self::Flux2Klein(inpaint) => {
                inpaint.check()?;
                inpaint.check_unguided()?;
                inpaint.check_klein()?;
            }
            Self::Safety(safety) => safety.check()?,
            Self::SegmentAnything(model) => model.check()?,
        }
        Ok(task)
    }
}
