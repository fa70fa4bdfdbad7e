//! Nets that fill a hole without a prompt, such as `LaMa` and MI-GAN; their manifests state how they differ.

use ndarray::Array4;
use retouch_pixels::patch::{Canvas, Fit};

use super::{PaintError, Painter, Painting, Watch};
use crate::manifest::Fill;
use crate::session::{Session, SessionError, missing_port, shape_text};

/// A net with one input for the picture and one for the mask.
pub struct FillPainter {
    session: Session,
    contract: Fill,
}

impl FillPainter {
    /// Checks that the net has the tensors that the manifest names.
    ///
    /// # Errors
    /// Every mismatch, one sentence each.
    pub fn new(session: Session, contract: &Fill) -> Result<Self, Vec<String>> {
        let mut reasons = Vec::new();
        let (inputs, outputs) = (session.inputs(), session.outputs());
        let expected = contract.image.element.as_str();
        let tensors = [
            ("input", &inputs, &contract.image.name, 3),
            ("input", &inputs, &contract.mask.name, 1),
            ("output", &outputs, &contract.output.name, 3),
        ];
        for (kind, ports, name, channels) in tensors {
            let Some(port) = ports.iter().find(|port| port.name == *name) else {
                reasons.push(missing_port(kind, name, ports));
                continue;
            };
            if port.element.to_lowercase() != expected {
                reasons.push(format!(
                    "{kind} {name:?} is {}, but the manifest expects {expected}",
                    port.element
                ));
            }
            let fits = port.shape.len() == 4 && port.shape[1].is_none_or(|size| size == channels);
            if !fits {
                reasons.push(format!(
                    "{kind} {name:?} has shape {}, but the task expects [1, {channels}, height, width]",
                    shape_text(&port.shape)
                ));
            } else if kind == "input" {
                reasons.extend(wrong_sides(&port.shape, contract.canvas));
            }
        }
        // Picture and mask have the same sides.
        reasons.dedup();
        if let Some(more) = inputs
            .iter()
            .find(|port| port.name != contract.image.name && port.name != contract.mask.name)
        {
            reasons.push(format!("the model requires another input {:?}", more.name));
        }
        if reasons.is_empty() {
            Ok(Self { session, contract: contract.clone() })
        } else {
            Err(reasons)
        }
    }

    fn run(&mut self, painting: &Painting) -> Result<Vec<f32>, SessionError> {
        let Fill { image, mask, output, output_white, .. } = &self.contract;
        let size = (painting.height as usize, painting.width as usize);
        let picture = Array4::from_shape_fn((1, 3, size.0, size.1), |(_, channel, y, x)| {
            let at = y * size.1 + x;
            let is_blank = image.blanks_hole && painting.hole[at];
            if is_blank {
                0.0
            } else {
                f32::from(painting.rgb[at * 3 + channel]) / 255.0 * image.white
            }
        });
        let marks = Array4::from_shape_fn((1, 1, size.0, size.1), |(_, _, y, x)| {
            if painting.hole[y * size.1 + x] { mask.fill } else { mask.keep }
        });
        let names = (image.name.as_str(), mask.name.as_str());
        let inputs = [(names.0, &picture), (names.1, &marks)];
        let made = self.session.run_pair(inputs, &output.name, image.element)?;
        if made.shape() != [1, 3, size.0, size.1] {
            let text = format!(
                "output {:?} has shape {:?}, but the input implies [1, 3, {}, {}]",
                output.name,
                made.shape(),
                size.0,
                size.1
            );
            return Err(SessionError::Failed(text));
        }
        let made = made.permuted_axes([0, 2, 3, 1]);
        Ok(made.iter().map(|value| value / output_white * 255.0).collect())
    }
}

/// Explains why crops of a canvas do not fit into an input `[batch, channel, row, column]`.
fn wrong_sides(shape: &[Option<u64>], Canvas { side, fit, .. }: Canvas) -> Option<String> {
    match shape[2..] {
        [None, None] => None,
        [Some(height), Some(width)] if height == width => {
            let is_stated = fit == Fit::Square && u64::from(side) == height;
            (!is_stated).then(|| {
                format!(
                    "it takes pictures of {height} × {width} only; set canvas.fit = \"square\" and canvas.side = {height}"
                )
            })
        }
        _ => Some(format!(
            "its sides are {}, but must be equal or both open: export the model with square or dynamic height and \
             width",
            shape_text(&shape[2..])
        )),
    }
}

impl Painter for FillPainter {
    fn paint(&mut self, painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError> {
        if watch.cancel.is_cancelled() {
            return Err(PaintError::Canceled);
        }
        if !painting.hole.contains(&false) {
            return Err(PaintError::NothingLeft);
        }
        let made = self.run(painting)?;
        if !made.iter().all(|value| value.is_finite()) {
            return Err(PaintError::failed("the output contains values that are not finite"));
        }
        Ok(made.into_iter().map(|value| value.round().clamp(0.0, 255.0) as u8).collect())
    }
}
