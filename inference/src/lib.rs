//! Runs the ONNX models that `models/` describes. The only crate that names `ort`.
//!
//! A [`manifest`] states every fact about a model, and the [`bindings`] (`tools.toml`) say which model serves which
//! tool and tier. A [`session`] runs one ONNX graph, a [`painter`] repaints a crop, and [`diffusion`] holds the
//! text-guided pipelines. The [`registry`] loads, checks and swaps models while workers run.
//!
//! The crate knows pixels and tensors, but no jobs, database, queue or storage.

pub mod bindings;
pub mod device;
pub mod diffusion;
pub mod faults;
pub mod manifest;
pub mod memory;
pub mod onnx;
pub mod output;
pub mod painter;
pub mod registry;
pub mod runs;
mod safety;
pub mod segment_anything;
pub mod session;
mod shapes;
pub mod tensor;
