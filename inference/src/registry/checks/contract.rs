//! The contract step of a net: its inputs and outputs match the manifest.

use crate::manifest::{NetTask, Segmentation, Upscale};
use crate::onnx::Ports;
use crate::registry::steps::Outcome;
use crate::session::{Port, missing_port, shape_text};
use crate::tensor::{Element, Format, Layout};

/// Sizes of batch, channels, height and width; `None` where any size must be possible.
type Sizes = [Option<u64>; 4];

/// The manifest's expectations of a tensor.
#[derive(Clone, Copy)]
struct Expected<'a> {
    /// "input" or "output", which is also the manifest's section.
    kind: &'static str,
    name: &'a str,
    format: Format,
    sizes: Sizes,
}

impl Expected<'_> {
    fn shape(&self) -> Vec<Option<u64>> {
        self.format.layout.arrange(self.sizes)
    }
}

/// Compares inputs and outputs with the manifest, by name, element type, rank and size.
pub fn check(ports: &Ports, task: NetTask<'_>) -> Outcome<()> {
    let tensors = task.tensors();
    let (input_sizes, output_sizes) = sizes(task);
    let (name, format) = (tensors.input, tensors.input_format);
    let input = Expected { kind: "input", name, format, sizes: input_sizes };
    let (name, format) = (tensors.output, tensors.output_format);
    let output = Expected { kind: "output", name, format, sizes: output_sizes };
    let Ports { inputs, outputs } = ports;
    let mut reasons = Vec::new();
    let input_reason = check_port(inputs, input, task).err();
    // The expected size of an upscaler's output follows from its input, so one mistake would be reported twice.
    let is_checkable = input_reason.is_none() || matches!(task, NetTask::Segmentation(_));
    reasons.extend(input_reason);
    // If the named input is missing, the others are not reported as well: one of them is probably meant.
    if inputs.iter().any(|port| port.name == input.name) {
        let others = inputs.iter().filter(|port| port.name != input.name);
        reasons.extend(others.map(|port| {
            format!(
                "the model requires another input {:?}, but this task has only one; export the model without it",
                port.name
            )
        }));
    }
    if is_checkable {
        reasons.extend(check_port(outputs, output, task).err());
    }
    let text = |expected: &Expected<'_>| {
        let Expected { name, format, .. } = expected;
        format!("{name} {}{}", format.element.as_str(), shape_text(&expected.shape()))
    };
    let finding = format!("{} → {}", text(&input), text(&output));
    let value = reasons.is_empty().then_some(());
    Outcome { finding, reasons, value }
}

/// Returns the sizes of the input and the output.
fn sizes(task: NetTask<'_>) -> (Sizes, Sizes) {
    let sizes = |channels: u32, (width, height): (Option<u32>, Option<u32>)| {
        [Some(1), Some(channels.into()), height.map(u64::from), width.map(u64::from)]
    };
    match task {
        NetTask::Segmentation(segmentation) => {
            let Segmentation { input, postprocess, .. } = segmentation;
            let map = segmentation.map_size();
            let map = sizes(postprocess.classes, (Some(map.0), Some(map.1)));
            (sizes(3, (Some(input.width), Some(input.height))), map)
        }
        NetTask::Upscale(Upscale { input, upscale, .. }) => {
            let large = |side: Option<u32>| side.map(|side| side * upscale.scale);
            let output = (large(input.width), large(input.height));
            (sizes(3, (input.width, input.height)), sizes(3, output))
        }
    }
}

/// Checks one port. A size that is open in `expected` must be open in the graph; any other may be fixed or open there.
fn check_port(ports: &[Port], expected: Expected<'_>, task: NetTask<'_>) -> Result<(), String> {
    let Expected { kind, name, format, .. } = expected;
    let Some(port) = ports.iter().find(|port| port.name == name) else {
        let missing = missing_port(kind, name, ports);
        return Err(format!("{missing}; set {kind}.name to the right one"));
    };
    if port.element != format.element.as_str() {
        let (element, stated) = (&port.element, format.element.as_str());
        let accepted = Element::ALL.iter().any(|accepted| accepted.as_str() == element);
        let advice = if accepted {
            format!("set {kind}.element = {element:?}")
        } else {
            "accepted are f32, f16 and u8: export the model in one of them".to_owned()
        };
        return Err(format!(
            "{kind} {name:?} is {element}, but the manifest expects {stated}; {advice}"
        ));
    }
    let shape = expected.shape();
    // The shape of an output may be left out; the warm-up compares what comes out.
    if fits(&port.shape, &shape) || (kind == "output" && port.shape.is_empty()) {
        return Ok(());
    }
    Err(format!(
        "{kind} {name:?} has shape {}, but the manifest expects {} ({}); {}",
        shape_text(&port.shape),
        shape_text(&shape),
        format.layout.as_str(),
        advice(&port.shape, expected, task)
    ))
}

