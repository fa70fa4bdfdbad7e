//! The safety model: a net that estimates the probability that a picture is unsafe to show.

use ndarray::Array4;

use crate::manifest::{ChannelOrder, Safety};
use crate::session::{Session, SessionError, missing_port, shape_text};
use crate::tensor::Format;
use retouch_pixels::resize;

/// A safety net with its contract. One thread owns it.
pub struct SafetyChecker {
    session: Session,
    contract: Safety,
}

impl SafetyChecker {
    /// Checks that the net has the tensors that the manifest names.
    ///
    /// # Errors
    /// Every mismatch, one sentence each.
    pub fn new(session: Session, contract: &Safety) -> Result<Self, Vec<String>> {
        let side = u64::from(contract.input.crop);
        let mut reasons = Vec::new();
        match session.inputs().as_slice() {
            [port] if port.name == contract.input.name => {
                let Format { element, layout } = contract.input.format();
                let expected = layout.arrange([Some(1), Some(3), Some(side), Some(side)]);
                let fits = port.element.to_lowercase() == element.as_str()
                    && port.shape.len() == 4
                    && port
                        .shape
                        .iter()
                        .zip(&expected)
                        .all(|(size, expected)| size.is_none() || size == expected);
                if !fits {
                    reasons.push(format!(
                        "input {:?} is {} {}, but the manifest expects {} {}",
                        port.name,
                        port.element,
                        shape_text(&port.shape),
                        element.as_str(),
                        shape_text(&expected)
                    ));
                }
            }
            ports => {
                let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
                reasons.push(format!(
                    "the model has the inputs {names:?}, but the manifest expects only {:?}",
                    contract.input.name
                ));
            }
        }
        let outputs = session.outputs();
        match outputs.iter().find(|port| port.name == contract.output.name) {
            None => reasons.push(missing_port("output", &contract.output.name, &outputs)),
            Some(port) => {
                if !["f32", "f16"].contains(&port.element.to_lowercase().as_str()) {
                    reasons.push(format!(
                        "output {:?} is {}, but probabilities must be f32 or f16",
                        port.name, port.element
                    ));
                }
                let classes = port.shape.get(1).copied().flatten();
                if port.shape.len() != 2
                    || classes.is_some_and(|count| count <= contract.unsafe_class as u64)
                {
                    reasons.push(format!(
                        "output {:?} has shape {}, but the manifest expects [1, classes] with unsafe_class = {}",
                        port.name,
                        shape_text(&port.shape),
                        contract.unsafe_class
                    ));
                }
            }
        }
        if reasons.is_empty() {
            Ok(Self { session, contract: contract.clone() })
        } else {
            Err(reasons)
        }
    }

    /// Returns the probability that a picture is unsafe, 0 to 1. `rgb` holds R, G, B of `width * height` pixels.
    ///
    /// # Errors
    /// If ONNX Runtime fails, or the output is not a probability.
    pub fn unsafety(&mut self, rgb: &[u8], width: u32, height: u32) -> Result<f32, SessionError> {
        let Safety { input, output, unsafe_class, .. } = &self.contract;
        let (side, crop) = (input.resize as usize, input.crop as usize);
        let small = resize::resize_rgb(rgb, (width as usize, height as usize), (side, side));
        let margin = (side - crop) / 2;
        let tensor = Array4::from_shape_fn((1, 3, crop, crop), |(_, channel, y, x)| {
            let source = match input.order {
                ChannelOrder::Rgb => channel,
                ChannelOrder::Bgr => 2 - channel,
            };
            let at = ((y + margin) * side + x + margin) * 3 + source;
            f32::from(small[at]) - input.mean[channel]
        });
        let scores = self.session.run_flat((&input.name, input.format()), &tensor, &output.name)?;
        match scores.get(*unsafe_class) {
            Some(score) if (0.0..=1.0).contains(score) => Ok(*score),
            _ => {
                let text = format!("output {:?} is not a probability: {scores:?}", output.name);
                Err(SessionError::Failed(text))
            }
        }
    }
}
