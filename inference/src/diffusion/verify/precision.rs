//! How precisely a model computes, and the tolerance against recorded results that follows from it.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::diffusion::error::DiffusionError;
use crate::onnx::external_data;

/// The least precise floating-point type of a model's weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// 32 bits: 24 bits of significand.
    #[default]
    F32,
    /// 16 bits: 11 bits of significand.
    F16,
    /// 16 bits with the exponents of 32: 8 bits of significand.
    Bf16,
}

/// Maximum accepted differences from a recording that was made in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// For latents in a step and the outputs of a net, relative to the largest recorded value.
    pub latents: f64,
    /// For a sample of the picture, on a scale of 255.
    pub image: u8,
}

impl Precision {
    /// Reads the types of the weights in every `model.onnx` of a model's parts.
    ///
    /// # Errors
    /// [`DiffusionError::File`] if a file cannot be read or is not an ONNX file.
    pub fn of_model(folder: &Path) -> Result<Self, DiffusionError> {
        let unreadable = |error| DiffusionError::file(folder, &error);
        let mut precision = Self::F32;
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path().join("model.onnx");
            if file.is_file() {
                precision = precision.max(Self::of_net(&file)?);
            }
        }
        Ok(precision)
    }

    fn of_net(file: &Path) -> Result<Self, DiffusionError> {
        // TensorProto.DataType in onnx.proto.
        const FLOAT16: u64 = 10;
        const BFLOAT16: u64 = 16;
        let model = fs::read(file).map_err(|error| DiffusionError::file(file, &error))?;
        let types = external_data::element_types(&model)
            .map_err(|error| DiffusionError::file(file, &format!("not an ONNX file: {error}")))?;
        Ok(if types.contains(&BFLOAT16) {
            Self::Bf16
        } else if types.contains(&FLOAT16) {
            Self::F16
        } else {
            Self::F32
        })
    }

    /// Returns the tolerance of results in this precision.
    ///
    /// The numbers are measured on nets with random weights, which amplify rounding more than trained ones, as guidance
    /// does. In 32 bits, the worst of all recordings differs by 6.1e-5 and 1/255. The nets of `tiny/sdxl-inpaint` in f16
    /// differ by up to 7.4e-3 and 5/255 where every operation is rounded, another tiny export by up to 2e-2; in bf16, which
    /// rounds eight times as coarsely, by 3.4e-2 and 30/255. Among the smallest mistakes, one other word in the prompt
    /// costs 2.9e-2 and 23/255, timesteps that are off by one 9e-2 and 49/255; another scheduler, prompt, size or
    /// prediction type costs 0.2 to 1.9. So f16 tells all of these from rounding, and bf16 only the larger ones.
    pub const fn tolerance(self) -> Tolerance {
        match self {
            Self::F32 => Tolerance { latents: 1e-4, image: 2 },
            Self::F16 => Tolerance { latents: 2.5e-2, image: 16 },
            Self::Bf16 => Tolerance { latents: 1e-1, image: 64 },
        }
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Precision::default().tolerance()
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        })
    }
}
