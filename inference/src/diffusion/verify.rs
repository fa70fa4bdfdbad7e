//! Proof that a pipeline computes what diffusers computes: a model is run on recorded inputs, and every step is
//! compared with what was recorded.
//!
//! A reference folder holds `meta.json` with its cases, one `<case>.npz` each (`latents` after every step,
//! `image`, `timesteps`, `sigmas`), the picture and mask as PNG, and the noise as `.npy`. What else it holds of
//! tokens, embeddings and single runs of a net is compared too.

mod flux;
mod numpy;
mod report;
mod sd;

use std::path::Path;

use ndarray::{Array2, Array3, ArrayD};
use serde_json::{Map, Value};

use self::numpy::{Archive, read_array};
pub use self::report::{CaseReport, Check, IMAGE_TOLERANCE, LATENT_TOLERANCE};
use self::report::{compare_images, compare_latents, compare_sigmas, compare_timesteps, failed};
use super::error::DiffusionError;
use super::net::Opener;
use super::{json, request::Painted};

/// Runs every case of a reference folder against a model. Which pipeline the model is for is told by its folder:
/// `transformer/` is FLUX.2 \[klein\], `model_index.json` with `unet/` Stable Diffusion.
///
/// Within tolerance means: latents to [`LATENT_TOLERANCE`], the picture to [`IMAGE_TOLERANCE`], the same
/// timesteps. A case that cannot be run, because its settings are refused say, is a report that did not pass.
///
/// # Errors
/// When the model cannot be opened, the folder names no case, or a file that a case needs is missing or broken.
pub fn verify(
    model: &Path,
    reference: &Path,
    opener: &(impl Opener + ?Sized),
) -> Result<Vec<CaseReport>, DiffusionError> {
    let reference = Reference::open(reference)?;
    if model.join("transformer").is_dir() {
        flux::verify(model, &reference, opener)
    } else if model.join("model_index.json").is_file() {
        sd::verify(model, &reference, opener)
    } else {
        let reason = "is no model: it has neither a transformer folder nor a model_index.json";
        Err(DiffusionError::file(model, reason))
    }
}

/// A reference folder.
struct Reference<'a> {
    folder: &'a Path,
    meta: Map<String, Value>,
    image: Array3<u8>,
    mask: Array2<bool>,
}

impl<'a> Reference<'a> {
    fn open(folder: &'a Path) -> Result<Self, DiffusionError> {
        let meta = json::read_object(&folder.join("meta.json"))?;
        let open = |name| {
            let path = folder.join(name);
            image::open(&path).map_err(|error| DiffusionError::file(&path, &error))
        };
        let (image, mask) = (open("image.png")?.into_rgb8(), open("mask.png")?.into_luma8());
        let size = |picture: (u32, u32)| (picture.1 as usize, picture.0 as usize);
        let ((height, width), (rows, columns)) =
            (size(image.dimensions()), size(mask.dimensions()));
        Ok(Self {
            folder,
            meta,
            image: Array3::from_shape_fn((height, width, 3), |(y, x, channel)| {
                image.get_pixel(x as u32, y as u32)[channel]
            }),
            mask: Array2::from_shape_fn((rows, columns), |(y, x)| {
                mask.get_pixel(x as u32, y as u32)[0] >= 128
            }),
        })
    }

    /// The cases by name; there is at least one, and each has its recording.
    fn cases(&self) -> Result<Vec<Case<'_>>, DiffusionError> {
        let cases = self.meta.get("cases").and_then(Value::as_object);
        let cases = cases
            .filter(|cases| !cases.is_empty())
            .ok_or_else(|| self.complaint("names no cases"))?;
        let cases = cases.iter().map(|(name, fields)| {
            let case = Case { reference: self, name, fields };
            case.recording().map(|_| case)
        });
        cases.collect()
    }

    /// An array in a file of the folder.
    fn array(&self, name: &str) -> Result<ArrayD<f32>, DiffusionError> {
        read_array(&self.folder.join(name))
    }

    /// The same, where the file may be absent.
    fn optional_array(&self, name: &str) -> Result<Option<ArrayD<f32>>, DiffusionError> {
        if self.folder.join(name).is_file() { self.array(name).map(Some) } else { Ok(None) }
    }

    fn complaint(&self, reason: &str) -> DiffusionError {
        DiffusionError::file(&self.folder.join("meta.json"), reason)
    }
}

/// One case of `meta.json`.
struct Case<'a> {
    reference: &'a Reference<'a>,
    name: &'a str,
    fields: &'a Value,
}

impl Case<'_> {
    fn field(&self, name: &str) -> Result<&Value, DiffusionError> {
        self.fields.get(name).ok_or_else(|| self.lacks(name))
    }

    fn number(&self, name: &str) -> Result<f64, DiffusionError> {
        self.field(name)?.as_f64().ok_or_else(|| self.lacks(name))
    }

    fn count(&self, name: &str) -> Result<usize, DiffusionError> {
        let count = self.field(name)?.as_u64().ok_or_else(|| self.lacks(name))?;
        usize::try_from(count).map_err(|_| self.lacks(name))
    }

    fn lacks(&self, name: &str) -> DiffusionError {
        self.reference.complaint(&format!("case {} has no `{name}`, or a wrong one", self.name))
    }

    fn recording(&self) -> Result<Archive, DiffusionError> {
        Archive::open(&self.reference.folder.join(format!("{}.npz", self.name)))
    }

    /// Compares what a run made with what was recorded.
    fn compare(&self, run: &Run<'_>) -> Result<CaseReport, DiffusionError> {
        let mut recording = self.recording()?;
        let mut checks = vec![
            compare_latents(&run.latents, &recording.array("latents")?),
            compare_images(&run.painted.image, &recording.array("image")?),
            compare_timesteps(run.timesteps, &recording.array64("timesteps")?),
        ];
        let sigmas = recording.array64("sigmas")?;
        if !sigmas.is_empty() && !run.sigmas.is_empty() {
            checks.push(compare_sigmas(run.sigmas, &sigmas));
        }
        Ok(CaseReport { name: self.name.to_owned(), checks })
    }

    fn failed(&self, reason: &impl ToString) -> CaseReport {
        failed(self.name, reason)
    }
}

/// What a run made.
struct Run<'a> {
    latents: Vec<ArrayD<f32>>,
    painted: Painted,
    timesteps: &'a [f64],
    sigmas: &'a [f64],
}
