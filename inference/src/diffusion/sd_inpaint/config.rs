//! What Stable Diffusion needs of the `config.json` of its parts.

use std::path::Path;

use serde_json::{Map, Value};

use crate::diffusion::error::DiffusionError;
use crate::diffusion::json;

/// Reads the `config.json` of the first of these parts that has one; empty if none has.
pub(super) fn config(folder: &Path, parts: &[&str]) -> Result<Map<String, Value>, DiffusionError> {
    let files = parts.iter().map(|part| folder.join(part).join("config.json"));
    match files.into_iter().find(|file| file.is_file()) {
        Some(file) => json::read_object(&file),
        None => Ok(Map::new()),
    }
}

/// Reads a whole number above 0.
pub(super) fn positive(config: &Map<String, Value>, name: &str) -> Option<usize> {
    let number = config.get(name)?.as_u64()?;
    usize::try_from(number).ok().filter(|number| *number > 0)
}

/// Returns the scale between the outermost and the innermost level: every level but the last halves the size.
pub(super) fn level_scale(config: &Map<String, Value>) -> Option<usize> {
    let levels = config.get("block_out_channels")?.as_array()?.len();
    (1..=8).contains(&levels).then(|| 1 << (levels - 1))
}

/// Returns the factor that gives latents a variance of about 1. Stable Diffusion's factor is diffusers' default; SDXL's
/// factor differs, so it must be stated.
pub(super) fn scaling_factor(
    config: &Map<String, Value>,
    is_sdxl: bool,
) -> Result<f32, DiffusionError> {
    match config.get("scaling_factor").and_then(Value::as_f64) {
        Some(factor) if factor > 0.0 => Ok(factor as f32),
        None if !is_sdxl => Ok(0.18215),
        _ => {
            let reason = "config.json states no `scaling_factor` above 0, which SDXL requires; it is 0.13025";
            Err(DiffusionError::unsupported("vae_decoder", reason))
        }
    }
}
