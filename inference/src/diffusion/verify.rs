//! Verifies that a pipeline computes what diffusers computes: runs a model on recorded inputs and compares every step
//! with the recording.
//!
//! A reference folder contains `meta.json` with its cases, one `<case>.npz` per case (`latents` after every step,
//! `image`, `timesteps`, `sigmas`), picture and mask as PNG, and the noise as `.npy`. Recorded tokens, embeddings and
//! single runs of a net are compared too, if the folder contains them.

mod flux;
mod numpy;
mod precision;
mod reference;
mod report;
mod sd;

use std::path::Path;

pub use self::precision::{Precision, Tolerance};
use self::reference::Reference;
pub use self::report::{CaseReport, Check};
use super::error::DiffusionError;
use crate::session::Runtime;

#[derive(Clone, Debug)]
pub struct Verification {
    /// How precisely the model computes, which determines the tolerance.
    pub precision: Precision,
    /// The cases, and the recorded parts of a run.
    pub cases: Vec<CaseReport>,
}

/// Runs every case of a reference folder on a model. The model's folder determines the pipeline: `transformer/` means
/// FLUX.2 \[klein\], `model_index.json` Stable Diffusion.
///
/// A case passes if latents and picture are within the tolerance of the model's precision
/// ([`Precision::tolerance`]), and the timesteps are the same. A case that cannot run, for example because of refused
/// settings, is reported as failed.
///
/// # Errors
/// If the model cannot be opened, the folder names no case, or a file of a case is missing or broken.
pub fn verify(
    model: &Path,
    reference: &Path,
    runtime: &Runtime,
) -> Result<Verification, DiffusionError> {
    let reference = Reference::open(reference)?;
    let mut cases = if model.join("transformer").is_dir() {
        flux::verify(model, &reference, runtime)?
    } else if model.join("model_index.json").is_file() {
        sd::verify(model, &reference, runtime)?
    } else {
        let reason = "not a model: the folder has no transformer folder and no model_index.json";
        return Err(DiffusionError::file(model, reason));
    };
    let precision = Precision::of_model(model)?;
    for case in &mut cases {
        case.tolerance = precision.tolerance();
    }
    Ok(Verification { precision, cases })
}
