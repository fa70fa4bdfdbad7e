//! Compares FLUX.2 \[klein\] with its recordings.

use std::ops::ControlFlow;
use std::path::Path;

use super::reference::{Case, Reference, Run};
use super::report::CaseReport;
use crate::diffusion::error::DiffusionError;
use crate::diffusion::flux2_klein::Flux2Klein;
use crate::diffusion::noise::RecordedNoise;
use crate::diffusion::request::{MaskToLatents, Request};
use crate::session::Runtime;

pub(super) fn verify(
    model: &Path,
    reference: &Reference<'_>,
    runtime: &Runtime,
) -> Result<Vec<CaseReport>, DiffusionError> {
    let mut model = Flux2Klein::open(model, runtime)?;
    let embedded = reference.array("prompt_embeds.npy")?;
    let noise = reference.array("noise.npy")?;
    let (height, width) = reference.mask.dim();
    let tokens = height * width / model.size_multiple().pow(2);
    let mut reports = Vec::new();
    for case in reference.cases()? {
        let request = request(&case)?;
        let mut noise = RecordedNoise::new(vec![noise.clone()]);
        let mut latents = Vec::new();
        let generated = model.inpaint_embedded(&request, &embedded, &mut noise, &mut |state| {
            latents.push(state.latents.to_owned());
            ControlFlow::Continue(())
        });
        let sigmas = model.scheduler().sigmas(tokens, request.steps);
        let timesteps = model.scheduler().timesteps(&sigmas[..request.steps]);
        reports.push(match generated {
            Ok(generated) => {
                case.compare(&Run { latents, generated, timesteps: &timesteps, sigmas: &sigmas })?
            }
            Err(error) => case.failed(&error),
        });
    }
    Ok(reports)
}

fn request(case: &Case<'_>) -> Result<Request, DiffusionError> {
    Ok(Request {
        image: case.reference.image.clone(),
        mask: case.reference.mask.clone(),
        prompt: String::new(),
        negative_prompt: String::new(),
        steps: case.count("steps")?,
        guidance: 1.0,
        strength: case.number("strength")?,
        eta: 0.0,
        mask_to_latents: MaskToLatents::Nearest,
        reference: None,
    })
}
