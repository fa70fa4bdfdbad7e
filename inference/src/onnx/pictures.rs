//! Moves the conversion between pictures and tensors into a net's graph. The net then takes a picture in bytes, a quarter
//! of its 32-bit floats, and an upscaler returns one. So less crosses the bus of a GPU, and the device does the arithmetic.
//!
//! The graph computes what [`crate::tensor::Tensors`] states, with the same operations in the same order as
//! [`retouch_pixels::tensor::to_tensor`], so a CPU gives the same floats.

use retouch_pixels::tensor::Divisor;

use super::graph::{FLOAT, FLOAT16, Graph, Model, Node, Port, UINT8};
use crate::tensor::{Element, Format, Layout, Returns, Tensors};

/// The input: bytes `[batch, row, column, 3]`, R, G and B.
pub const PICTURE: &str = "retouch_picture";
/// The output. A map is f32 `[batch, class, row, column]`, 1 for white; a picture is bytes `[batch, row, column, 3]`.
pub const RESULT: &str = "retouch_result";
/// The second output of a net that returns pictures: f32 `[batch, 3, 1, 1]`, the mean of the values that the net computed for
/// each, the least, and the largest. Bytes cannot hold values outside black and white. The mean is not finite if one of
/// the values is not; the least and the largest need not show that. The sum would not fit into half precision, and an
/// engine may compute in half precision.
pub const EXTREMES: &str = "retouch_extremes";

/// The prefix of all other names that are added.
const ADDED: &str = "retouch_added_";

/// Since this version of ONNX, every operator that is added broadcasts its inputs; `Max` and `Min` were the last.
const BROADCASTS: i64 = 8;
/// Since this version of ONNX, `Unsqueeze` takes its axes as an input.
const AXES_OF_UNSQUEEZE: i64 = 13;
/// Since this version of ONNX, `ReduceMax`, `ReduceMin`, and `ReduceMean` take their axes as an input.
const AXES_OF_REDUCE: i64 = 18;

/// From `[batch, row, column, channel]` to `[batch, channel, row, column]`.
const CHANNELS_FIRST: [i64; 4] = [0, 3, 1, 2];
/// The way back.
const CHANNELS_LAST: [i64; 4] = [0, 2, 3, 1];
/// Every axis but the batch.
const AXES: [i64; 3] = [1, 2, 3];

/// Returns the model with [`PICTURE`] as its input and [`RESULT`] as its output, with [`EXTREMES`] if it returns
/// pictures. Its other outputs are dropped, so they are not computed.
///
/// # Errors
/// Why it cannot be rewritten, in a few words.
pub fn take_bytes(file: &[u8], tensors: &Tensors<'_>) -> Result<Vec<u8>, String> {
    let mut model = Model::read(file)?;
    let opset = model.opset();
    let mut rewrite = Rewrite { graph: &mut model.graph, opset, added: 0 };
    rewrite.convert_input(tensors)?;
    rewrite.convert_output(tensors);
    if opset < BROADCASTS {
        return Err(format!("its opset is {opset}: export it with opset 11 or later"));
    }
    Ok(model.write())
}

struct Rewrite<'g, 'a> {
    graph: &'g mut Graph<'a>,
    /// The version of ONNX's own operators.
    opset: i64,
    /// The number of names that were added.
    added: usize,
}

