//! A tiny model that tests whether a device can compute.

use super::graph::{FLOAT, Graph, Model, Node, Port};

/// The shape of its input: `[batch, channel, row, column]`.
pub const SHAPE: [usize; 4] = [1, 1, 4, 4];

/// Returns a model of a convolution, which cuDNN computes on a GPU, and a negation, whose kernel is ONNX Runtime's own.
pub fn model() -> Vec<u8> {
    let axes = SHAPE.map(Some);
    let mut graph = Graph::default();
    graph.inputs.push(Port::new("in", FLOAT, &axes));
    graph.outputs.push(Port::new("out", FLOAT, &[]));
    graph.add_floats("weights", &[1, 1, 3, 3], &[1.0; 9]);
    graph.nodes.push(Node::new("Conv", &["in", "weights"], "sums"));
    graph.nodes.push(Node::new("Neg", &["sums"], "out"));
    Model::new(graph).write()
}
