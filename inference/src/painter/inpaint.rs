//! Text-guided pipelines.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, Array3};
use retouch_catalog::{Count, CountUnit, FixMode};

use super::reference_image::reference_image;
use super::{PaintError, Painter, Painting, Watch};
use crate::diffusion::{
    BatchItem, DiffusionError, Flux2Klein, Generated, MaskToLatents, ModelScheduler, Request,
    SdInpaint, SeededNoise, StepState, scheduler,
};
use crate::manifest::Inpaint;
use crate::session::Runtime;
use retouch_pixels::patch::{Canvas, Fit};

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
    /// Whether it paints one crop at a time although its nets take several.
    runs_alone: bool,
}

impl InpaintPainter {
    /// Opens a Stable Diffusion or SDXL inpainting model: a folder in the layout of diffusers and optimum.
    ///
    /// # Errors
    /// If a file is missing, the model is of an unsupported kind, or it does not take the canvas of the manifest.
    pub fn sd_inpaint(
        folder: &Path,
        contract: &Inpaint,
        runtime: &Runtime,
    ) -> Result<Self, DiffusionError> {
        let scheduler = ModelScheduler::read(folder, contract.sampling.scheduler)?;
        let description = scheduler.to_string();
        let model = SdInpaint::open_with(folder, scheduler.config, runtime)?;
        check_canvas(contract.canvas, model.size_multiple())?;
        let kind = if model.is_sdxl() { "SDXL" } else { "Stable Diffusion" };
        Ok(Self {
            pipeline: Pipeline::Sd(Box::new(model)),
            contract: contract.clone(),
            description: format!("{kind}, {description}"),
            runs_alone: false,
        })
    }

    /// Opens a folder of FLUX.2 \[klein\].
    ///
    /// # Errors
    /// If a file is missing, the model is of an unsupported kind, or it does not take the canvas of the manifest.
    pub fn flux2_klein(
        folder: &Path,
        contract: &Inpaint,
        runtime: &Runtime,
    ) -> Result<Self, DiffusionError> {
        let model = Flux2Klein::open(folder, runtime)?;
        check_canvas(contract.canvas, model.size_multiple())?;
        Ok(Self {
            pipeline: Pipeline::Klein(Box::new(model)),
            contract: contract.clone(),
            description: "FLUX.2 [klein]".to_owned(),
            runs_alone: false,
        })
    }

    /// Returns a short description of the opened pipeline and its scheduler.
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

    /// Returns the pipeline's request for a crop.
    fn request(&self, painting: &Painting, watch: Watch<'_>) -> Result<Request, PaintError> {
        let (width, height) = (painting.width as usize, painting.height as usize);
        let sampling = &self.contract.sampling;
        let picture =
            |rgb| Array3::from_shape_vec((height, width, 3), rgb).map_err(PaintError::failed);
        let hole = Array2::from_shape_vec((height, width), painting.hole.clone())
            .map_err(PaintError::failed)?;
        // Stable Diffusion does not look at a reference.
        let (mask, reference) = match &self.pipeline {
            Pipeline::Sd(_) => (hole, None),
            Pipeline::Klein(klein) => {
                let shown = self.contract.reference_hole(painting.mode);
                let reference = reference_image(painting, shown, watch)?.map(picture);
                // Like diffusers, the pipeline reads the mask at one point per latent. It would miss thin strokes, and
                // leave a rim of the old picture under wide ones.
                (whole_blocks(hole, klein.size_multiple()), reference.transpose()?)
            }
        };
        Ok(Request {
            image: picture(painting.rgb.clone())?,
            mask,
            prompt: self.prompt(painting),
            negative_prompt: sampling.negative_prompt.clone(),
            steps: sampling.steps,
            guidance: sampling.guidance,
            strength: self.strength(painting.mode).ok_or_else(|| {
                PaintError::failed(format!("the manifest has no strength.{}", painting.mode))
            })?,
            eta: 0.0,
            mask_to_latents: MaskToLatents::MaxPool,
            reference,
        })
    }

    fn strength(&self, mode: FixMode) -> Option<f64> {
        self.contract.strength.get(&mode).copied()
    }

    /// Returns how many windows of the text encoder a crop's prompt takes.
    fn windows(&self, painting: &Painting) -> Option<usize> {
        let Pipeline::Sd(sd) = &self.pipeline else { return None };
        let sampling = &self.contract.sampling;
        sd.windows(&sampling.negative_prompt, &self.prompt(painting), sampling.guidance).ok()
    }

    fn first_step(&self, painting: &Painting) -> Option<usize> {
        let strength = self.strength(painting.mode)?;
        Some(scheduler::start_index(self.contract.sampling.steps, strength))
    }
}

