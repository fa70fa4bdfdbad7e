//! Models as data: loads what `models/` describes and runs it. The only crate that names `ort`.
//!
//! A [`manifest`] states every fact about a model, [`bindings`] (`tools.toml`) say which model serves which tool and
//! tier, a [`session`] runs one ONNX graph, a [`painter`] repaints with it, and the [`registry`] loads, checks and swaps
//! models while workers run. [`diffusion`] holds the pipelines that follow a prompt.
//!
//! The crate knows pixels and tensors, but no job, database, queue or storage.

pub mod bindings;
pub mod device;
pub mod diffusion;
mod external;
pub mod faults;
pub mod manifest;
pub mod painter;
pub mod registry;
pub mod runs;
pub mod safety;
pub mod session;
