//! Prompt-guided inpainting: a picture, a mask and a sentence in, the picture repainted inside the mask out.
//!
//! Two pipelines, told apart by what a model's folder holds: [`sd_inpaint`] is Stable Diffusion with a
//! nine-channel `UNet`, [`flux2_klein`] is FLUX.2 \[klein\]. Both do their arithmetic on the processor, step by
//! step as diffusers does it, and leave only the nets to ONNX Runtime; [`verify`] proves that against recorded
//! reference vectors.

pub mod error;
pub mod flow;
pub mod flux2_klein;
pub mod json;
pub mod net;
pub mod noise;
pub mod picture;
pub mod request;
pub mod scheduler;
pub mod scheduler_config;
pub mod sd_inpaint;
pub mod tokenizer;
pub mod verify;

pub use error::DiffusionError;
pub use flux2_klein::Flux2Klein;
pub use net::Opener;
pub use noise::{NoiseSource, RecordedNoise, SeededNoise};
pub use request::{MaskToLatents, Painted, Request, StepReport, Watch};
pub use scheduler_config::SchedulerConfig;
pub use sd_inpaint::SdInpaint;
