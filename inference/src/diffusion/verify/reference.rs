//! Reference folders: their cases, recordings and inputs.

use std::path::Path;

use ndarray::{Array2, Array3, ArrayD};
use serde_json::{Map, Value};

use super::numpy::{Archive, read_array};
use super::report::{
    CaseReport, compare_images, compare_latents, compare_sigmas, compare_timesteps, failed,
};
use crate::diffusion::error::DiffusionError;
use crate::diffusion::json;
use crate::diffusion::request::Generated;

pub(super) struct Reference<'a> {
    pub(super) folder: &'a Path,
    pub(super) meta: Map<String, Value>,
    pub(super) image: Array3<u8>,
    pub(super) mask: Array2<bool>,
}

impl<'a> Reference<'a> {
    pub(super) fn open(folder: &'a Path) -> Result<Self, DiffusionError> {
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

    /// Returns the cases. There is at least one, and each has a recording.
    pub(super) fn cases(&self) -> Result<Vec<Case<'_>>, DiffusionError> {
        let cases = self.meta.get("cases").and_then(Value::as_object);
        let cases =
            cases.filter(|cases| !cases.is_empty()).ok_or_else(|| self.invalid("no cases"))?;
        let cases = cases.iter().map(|(name, fields)| {
            let case = Case { reference: self, name, fields };
            case.recording().map(|_| case)
        });
        cases.collect()
    }

    /// Reads an array from a file of the folder.
    pub(super) fn array(&self, name: &str) -> Result<ArrayD<f32>, DiffusionError> {
        read_array(&self.folder.join(name))
    }

    /// Reads an array from a file that may be absent.
    pub(super) fn optional_array(&self, name: &str) -> Result<Option<ArrayD<f32>>, DiffusionError> {
        if self.folder.join(name).is_file() { self.array(name).map(Some) } else { Ok(None) }
    }

    /// Creates an error about `meta.json`.
    pub(super) fn invalid(&self, reason: &str) -> DiffusionError {
        DiffusionError::file(&self.folder.join("meta.json"), reason)
    }
}

/// One case of `meta.json`.
pub(super) struct Case<'a> {
    pub(super) reference: &'a Reference<'a>,
    pub(super) name: &'a str,
    pub(super) fields: &'a Value,
}

impl Case<'_> {
    pub(super) fn field(&self, name: &str) -> Result<&Value, DiffusionError> {
        self.fields.get(name).ok_or_else(|| self.invalid_field(name))
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, DiffusionError> {
        self.field(name)?.as_f64().ok_or_else(|| self.invalid_field(name))
    }

    pub(super) fn count(&self, name: &str) -> Result<usize, DiffusionError> {
        let count = self.field(name)?.as_u64().ok_or_else(|| self.invalid_field(name))?;
        usize::try_from(count).map_err(|_| self.invalid_field(name))
    }

    /// Creates an error about a field that is missing or has the wrong type.
    pub(super) fn invalid_field(&self, name: &str) -> DiffusionError {
        let text = format!("case {}: `{name}` is missing or has the wrong type", self.name);
        self.reference.invalid(&text)
    }

    pub(super) fn recording(&self) -> Result<Archive, DiffusionError> {
        Archive::open(&self.reference.folder.join(format!("{}.npz", self.name)))
    }

    pub(super) fn compare(&self, run: &Run<'_>) -> Result<CaseReport, DiffusionError> {
        let mut recording = self.recording()?;
        let mut checks = vec![
            compare_latents(&run.latents, &recording.array("latents")?),
            compare_images(&run.generated.image, &recording.array("image")?),
            compare_timesteps(run.timesteps, &recording.array64("timesteps")?),
        ];
        let sigmas = recording.array64("sigmas")?;
        if !sigmas.is_empty() && !run.sigmas.is_empty() {
            checks.push(compare_sigmas(run.sigmas, &sigmas));
        }
        Ok(CaseReport::new(self.name, checks))
    }

    pub(super) fn failed(&self, reason: &impl ToString) -> CaseReport {
        failed(self.name, reason)
    }
}

pub(super) struct Run<'a> {
    /// The latents after each step.
    pub(super) latents: Vec<ArrayD<f32>>,
    pub(super) generated: Generated,
    pub(super) timesteps: &'a [f64],
    pub(super) sigmas: &'a [f64],
}
