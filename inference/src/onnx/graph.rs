//! The graph of an ONNX file, as far as rewriting it needs. Messages are borrowed from the file, and written as they were
//! unless they changed. onnx.proto defines the field numbers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::wire::{Fields, Malformed, Value, put_bytes, put_head, put_number};

/// The element type of 32-bit floats.
pub const FLOAT: u64 = 1;
/// The element type of bytes.
pub const UINT8: u64 = 2;
/// The element type of 16-bit floats.
pub const FLOAT16: u64 = 10;
/// The element type of 64-bit integers.
const INT64: u64 = 7;

/// Maximum number of integers of a constant that is read: shapes have fewer.
const MAX_INTEGERS: usize = 64;

/// A model with one graph.
pub struct Model<'a> {
    /// Every field of the file but the graph.
    rest: Vec<&'a [u8]>,
    pub graph: Graph<'a>,
}

/// The main graph of a model. Declared shapes between its nodes are left out: ONNX Runtime infers them.
#[derive(Default)]
pub struct Graph<'a> {
    /// Its nodes, in order.
    pub nodes: Vec<Node<'a>>,
    /// Its constants, as tensor messages.
    pub initializers: Vec<Cow<'a, [u8]>>,
    pub inputs: Vec<Port<'a>>,
    pub outputs: Vec<Port<'a>>,
    rest: Vec<&'a [u8]>,
}

pub struct Node<'a> {
    /// The operator.
    pub kind: &'a str,
    /// The names of its inputs; empty for an omitted input.
    pub inputs: Vec<Cow<'a, str>>,
    pub outputs: Vec<Cow<'a, str>>,
    /// Its attributes, as messages.
    pub attributes: Vec<Cow<'a, [u8]>>,
    rest: Vec<&'a [u8]>,
}

pub struct Port<'a> {
    pub name: &'a str,
    message: Cow<'a, [u8]>,
}

impl<'a> Model<'a> {
    /// Creates a model of version 17 of ONNX's own operators.
    pub fn new(graph: Graph<'a>) -> Self {
        const IR_VERSION: &[u8] = &[1 << 3, 8];
        const OPSET_IMPORT: &[u8] = &[8 << 3 | 2, 2, 2 << 3, 17];
        Self { rest: vec![IR_VERSION, OPSET_IMPORT], graph }
    }

    /// Reads a model.
    ///
    /// # Errors
    /// Why the bytes are not an ONNX file, in a few words.
    pub fn read(file: &'a [u8]) -> Result<Self, String> {
        Self::parse(file).map_err(|error| format!("it is not an ONNX file: {error}"))
    }

    fn parse(file: &'a [u8]) -> Result<Self, Malformed> {
        const GRAPH: u64 = 7;
        let (mut rest, mut graph) = (Vec::new(), Graph::default());
        for field in Fields(file) {
            let field = field?;
            match field.pair() {
                (GRAPH, Value::Bytes(message)) => graph.read(message)?,
                _ => rest.push(field.raw),
            }
        }
        Ok(Self { rest, graph })
    }

    /// Returns the version of ONNX's own operators; 1 if the file does not state it.
    pub fn opset(&self) -> i64 {
        const OPSET_IMPORT: u64 = 8;
        let fields = self.rest.iter().flat_map(|raw| Fields(raw));
        let mut versions = fields.filter_map(|field| match field.ok()?.pair() {
            (OPSET_IMPORT, Value::Bytes(import)) => {
                let domain = bytes_in(import, 1).unwrap_or_default();
                let is_own = domain.is_empty() || domain == b"ai.onnx";
                number_in(import, 2).filter(|_| is_own)
            }
            _ => None,
        });
        versions.next().map_or(1, |version| version as i64)
    }

    /// Returns the bytes of the file.
    pub fn write(&self) -> Vec<u8> {
        let graph = self.graph.parts();
        let length: usize = graph.iter().map(|part| part.len()).sum();
        let mut file = Vec::with_capacity(length + (1 << 16));
        for field in &self.rest {
            file.extend_from_slice(field);
        }
        put_head(&mut file, 7, length);
        for part in graph {
            file.extend_from_slice(&part);
        }
        file
    }
}

