//! Nets that run, but whose results nobody can use: the warm-up refuses them and names the field to change.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::PathBuf;

use retouch_inference::onnx::graph::{FLOAT, Graph, Model, Node, Port};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::altered;
use super::load;

async fn refusal(name: &str, changes: &[(&str, &str)]) -> String {
    let (_dir, folder) = altered(name, changes);
    load(&folder).await.map(|_| ()).expect_err(name).to_string()
}

#[tokio::test]
async fn a_net_whose_result_cannot_be_used_is_refused_with_the_field_to_change() {
    let unlike = "warm-up: the result does not resemble the picture: ";
    for (name, from, to, reason) in [
        ("upscale-x3", "name = \"output\"", "name = \"output\"\nwhite = 255", unlike),
        ("upscale-x3", "name = \"output\"", "name = \"output\"\nwhite = 0.55", unlike),
        (
            "segment",
            "range = \"minmax\"",
            "range = \"sigmoid\"",
            "these are probabilities already; set postprocess.range = \"clip\"",
        ),
        (
            "segment-letterbox",
            "name = \"mask\"",
            "name = \"mask\"\nwhite = 255",
            "after division by output.white; check output.white",
        ),
        (
            "fill-floats",
            "output_white = 255",
            "output_white = 65000",
            "the painted hole is entirely black or white; of a fill, check output_white",
        ),
        (
            "fill-floats",
            "white = 1\n",
            "white = 255\n",
            "outside the hole, the result does not resemble the picture: red differs by 0.",
        ),
    ] {
        let error = refusal(name, &[(from, to)]).await;
        assert!(error.contains(reason), "{name}, {to}: {error}");
    }
    // Samples of -1..1 that are read as 0..1.
    let shifted = [("divide_by = 255", "divide_by = 127.5"), ("0.0, 0.0, 0.0", "1.0, 1.0, 1.0")];
    let error = refusal("upscale-x3", &shifted).await;
    assert!(error.contains(unlike), "{error}");
}

/// Returns a tiny model with another graph, whose manifest has each `from` replaced by its `to` and no golden image.
fn with_graph(name: &str, graph: Graph<'_>, changes: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let (dir, folder) = altered(name, changes);
    let (file, manifest) = (folder.join(format!("{name}.onnx")), folder.join("model.toml"));
    let bytes = Model::new(graph).write();
    let text = fs::read_to_string(&manifest).unwrap();
    let text =
        text.split("[[golden]]").next().unwrap().lines().map(|line| match line.split(' ').next() {
            Some("sha256") => format!("sha256 = \"{}\"\n", hex::encode(Sha256::digest(&bytes))),
            Some("size_bytes") => format!("size_bytes = {}\n", bytes.len()),
            _ => format!("{line}\n"),
        });
    fs::write(manifest, text.collect::<String>()).unwrap();
    fs::write(file, bytes).unwrap();
    (dir, folder)
}

/// Cuts a picture into blocks and puts it together again, which needs sides that are multiples of `block`.
fn in_blocks(picture: &str, block: i64, output: &str) -> [Node<'static>; 2] {
    ["SpaceToDepth", "DepthToSpace"].map(|kind| {
        let (from, to) =
            if kind == "SpaceToDepth" { (picture, "blocks") } else { ("blocks", output) };
        Node::new(kind, &[from], to).with_integer("blocksize", block)
    })
}

#[tokio::test]
async fn an_upscaler_that_needs_larger_multiples_than_its_manifest_says_is_refused() {
    let sides = [None, Some(3), None, None];
    for (multiple, is_accepted) in [("1", false), ("2", true), ("8", true)] {
        let mut graph = Graph::default();
        graph.inputs.push(Port::new("input", FLOAT, &sides));
        graph.outputs.push(Port::new("output", FLOAT, &sides));
        graph.nodes.extend(in_blocks("input", 2, "output"));
        let stated = format!("multiple_of = {multiple}");
        let (_dir, folder) = with_graph("restore", graph, &[("multiple_of = 1", &stated)]);
        match load(&folder).await {
            Ok(_) => assert!(is_accepted, "{stated}"),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    !is_accepted && error.contains("warm-up: sides of 23 × 21 fail: "),
                    "{error}"
                );
                let advice =
                    "; set tiling.multiple_of to what the net needs, such as 2, 8, 16, or 64";
                assert!(error.ends_with(advice), "{error}");
            }
        }
    }
}

/// A net that fills nothing but returns the picture, in blocks of 8 pixels.
fn fill(sides: Option<usize>) -> Graph<'static> {
    let mut graph = Graph::default();
    let axes = |channels| [Some(1), Some(channels), sides, sides];
    graph.inputs.push(Port::new("image", FLOAT, &axes(3)));
    graph.inputs.push(Port::new("mask", FLOAT, &axes(1)));
    graph.outputs.push(Port::new("output", FLOAT, &axes(3)));
    graph.add_floats("white", &[], &[255.0]);
    graph.nodes.extend(in_blocks("image", 8, "picture"));
    graph.nodes.push(Node::new("Mul", &["picture", "white"], "bright"));
    // It uses the mask, as a net without it would not.
    graph.add_floats("nothing", &[], &[0.0]);
    graph.nodes.push(Node::new("Mul", &["mask", "nothing"], "hole"));
    graph.nodes.push(Node::new("Add", &["bright", "hole"], "output"));
    graph
}

#[tokio::test]
async fn a_fill_whose_canvas_the_graph_does_not_take_is_refused() {
    let only = "contract: it takes pictures of 64 × 64 only; set canvas.fit = \"square\" and canvas.side = 64";
    let multiple = "warm-up: sides of 127 × 95 fail: ";
    for (sides, canvas, reason) in [
        (Some(64), "side = 64\nfit = \"square\"", None),
        (Some(64), "side = 64\nfit = \"scale\"", Some(only)),
        (Some(64), "side = 128\nfit = \"square\"", Some(only)),
        (None, "side = 512\nfit = \"keep\"", Some(multiple)),
        (None, "side = 512\nfit = \"keep\"\nmultiple_of = 8", None),
        (
            None,
            "side = 512\nfit = \"scale\"\nmultiple_of = 4",
            Some("warm-up: sides of 512 × 380 fail: "),
        ),
        (None, "side = 512\nfit = \"square\"", None),
    ] {
        let changes = [("side = 64\nfit = \"square\"", canvas)];
        let (_dir, folder) = with_graph("fill-floats", fill(sides), &changes);
        let error = load(&folder).await.err().map(|error| error.to_string());
        let is_right = match (&error, reason) {
            (Some(error), Some(reason)) => error.contains(reason),
            (error, reason) => error.is_none() && reason.is_none(),
        };
        assert!(is_right, "{canvas}: {error:?}");
    }
}
