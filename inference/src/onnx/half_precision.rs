//! Rewrites a net of 32-bit floats so that it computes in 16 bits, except where these overflow or lose too much. Its inputs
//! and outputs keep their types.
//!
//! 16 bits hold numbers up to 65,504, with 11 significant bits. Whether that is enough depends on the net, so the caller
//! compares the outputs before it uses the result.

mod operators;
mod tensors;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use self::operators::{Arithmetic, Operator, Others, Output};
use super::graph::{
    FLOAT, FLOAT16, Graph, Model, Node, attribute_name, bytes_in, number_in, tensor_name,
};

/// How a value of 16 bits is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In 16 bits, and operators compute with these: for a GPU.
    Stored,
    /// In 32-bit values rounded to 16 bits: for a CPU. There, ONNX Runtime computes 16 bits in 32 and drops the
    /// rounding between operators, so [`Self::Stored`] would hide what a GPU's results look like.
    Rounded,
}

/// A net in 16 bits.
pub struct Converted {
    pub file: Vec<u8>,
    /// How many of its weights were clamped, because 16 bits cannot hold them.
    pub clamped: usize,
}

/// Rewrites a model.
///
/// # Errors
/// Why it cannot be rewritten, in a few words.
pub fn convert(file: &[u8], form: Form) -> Result<Converted, String> {
    let mut model = Model::read(file)?;
    let rewrite = Rewrite {
        form,
        values: HashMap::new(),
        nodes: Vec::new(),
        tensors: Vec::new(),
        clamped: 0,
    };
    let clamped = rewrite.apply(&mut model.graph)?;
    Ok(Converted { file: model.write(), clamped })
}

/// The type of a value in the graph as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Float,
    Half,
    Other,
}

impl Element {
    const fn of(number: Option<u64>) -> Self {
        match number {
            Some(FLOAT) => Self::Float,
            Some(FLOAT16) => Self::Half,
            _ => Self::Other,
        }
    }
}

/// A value of the graph, under the names that hold it in the new one. A float has at least one of them.
#[derive(Clone)]
struct Held<'a> {
    element: Element,
    /// The name in 32 bits.
    full: Option<String>,
    /// The name in 16 bits, or rounded to these.
    half: Option<String>,
    /// Whether it was computed in 16 bits.
    is_from_half: bool,
    /// Whether it is a constant, which has no precision of its own.
    is_constant: bool,
    /// The message of a constant in 32 bits.
    tensor: Option<Cow<'a, [u8]>>,
}

impl Held<'_> {
    fn new(element: Element, name: &str) -> Self {
        let full = (element != Element::Half).then(|| name.to_owned());
        let (is_from_half, is_constant) = (element == Element::Half, false);
        Self { element, full, half: None, is_from_half, is_constant, tensor: None }
    }

    const fn is_float(&self) -> bool {
        !matches!(self.element, Element::Other)
    }
}

struct Rewrite<'a> {
    form: Form,
    values: HashMap<String, Held<'a>>,
    nodes: Vec<Node<'a>>,
    tensors: Vec<Cow<'a, [u8]>>,
    clamped: usize,
}

impl<'a> Rewrite<'a> {
    /// Rewrites the graph. Returns how many weights were clamped.
    fn apply(mut self, graph: &mut Graph<'a>) -> Result<usize, String> {
        if graph.has_sparse_constants() {
            return Err("it has sparse constants".to_owned());
        }
        for tensor in std::mem::take(&mut graph.initializers) {
            let name = tensor_name(&tensor).unwrap_or_default().to_owned();
            self.add_constant(&name, tensor);
        }
        // A constant that is also an input could be replaced by the caller, which a net never does.
        graph.inputs.retain(|port| !self.values.contains_key(port.name));
        for port in &graph.inputs {
            let element = Element::of(port.element_type());
            self.define(port.name, element, port.name);
        }
        self.rewrite_all(std::mem::take(&mut graph.nodes))?;
        for port in &graph.outputs {
            self.restore_output(port.name)?;
        }
        graph.nodes = self.nodes;
        let outputs = graph.outputs.iter().map(|port| port.name);
        let inputs = graph.nodes.iter().flat_map(|node| node.inputs.iter().map(|input| &**input));
        let used: HashSet<&str> = outputs.chain(inputs).collect();
        self.tensors.retain(|tensor| tensor_name(tensor).is_some_and(|name| used.contains(name)));
        graph.initializers = self.tensors;
        Ok(self.clamped)
    }

