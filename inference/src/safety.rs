//! A net that judges whether a picture may be shown.

use ndarray::Array4;

use crate::manifest::{ChannelOrder, Safety};
use crate::session::{Session, SessionError};
use retouch_pixels::resize;

/// The net with its contract. It is owned by one thread.
pub struct SafetyChecker {
    session: Session,
    contract: Safety,
}

impl SafetyChecker {
    /// Checks that the net has the tensors that the manifest names.
    ///
    /// # Errors
    /// Everything that is amiss, each in one sentence.
    pub fn new(session: Session, contract: &Safety) -> Result<Self, Vec<String>> {
        let side = u64::from(contract.input.crop);
        let mut reasons = Vec::new();
        match session.inputs().as_slice() {
            [port] if port.name == contract.input.name => {
                let wanted = [Some(1), Some(side), Some(side), Some(3)];
                let fits = port.is_f32
                    && port.shape.len() == 4
                    && port
                        .shape
                        .iter()
                        .zip(wanted)
                        .all(|(size, wanted)| size.is_none() || *size == wanted);
                if !fits {
                    reasons.push(format!(
                        "input {:?} holds {} of shape {:?}, the manifest makes it f32 [1, {side}, {side}, 3]",
                        port.name, port.element, port.shape
                    ));
                }
            }
            ports => {
                let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
                reasons.push(format!(
                    "the model's inputs are {names:?}, not {:?}",
                    contract.input.name
                ));
            }
        }
        let outputs = session.outputs();
        match outputs.iter().find(|port| port.name == contract.output.name) {
            None => reasons.push(format!("the model has no output {:?}", contract.output.name)),
            Some(port) => {
                let classes = port.shape.get(1).copied().flatten();
                if port.shape.len() != 2
                    || classes.is_some_and(|of| of <= contract.unsafe_class as u64)
                {
                    reasons.push(format!("output {:?} has shape {:?}", port.name, port.shape));
                }
            }
        }
        if reasons.is_empty() {
            Ok(Self { session, contract: contract.clone() })
        } else {
            Err(reasons)
        }
    }

    /// How probably a picture is unsafe, from 0 to 1. `rgb` is R, G, B of `width * height` pixels.
    ///
    /// # Errors
    /// When ONNX Runtime fails, or what it gives is no probability.
    pub fn unsafety(&mut self, rgb: &[u8], width: u32, height: u32) -> Result<f32, SessionError> {
        let Safety { input, output, unsafe_class, .. } = &self.contract;
        let (side, crop) = (input.resize as usize, input.crop as usize);
        let small = resize::resize_rgb(rgb, (width as usize, height as usize), (side, side));
        let margin = (side - crop) / 2;
        let tensor = Array4::from_shape_fn((1, crop, crop, 3), |(_, y, x, channel)| {
            let source = match input.order {
                ChannelOrder::Rgb => channel,
                ChannelOrder::Bgr => 2 - channel,
            };
            let at = ((y + margin) * side + x + margin) * 3 + source;
            f32::from(small[at]) - input.mean[channel]
        });
        let scores = self.session.run_flat(&input.name, &tensor, &output.name)?;
        match scores.get(*unsafe_class) {
            Some(score) if (0.0..=1.0).contains(score) => Ok(*score),
            _ => Err(SessionError::Failed(format!("its output is no probability: {scores:?}"))),
        }
    }
}