impl Painter for InpaintPainter {
    fn paint(&mut self, painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError> {
        self.paint_together(&[(painting, watch)]).remove(0)
    }

    fn takes_batches(&self) -> bool {
        match &self.pipeline {
            Pipeline::Sd(sd) => !self.runs_alone && sd.takes_batches(),
            Pipeline::Klein(_) => false,
        }
    }

    fn run_alone(&mut self) {
        self.runs_alone = true;
    }

    fn lines_up(&self, first: &Painting, other: &Painting) -> bool {
        self.takes_batches()
            && (first.width, first.height) == (other.width, other.height)
            && self.first_step(first) == self.first_step(other)
            && self.windows(first) == self.windows(other)
    }

    fn paint_together(
        &mut self,
        paintings: &[(&Painting, Watch<'_>)],
    ) -> Vec<Result<Vec<u8>, PaintError>> {
        let requests = paintings.iter().map(|(painting, watch)| self.request(painting, *watch));
        let requests: Vec<_> = requests.collect();
        let noises = paintings.iter().map(|(painting, _)| SeededNoise::new(painting.seed));
        let mut noises: Vec<_> = noises.collect();
        let mut on_steps: Vec<_> = paintings.iter().map(|(_, watch)| on_step(*watch)).collect();
        let each = requests.iter().zip(&mut noises).zip(&mut on_steps);
        let items = each.filter_map(|((request, noise), on_step)| {
            Some(BatchItem { request: request.as_ref().ok()?, noise, on_step })
        });
        let generated: Vec<_> = match &mut self.pipeline {
            Pipeline::Sd(sd) => {
                let heartbeat = || paintings.iter().for_each(|(_, watch)| (watch.heartbeat)());
                sd.inpaint_together(items.collect(), &heartbeat)
            }
            // Nothing lines up here, so this is a single crop.
            Pipeline::Klein(klein) => items
                .map(|BatchItem { request, noise, on_step }| klein.inpaint(request, noise, on_step))
                .collect(),
        };
        let mut generated = generated.into_iter();
        let painted = requests.into_iter().map(|request| {
            request.and_then(|_| finished(generated.next().expect("each request has a result")))
        });
        painted.collect()
    }
}

/// Extends a mask to whole blocks of `side` × `side` pixels: every block with a masked pixel.
fn whole_blocks(mut mask: Array2<bool>, side: usize) -> Array2<bool> {
    for mut block in mask.exact_chunks_mut((side, side)) {
        let is_on = block.iter().any(|on| *on);
        block.fill(is_on);
    }
    mask
}

/// Checks that every crop has sides that are multiples of `size_multiple`.
fn check_canvas(canvas: Canvas, size_multiple: usize) -> Result<(), DiffusionError> {
    let (field, value) = match canvas.fit {
        Fit::Square => ("canvas.side", canvas.side),
        Fit::Scale | Fit::Keep => ("canvas.multiple_of", canvas.multiple_of),
    };
    if (value as usize).is_multiple_of(size_multiple) {
        return Ok(());
    }
    Err(DiffusionError::Request(format!(
        "{field} is {value}, but the model needs sides that are multiples of {size_multiple}; set {field} to a multiple of it"
    )))
}

/// Reports each step, and ends a canceled run.
fn on_step(watch: Watch<'_>) -> impl FnMut(StepState<'_>) -> ControlFlow<()> {
    move |step| {
        let (done, total) = (step.index as u32 + 1, step.total as u32);
        (watch.progress)(Count { unit: CountUnit::Steps, done, total });
        if watch.cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Returns R, G, B of every pixel.
fn finished(generated: Result<Generated, DiffusionError>) -> Result<Vec<u8>, PaintError> {
    let generated = generated.map_err(|error| match error {
        DiffusionError::Canceled => PaintError::Canceled,
        DiffusionError::Session { error, .. } => PaintError::Session(error),
        other => PaintError::failed(other),
    })?;
    let cut = generated.prompt_tokens_cut;
    if cut > 0 {
        tracing::info!(tokens = cut, "Cut the end of a prompt that is too long for the model");
    }
    let samples = generated.image.iter();
    Ok(samples.map(|value| (value.clamp(0.0, 1.0) * 255.0).round() as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diffusion::picture::shrink_softly;

    #[test]
    fn every_latent_under_a_thin_stroke_is_repainted() {
        for place in 0..32 {
            let stroke = Array2::from_shape_fn((64, 64), |(y, x)| y == place || x == place + 20);
            let latents = shrink_softly(&whole_blocks(stroke, 16), 4, 4);
            for ((y, x), weight) in latents.indexed_iter() {
                let is_touched = y == place / 16 || x == (place + 20) / 16;
                let expected = f32::from(u8::from(is_touched));
                assert!((weight - expected).abs() < f32::EPSILON, "{place}: {latents}");
            }
        }
    }
}
