//! Pipelines that paint what words say.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, Array3};
use retouch_catalog::{Count, CountUnit, FixMode};

use super::{PaintError, Painter, Painting, Watch};
use crate::diffusion::{
    DiffusionError, Flux2Klein, MaskToLatents, Opener, Request, SdInpaint, SeededNoise, StepReport,
};
use crate::manifest::Inpaint;

/// What a hole is asked to become where something is to go away and the model only follows captions.
const NOTHING: &str = "background, empty, seamless";

enum Pipeline {
    Sd(Box<SdInpaint>),
    Klein(Box<Flux2Klein>),
}

/// A pipeline of nets, opened.
pub struct InpaintPainter {
    pipeline: Pipeline,
    contract: Inpaint,
}

impl InpaintPainter {
    /// Opens a folder as diffusers and optimum write it: Stable Diffusion's inpainting.
    ///
    /// # Errors
    /// What is missing, or of a kind that cannot be run.
    pub fn sd_inpaint(
        folder: &Path,
        contract: &Inpaint,
        opener: &impl Opener,
    ) -> Result<Self, DiffusionError> {
        let pipeline = Pipeline::Sd(Box::new(SdInpaint::open(folder, opener)?));
        Ok(Self { pipeline, contract: contract.clone() })
    }

    /// Opens a folder of FLUX.2 \[klein\].
    ///
    /// # Errors
    /// What is missing, or of a kind that cannot be run.
    pub fn flux2_klein(
        folder: &Path,
        contract: &Inpaint,
        opener: &impl Opener,
    ) -> Result<Self, DiffusionError> {
        let pipeline = Pipeline::Klein(Box::new(Flux2Klein::open(folder, opener)?));
        Ok(Self { pipeline, contract: contract.clone() })
    }

    /// How long each of its nets has run since it was opened, the one that every step runs first.
    pub fn nets_ran(&self) -> [(&'static str, Duration); 4] {
        match &self.pipeline {
            Pipeline::Sd(sd) => sd.nets_ran(),
            Pipeline::Klein(klein) => klein.nets_ran(),
        }
    }

    /// What a model that follows captions is told, and one that follows instructions.
    fn words(&self, painting: &Painting) -> String {
        match (&self.pipeline, painting.mode) {
            (Pipeline::Klein(_), _) => painting.prompt.clone(),
            (Pipeline::Sd(_), FixMode::Remove) => NOTHING.to_owned(),
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
        let request = Request {
            image: Array3::from_shape_vec((height, width, 3), painting.rgb.clone())
                .map_err(PaintError::failed)?,
            mask: Array2::from_shape_vec((height, width), painting.hole.clone())
                .map_err(PaintError::failed)?,
            prompt: self.words(painting),
            negative_prompt: sampling.negative_prompt.clone(),
            steps: sampling.steps,
            guidance: sampling.guidance,
            strength: strength.ok_or_else(|| {
                PaintError::failed(format!("it has no strength for {}", painting.mode))
            })?,
            eta: 0.0,
            mask_to_latents: MaskToLatents::MaxPool,
        };
        let mut noise = SeededNoise::new(painting.seed);
        let mut follow = |step: StepReport<'_>| {
            let (done, total) = (step.index as u32 + 1, step.of as u32);
            (watch.progress)(Count { unit: CountUnit::Steps, done, total });
            if watch.cancel.is_cancelled() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let painted = match &mut self.pipeline {
            Pipeline::Sd(sd) => sd.inpaint(&request, &mut noise, &mut follow),
            Pipeline::Klein(klein) => klein.inpaint(&request, &mut noise, &mut follow),
        };
        let painted = painted.map_err(|error| match error {
            DiffusionError::Cancelled => PaintError::Cancelled,
            DiffusionError::Session { said, .. } => PaintError::Session(said),
            other => PaintError::failed(other),
        })?;
        if painted.prompt_tokens_cut > 0 {
            tracing::info!(tokens = painted.prompt_tokens_cut, "The end of a prompt was cut off");
        }
        Ok(painted
            .image
            .iter()
            .map(|value| (value.clamp(0.0, 1.0) * 255.0).round() as u8)
            .collect())
    }
}
