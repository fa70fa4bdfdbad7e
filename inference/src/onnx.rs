//! Reads and rewrites ONNX files, without ONNX Runtime.

pub mod batch_axis;
pub mod external_data;
pub mod graph;
pub mod half_precision;
mod wire;
