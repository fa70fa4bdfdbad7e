//! Generates ONNX models of a few hundred bytes, valid or with a defect, so that the repository needs no files for them.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::repository;

/// A segmentation model: alpha = sigmoid(weight × the sum of R, G and B).
#[derive(Clone)]
pub struct Model {
    pub weight: f32,
    /// The side of the input and output, in pixels.
    pub side: u8,
    /// Whether the graph leaves the size of a batch open.
    pub is_open: bool,
    /// The external file of the weights, as the graph spells it; `None` keeps them in the graph.
    pub external_data: Option<String>,
    /// What follows the net.
    pub tail: Tail,
    /// The memory that the manifest states.
    pub memory_mib: Option<u32>,
}

/// Nodes after a net that leave a map as it is, or nearly, and hold its size as a constant.
#[derive(Clone, Copy, Debug)]
pub enum Tail {
    None,
    /// Flattens the map and restores its shape, from a constant and from a shape that is put together.
    Reshapes,
    /// Enlarges the map, reduces it, and takes the smaller of it and a plane of ones.
    Resizes,
    /// Adds the mean over all inputs of a batch.
    Mixes,
    /// Drops the batch axis and adds it again.
    Squeezes,
    /// Multiplies the map by 1.6 billion, which 16 bits cannot hold, and divides it by that.
    Overflows,
    /// Adds 16 to the map and subtracts it, which rounds to 1/64 in 16 bits.
    Rounds,
}

impl Model {
    pub fn new(weight: f32) -> Self {
        let (external_data, memory_mib) = (None, None);
        Self { weight, side: 32, is_open: false, external_data, tail: Tail::None, memory_mib }
    }

    /// Returns the content of the external file of the weights.
    pub fn weights(&self) -> Vec<u8> {
        [self.weight; 3].iter().flat_map(|weight| weight.to_le_bytes()).collect()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let data = match &self.external_data {
            None => message(9, &self.weights()),
            Some(file) => in_file(file),
        };
        let dims: Vec<u8> = [1, 3, 1, 1].into_iter().flat_map(|size| number(1, size)).collect();
        let weights = [dims, number(2, 1), message(8, b"weights"), data].concat();
        let end = if let Tail::None = self.tail { "mask" } else { "map" };
        let (tail, constants) = self.tail();
        let nodes: Vec<u8> = tail.iter().flat_map(|node| message(1, node)).collect();
        let constants: Vec<u8> = constants.iter().flat_map(|tensor| message(5, tensor)).collect();
        let graph = [
            message(1, &node("Conv", &["input", "weights"], "brightness")),
            message(1, &node("Sigmoid", &["brightness"], end)),
            nodes,
            message(2, b"made"),
            message(5, &weights),
            constants,
            message(11, &self.port("input", 3)),
            message(12, &self.port("mask", 1)),
        ]
        .concat();
        let opset = [message(1, b""), number(2, 17)].concat();
        [number(1, 8), message(7, &graph), message(8, &opset)].concat()
    }

    fn port(&self, name: &str, channels: u8) -> Vec<u8> {
        let sizes = [1, channels, self.side, self.side].map(|size| message(1, &number(1, size)));
        let [one, rest @ ..] = &sizes;
        let batch = if self.is_open { message(1, &message(2, b"batch")) } else { one.clone() };
        let tensor = [number(1, 1), message(2, &[batch, rest.concat()].concat())].concat();
        [message(1, name.as_bytes()), message(2, &message(1, &tensor))].concat()
    }

    /// Returns the nodes of the tail, and the constants that they take.
    fn tail(&self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let side = i64::from(self.side);
        let nodes = match self.tail {
            Tail::None => return (Vec::new(), Vec::new()),
            Tail::Reshapes => vec![
                node("Reshape", &["map", "flat"], "flattened"),
                attributed(
                    "Concat",
                    &["one", "one", "side", "side"],
                    "shape",
                    &number_of("axis", 0),
                ),
                node("Reshape", &["flattened", "shape"], "restored"),
                node("Reshape", &["restored", "halves"], "halved"),
                node("Reshape", &["halved", "square"], "mask"),
            ],
            Tail::Resizes => vec![
                node("Resize", &["map", "", "", "large"], "larger"),
                node("Resize", &["larger", "", "", "square"], "smaller"),
                node("Expand", &["white", "square"], "plane"),
                attributed("Concat", &["smaller", "plane"], "both", &number_of("axis", 1)),
                attributed("ReduceMin", &["both"], "mask", &numbers_of("axes", 1)),
            ],
            Tail::Mixes => vec![
                attributed("ReduceMean", &["map"], "mean", &numbers_of("axes", 0)),
                node("Add", &["map", "mean"], "sum"),
                node("Mul", &["sum", "half"], "mask"),
            ],
            Tail::Squeezes => vec![
                node("Squeeze", &["map", "first"], "squeezed"),
                node("Unsqueeze", &["squeezed", "first"], "mask"),
            ],
            Tail::Overflows => vec![
                node("Mul", &["map", "thousands"], "scaled"),
                node("Mul", &["scaled", "thousands"], "larger"),
                node("Div", &["larger", "thousands"], "smaller"),
                node("Div", &["smaller", "thousands"], "mask"),
            ],
            Tail::Rounds => vec![
                node("Add", &["map", "sixteen"], "raised"),
                node("Sub", &["raised", "sixteen"], "mask"),
            ],
        };
        let constants = vec![
            integers("one", &[1]),
            integers("side", &[side]),
            integers("flat", &[1, side * side]),
            integers("halves", &[1, -1, 2]),
            integers("square", &[1, 1, side, side]),
            integers("large", &[1, 1, 2 * side, 2 * side]),
            integers("first", &[0]),
            float("white", 1.0),
            float("half", 0.5),
            float("thousands", 40_000.0),
            float("sixteen", 16.0),
        ];
        (nodes, constants)
    }

