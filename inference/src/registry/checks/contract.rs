//! The contract step of a net: its inputs and outputs are those of the manifest.

use crate::manifest::{NetTask, Segmentation};
use crate::registry::steps::Outcome;
use crate::session::{Port, Session, missing_port, shape_text};

/// Compares inputs and outputs with the manifest, by name, element type, rank and size.
pub fn check(session: &Session, task: NetTask<'_>) -> Outcome<()> {
    let (input_shape, output_shape) = match task {
        NetTask::Segmentation(Segmentation { input, .. }) => {
            let (width, height) = (u64::from(input.width), u64::from(input.height));
            let fixed = |channels| [Some(1), Some(channels), Some(height), Some(width)];
            (fixed(3), fixed(1))
        }
        // Tiles have many sizes.
        NetTask::Upscale(_) => ([Some(1), Some(3), None, None], [Some(1), Some(3), None, None]),
    };
    let inputs = session.inputs();
    let mut reasons = Vec::new();
    reasons.extend(check_port("input", &inputs, task.input(), input_shape).err());
    // If the named input is missing, the others are not reported as well: one of them is probably meant.
    if inputs.iter().any(|port| port.name == task.input()) {
        let others = inputs.iter().filter(|port| port.name != task.input());
        reasons
            .extend(others.map(|port| format!("the model requires another input {:?}", port.name)));
    }
    reasons.extend(check_port("output", &session.outputs(), task.output(), output_shape).err());
    let finding = format!(
        "{} f32{} → {} f32{}",
        task.input(),
        shape_text(&input_shape),
        task.output(),
        shape_text(&output_shape)
    );
    let value = reasons.is_empty().then_some(());
    Outcome { finding, reasons, value }
}

/// Checks one port. A size that is open in `shape` must be open in the graph; any other may be fixed or open there.
fn check_port(
    kind: &str,
    ports: &[Port],
    name: &str,
    shape: [Option<u64>; 4],
) -> Result<(), String> {
    let Some(port) = ports.iter().find(|port| port.name == name) else {
        return Err(missing_port(kind, name, ports));
    };
    if !port.is_f32 {
        let element = &port.element;
        return Err(format!("{kind} {name:?} is {element}, but the manifest expects f32"));
    }
    let fits = port.shape.len() == shape.len()
        && port.shape.iter().zip(shape).all(|pair| match pair {
            (Some(size), Some(expected)) => *size == expected,
            (Some(_), None) => false,
            (None, _) => true,
        });
    if fits {
        Ok(())
    } else {
        Err(format!(
            "{kind} {name:?} has shape {}, but the manifest expects {}",
            shape_text(&port.shape),
            shape_text(&shape)
        ))
    }
}