impl<'a> Graph<'a> {
    fn read(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        const VALUE_INFO: u64 = 13;
        for field in Fields(message) {
            let field = field?;
            match field.pair() {
                (1, Value::Bytes(node)) => self.nodes.push(Node::read(node)?),
                (5, Value::Bytes(tensor)) => self.initializers.push(Cow::Borrowed(tensor)),
                (11, Value::Bytes(port)) => self.inputs.push(Port::read(port)?),
                (12, Value::Bytes(port)) => self.outputs.push(Port::read(port)?),
                (VALUE_INFO, _) => {}
                _ => self.rest.push(field.raw),
            }
        }
        Ok(())
    }

    /// Returns the fields in pieces, so that large constants are copied once.
    fn parts(&self) -> Vec<Cow<'_, [u8]>> {
        let nodes = self.nodes.iter().map(|node| (1, Cow::Owned(node.write())));
        let tensors = self.initializers.iter().map(|tensor| (5, Cow::Borrowed(&**tensor)));
        let inputs = self.inputs.iter().map(|port| (11, Cow::Borrowed(&*port.message)));
        let outputs = self.outputs.iter().map(|port| (12, Cow::Borrowed(&*port.message)));
        let fields = nodes.chain(tensors).chain(inputs).chain(outputs);
        let with_heads = fields.flat_map(|(number, message)| {
            let mut head = Vec::new();
            put_head(&mut head, number, message.len());
            [Cow::Owned(head), message]
        });
        self.rest.iter().map(|raw| Cow::Borrowed(*raw)).chain(with_heads).collect()
    }

    /// Returns the small constants of 64-bit integers along one axis, by name: shapes, mostly.
    pub fn integers(&self) -> BTreeMap<String, Vec<i64>> {
        let mut found = BTreeMap::new();
        for tensor in &self.initializers {
            if let (Some(name), Some(values)) = (tensor_name(tensor), integers_of(tensor)) {
                found.insert(name.to_owned(), values);
            }
        }
        for node in self.nodes.iter().filter(|node| node.kind == "Constant") {
            let values = node.attributes.iter().find_map(|attribute| constant_of(attribute));
            if let (Some(name), Some(values)) = (node.outputs.first(), values) {
                found.insert(name.clone().into_owned(), values);
            }
        }
        found
    }

    /// Returns whether it has constants that are stored as sparse tensors.
    pub fn has_sparse_constants(&self) -> bool {
        const SPARSE_INITIALIZER: u64 = 15;
        let mut fields = self.rest.iter().flat_map(|raw| Fields(raw));
        fields.any(|field| field.is_ok_and(|field| field.number == SPARSE_INITIALIZER))
    }

    /// Adds a constant of 64-bit integers along one axis.
    pub fn add_integers(&mut self, name: &str, values: &[i64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = tensor(&[values.len() as u64], INT64, name, &bytes);
        self.initializers.push(Cow::Owned(tensor));
    }

    /// Adds a constant of 32-bit floats of this shape; without axes, of one value.
    pub fn add_floats(&mut self, name: &str, dims: &[u64], values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.initializers.push(Cow::Owned(tensor(dims, FLOAT, name, &bytes)));
    }
}

impl<'a> Node<'a> {
    pub fn new(kind: &'a str, inputs: &[&str], output: &str) -> Self {
        let inputs = inputs.iter().map(|input| Cow::Owned((*input).to_owned())).collect();
        let outputs = vec![Cow::Owned(output.to_owned())];
        Self { kind, inputs, outputs, attributes: Vec::new(), rest: Vec::new() }
    }

    /// Adds an attribute that is a number.
    #[must_use]
    pub fn with_integer(mut self, name: &str, value: i64) -> Self {
        const INT: u64 = 2;
        let mut attribute = Vec::new();
        put_bytes(&mut attribute, 1, name.as_bytes());
        put_number(&mut attribute, 3, value as u64);
        put_number(&mut attribute, 20, INT);
        self.attributes.push(Cow::Owned(attribute));
        self
    }

    /// Adds an attribute that is a list of numbers.
    #[must_use]
    pub fn with_integers(mut self, name: &str, values: &[i64]) -> Self {
        const INTS: u64 = 7;
        let mut attribute = Vec::new();
        put_bytes(&mut attribute, 1, name.as_bytes());
        for value in values {
            put_number(&mut attribute, 8, *value as u64);
        }
        put_number(&mut attribute, 20, INTS);
        self.attributes.push(Cow::Owned(attribute));
        self
    }

