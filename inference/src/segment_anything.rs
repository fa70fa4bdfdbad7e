//! Segments the object at a click, with a model of the Segment Anything family (Kirillov et al., "Segment Anything",
//! 2023; Ravi et al., "SAM 2: Segment Anything in Images and Videos", 2024): an encoder runs once per picture, and a
//! small decoder for each click.

use std::path::Path;

use ndarray::{Array1, Array2, Array3, Array4, ArrayD, Ix2, Ix4, s};

use crate::diffusion::DiffusionError;
use crate::diffusion::net::{Element, Input, Net, Port};
use crate::manifest::{self, DecoderPorts, Layout, PictureInput};
use crate::session::{Runtime, SessionError, shape_text};

/// The folders of the two nets.
const ENCODER: &str = "encoder";
const DECODER: &str = "decoder";
/// Masks of a decoder that leaves their size open have this share of the input's side, as in the original models.
const MASK_SHARE: u32 = 4;

/// An opened model. One thread owns it.
pub struct SegmentAnything {
    encoder: Net,
    decoder: Net,
    input: PictureInput,
    ports: DecoderPorts,
    /// The encoder's input.
    picture: Port,
    /// The encoder's outputs that the decoder takes, in the order of [`Self::features`].
    outputs: Vec<Port>,
    /// The decoder's inputs that take them.
    features: Vec<Port>,
    /// The decoder's other inputs.
    prompts: Vec<Port>,
    masks: Port,
    scores: Port,
}

/// The encoder's features of a picture, for any number of clicks.
#[derive(Debug)]
pub struct Features(Vec<ArrayD<f32>>);

impl Features {
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|feature| feature.len() as u64 * 4).sum()
    }
}

/// The clicks, in pixels of the encoder's input: x and y from the left and the top.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Points of the object.
    pub positive: Vec<(f32, f32)>,
    /// Points beside the object.
    pub negative: Vec<(f32, f32)>,
    /// The top left and bottom right corner of a box around the object.
    pub corners: Option<[(f32, f32); 2]>,
}

#[derive(Debug)]
pub struct ObjectMask {
    /// Logits `[1, 1, h, w]`, which cover the encoder's input: above 0 where the object is.
    pub logits: Array4<f32>,
    /// How well the model estimates that the mask fits, 0 to 1: the expected intersection over union.
    pub score: f32,
}

impl SegmentAnything {
    /// Opens the nets of a folder and checks that they have the tensors that the manifest names.
    ///
    /// # Errors
    /// Every problem, one sentence each.
    pub fn open(
        folder: &Path,
        contract: &manifest::SegmentAnything,
        runtime: &Runtime,
    ) -> Result<Self, Vec<String>> {
        let open = |part| Net::open(folder, part, runtime).map_err(|error| vec![error.to_string()]);
        let (encoder, decoder) = (open(ENCODER)?, open(DECODER)?);
        let ports = &contract.decoder;
        let mut reasons = Vec::new();
        let picture =
            check_picture(&encoder, &contract.input).map_err(|reason| reasons.push(reason));
        let (mut outputs, mut features, mut prompts) = (Vec::new(), Vec::new(), Vec::new());
        for port in decoder.inputs() {
            if let Element::Other(name) = &port.element {
                reasons.push(format!(
                    "decoder: input {:?} is {name}; export the model with floats or integers there",
                    port.name
                ));
            }
            if ports.is_prompt(&port.name) {
                prompts.push(port.clone());
                continue;
            }
            let name = contract.features.get(&port.name).unwrap_or(&port.name);
            match encoder.outputs().iter().find(|output| output.name == *name) {
                Some(output) => {
                    outputs.push(output.clone());
                    features.push(port.clone());
                }
                None => reasons.push(format!(
                    "decoder: input {:?} needs an output {name:?} of the encoder, which has {}; name the right one under \
                     [features], or the input under [decoder] if it is no feature",
                    port.name,
                    names(encoder.outputs())
                )),
            }
        }
        for input in contract.features.keys() {
            if !decoder.inputs().iter().any(|port| port.name == *input) {
                reasons.push(format!(
                    "[features] names {input:?}, but the inputs of the decoder are {}",
                    names(decoder.inputs())
                ));
            }
        }
        for (field, name) in [("points", &ports.points), ("labels", &ports.labels)] {
            if !prompts.iter().any(|port| port.name == *name) {
                reasons.push(format!(
                    "decoder.{field} is {name:?}, but the inputs of the decoder are {}",
                    names(decoder.inputs())
                ));
            }
        }
        let mut output = |field: &str, name: &str, rank: usize| {
            let found = decoder.outputs().iter().find(|port| port.name == name).cloned();
            match &found {
                None => reasons.push(format!(
                    "decoder.{field} is {name:?}, but the outputs of the decoder are {}",
                    names(decoder.outputs())
                )),
                Some(port) if port.rank() != rank || !port.element.is_float() => {
                    reasons.push(format!(
                        "decoder: output {name:?} has {} axes, but must hold floats along {rank}",
                        port.rank()
                    ));
                }
                Some(_) => {}
            }
            found
        };
        let masks = output("masks", &ports.masks, 4);
        let scores = output("scores", &ports.scores, 2);
        match (picture, masks, scores) {
            (Ok(picture), Some(masks), Some(scores)) if reasons.is_empty() => Ok(Self {
                encoder,
                decoder,
                input: contract.input.clone(),
                ports: contract.decoder.clone(),
                picture,
                outputs,
                features,
                prompts,
                masks,
                scores,
            }),
            _ => Err(reasons),
        }
    }

