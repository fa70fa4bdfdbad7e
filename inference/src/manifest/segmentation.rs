//! The contract of a segmentation model, which finds the subject of a picture.

use ndarray::{Array4, ArrayRef4};
use retouch_pixels::alpha::{self, Inside, MapRange, Reading};
use retouch_pixels::framing::{Align, Frame, Framing};
use retouch_pixels::levels;
use retouch_pixels::tensor::{self, Divisor, Normalization};
use retouch_pixels::{Picture, PixelError};
use serde::{Deserialize, Deserializer};

use super::contract::{
    Element, Layout, NetOutput, Precision, check_normalization, check_picture_layout,
};

/// Maximum width and height of an input or output, in pixels.
const MAX_SIDE: u32 = 8192;

/// The contract of a segmentation model: takes an RGB picture of a fixed size and returns a map of what it shows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segmentation {
    /// How precisely it computes on a GPU.
    #[serde(default)]
    pub precision: Precision,
    pub input: PictureInput,
    /// The output to fetch: `[1, classes, height, width]`, in the order of its layout.
    pub output: NetOutput,
    pub postprocess: Postprocess,
}

/// How a picture becomes a tensor: resized, then `(sample / divide_by - mean) / std` per channel, for samples in
/// 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureInput {
    /// The tensor's name in the graph.
    pub name: String,
    pub layout: Layout,
    pub width: u32,
    pub height: u32,
    pub element: Element,
    pub resize: Resize,
    #[serde(default)]
    pub fit: InputFit,
    /// R, G, B of a letterbox's border.
    pub pad_color: Option<[u8; 3]>,
    /// Where a letterboxed picture lies; `None` for the middle.
    pub align: Option<Align>,
    #[serde(deserialize_with = "divisor")]
    pub divide_by: Divisor,
    /// Subtracted after the division, for R, G and B.
    pub mean: [f32; 3],
    /// The final divisor, for R, G and B.
    pub std: [f32; 3],
}

/// How a picture is brought to the size of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputFit {
    /// Resized to exactly that size; the aspect ratio changes.
    #[default]
    Stretch,
    /// Resized with its aspect ratio; the rest has the color `pad_color`.
    Letterbox,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// A triangle filter, widened when shrinking, as in Pillow's `BILINEAR`.
    Bilinear,
}

fn divisor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Divisor, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(f32),
        Word(String),
    }
    match Value::deserialize(deserializer) {
        Ok(Value::Number(number)) if number.is_finite() && number > 0.0 => {
            Ok(Divisor::Constant(number))
        }
        Ok(Value::Word(word)) if word == "max" => Ok(Divisor::Max),
        _ => Err(serde::de::Error::custom(
            "input.divide_by must be \"max\" or a finite number above 0, such as 255",
        )),
    }
}

/// How a segmentation map becomes alpha.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postprocess {
    pub range: MapRange,
    /// How the map is resized to the picture's size.
    pub resize: Resize,
    /// The number of channels of the map.
    #[serde(default = "one")]
    pub classes: u32,
    /// The channel of the subject, from 0; required if there are several.
    pub class: Option<u32>,
    /// How the map's values inside of a subject are used.
    #[serde(default)]
    pub inside: Inside,
}

const fn one() -> u32 {
    1
}

impl PictureInput {
    /// Converts a picture to the size of the input, bytes `[1, height, width, 3]`. The net normalizes them.
    pub fn to_bytes(&self, picture: &Picture) -> Array4<u8> {
        let (Resize::Bilinear, size) = (self.resize, (self.width, self.height));
        tensor::to_bytes(picture, size, self.framing())
    }

    /// Stretches the levels of a picture of low contrast, because nets find little in it. `bytes` is the result of
    /// [`Self::to_bytes`] for a picture of this width and height.
    pub fn stretched(&self, bytes: &Array4<u8>, picture: (u32, u32)) -> Array4<u8> {
        let frame = self.framing().frame(picture, (self.width, self.height));
        levels::stretched(bytes, &frame).unwrap_or_else(|| bytes.clone())
    }

    /// Converts a picture to normalized values, f32 `[1, 3, height, width]`, for a net that does not normalize.
    pub fn to_tensor(&self, picture: &Picture) -> Array4<f32> {
        let (Resize::Bilinear, size) = (self.resize, (self.width, self.height));
        tensor::to_tensor(picture, size, self.framing(), &self.normalization())
    }

    /// Returns the conversion of 8-bit samples to values of the input.
    pub const fn normalization(&self) -> Normalization {
        Normalization { divide_by: self.divide_by, mean: self.mean, std: self.std }
    }