    /// Returns the domain of the operator; empty for ONNX's own.
    pub fn domain(&self) -> &'a str {
        const DOMAIN: u64 = 7;
        let mut fields = self.rest.iter().flat_map(|raw| Fields(raw));
        let domain = fields.find_map(|field| match field.ok()?.pair() {
            (DOMAIN, Value::Bytes(domain)) => text(domain).ok(),
            _ => None,
        });
        domain.filter(|domain| *domain != "ai.onnx").unwrap_or_default()
    }

    /// Returns the attribute of a name, as a message.
    pub fn attribute(&self, name: &str) -> Option<&Cow<'a, [u8]>> {
        self.attributes.iter().find(|own| attribute_name(own) == name)
    }

    fn read(message: &'a [u8]) -> Result<Self, Malformed> {
        let (mut inputs, mut outputs, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut kind, mut rest) = ("", Vec::new());
        for field in Fields(message) {
            let field = field?;
            match field.pair() {
                (1, Value::Bytes(name)) => inputs.push(Cow::Borrowed(text(name)?)),
                (2, Value::Bytes(name)) => outputs.push(Cow::Borrowed(text(name)?)),
                (4, Value::Bytes(name)) => kind = text(name)?,
                (5, Value::Bytes(attribute)) => attributes.push(Cow::Borrowed(attribute)),
                _ => rest.push(field.raw),
            }
        }
        Ok(Self { kind, inputs, outputs, attributes, rest })
    }

    fn write(&self) -> Vec<u8> {
        let mut message = Vec::new();
        for input in &self.inputs {
            put_bytes(&mut message, 1, input.as_bytes());
        }
        for output in &self.outputs {
            put_bytes(&mut message, 2, output.as_bytes());
        }
        put_bytes(&mut message, 4, self.kind.as_bytes());
        for attribute in &self.attributes {
            put_bytes(&mut message, 5, attribute);
        }
        for field in &self.rest {
            message.extend_from_slice(field);
        }
        message
    }
}

impl<'a> Port<'a> {
    /// Creates a port. `axes` holds the size of each axis, `None` where any is allowed; without axes, it declares no shape.
    pub fn new(name: &'a str, element: u64, axes: &[Option<usize>]) -> Self {
        let mut shape = Vec::new();
        for size in axes {
            let mut dimension = Vec::new();
            if let Some(size) = size {
                put_number(&mut dimension, 1, *size as u64);
            }
            put_bytes(&mut shape, 1, &dimension);
        }
        let (mut tensor, mut kind, mut message) = (Vec::new(), Vec::new(), Vec::new());
        put_number(&mut tensor, 1, element);
        if !axes.is_empty() {
            put_bytes(&mut tensor, 2, &shape);
        }
        put_bytes(&mut kind, 1, &tensor);
        put_bytes(&mut message, 1, name.as_bytes());
        put_bytes(&mut message, 2, &kind);
        Self { name, message: Cow::Owned(message) }
    }

    fn read(message: &'a [u8]) -> Result<Self, Malformed> {
        let name = bytes_in(message, 1).unwrap_or_default();
        Ok(Self { name: text(name)?, message: Cow::Borrowed(message) })
    }

    /// Returns the size of each axis, `None` where any is allowed; no axes if the graph declares no shape.
    pub fn axes(&self) -> Vec<Option<usize>> {
        let inner = |message, field| bytes_in(message, field).unwrap_or_default();
        let shape = inner(inner(inner(&self.message, 2), 1), 2);
        let axes = Fields(shape).filter_map(|field| match field.ok()?.pair() {
            (1, Value::Bytes(axis)) => Some(axis),
            _ => None,
        });
        let size = |axis| {
            Fields(axis).find_map(|field| match field.ok()?.pair() {
                // Some exporters write -1 for an open size.
                (1, Value::Number(size)) => {
                    usize::try_from(size as i64).ok().filter(|size| *size > 0)
                }
                _ => None,
            })
        };
        axes.map(size).collect()
    }

    /// Returns the element type, by its number in onnx.proto.
    pub fn element_type(&self) -> Option<u64> {
        let tensor = bytes_in(bytes_in(&self.message, 2)?, 1)?;
        number_in(tensor, 1)
    }