    fn add_constant(&mut self, name: &str, tensor: Cow<'a, [u8]>) {
        let element = Element::of(tensors::element_type(&tensor));
        self.tensors.push(tensor.clone());
        self.define(name, element, name);
        if let Some(held) = self.values.get_mut(name) {
            held.is_constant = true;
            held.tensor = (element == Element::Float).then_some(tensor);
        }
    }

    /// Records a value that `stored` holds in the type that it has in the graph.
    fn define(&mut self, name: &str, element: Element, stored: &str) {
        let mut held = Held::new(element, stored);
        if element == Element::Half {
            held.half = Some(match self.form {
                Form::Stored => stored.to_owned(),
                Form::Rounded => self.cast(stored, FLOAT, format!("{name}/f16")),
            });
        }
        self.values.insert(name.to_owned(), held);
    }

    /// Rewrites nodes in the order in which they can be computed, which some exporters do not keep.
    fn rewrite_all(&mut self, mut nodes: Vec<Node<'a>>) -> Result<(), String> {
        while !nodes.is_empty() {
            let (before, mut waiting) = (nodes.len(), Vec::new());
            for node in nodes {
                if self.missing_input(&node).is_some() {
                    waiting.push(node);
                } else {
                    self.rewrite(node)?;
                }
            }
            if waiting.len() == before {
                let missing = waiting.iter().find_map(|node| self.missing_input(node));
                return Err(format!("nothing computes {:?}", missing.unwrap_or_default()));
            }
            nodes = waiting;
        }
        Ok(())
    }

    fn missing_input<'n>(&self, node: &'n Node<'_>) -> Option<&'n str> {
        let mut inputs = node.inputs.iter().map(|input| &**input);
        inputs.find(|input| !input.is_empty() && !self.values.contains_key(*input))
    }

    fn rewrite(&mut self, node: Node<'a>) -> Result<(), String> {
        if !node.domain().is_empty() {
            return Err(format!("its operator {} of {} is not known", node.kind, node.domain()));
        }
        match node.kind {
            "Constant" => self.constant(node),
            "ConstantOfShape" => {
                let value = node.attribute("value").and_then(|own| bytes_in(own, 5));
                let element = value
                    .map_or(Element::Float, |tensor| Element::of(tensors::element_type(tensor)));
                self.keep(node, element)?;
            }
            "Cast" => self.rewrite_cast(node)?,
            kind => {
                let operator = operators::find(kind)
                    .ok_or_else(|| format!("its operator {kind} is not known in 16 bits"))?;
                self.rewrite_operator(node, operator)?;
            }
        }
        Ok(())
    }

    fn constant(&mut self, node: Node<'a>) {
        const TENSOR: u64 = 5;
        let name = node.outputs.first().map(|name| name.clone().into_owned()).unwrap_or_default();
        let own = node.attributes.first();
        let tensor = own.and_then(|own| match attribute_name(own) {
            "value" => bytes_in(own, TENSOR).map(|tensor| tensors::renamed(tensor, &name)),
            "value_float" => {
                let bytes = tensors::fixed(own, 2).ok()?;
                Some(tensors::of_floats(&name, &[], &bytes))
            }
            "value_floats" => {
                let bytes = tensors::fixed(own, 7).ok()?;
                Some(tensors::of_floats(&name, &[bytes.len() as u64 / 4], &bytes))
            }
            _ => None,
        });
        if let Some(tensor) = tensor {
            self.add_constant(&name, Cow::Owned(tensor));
        } else {
            self.define(&name, Element::Other, &name);
            self.nodes.push(node);
        }
    }

