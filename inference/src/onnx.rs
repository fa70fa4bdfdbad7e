//! Reads and rewrites ONNX files, without ONNX Runtime.

pub mod batch_axis;
pub mod external_data;
pub mod graph;
pub mod half_precision;
pub mod pictures;
pub mod probe;
mod wire;

use std::collections::HashSet;

use graph::Model;

use crate::tensor::Port;

/// Returns the size of each axis of an input, `None` where any is allowed.
///
/// # Errors
/// Why the file or the input cannot be read, in a few words.
pub fn input_axes(file: &[u8], input: &str) -> Result<Vec<Option<usize>>, String> {
    let model = Model::read(file)?;
    let port = model.graph.inputs.iter().find(|port| port.name == input);
    port.map(graph::Port::axes).ok_or_else(|| format!("it has no input {input:?}"))
}

/// The inputs and outputs that a graph declares.
pub struct Ports {
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

/// Returns the inputs and outputs of a model. A port that declares no shape has no axes.
///
/// # Errors
/// Why the file cannot be read, in a few words.
pub fn ports(file: &[u8]) -> Result<Ports, String> {
    let model = Model::read(file)?;
    let graph = model.graph;
    if graph.nodes.is_empty() {
        return Err("it is an ONNX file without a graph".to_owned());
    }
    let constants = graph.initializers.iter().filter_map(|tensor| graph::tensor_name(tensor));
    let constants: HashSet<_> = constants.collect();
    let read = |port: &graph::Port<'_>| Port {
        name: port.name.to_owned(),
        element: element_name(port.element_type()).to_owned(),
        shape: port.axes().into_iter().map(|size| size.map(|size| size as u64)).collect(),
    };
    // In old files, constants are inputs too.
    let inputs = graph.inputs.iter().filter(|port| !constants.contains(port.name));
    Ok(Ports {
        inputs: inputs.map(read).collect(),
        outputs: graph.outputs.iter().map(read).collect(),
    })
}

/// Returns the name of an element type, by its number in onnx.proto.
const fn element_name(number: Option<u64>) -> &'static str {
    match number {
        Some(1) => "f32",
        Some(2) => "u8",
        Some(3) => "i8",
        Some(4) => "u16",
        Some(5) => "i16",
        Some(6) => "i32",
        Some(7) => "i64",
        Some(8) => "str",
        Some(9) => "bool",
        Some(10) => "f16",
        Some(11) => "f64",
        Some(12) => "u32",
        Some(13) => "u64",
        Some(16) => "bf16",
        Some(_) => "of another type",
        None => "no tensor",
    }
}