    pub fn framing(&self) -> Framing {
        match (self.fit, self.pad_color) {
            (InputFit::Letterbox, Some(color)) => {
                Framing::Letterbox { color, align: self.align.unwrap_or_default() }
            }
            // `check` refuses a letterbox without a color.
            (InputFit::Letterbox, None) | (InputFit::Stretch, _) => Framing::Stretch,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        check_size("input", (self.width, self.height))?;
        check_picture_layout("input.layout", self.layout)?;
        match (self.fit, self.pad_color, self.align) {
            (InputFit::Letterbox, None, _) => Err(
                "input.fit is \"letterbox\", which needs input.pad_color, R, G, B of the border in \
                 0..255, such as [114, 114, 114]: use the color that the model was trained with",
            ),
            (InputFit::Stretch, Some(_), _) | (InputFit::Stretch, _, Some(_)) => Err(
                "input.pad_color and input.align are only for input.fit = \"letterbox\": set it, or \
                 remove them",
            ),
            (InputFit::Letterbox, Some(_), _) | (InputFit::Stretch, None, None) => Ok(()),
        }?;
        let divide_by = match self.divide_by {
            Divisor::Constant(constant) => Some(constant),
            Divisor::Max => None,
        };
        check_normalization(self.element, divide_by, &self.mean, &self.std)
    }
}

impl Postprocess {
    pub fn reading(&self) -> Reading {
        let channel = self.class.unwrap_or(0) as usize;
        Reading { range: self.range, channel }
    }

    fn check(&self) -> Result<(), String> {
        let Self { range, classes, class, .. } = *self;
        if !(1..=1024).contains(&classes) {
            return Err(format!("postprocess.classes is {classes}, but must be 1 to 1024"));
        }
        match class {
            None if classes > 1 => Err(format!(
                "postprocess.classes is {classes}, so postprocess.class must say which channel is \
                 the subject, 0 to {}",
                classes - 1
            )),
            Some(class) if class >= classes => Err(format!(
                "postprocess.class is {class}, but must be 0 to {}, because postprocess.classes is \
                 {classes}",
                classes - 1
            )),
            None | Some(_) if range == MapRange::Softmax && classes == 1 => {
                Err("postprocess.range is \"softmax\", which needs several classes: set \
                 postprocess.classes and postprocess.class, or use \"sigmoid\""
                    .to_owned())
            }
            None | Some(_) => Ok(()),
        }
    }
}

impl Segmentation {
    /// Returns the width and height of the map.
    pub fn map_size(&self) -> (u32, u32) {
        let Self { input, output, .. } = self;
        (output.width.unwrap_or(input.width), output.height.unwrap_or(input.height))
    }

    /// Converts a map, f32 `[1, classes, h, w]`, to one alpha byte per pixel of `picture`, which follows the edges of the
    /// picture. `seen` is what the net got, bytes `[1, height, width, 3]`.
    ///
    /// # Errors
    /// [`PixelError::InvalidOutput`] if the map contains NaN or infinities.
    pub fn to_alpha(
        &self,
        map: &ArrayRef4<f32>,
        picture: &Picture,
        seen: &Array4<u8>,
    ) -> Result<Vec<u8>, PixelError> {
        let Postprocess { inside, .. } = self.postprocess;
        let frame = self.frame((picture.width, picture.height));
        alpha::to_alpha(map, self.postprocess.reading(), inside, &frame, picture, seen)
    }

    /// Enlarges a map, f32 `[1, classes, h, w]`, as it is: to one alpha byte per pixel of a picture of this width and
    /// height.
    ///
    /// # Errors
    /// Same as for [`Self::to_alpha`].
    pub fn enlarge_map(
        &self,
        map: &ArrayRef4<f32>,
        size: (u32, u32),
    ) -> Result<Vec<u8>, PixelError> {
        alpha::enlarge_map(map, self.postprocess.reading(), &self.frame(size), size)
    }

    /// Returns where a picture of this width and height lies in the input.
    fn frame(&self, size: (u32, u32)) -> Frame {
        let Self { input, postprocess, .. } = self;
        let Resize::Bilinear = postprocess.resize;
        input.framing().frame(size, (input.width, input.height))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Self { input, output, postprocess, .. } = self;
        input.check()?;
        output.check()?;
        postprocess.check()?;
        if output.width.is_some() != output.height.is_some() {
            return Err("output.width and output.height must be given together".to_owned());
        }
        check_size("output", self.map_size())?;
        if output.layout == Layout::Nhw && postprocess.classes > 1 {
            return Err(format!(
                "output.layout is \"nhw\", which has no axis for the {} classes of \
                 postprocess.classes; use \"nchw\" or \"nhwc\"",
                postprocess.classes
            ));
        }
        let are_logits = matches!(postprocess.range, MapRange::Sigmoid | MapRange::Softmax);
        if output.element == Element::U8 && are_logits {
            return Err(
                "output.element is \"u8\", but logits are floats: set postprocess.range to \
                        \"clip\" or \"minmax\""
                    .to_owned(),
            );
        }
        Ok(())
    }
}

fn check_size(tensor: &str, (width, height): (u32, u32)) -> Result<(), String> {
    if (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height) {
        Ok(())
    } else {
        Err(format!(
            "{tensor}.width and {tensor}.height are {width} × {height}, but must be 1 to {MAX_SIDE}"
        ))
    }
}