impl<'a> Rewrite<'_, 'a> {
    /// Puts the conversion of the input before all other nodes.
    fn convert_input(&mut self, tensors: &Tensors<'a>) -> Result<(), String> {
        let Format { element, layout } = tensors.input_format;
        let inputs = &mut self.graph.inputs;
        let port = inputs.iter_mut().find(|port| port.name == tensors.input);
        let port = port.ok_or_else(|| format!("it has no input {:?}", tensors.input))?;
        let axes = match (layout, port.axes().as_slice()) {
            (Layout::Nchw, [batch, _, rows, columns])
            | (Layout::Nhwc, [batch, rows, columns, _]) => [*batch, *rows, *columns],
            _ => [None; 3],
        };
        let [batch, rows, columns] = axes;
        *port = Port::new(PICTURE, UINT8, &[batch, rows, columns, Some(3)]);
        let own = std::mem::take(&mut self.graph.nodes);
        let mut values = PICTURE.to_owned();
        // Before the transposition: TensorRT takes bytes only where they are cast at once.
        if element != Element::U8 {
            values = self.cast(&values, FLOAT);
        }
        if layout != Layout::Nhwc {
            values = self.transpose(&values, CHANNELS_FIRST);
        }
        if element != Element::U8 {
            values = self.normalize(values, tensors, layout);
        }
        if element == Element::F16 {
            values = self.cast(&values, FLOAT16);
        }
        self.name_last(&values, tensors.input);
        self.graph.nodes.extend(own);
        Ok(())
    }

    /// `(sample / divide_by - mean) / std` for each channel.
    fn normalize(&mut self, mut values: String, tensors: &Tensors<'_>, layout: Layout) -> String {
        let normalization = tensors.normalization;
        match normalization.divide_by {
            Divisor::Constant(constant) if changes_nothing(constant, 1.0) => {}
            Divisor::Constant(constant) => {
                values = self.apply("Div", &values, &[], &[constant]);
            }
            Divisor::Max => {
                let largest = self.reduce("ReduceMax", &values);
                // At least 1, so that a black picture stays black.
                let largest = self.apply("Max", &largest, &[], &[1.0]);
                values = self.node("Div", &[&values, &largest]);
            }
        }
        let dims: &[u64] = if layout == Layout::Nhwc { &[3] } else { &[3, 1, 1] };
        if !normalization.mean.iter().all(|mean| changes_nothing(*mean, 0.0)) {
            values = self.apply("Sub", &values, dims, &normalization.mean);
        }
        if !normalization.std.iter().all(|std| changes_nothing(*std, 1.0)) {
            values = self.apply("Div", &values, dims, &normalization.std);
        }
        values
    }

    /// Puts the conversion of the output behind all other nodes.
    fn convert_output(&mut self, tensors: &Tensors<'_>) {
        let Format { element, layout } = tensors.output_format;
        let mut values = tensors.output.to_owned();
        if element != Element::F32 {
            values = self.cast(&values, FLOAT);
        }
        match tensors.returns {
            Returns::Map => {
                if !changes_nothing(tensors.white, 1.0) {
                    values = self.apply("Div", &values, &[], &[tensors.white]);
                }
                values = match layout {
                    Layout::Nchw => values,
                    Layout::Nhwc => self.transpose(&values, CHANNELS_FIRST),
                    Layout::Nhw => self.add_channel(&values),
                };
                self.name_last(&values, RESULT);
                self.graph.outputs = vec![Port::new(RESULT, FLOAT, &[])];
            }
            Returns::Picture => {
                let mean = self.reduce("ReduceMean", &values);
                let least = self.reduce("ReduceMin", &values);
                let largest = self.reduce("ReduceMax", &values);
                let joined = Node::new("Concat", &[&mean, &least, &largest], EXTREMES);
                self.graph.nodes.push(joined.with_integer("axis", 1));
                let level = 255.0 / tensors.white;
                if !changes_nothing(level, 1.0) {
                    values = self.apply("Mul", &values, &[], &[level]);
                }
                values = self.apply("Max", &values, &[], &[0.0]);
                values = self.apply("Min", &values, &[], &[255.0]);
                values = self.apply("Add", &values, &[], &[0.5]);
                // After the transposition, for TensorRT. The cast drops decimals.
                if layout != Layout::Nhwc {
                    values = self.transpose(&values, CHANNELS_LAST);
                }
                values = self.cast(&values, UINT8);
                self.name_last(&values, RESULT);
                self.graph.outputs =
                    vec![Port::new(RESULT, UINT8, &[]), Port::new(EXTREMES, FLOAT, &[])];
            }
        }
    }

    fn add_channel(&mut self, values: &str) -> String {
        let name = self.name();
        let node = if self.opset >= AXES_OF_UNSQUEEZE {
            let axes = self.name();
            self.graph.add_integers(&axes, &[1]);
            Node::new("Unsqueeze", &[values, &axes], &name)
        } else {
            Node::new("Unsqueeze", &[values], &name).with_integers("axes", &[1])
        };
        self.graph.nodes.push(node);
        name
    }

    /// Reduces each input of a batch to one value, `[batch, 1, 1, 1]`.
    fn reduce(&mut self, kind: &'static str, values: &str) -> String {
        let name = self.name();
        let node = if self.opset >= AXES_OF_REDUCE {
            let axes = self.name();
            self.graph.add_integers(&axes, &AXES);
            Node::new(kind, &[values, &axes], &name)
        } else {
            Node::new(kind, &[values], &name).with_integers("axes", &AXES)
        };
        self.graph.nodes.push(node);
        name
    }

    fn transpose(&mut self, values: &str, order: [i64; 4]) -> String {
        let name = self.name();
        let node = Node::new("Transpose", &[values], &name).with_integers("perm", &order);
        self.graph.nodes.push(node);
        name
    }

    fn cast(&mut self, values: &str, element: u64) -> String {
        let name = self.name();
        let node = Node::new("Cast", &[values], &name).with_integer("to", element as i64);
        self.graph.nodes.push(node);
        name
    }

    /// Adds an operator of two inputs whose second is a constant.
    fn apply(
        &mut self,
        kind: &'static str,
        values: &str,
        dims: &[u64],
        constant: &[f32],
    ) -> String {
        let name = self.name();
        self.graph.add_floats(&name, dims, constant);
        self.node(kind, &[values, &name])
    }

    fn node(&mut self, kind: &'static str, inputs: &[&str]) -> String {
        let name = self.name();
        self.graph.nodes.push(Node::new(kind, inputs, &name));
        name
    }

    fn name_last(&mut self, values: &str, name: &str) {
        let last = self.graph.nodes.last_mut().and_then(|node| node.outputs.first_mut());
        match last {
            Some(output) if *output == values && values.starts_with(ADDED) => {
                *output = name.to_owned().into();
            }
            // Nothing was added.
            _ => self.graph.nodes.push(Node::new("Identity", &[values], name)),
        }
    }

    fn name(&mut self) -> String {
        self.added += 1;
        format!("{ADDED}{}", self.added)
    }
}

