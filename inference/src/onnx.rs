//! Reads and rewrites ONNX files, without ONNX Runtime.

pub mod batch_axis;
pub mod external_data;
pub mod graph;
mod wire;