    /// Rewrites a node that returns one value of a known type and takes no floats.
    fn keep(&mut self, mut node: Node<'a>, element: Element) -> Result<(), String> {
        let name = single_output(&node)?;
        let stored = match (element, self.form) {
            (Element::Half, Form::Rounded) => format!("{name}/stored"),
            _ => name.clone(),
        };
        node.outputs = vec![Cow::Owned(stored.clone())];
        self.nodes.push(node);
        self.define(&name, element, &stored);
        Ok(())
    }

    fn rewrite_cast(&mut self, node: Node<'a>) -> Result<(), String> {
        const INT: u64 = 3;
        let to = Element::of(node.attribute("to").and_then(|own| number_in(own, INT)));
        let input = node.inputs.first().map(|name| name.clone().into_owned()).unwrap_or_default();
        let held = self.held(&input)?.clone();
        match (held.is_float(), to) {
            (false, _) => self.keep(node, to),
            (true, Element::Other) => {
                let follows = operators::Operator {
                    arithmetic: Arithmetic::Follows,
                    output: Output::NoFloats,
                    others: Others::Unknown,
                    full_inputs: &[],
                };
                self.rewrite_operator(node, follows)
            }
            // The same value under another name; it is cast where something needs it.
            (true, element) => {
                let name = single_output(&node)?;
                if element == Element::Half {
                    self.half_of(&input)?;
                }
                let held = Held { element, ..self.held(&input)?.clone() };
                self.values.insert(name, held);
                Ok(())
            }
        }
    }

    fn rewrite_operator(&mut self, mut node: Node<'a>, operator: Operator) -> Result<(), String> {
        let runs_in_half = self.runs_in_half(&node, operator)?;
        let element = match operator.output {
            Output::NoFloats => Element::Other,
            Output::Like(at) => {
                let like = node
                    .inputs
                    .get(at)
                    .ok_or_else(|| format!("its operator {} lacks an input", node.kind))?;
                self.held(like)?.element
            }
        };
        for (at, input) in node.inputs.iter_mut().enumerate() {
            if input.is_empty() || !self.held(input)?.is_float() {
                continue;
            }
            let takes_half = runs_in_half && !operator.full_inputs.contains(&at);
            let name = if takes_half { self.half_of(input)? } else { self.full_of(input)? };
            *input = Cow::Owned(name);
        }
        let mut rounded = Vec::new();
        for (at, output) in node.outputs.iter_mut().enumerate() {
            if output.is_empty() {
                continue;
            }
            let element = match (at, operator.others) {
                (0, _) | (_, Others::Alike) => element,
                (_, Others::NoFloats) => Element::Other,
                (_, Others::Unknown) => {
                    return Err(format!("its operator {} has several outputs", node.kind));
                }
            };
            let mut held = Held::new(element, output);
            if element != Element::Other && runs_in_half {
                let half = format!("{output}/f16");
                held = Held { full: None, half: Some(half.clone()), is_from_half: true, ..held };
                let name = output.clone().into_owned();
                *output = Cow::Owned(match self.form {
                    Form::Stored => half,
                    Form::Rounded => {
                        let exact = format!("{name}/exact");
                        rounded.push((exact.clone(), half));
                        exact
                    }
                });
                self.values.insert(name, held);
            } else {
                self.values.insert(output.clone().into_owned(), held);
            }
        }
        self.nodes.push(node);
        for (exact, half) in rounded {
            self.narrow(&exact, half);
        }
        Ok(())
    }