    pub fn description(&self) -> String {
        let count = self.features.len();
        format!("an encoder with {count} features, and a decoder of points")
    }

    /// Returns the features of a picture, f32 `[1, 3, height, width]` of the encoder's input.
    ///
    /// # Errors
    /// If ONNX Runtime fails, or the features contain values that are not finite.
    pub fn features(&mut self, picture: &Array4<f32>) -> Result<Features, SessionError> {
        let rows_first = picture.view().permuted_axes([0, 2, 3, 1]);
        let view = match self.input.layout {
            Layout::Nhwc => rows_first.into_dyn(),
            Layout::Nchw | Layout::Nhw => picture.view().into_dyn(),
        };
        let outputs: Vec<_> = self.outputs.iter().collect();
        let features = self.encoder.run_for(&[(&self.picture, Input::Floats(view))], &outputs);
        features.map(Features).map_err(session_error)
    }

    /// Returns the mask that fits a prompt best.
    ///
    /// # Errors
    /// If ONNX Runtime fails, or the outputs are not masks with scores.
    pub fn mask(
        &mut self,
        features: &Features,
        prompt: &Prompt,
    ) -> Result<ObjectMask, SessionError> {
        let (points, labels) = self.point_tensors(prompt);
        let prompts: Vec<_> = self
            .prompts
            .iter()
            .map(|port| (port, self.prompt_tensor(port, &points, &labels)))
            .collect();
        let mut inputs: Vec<_> = self
            .features
            .iter()
            .zip(&features.0)
            .map(|(port, feature)| (port, Input::Floats(feature.view())))
            .collect();
        inputs.extend(prompts.iter().map(|(port, tensor)| (*port, Input::Floats(tensor.view()))));
        let outputs = self.decoder.run_for(&inputs, &[&self.masks, &self.scores]);
        let mut outputs = outputs.map_err(session_error)?.into_iter();
        let (Some(masks), Some(scores)) = (outputs.next(), outputs.next()) else {
            return Err(SessionError::Failed("the decoder returned no masks".to_owned()));
        };
        best(masks, scores)
    }

    /// Returns the points `[1, n, 2]` and their labels `[1, n]`.
    fn point_tensors(&self, prompt: &Prompt) -> (Array3<f32>, Array2<f32>) {
        let mut points = Vec::new();
        if let Some([first, last]) = prompt.corners {
            points.extend([(first, 2.0), (last, 3.0)]);
        }
        points.extend(prompt.positive.iter().map(|at| (*at, 1.0)));
        points.extend(prompt.negative.iter().map(|at| (*at, 0.0)));
        if self.ports.padding_point && prompt.corners.is_none() {
            points.push(((0.0, 0.0), -1.0));
        }
        let coordinates = Array3::from_shape_fn((1, points.len(), 2), |(_, n, axis)| {
            let (x, y) = points[n].0;
            if axis == 0 { x } else { y }
        });
        (coordinates, Array2::from_shape_fn((1, points.len()), |(_, n)| points[n].1))
    }

