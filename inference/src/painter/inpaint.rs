//! Text-guided pipelines.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, Array3};
use retouch_catalog::{Count, CountUnit, FixMode};

use super::reference_image::reference_image;
use super::{PaintError, Painter, Painting, Watch};
use crate::diffusion::{
    DiffusionError, Flux2Klein, MaskToLatents, ModelScheduler, Opener, Request, SdInpaint,
    SeededNoise, StepState,
};
use crate::manifest::Inpaint;

/// The caption for removing something, for models that follow captions.
const REMOVAL_CAPTION: &str = "background, empty, seamless";

enum Pipeline {
    Sd(Box<SdInpaint>),
    Klein(Box<Flux2Klein>),
}

/// An opened text-guided pipeline.
pub struct InpaintPainter {
    pipeline: Pipeline,
    contract: Inpaint,
    description: String,
}

impl InpaintPainter {
    /// Opens a Stable Diffusion or SDXL inpainting model: a folder in the layout of diffusers and optimum.
    ///
    /// # Errors
    /// If a file is missing or the model is of an unsupported kind.
    pub fn sd_inpaint(
        folder: &Path,
        contract: &Inpaint,
        opener: &impl Opener,
    ) -> Result<Self, DiffusionError> {
        let scheduler = ModelScheduler::read(folder, contract.sampling.scheduler)?;
        let description = scheduler.to_string();
        let model = SdInpaint::open_with(folder, scheduler.config, opener)?;
        let kind = if model.is_sdxl() { "SDXL" } else { "Stable Diffusion" };
        Ok(Self {
            pipeline: Pipeline::Sd(Box::new(model)),
            contract: contract.clone(),
            description: format!("{kind}, {description}"),
        })
    }

    /// Opens a folder of FLUX.2 \[klein\].
    ///
    /// # Errors
    /// If a file is missing or the model is of an unsupported kind.
    pub fn flux2_klein(
        folder: &Path,
        contract: &Inpaint,
        opener: &impl Opener,
    ) -> Result<Self, DiffusionError> {
        Ok(Self {
            pipeline: Pipeline::Klein(Box::new(Flux2Klein::open(folder, opener)?)),
            contract: contract.clone(),
            description: "FLUX.2 [klein]".to_owned(),
        })
    }

    /// Returns what was opened and which scheduler it runs with, in a few words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns how long each net has run since the pipeline was opened, starting with the net of every step.
    pub fn run_times(&self) -> [(&'static str, Duration); 4] {
        match &self.pipeline {
            Pipeline::Sd(sd) => sd.run_times(),
            Pipeline::Klein(klein) => klein.run_times(),
        }
    }

    /// Returns the prompt for the pipeline: FLUX.2 \[klein\] follows instructions, Stable Diffusion captions.
    fn prompt(&self, painting: &Painting) -> String {
        match (&self.pipeline, painting.mode) {
            (Pipeline::Klein(_), _) => painting.prompt.clone(),
            (Pipeline::Sd(_), FixMode::Remove) => REMOVAL_CAPTION.to_owned(),
            (Pipeline::Sd(_), FixMode::Restore | FixMode::Enhance) => {
                "high quality photo, sharp, detailed".to_owned()
            }
            (Pipeline::Sd(_), FixMode::Edit | FixMode::Add) => painting.caption.clone(),
        }
    }
}

impl Painter for InpaintPainter {
    fn paint(&mut self, painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError> {
        let (width, height) = (painting.width as usize, painting.height as usize);
        let sampling = &self.contract.sampling;
        let strength = self.contract.strength.get(&painting.mode).copied();
        let picture =
            |rgb| Array3::from_shape_vec((height, width, 3), rgb).map_err(PaintError::failed);
        let reference_hole = self.contract.reference_hole(painting.mode);
        let request = Request {
            image: picture(painting.rgb.clone())?,
            mask: Array2::from_shape_vec((height, width), painting.hole.clone())
                .map_err(PaintError::failed)?,
            prompt: self.prompt(painting),
            negative_prompt: sampling.negative_prompt.clone(),
            steps: sampling.steps,
            guidance: sampling.guidance,
            strength: strength.ok_or_else(|| {
                PaintError::failed(format!("the manifest has no strength.{}", painting.mode))
            })?,
            eta: 0.0,
            mask_to_latents: MaskToLatents::MaxPool,
            reference: reference_image(painting, reference_hole, watch)?
                .map(picture)
                .transpose()?,
        };
        let mut noise = SeededNoise::new(painting.seed);
        let mut on_step = |step: StepState<'_>| {
            let (done, total) = (step.index as u32 + 1, step.total as u32);
            (watch.progress)(Count { unit: CountUnit::Steps, done, total });
            if watch.cancel.is_cancelled() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let generated = match &mut self.pipeline {
            Pipeline::Sd(sd) => sd.inpaint(&request, &mut noise, &mut on_step),
            Pipeline::Klein(klein) => klein.inpaint(&request, &mut noise, &mut on_step),
        };
        let generated = generated.map_err(|error| match error {
            DiffusionError::Canceled => PaintError::Canceled,
            DiffusionError::Session { error, .. } => PaintError::Session(error),
            other => PaintError::failed(other),
        })?;
        let cut = generated.prompt_tokens_cut;
        if cut > 0 {
            tracing::info!(tokens = cut, "Cut the end of a prompt that is too long for the model");
        }
        Ok(generated
            .image
            .iter()
            .map(|value| (value.clamp(0.0, 1.0) * 255.0).round() as u8)
            .collect())
    }
}
