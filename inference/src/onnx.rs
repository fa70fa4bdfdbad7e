//! Reads and rewrites ONNX files, without ONNX Runtime.

pub mod batch_axis;
pub mod external_data;
pub mod graph;
pub mod half_precision;
mod wire;

use graph::Model;

/// Returns the size of each axis of an input, `None` where any is allowed.
///
/// # Errors
/// Why the file or the input cannot be read, in a few words.
pub fn input_axes(file: &[u8], input: &str) -> Result<Vec<Option<usize>>, String> {
    let model = Model::read(file).map_err(|error| format!("it is not an ONNX file: {error}"))?;
    let port = model.graph.inputs.iter().find(|port| port.name == input);
    port.map(graph::Port::axes).ok_or_else(|| format!("it has no input {input:?}"))
}
