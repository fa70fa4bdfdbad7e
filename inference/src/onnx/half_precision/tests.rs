use super::*;
use crate::onnx::wire::put_bytes;

/// Rewrites nodes that take the float `x`, the integers `ids`, and constants of one float each. Returns the new nodes, such
/// as `y = Relu(x)`, and the rewrite.
fn rewritten<'a>(
    form: Form,
    nodes: Vec<Node<'a>>,
    constants: &[&str],
) -> Result<(Vec<String>, Rewrite<'a>), String> {
    let (values, nodes_before, tensors) = (HashMap::new(), Vec::new(), Vec::new());
    let mut rewrite = Rewrite { form, values, nodes: nodes_before, tensors, clamped: 0 };
    rewrite.define("x", Element::Float, "x");
    rewrite.define("ids", Element::Other, "ids");
    for name in constants {
        let tensor = tensors::of_floats(name, &[1], &2.0_f32.to_le_bytes());
        rewrite.add_constant(name, Cow::Owned(tensor));
    }
    for node in nodes {
        rewrite.rewrite(node)?;
    }
    let described = rewrite.nodes.iter().map(|node| {
        format!("{} = {}({})", node.outputs.join(", "), node.kind, node.inputs.join(", "))
    });
    Ok((described.collect(), rewrite))
}

fn stored(nodes: Vec<Node<'_>>, constants: &[&str]) -> Vec<String> {
    rewritten(Form::Stored, nodes, constants).unwrap().0
}

fn refusal(nodes: Vec<Node<'_>>) -> String {
    rewritten(Form::Stored, nodes, &[]).err().unwrap()
}

#[test]
fn most_work_is_done_in_16_bits_and_what_follows_stays_there() {
    let nodes = || vec![Node::new("Conv", &["x", "w"], "y"), Node::new("Relu", &["y"], "z")];
    let (described, rewrite) = rewritten(Form::Stored, nodes(), &["w"]).unwrap();
    assert_eq!(described, ["x/f16 = Cast(x)", "y/f16 = Conv(x/f16, w/f16)", "z/f16 = Relu(y/f16)"]);
    assert_eq!(tensors::element_type(&rewrite.tensors[1]), Some(FLOAT16));
    assert_eq!(
        rewritten(Form::Rounded, nodes(), &["w"]).unwrap().0,
        [
            "x/f16/stored = Cast(x)",
            "x/f16 = Cast(x/f16/stored)",
            "w/f16 = Cast(w/f16/stored)",
            "y/exact = Conv(x/f16, w/f16)",
            "y/f16/stored = Cast(y/exact)",
            "y/f16 = Cast(y/f16/stored)",
            "z/exact = Relu(y/f16)",
            "z/f16/stored = Cast(z/exact)",
            "z/f16 = Cast(z/f16/stored)",
        ]
    );
}

#[test]
fn what_comes_before_the_first_product_stays_in_32_bits() {
    let nodes = vec![
        Node::new("Sub", &["x", "mean"], "centered"),
        Node::new("Cast", &["ids"], "floats").with_integer("to", FLOAT as i64),
        Node::new("Mul", &["floats", "mean"], "scaled"),
        Node::new("Cast", &["scaled"], "sizes").with_integer("to", 7),
    ];
    assert_eq!(
        stored(nodes, &["mean"]),
        [
            "centered = Sub(x, mean)",
            "floats = Cast(ids)",
            "scaled = Mul(floats, mean)",
            "sizes = Cast(scaled)"
        ]
    );
}

#[test]
fn sums_over_a_map_are_computed_in_32_bits() {
    let nodes = vec![
        Node::new("Conv", &["x", "w"], "y"),
        Node::new("ReduceMean", &["y"], "mean"),
        Node::new("Sub", &["y", "mean"], "z"),
    ];
    let described = stored(nodes, &["w"]);
    assert_eq!(
        described[2..],
        [
            "y/f32 = Cast(y/f16)",
            "mean = ReduceMean(y/f32)",
            "mean/f16 = Cast(mean)",
            "z/f16 = Sub(y/f16, mean/f16)"
        ]
    );
}

#[test]
fn scales_stay_in_32_bits() {
    let nodes =
        vec![Node::new("Conv", &["x", "w"], "y"), Node::new("Resize", &["y", "", "scales"], "z")];
    let described = stored(nodes, &["w", "scales"]);
    assert_eq!(described.last().unwrap(), "z/f16 = Resize(y/f16, , scales)");
}