fn fits(found: &[Option<u64>], expected: &[Option<u64>]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|pair| match pair {
            (Some(size), Some(expected)) => size == expected,
            (Some(_), None) => false,
            (None, _) => true,
        })
}

/// Returns whether an output is a whole number of times as wide and high as an input of `w` × `h`.
fn is_multiple(width: u64, height: u64, w: u32, h: u32) -> bool {
    let (w, h) = (u64::from(w), u64::from(h));
    width.is_multiple_of(w) && width / w * h == height
}

/// Says what to change so that a tensor of this shape is accepted.
fn advice(found: &[Option<u64>], expected: Expected<'_>, task: NetTask<'_>) -> String {
    let Expected { kind, format: Format { layout, .. }, sizes, .. } = expected;
    let is_map = kind == "output" && matches!(task, NetTask::Segmentation(_));
    let others = [Layout::Nchw, Layout::Nhwc, Layout::Nhw];
    let mut others = others.into_iter().filter(|other| *other != layout);
    // A layout without channels fits only a map of one class.
    let is_possible = |other: Layout| other != Layout::Nhw || (is_map && sizes[1] == Some(1));
    let has_channels = |other: Layout| {
        let axes = other.arrange([None, sizes[1], None, None]);
        let mut pairs = found.iter().zip(&axes);
        found.len() == axes.len() && pairs.all(|(found, axis)| axis.is_none() || found == axis)
    };
    if !has_channels(layout)
        && let Some(other) = others.find(|other| is_possible(*other) && has_channels(*other))
    {
        return format!("set {kind}.layout = {:?}", other.as_str());
    }
    let (batch, channels, height, width) = match (layout, found) {
        (Layout::Nchw, [batch, channels, height, width])
        | (Layout::Nhwc, [batch, height, width, channels]) => (*batch, *channels, *height, *width),
        (Layout::Nhw, [batch, height, width]) => (*batch, Some(1), *height, *width),
        _ => {
            let axes = match (is_map, layout) {
                (true, _) => "4 axes, or 3 for output.layout = \"nhw\"",
                (false, _) => "4 axes",
            };
            return format!("export the model with {axes}");
        }
    };
    if batch.is_some_and(|batch| batch != 1) {
        return "its first axis must be 1 or open: export the model for one picture at a time"
            .to_owned();
    }
    if let Some(channels) = channels.filter(|channels| Some(*channels) != sizes[1]) {
        return if is_map {
            format!("set postprocess.classes = {channels}, and postprocess.class to the subject's")
        } else {
            format!(
                "its {channels} channels must be 3: only nets for R, G, B pictures are accepted"
            )
        };
    }
    let (Some(height), Some(width)) = (height, width) else {
        return format!("export the {kind} with both sides fixed or both dynamic");
    };
    match task {
        NetTask::Segmentation(_) => {
            format!("set {kind}.width = {width} and {kind}.height = {height}")
        }
        NetTask::Upscale(_) if kind == "input" => format!(
            "it takes one size only: set input.width = {width} and input.height = {height}, and omit tiling.largest, \
             tiling.smallest, tiling.multiple_of, and tiling.memory_bytes_per_pixel"
        ),
        NetTask::Upscale(Upscale { input, .. }) => match (input.width, input.height) {
            (Some(w), Some(h)) if is_multiple(width, height, w, h) => {
                format!("set upscale.scale = {}", width / u64::from(w))
            }
            (Some(_), Some(_)) => {
                "it must be upscale.scale times as wide and high as the input".to_owned()
            }
            _ => "export the model with dynamic height and width, or with a fixed input size too"
                .to_owned(),
        },
    }
}