    /// Returns whether a node computes in 16 bits.
    fn runs_in_half(&self, node: &Node<'_>, operator: Operator) -> Result<bool, String> {
        let mut is_half = false;
        for (at, input) in node.inputs.iter().enumerate() {
            if input.is_empty() || operator.full_inputs.contains(&at) {
                continue;
            }
            let held = self.held(input)?;
            is_half |= match (held.element, operator.arithmetic) {
                (Element::Other, _) | (Element::Float, Arithmetic::Full) => false,
                (Element::Half, _) | (Element::Float, Arithmetic::Half) => true,
                (Element::Float, Arithmetic::Follows) => held.is_from_half && !held.is_constant,
            };
        }
        Ok(is_half)
    }

    fn held(&self, name: &str) -> Result<&Held<'a>, String> {
        self.values.get(name).ok_or_else(|| format!("nothing computes {name:?}"))
    }

    /// Returns the name of a float in 16 bits.
    fn half_of(&mut self, name: &str) -> Result<String, String> {
        let held = self.held(name)?.clone();
        if let Some(half) = held.half {
            return Ok(half);
        }
        let half = format!("{name}/f16");
        match (&held.tensor, held.full) {
            (Some(tensor), _) => {
                let stored = match self.form {
                    Form::Stored => half.clone(),
                    Form::Rounded => format!("{half}/stored"),
                };
                let (tensor, clamped) = tensors::halve(tensor, &stored)?;
                self.clamped += clamped;
                self.tensors.push(Cow::Owned(tensor));
                if self.form == Form::Rounded {
                    self.cast(&stored, FLOAT, half.clone());
                }
            }
            (None, Some(full)) => self.narrow(&full, half.clone()),
            (None, None) => return Err(format!("nothing holds {name:?}")),
        }
        if let Some(held) = self.values.get_mut(name) {
            held.half = Some(half.clone());
        }
        Ok(half)
    }

    /// Returns the name of a float in 32 bits.
    fn full_of(&mut self, name: &str) -> Result<String, String> {
        let held = self.held(name)?;
        let full = match (&held.full, &held.half) {
            (Some(full), _) => return Ok(full.clone()),
            (None, Some(half)) => half.clone(),
            (None, None) => return Err(format!("nothing holds {name:?}")),
        };
        let full = self.cast(&full, FLOAT, format!("{name}/f32"));
        if let Some(held) = self.values.get_mut(name) {
            held.full = Some(full.clone());
        }
        Ok(full)
    }

    /// Defines `to` as the 16-bit form of `from`, which is in 32 bits.
    fn narrow(&mut self, from: &str, to: String) {
        match self.form {
            Form::Stored => {
                self.cast(from, FLOAT16, to);
            }
            Form::Rounded => {
                let stored = self.cast(from, FLOAT16, format!("{to}/stored"));
                self.cast(&stored, FLOAT, to);
            }
        }
    }

    fn cast(&mut self, from: &str, element: u64, to: String) -> String {
        self.nodes.push(Node::new("Cast", &[from], &to).with_integer("to", element as i64));
        to
    }

    /// Casts an output back to the type that the graph declares.
    fn restore_output(&mut self, name: &str) -> Result<(), String> {
        let Held { element, full, half, .. } = self.held(name)?.clone();
        let number = match element {
            Element::Other => return Ok(()),
            Element::Float => FLOAT,
            Element::Half => FLOAT16,
        };
        let wanted = if element == Element::Float { &full } else { &half };
        if wanted.as_deref() == Some(name) {
            return Ok(());
        }
        let from = full.or(half).ok_or_else(|| format!("nothing holds {name:?}"))?;
        self.cast(&from, number, name.to_owned());
        Ok(())
    }
}

fn single_output(node: &Node<'_>) -> Result<String, String> {
    match node.outputs.as_slice() {
        [only] => Ok(only.clone().into_owned()),
        _ => Err(format!("its operator {} has several outputs", node.kind)),
    }
}