#[test]
fn the_casts_of_a_net_that_is_stored_in_16_bits_become_unnecessary() {
    let cast = |from: &str, to: &str, element: u64| {
        Node::new("Cast", &[from], to).with_integer("to", element as i64)
    };
    let nodes = vec![
        cast("x", "narrow", FLOAT16),
        Node::new("Conv", &["narrow", "narrow"], "y"),
        cast("y", "wide", FLOAT),
        Node::new("Resize", &["wide"], "larger"),
        cast("larger", "again", FLOAT16),
        Node::new("Relu", &["again"], "z"),
    ];
    assert_eq!(
        stored(nodes, &[]),
        [
            "x/f16 = Cast(x)",
            "y/f16 = Conv(x/f16, x/f16)",
            "larger/f16 = Resize(y/f16)",
            "z/f16 = Relu(larger/f16)"
        ]
    );
}

#[test]
fn nodes_may_come_in_any_order() {
    let bytes = 2.0_f32.to_le_bytes();
    let tensor = tensors::of_floats("w", &[1], &bytes);
    let mut graph = Graph::default();
    graph.initializers.push(Cow::Owned(tensor));
    graph.nodes.extend([Node::new("Relu", &["y"], "z"), Node::new("Conv", &["w", "w"], "y")]);
    let rewrite = Rewrite {
        form: Form::Stored,
        values: HashMap::new(),
        nodes: Vec::new(),
        tensors: Vec::new(),
        clamped: 0,
    };
    rewrite.apply(&mut graph).unwrap();
    let kinds: Vec<_> = graph.nodes.iter().map(|node| node.kind).collect();
    assert_eq!(kinds, ["Conv", "Relu"]);
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let reason = refusal(vec![Node::new("RandomNormalLike", &["x"], "y")]);
    assert_eq!(reason, "its operator RandomNormalLike is not known in 16 bits");
    let reason = refusal(vec![Node::new("If", &["ids"], "y")]);
    assert!(reason.contains("operator If"), "{reason}");
    let reason = refusal(vec![Node::new("Relu", &["nowhere"], "y")]);
    assert!(reason.contains("\"nowhere\""), "{reason}");
}

/// Returns the nodes of a file, as kinds, after checking that its ports have the same types as before.
fn kinds_of(file: &str, form: Form) -> Vec<String> {
    let path = format!("{}/../models/tiny/{file}/{file}.onnx", env!("CARGO_MANIFEST_DIR"));
    let before = std::fs::read(path).unwrap();
    let converted = convert(&before, form).unwrap();
    let (before, after) = (Model::read(&before).unwrap(), Model::read(&converted.file).unwrap());
    let types = |graph: &Graph<'_>| -> Vec<_> {
        let ports = graph.inputs.iter().chain(&graph.outputs);
        ports.map(|port| (port.name.to_owned(), port.element_type())).collect()
    };
    assert_eq!(types(&before.graph), types(&after.graph));
    after.graph.nodes.iter().map(|node| node.kind.to_owned()).collect()
}

#[test]
fn inputs_and_outputs_keep_their_types() {
    assert_eq!(kinds_of("segment", Form::Stored), ["Cast", "Conv", "Sigmoid", "Cast", "Cast"]);
    // Both types are 16 bits, so only the casts of the outputs remain.
    assert_eq!(kinds_of("segment-f16", Form::Stored), ["Conv", "Sigmoid", "Cast"]);
    for file in ["segment-bytes", "segment-classes", "upscale", "upscale-fixed", "blur-upscale"] {
        for form in [Form::Stored, Form::Rounded] {
            assert!(!kinds_of(file, form).is_empty());
        }
    }
}

#[test]
fn weights_that_are_also_inputs_become_constants() {
    // Files before ONNX 1.4 list every weight among the inputs.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny/segment/segment.onnx");
    let mut file = std::fs::read(path).unwrap();
    let weight = {
        let model = Model::read(&file).unwrap();
        tensor_name(&model.graph.initializers[0]).unwrap().to_owned()
    };
    // Protobuf merges a message that comes twice.
    let (mut port, mut graph) = (Vec::new(), Vec::new());
    put_bytes(&mut port, 1, weight.as_bytes());
    put_bytes(&mut graph, 11, &port);
    put_bytes(&mut file, 7, &graph);
    assert_eq!(Model::read(&file).unwrap().graph.inputs.len(), 2);
    let converted = convert(&file, Form::Stored).unwrap();
    let converted = Model::read(&converted.file).unwrap();
    let names: Vec<_> = converted.graph.inputs.iter().map(|port| port.name).collect();
    assert_eq!(names, ["input"]);
}