fn changes_nothing(constant: f32, neutral: f32) -> bool {
    (constant - neutral).abs() < f32::EPSILON
}

#[cfg(test)]
mod tests {
    use retouch_pixels::tensor::Normalization;

    use super::super::ports;
    use super::*;

    fn tensors(element: Element, layout: Layout, returns: Returns) -> Tensors<'static> {
        let format = Format { element, layout };
        let divide_by = Divisor::Constant(255.0);
        let normalization = Normalization { divide_by, mean: [0.5; 3], std: [1.0; 3] };
        Tensors {
            input: "in",
            input_format: format,
            normalization,
            output: "out",
            output_format: format,
            white: 1.0,
            returns,
        }
    }

    /// Returns a graph of one operator, with a side output.
    fn graph() -> Graph<'static> {
        let mut graph = Graph::default();
        let axes = [Some(1), Some(3), None, Some(8)];
        graph.inputs.push(Port::new("in", FLOAT, &axes));
        graph.outputs.extend(["side", "out"].map(|name| Port::new(name, FLOAT, &axes)));
        graph.nodes.push(Node::new("Relu", &["in"], "out"));
        graph.nodes.push(Node::new("Neg", &["in"], "side"));
        graph
    }

    fn rewritten(tensors: &Tensors<'static>, opset: i64) -> Graph<'static> {
        let mut graph = graph();
        let mut rewrite = Rewrite { graph: &mut graph, opset, added: 0 };
        rewrite.convert_input(tensors).unwrap();
        rewrite.convert_output(tensors);
        graph
    }

    fn operators<'a>(graph: &Graph<'a>) -> Vec<&'a str> {
        graph.nodes.iter().map(|node| node.kind).collect()
    }

    #[test]
    fn the_input_becomes_bytes_with_the_sizes_of_the_graph() {
        let graph = rewritten(&tensors(Element::F32, Layout::Nchw, Returns::Picture), 17);
        let [picture] = graph.inputs.as_slice() else { panic!("one input") };
        assert_eq!((picture.name, picture.element_type()), (PICTURE, Some(UINT8)));
        assert_eq!(picture.axes(), [Some(1), None, Some(8), Some(3)]);
        assert_eq!(operators(&graph)[..4], ["Cast", "Transpose", "Div", "Sub"]);
        assert_eq!(graph.nodes[3].outputs, ["in"]);
        let cast = graph.nodes.iter().find(|node| node.outputs[0] == RESULT);
        assert_eq!(cast.unwrap().kind, "Cast");
    }

    #[test]
    fn only_the_result_and_the_extremes_of_a_picture_are_outputs() {
        let graph = rewritten(&tensors(Element::F32, Layout::Nchw, Returns::Picture), 17);
        let names: Vec<_> = graph.outputs.iter().map(|port| port.name).collect();
        assert_eq!(names, [RESULT, EXTREMES]);
        let graph = rewritten(&tensors(Element::F32, Layout::Nchw, Returns::Map), 17);
        assert_eq!(graph.outputs.len(), 1);
        assert_eq!(graph.nodes.last().unwrap().outputs, [RESULT]);
    }

    #[test]
    fn bytes_with_channels_last_pass_as_they_are() {
        let graph = rewritten(&tensors(Element::U8, Layout::Nhwc, Returns::Picture), 17);
        assert_eq!(operators(&graph)[..2], ["Identity", "Relu"]);
        let map = tensors(Element::F32, Layout::Nchw, Returns::Map);
        assert_eq!(operators(&rewritten(&map, 17)).last(), Some(&"Identity"));
    }

    #[test]
    fn axes_are_given_as_the_version_of_onnx_has_it() {
        let map = tensors(Element::F32, Layout::Nhw, Returns::Map);
        let picture = tensors(Element::F32, Layout::Nchw, Returns::Picture);
        for (tensors, kind, since) in [
            (map, "Unsqueeze", AXES_OF_UNSQUEEZE),
            (picture, "ReduceMean", AXES_OF_REDUCE),
            (picture, "ReduceMin", AXES_OF_REDUCE),
            (picture, "ReduceMax", AXES_OF_REDUCE),
        ] {
            for (opset, is_input) in [(since - 1, false), (since, true)] {
                let graph = rewritten(&tensors, opset);
                let node = graph.nodes.iter().find(|node| node.kind == kind).unwrap();
                assert_eq!(node.inputs.len() == 2, is_input, "{kind} of version {opset}");
                assert_eq!(node.attribute("axes").is_none(), is_input, "{kind} of {opset}");
            }
        }
    }

    #[test]
    fn operators_that_do_not_broadcast_are_refused() {
        let tensors = tensors(Element::F32, Layout::Nchw, Returns::Picture);
        let mut file = Model::new(graph()).write();
        assert!(take_bytes(&file, &tensors).is_ok());
        let opset = file.windows(4).position(|at| at == [8 << 3 | 2, 2, 2 << 3, 17]).unwrap();
        file[opset + 3] = 7;
        let refusal = take_bytes(&file, &tensors).unwrap_err();
        assert_eq!(refusal, "its opset is 7: export it with opset 11 or later");
    }

    #[test]
    fn a_file_without_the_input_is_refused() {
        let tensors = tensors(Element::F32, Layout::Nchw, Returns::Map);
        assert!(take_bytes(b"\x03", &tensors).unwrap_err().contains("not an ONNX file"));
        assert_eq!(take_bytes(&[], &tensors).unwrap_err(), "it has no input \"in\"");
        assert!(ports(&[]).is_err_and(|reason| reason.contains("without a graph")));
    }
}
