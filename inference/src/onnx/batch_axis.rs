//! Opens the batch axis of a net whose exporter fixed it at 1, so that one run takes several inputs.
//!
//! Only the constants that usually hold the size of a batch are rewritten: the first axis of the input and the outputs,
//! and the first size of what `Reshape`, `Resize` and `Expand` make. That may be wrong for a graph that mixes its first
//! axis with others, so the caller compares a batch with single runs before it uses the result.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, Model, Node, attribute_name};

/// The name of the open size, and the prefix of what is added to the graph.
const BATCH: &str = "retouch_batch";

/// Returns the model with an open first axis of its input `input`.
///
/// # Errors
/// Why it cannot be rewritten, in a few words.
pub fn open(file: &[u8], input: &str) -> Result<Vec<u8>, String> {
    let mut model = Model::read(file)?;
    let graph = &mut model.graph;
    let port = graph.inputs.iter_mut().find(|port| port.name == input);
    if !port.is_some_and(|port| port.open_first_axis(BATCH)) {
        return Err(format!("the first axis of {input:?} is not fixed at 1"));
    }
    for output in &mut graph.outputs {
        output.open_first_axis(BATCH);
    }
    Rewrite { constants: graph.integers(), added: 0 }.apply(graph, input);
    Ok(model.write())
}

/// The rewrite of the sizes in a graph.
struct Rewrite {
    /// The small constants of integers, by name.
    constants: BTreeMap<String, Vec<i64>>,
    /// The number of names that were added.
    added: usize,
}

impl Rewrite {
    fn apply(&mut self, graph: &mut Graph<'_>, input: &str) {
        let shapes: BTreeSet<String> = graph
            .nodes
            .iter()
            .filter_map(|node| node.inputs.get(shape_input(node.kind)?))
            .map(|name| name.clone().into_owned())
            .collect();
        let nodes = std::mem::take(&mut graph.nodes);
        // The size of the batch, as a shape of one axis.
        let (shape, zero) = (format!("{BATCH}_shape"), format!("{BATCH}_zero"));
        graph.add_integers(&zero, &[0]);
        graph.nodes.push(Node::new("Shape", &[input], &shape));
        graph.nodes.push(Node::new("Gather", &[&shape, &zero], BATCH));
        for mut node in nodes {
            if node.kind == "Concat" && node.outputs.iter().any(|name| shapes.contains(&**name)) {
                self.open_concatenated(&mut node);
            } else if let Some(at) = shape_input(node.kind) {
                self.open_constant(graph, &mut node, at);
            }
            graph.nodes.push(node);
        }
    }

    /// A shape that is put together from sizes: its first part is the batch.
    fn open_concatenated(&mut self, node: &mut Node<'_>) {
        if let Some(first) = node.inputs.first_mut()
            && self.constants.get(&**first).is_some_and(|sizes| *sizes == [1])
        {
            *first = Cow::Borrowed(BATCH);
        }
    }

    /// A shape that is a constant.
    fn open_constant(&mut self, graph: &mut Graph<'_>, node: &mut Node<'_>, at: usize) {
        let Some(shape) = node.inputs.get(at) else { return };
        let Some(sizes) = self.constants.get(&**shape).cloned() else { return };
        let [first, rest @ ..] = sizes.as_slice() else { return };
        if rest.is_empty() {
            return;
        }
        if node.kind == "Reshape" {
            // -1 stands for the remaining size, 0 for the size before.
            let keeps_zeros = node.attributes.iter().any(|own| attribute_name(own) == "allowzero");
            let first = match (*first, rest.contains(&-1)) {
                (-1 | 0, _) => return,
                (_, false) => -1,
                (1, true) if !keeps_zeros => 0,
                (_, true) => return,
            };
            let opened = [&[first], rest].concat();
            let name = self.name();
            graph.add_integers(&name, &opened);
            node.inputs[at] = Cow::Owned(name);
        } else if *first == 1 {
            let (tail, opened) = (self.name(), self.name());
            graph.add_integers(&tail, rest);
            let concat = Node::new("Concat", &[BATCH, &tail], &opened);
            graph.nodes.push(concat.with_integer("axis", 0));
            node.inputs[at] = Cow::Owned(opened);
        }
    }