    /// Opens the first axis if its size is 1, under a name for its size. Returns whether it did.
    pub fn open_first_axis(&mut self, size_name: &str) -> bool {
        let Some(message) = with_open_axis(&self.message, &[2, 1, 2], size_name) else {
            return false;
        };
        self.message = Cow::Owned(message);
        true
    }
}

/// Follows `path`, the fields from a message to the list of its axes, and opens the first axis there if its size is 1.
fn with_open_axis(message: &[u8], path: &[u64], size_name: &str) -> Option<Vec<u8>> {
    const SIZE: u64 = 1;
    const SIZE_NAME: u64 = 2;
    let Some((next, rest)) = path.split_first() else {
        // The shape: its first axis.
        let mut fields = Fields(message);
        let first = fields.next()?.ok()?;
        let (1, Value::Bytes(axis)) = first.pair() else { return None };
        let is_one = Fields(axis)
            .any(|field| field.is_ok_and(|field| matches!(field.pair(), (SIZE, Value::Number(1)))));
        if !is_one {
            return None;
        }
        let (mut axis, mut shape) = (Vec::new(), Vec::new());
        put_bytes(&mut axis, SIZE_NAME, size_name.as_bytes());
        put_bytes(&mut shape, 1, &axis);
        shape.extend_from_slice(fields.0);
        return Some(shape);
    };
    let (mut written, mut is_open) = (Vec::new(), false);
    for field in Fields(message) {
        let field = field.ok()?;
        match field.pair() {
            (number, Value::Bytes(inner)) if number == *next => {
                let inner = with_open_axis(inner, rest, size_name)?;
                put_bytes(&mut written, number, &inner);
                is_open = true;
            }
            _ => written.extend_from_slice(field.raw),
        }
    }
    is_open.then_some(written)
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed::NotProtobuf)
}

/// Returns the content of the first field with this number: bytes, a text, or a message.
pub fn bytes_in(message: &[u8], wanted: u64) -> Option<&[u8]> {
    Fields(message).find_map(|field| match field.ok()?.pair() {
        (number, Value::Bytes(bytes)) if number == wanted => Some(bytes),
        _ => None,
    })
}

/// Returns the value of the first varint field with this number.
pub fn number_in(message: &[u8], wanted: u64) -> Option<u64> {
    Fields(message).find_map(|field| match field.ok()?.pair() {
        (number, Value::Number(value)) if number == wanted => Some(value),
        _ => None,
    })
}

/// Returns a constant as a message. `bytes` holds its values, the lowest byte of each first.
pub fn tensor(dims: &[u64], element: u64, name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(bytes.len() + name.len() + 64);
    for size in dims {
        put_number(&mut message, 1, *size);
    }
    put_number(&mut message, 2, element);
    put_bytes(&mut message, 8, name.as_bytes());
    put_bytes(&mut message, 9, bytes);
    message
}

pub fn tensor_name(tensor: &[u8]) -> Option<&str> {
    bytes_in(tensor, 8).and_then(|name| text(name).ok())
}

pub fn attribute_name(attribute: &[u8]) -> &str {
    bytes_in(attribute, 1).and_then(|name| text(name).ok()).unwrap_or_default()
}

/// Returns the value of an attribute of a `Constant`, if it is one of integers along one axis.
fn constant_of(attribute: &[u8]) -> Option<Vec<i64>> {
    match attribute_name(attribute) {
        "value" => integers_of(bytes_in(attribute, 5)?),
        "value_ints" => numbers(attribute, 8),
        _ => None,
    }
}

/// Returns the values of a tensor of 64-bit integers along one axis.
fn integers_of(tensor: &[u8]) -> Option<Vec<i64>> {
    let is_integer = Fields(tensor)
        .any(|field| field.is_ok_and(|at| matches!(at.pair(), (2, Value::Number(INT64)))));
    let [size] = numbers(tensor, 1)?[..] else { return None };
    if !is_integer || !(1..=MAX_INTEGERS as i64).contains(&size) {
        return None;
    }
    let values = match bytes_in(tensor, 9) {
        Some(raw) => {
            raw.as_chunks::<8>().0.iter().map(|value| i64::from_le_bytes(*value)).collect()
        }
        None => numbers(tensor, 7)?,
    };
    (values.len() as i64 == size).then_some(values)
}