    fn prompt_tensor(
        &self,
        port: &Port,
        points: &Array3<f32>,
        labels: &Array2<f32>,
    ) -> ArrayD<f32> {
        let DecoderPorts { points: point_name, labels: label_name, mask, size, .. } = &self.ports;
        let PictureInput { width, height, .. } = self.input;
        let name = &port.name;
        if name == point_name {
            points.clone().into_dyn()
        } else if name == label_name {
            labels.clone().into_dyn()
        } else if name == mask {
            let side = |axis, input: u32| port.size(axis).unwrap_or((input / MASK_SHARE) as usize);
            Array4::zeros((1, 1, side(2, height), side(3, width))).into_dyn()
        } else if name == size {
            Array1::from_vec(vec![height as f32, width as f32]).into_dyn()
        } else {
            // Whether there is an earlier mask.
            Array1::zeros(1).into_dyn()
        }
    }
}

impl DecoderPorts {
    fn is_prompt(&self, input: &str) -> bool {
        [&self.points, &self.labels, &self.mask, &self.has_mask, &self.size]
            .into_iter()
            .any(|name| name == input)
    }
}

/// Returns the encoder's input, if it matches the manifest.
fn check_picture(encoder: &Net, input: &PictureInput) -> Result<Port, String> {
    let [port] = encoder.inputs() else {
        return Err(format!(
            "encoder: it has the inputs {}, but this task has only a picture",
            names(encoder.inputs())
        ));
    };
    if port.name != input.name {
        return Err(format!(
            "input.name is {:?}, but the encoder's input is {:?}",
            input.name, port.name
        ));
    }
    if !port.element.is_float() {
        return Err(format!(
            "encoder: input {:?} must hold floats: export the model with a float input",
            port.name
        ));
    }
    let sizes = [1, 3, u64::from(input.height), u64::from(input.width)];
    let expected = input.layout.arrange(sizes.map(Some));
    let found: Vec<_> = port.shape.iter().map(|size| size.map(|size| size as u64)).collect();
    let fits = found.len() == expected.len()
        && found
            .iter()
            .zip(&expected)
            .all(|(found, expected)| found.is_none() || found == expected);
    if fits {
        Ok(port.clone())
    } else {
        Err(format!(
            "encoder: input {:?} has shape {}, but the manifest expects {}; set input.width, input.height, and \
             input.layout to what it has",
            port.name,
            shape_text(&found),
            shape_text(&expected)
        ))
    }
}

fn best(masks: ArrayD<f32>, scores: ArrayD<f32>) -> Result<ObjectMask, SessionError> {
    let failed = |reason: String| SessionError::Failed(format!("the decoder's outputs: {reason}"));
    let masks = masks.into_dimensionality::<Ix4>().map_err(|error| failed(error.to_string()))?;
    let scores = scores.into_dimensionality::<Ix2>().map_err(|error| failed(error.to_string()))?;
    let count = masks.dim().1;
    if masks.dim().0 != 1 || scores.dim() != (1, count) {
        return Err(failed(format!("{:?} masks with {:?} scores", masks.dim(), scores.dim())));
    }
    let numbered = scores.row(0).into_iter().copied().enumerate();
    let Some((at, score)) = numbered.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Err(failed("there is no mask".to_owned()));
    };
    Ok(ObjectMask { logits: masks.slice(s![.., at..=at, .., ..]).to_owned(), score })
}

fn names(ports: &[Port]) -> String {
    let names: Vec<_> = ports.iter().map(|port| format!("{:?}", port.name)).collect();
    names.join(", ")
}

fn session_error(error: DiffusionError) -> SessionError {
    match error {
        DiffusionError::Session { error, .. } => error,
        other => SessionError::Failed(other.to_string()),
    }
}