    fn name(&mut self) -> String {
        self.added += 1;
        format!("{BATCH}_{}", self.added)
    }
}

/// Returns which input of an operator is the shape of its output.
const fn shape_input(kind: &str) -> Option<usize> {
    match kind.as_bytes() {
        b"Reshape" | b"Expand" => Some(1),
        b"Resize" => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rewrites a graph of one node and the constant `sizes`. Returns it with its constants.
    fn rewritten<'a>(node: Node<'a>, sizes: &[i64]) -> (Graph<'a>, BTreeMap<String, Vec<i64>>) {
        let mut graph = Graph::default();
        graph.add_integers("sizes", sizes);
        graph.nodes.push(node);
        Rewrite { constants: graph.integers(), added: 0 }.apply(&mut graph, "input");
        let constants = graph.integers();
        (graph, constants)
    }

    #[test]
    fn a_reshape_gets_an_open_first_size_where_that_is_unambiguous() {
        let same = |sizes: &'static [i64]| (sizes, sizes);
        for (before, after) in [
            (&[1, 64][..], &[-1, 64][..]),
            (&[8, 4, 4], &[-1, 4, 4]),
            (&[1, -1, 64], &[0, -1, 64]),
            (&[1, 0, 64], &[-1, 0, 64]),
            same(&[8, -1]),
            same(&[0, -1]),
            same(&[-1, 5]),
            same(&[1]),
        ] {
            let node = Node::new("Reshape", &["x", "sizes"], "y");
            let (graph, constants) = rewritten(node, before);
            let reshape = graph.nodes.last().unwrap();
            assert_eq!(constants[&*reshape.inputs[1]], after, "{before:?}");
            assert_eq!(constants["sizes"], before, "other nodes may use it");
        }
        let keeping = Node::new("Reshape", &["x", "sizes"], "y").with_integer("allowzero", 1);
        let (graph, _) = rewritten(keeping, &[1, -1]);
        assert_eq!(graph.nodes.last().unwrap().inputs[1], "sizes", "0 means an empty axis here");
    }

    #[test]
    fn enlarged_and_expanded_shapes_start_with_the_size_of_the_batch() {
        for node in [
            Node::new("Resize", &["x", "", "", "sizes"], "y"),
            Node::new("Expand", &["x", "sizes"], "y"),
        ] {
            let at = node.inputs.len() - 1;
            let (graph, constants) = rewritten(node, &[1, 3, 8, 8]);
            let [.., concat, own] = graph.nodes.as_slice() else { panic!("too few nodes") };
            assert_eq!((concat.kind, &concat.outputs[0]), ("Concat", &own.inputs[at]));
            assert_eq!(
                (&*concat.inputs[0], &constants[&*concat.inputs[1]]),
                (BATCH, &vec![3, 8, 8])
            );
        }
        let fixed = Node::new("Expand", &["x", "sizes"], "y");
        let (graph, _) = rewritten(fixed, &[3, 8, 8]);
        assert_eq!(graph.nodes.last().unwrap().inputs[1], "sizes", "its first axis is not a batch");
    }

    #[test]
    fn a_shape_that_is_put_together_starts_with_the_size_of_the_batch() {
        let mut graph = Graph::default();
        graph.add_integers("one", &[1]);
        graph.add_integers("side", &[32]);
        let concat = Node::new("Concat", &["one", "side"], "shape").with_integer("axis", 0);
        let other = Node::new("Concat", &["one", "side"], "no shape").with_integer("axis", 0);
        graph.nodes.extend([concat, other, Node::new("Reshape", &["x", "shape"], "y")]);
        Rewrite { constants: graph.integers(), added: 0 }.apply(&mut graph, "input");
        let firsts: Vec<_> = graph.nodes.iter().filter(|node| node.kind == "Concat").collect();
        assert_eq!((&*firsts[0].inputs[0], &*firsts[1].inputs[0]), (BATCH, "one"));
    }

    #[test]
    fn what_is_no_net_with_a_fixed_batch_is_refused() {
        assert!(open(b"\x03", "input").unwrap_err().contains("not an ONNX file"));
        assert!(open(&[], "input").unwrap_err().contains("not fixed at 1"));
    }
}
