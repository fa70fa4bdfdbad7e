//! The GPU side of Retouch: takes jobs, runs ONNX models, writes results.
//!
//! `consumer → job → tools → {pipeline, models} → {fill, diffusion}`. `models` loads what `models/` describes,
//! `pipeline` holds the steps every picture goes through, and `tools` puts them together into the tools of
//! the product. `fill` paints holes from the picture itself, `diffusion` from words. Those five are pure:
//! they know bytes, pixels and tensors, and no job, database, queue or storage.

pub mod config;
pub mod consumer;
pub mod diffusion;
pub mod faults;
pub mod fill;
pub mod job;
pub mod lease;
pub mod models;
pub mod pipeline;
pub mod sweeper;
pub mod tools;
pub mod watchdog;