    pub fn sha256(&self) -> String {
        hex::encode(Sha256::digest(self.bytes()))
    }

    /// Returns the manifest, with a golden image whose subject is its bright part.
    pub fn manifest(&self, name: &str) -> String {
        let bytes = self.bytes();
        let memory = self.memory_mib.map_or(String::new(), |mib| format!("memory_mib = {mib}\n"));
        let extra = self.external_data.as_ref().map_or(String::new(), |file| {
            let weights = self.weights();
            format!(
                "[[extra]]\nfile = {file:?}\nsha256 = \"{}\"\nsize_bytes = {}\n",
                hex::encode(Sha256::digest(&weights)),
                weights.len()
            )
        });
        format!(
            r#"name = "{name}"
task = "segmentation"
file = "{name}.onnx"
sha256 = "{}"
size_bytes = {}
licence = "Apache-2.0"
commercial_use = true
attribution = "made by a test"
homepage = "https://onnx.ai"
{memory}
[input]
name = "input"
layout = "nchw"
width = 32
height = 32
element = "f32"
resize = "bilinear"
divide_by = "max"
mean = [0.5, 0.5, 0.5]
std = [0.5, 0.5, 0.5]

[output]
name = "mask"

[postprocess]
range = "minmax"
resize = "bilinear"

{extra}
[[golden]]
image = "golden.png"
expected = "golden-alpha.png"
tolerance = 0.2
"#,
            self.sha256(),
            bytes.len()
        )
    }

    /// Writes the model and its manifest to `models_dir/name`, over existing files, and returns that folder.
    pub fn write(&self, models_dir: &Path, name: &str) -> PathBuf {
        let folder = models_dir.join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let goldens = repository().join("models/tiny/segment");
        for golden in ["golden.png", "golden-alpha.png"] {
            fs::copy(goldens.join(golden), folder.join(golden)).expect("copied");
        }
        fs::write(folder.join(format!("{name}.onnx")), self.bytes()).expect("written");
        fs::write(folder.join("model.toml"), self.manifest(name)).expect("written");
        folder
    }
}

/// Returns a graph with one more constant, which nothing uses: a float in a file.
pub fn with_external_data(graph: &[u8], file: &str) -> Vec<u8> {
    let tensor = [number(1, 1), number(2, 1), message(8, b"spare"), in_file(file)].concat();
    // A reader of protobuf merges two graphs.
    [graph, &message(7, &message(5, &tensor))].concat()
}

/// Encodes where a tensor is kept.
fn in_file(file: &str) -> Vec<u8> {
    let entry = [message(1, b"location"), message(2, file.as_bytes())].concat();
    [message(13, &entry), number(14, 1)].concat()
}

fn node(kind: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| message(1, input.as_bytes())).collect();
    [inputs, message(2, output.as_bytes()), message(4, kind.as_bytes())].concat()
}

fn attributed(kind: &str, inputs: &[&str], output: &str, attribute: &[u8]) -> Vec<u8> {
    [node(kind, inputs, output), message(5, attribute)].concat()
}

fn number_of(name: &str, value: u8) -> Vec<u8> {
    [message(1, name.as_bytes()), number(3, value), vec![0xa0, 1, 2]].concat()
}

/// An attribute that is a list of one number.
fn numbers_of(name: &str, value: u8) -> Vec<u8> {
    [message(1, name.as_bytes()), number(8, value), vec![0xa0, 1, 7]].concat()
}

/// A constant of integers along one axis.
fn integers(name: &str, values: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let length = number(1, values.len() as u8);
    [length, number(2, 7), message(8, name.as_bytes()), message(9, &bytes)].concat()
}

/// A constant `[1, 1, 1, 1]`.
fn float(name: &str, value: f32) -> Vec<u8> {
    let shape: Vec<u8> = [1; 4].into_iter().flat_map(|size| number(1, size)).collect();
    [shape, number(2, 1), message(8, name.as_bytes()), message(9, &value.to_le_bytes())].concat()
}

/// Encodes a protobuf field with a number below 128.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// Encodes a protobuf field with bytes or a message of up to 16,383 bytes.
fn message(field: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let head = match length {
        0..128 => vec![field << 3 | 2, length as u8],
        _ => vec![field << 3 | 2, length as u8 | 0x80, (length >> 7) as u8],
    };
    [&head, bytes].concat()
}

/// Binds every tier of remove-background to `model` in `models_dir/tools.toml`.
pub fn bind(models_dir: &Path, model: &str) {
    bind_tiers(models_dir, model, &["paid", "free", "visitor"]);
}

pub fn bind_tiers(models_dir: &Path, model: &str, tiers: &[&str]) {
    let line = |tier: &&str| {
        format!(
            "[[bind]]\ntool = \"remove-background\"\ntier = \"{tier}\"\ndevice = \"any\"\nmodel = \"{model}\"\n"
        )
    };
    let tools: String = tiers.iter().map(line).collect();
    fs::write(models_dir.join("tools.toml"), tools).expect("written");
}