/// Returns the numbers of a repeated field, packed or not.
fn numbers(message: &[u8], wanted: u64) -> Option<Vec<i64>> {
    let mut found = Vec::new();
    for field in Fields(message) {
        match field.ok()?.pair() {
            (number, Value::Number(value)) if number == wanted => found.push(value as i64),
            (number, Value::Bytes(packed)) if number == wanted => {
                let mut packed = Fields(packed);
                while !packed.0.is_empty() {
                    found.push(packed.number().ok()? as i64);
                }
            }
            _ => {}
        }
        if found.len() > MAX_INTEGERS {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny/segment/segment.onnx");
        std::fs::read(path).unwrap()
    }

    #[test]
    fn a_model_that_did_not_change_keeps_its_nodes_and_constants() {
        let file = model();
        let written = Model::read(&file).unwrap().write();
        let (before, after) = (Model::read(&file).unwrap(), Model::read(&written).unwrap());
        assert_eq!(before.rest, after.rest);
        assert_eq!(before.graph.initializers, after.graph.initializers);
        assert!(!before.graph.nodes.is_empty());
        for (before, after) in before.graph.nodes.iter().zip(&after.graph.nodes) {
            assert_eq!(before.write(), after.write());
            assert_eq!((before.kind, &before.rest), (after.kind, &after.rest));
        }
        assert_eq!(written, after.write());
    }

    #[test]
    fn constants_of_integers_are_read_however_they_are_stored() {
        let mut graph = Graph::default();
        graph.add_integers("raw", &[1, -1, 64]);
        let mut typed = Vec::new();
        put_bytes(&mut typed, 1, &[2]);
        put_number(&mut typed, 2, INT64);
        put_bytes(&mut typed, 8, b"typed");
        put_number(&mut typed, 7, 5);
        put_number(&mut typed, 7, -1_i64 as u64);
        graph.initializers.push(Cow::Owned(typed.clone()));
        let mut value = Vec::new();
        put_bytes(&mut value, 1, b"value");
        put_bytes(&mut value, 5, &typed);
        let mut constant = Node::new("Constant", &[], "constant");
        constant.attributes.push(Cow::Owned(value));
        graph.nodes.push(constant);
        let found = graph.integers();
        assert_eq!(found["raw"], [1, -1, 64]);
        assert_eq!(found["typed"], [5, -1]);
        assert_eq!(found["constant"], [5, -1]);
    }

    #[test]
    fn a_port_declares_what_it_was_made_of() {
        let axes = [None, Some(32), None, Some(3)];
        let port = Port::new("picture", UINT8, &axes);
        assert_eq!((port.element_type(), port.axes().as_slice()), (Some(UINT8), &axes[..]));
        let port = Port::new("result", FLOAT, &[]);
        assert_eq!((port.element_type(), port.axes().len()), (Some(FLOAT), 0));
        let read = Port::read(&port.message).unwrap();
        assert_eq!((read.name, read.element_type()), ("result", Some(FLOAT)));
    }

    #[test]
    fn a_size_of_minus_1_is_open() {
        let mut dimension = Vec::new();
        put_number(&mut dimension, 1, -1_i64 as u64);
        let message = [2, 1, 2, 1].into_iter().rev().fold(dimension, |inner, field| {
            let mut outer = Vec::new();
            put_bytes(&mut outer, field, &inner);
            outer
        });
        assert_eq!(Port::read(&message).unwrap().axes(), [None]);
    }

    #[test]
    fn the_version_of_the_operators_is_read() {
        let file = model();
        assert!((11..30).contains(&Model::read(&file).unwrap().opset()));
        assert_eq!(Model::read(&[]).unwrap().opset(), 1);
    }

    #[test]
    fn only_an_axis_of_size_1_is_opened() {
        let file = model();
        let mut port = Model::read(&file).unwrap().graph.inputs.remove(0);
        assert_eq!(port.axes(), [Some(1), Some(3), Some(32), Some(32)]);
        assert!(port.open_first_axis("batch"));
        assert_eq!(port.axes(), [None, Some(3), Some(32), Some(32)]);
        assert!(!port.open_first_axis("batch"), "it is open");
    }
}
