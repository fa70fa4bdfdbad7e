//! Text-guided inpainting: repaints a picture inside a mask as a prompt describes.
//!
//! There are two pipelines: [`sd_inpaint`] is Stable Diffusion or SDXL with a nine-channel UNet, [`flux2_klein`]
//! is FLUX.2 \[klein\]. ONNX Runtime runs the nets; the arithmetic between them follows diffusers step by step on the CPU.
//! [`verify`] compares a pipeline with recorded reference vectors.

pub mod error;
pub mod flow;
pub mod flux2_klein;
pub mod json;
pub mod net;
pub mod noise;
pub mod picture;
mod recent_texts;
pub mod request;
pub mod scheduler;
pub mod scheduler_config;
pub mod sd_inpaint;
pub mod tokenizer;
pub mod verify;

pub use error::DiffusionError;
pub use flux2_klein::Flux2Klein;
pub use noise::{NoiseSource, RecordedNoise, SeededNoise};
pub use request::{Generated, MaskToLatents, Request, StepCallback, StepState};
pub use scheduler_config::{ModelScheduler, SchedulerConfig, SchedulerName};
pub use sd_inpaint::{BatchItem, SdInpaint};
