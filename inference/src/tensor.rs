//! How the tensors of a net store pictures and maps. Outside a session, a picture is bytes `[batch, row, column, channel]`
//! and a map f32 `[batch, channel, row, column]`. The graph of a picture net converts from and to the format of its
//! tensors; for other nets the session does, from and to f32.

use half::f16;
use ndarray::{Array4, ArrayD, ArrayRef, ArrayViewD, Axis, Dimension, Ix4, Zip};
use retouch_pixels::tensor::Normalization;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    #[default]
    F32,
    /// 16-bit floats, up to 65,504, with 11 significant bits.
    F16,
    U8,
}

impl Element {
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::U8];

    /// Returns the name, as manifests and ONNX Runtime spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::U8 => "u8",
        }
    }
}

/// How precisely a net computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// As its file says, mostly in 32 bits.
    #[default]
    F32,
    /// In 16 bits, except where these overflow or lose too much.
    F16,
}

impl Precision {
    /// Returns the name in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
        }
    }
}

/// The order of a tensor's axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Batch, channel, row, column; the channels of a picture are R, G, B.
    #[default]
    Nchw,
    /// Batch, row, column, channel.
    Nhwc,
    /// Batch, row, column: a map of one channel.
    Nhw,
}

impl Layout {
    /// Returns the name in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nchw => "nchw",
            Self::Nhwc => "nhwc",
            Self::Nhw => "nhw",
        }
    }

    /// Arranges the sizes of batch, channel, row and column in this order.
    pub fn arrange<T: Copy>(self, [batch, channel, row, column]: [T; 4]) -> Vec<T> {
        match self {
            Self::Nchw => vec![batch, channel, row, column],
            Self::Nhwc => vec![batch, row, column, channel],
            Self::Nhw => vec![batch, row, column],
        }
    }
}

/// How a tensor stores its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    pub element: Element,
    pub layout: Layout,
}

/// An input or output tensor, as a graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    /// The element type, as ONNX Runtime names it.
    pub element: String,
    /// The size of each axis; `None` where any size is allowed.
    pub shape: Vec<Option<u64>>,
}

/// The tensors of a picture net, which has one input, a picture, and one output.
#[derive(Clone, Copy, Debug)]
pub struct Tensors<'a> {
    /// The input's name in the graph.
    pub input: &'a str,
    /// How the input stores a picture.
    pub input_format: Format,
    pub normalization: Normalization,
    /// The output's name in the graph.
    pub output: &'a str,
    /// How the output stores a picture or map.
    pub output_format: Format,
    /// The value of white in the output.
    pub white: f32,
    pub returns: Returns,
}

/// The kind of output of a picture net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// A map of what the picture shows, in one or more channels.
    Map,
    /// Another picture: R, G and B.
    Picture,
}

/// An element type that values are converted to and from.
pub trait Sample: Copy + Default {
    /// Converts a value; bytes are rounded and clipped.
    fn of(value: f32) -> Self;
    fn value(self) -> f32;
}

impl Sample for f32 {
    fn of(value: f32) -> Self {
        value
    }

    fn value(self) -> f32 {
        self
    }
}

impl Sample for f16 {
    fn of(value: f32) -> Self {
        Self::from_f32(value)
    }

    fn value(self) -> f32 {
        self.to_f32()
    }
}

impl Sample for u8 {
    fn of(value: f32) -> Self {
        value.round() as Self
    }

    fn value(self) -> f32 {
        f32::from(self)
    }
}

/// Returns a picture as a tensor of this layout.
pub fn encode<T: Sample>(picture: &Array4<f32>, layout: Layout) -> ArrayD<T> {
    let arranged = arranged(picture, layout);
    let mut tensor = ArrayD::default(arranged.raw_dim());
    Zip::from(&mut tensor).and(&arranged).for_each(|to, from| *to = T::of(*from));
    tensor
}

/// Returns a tensor of this layout as f32 `[batch, channel, row, column]`.
///
/// # Errors
/// If the tensor has another number of axes.
pub fn decode<T: Sample>(tensor: ArrayViewD<'_, T>, layout: Layout) -> Result<Array4<f32>, String> {
    let shape = tensor.shape().to_vec();
    let wrong = || format!("it has shape {shape:?}, which is not {}", layout.as_str());
    let rank = layout.arrange([(); 4]).len();
    if tensor.ndim() != rank {
        return Err(wrong());
    }
    let tensor = if layout == Layout::Nhw { tensor.insert_axis(Axis(1)) } else { tensor };
    let tensor = tensor.into_dimensionality::<Ix4>().map_err(|_| wrong())?;
    let tensor = match layout {
        Layout::Nhwc => tensor.permuted_axes([0, 3, 1, 2]),
        Layout::Nchw | Layout::Nhw => tensor,
    };
    let mut values = Array4::zeros(tensor.raw_dim());
    Zip::from(&mut values).and(&tensor).for_each(|to, from| *to = from.value());
    Ok(values)
}

fn arranged(picture: &Array4<f32>, layout: Layout) -> ArrayViewD<'_, f32> {
    let picture = picture.view();
    match layout {
        Layout::Nchw => picture.into_dyn(),
        Layout::Nhwc => picture.permuted_axes([0, 2, 3, 1]).into_dyn(),
        Layout::Nhw => picture.index_axis_move(Axis(1), 0).into_dyn(),
    }
}

/// Returns the largest difference, relative to the largest expected value; NaN if the shapes differ.
pub fn relative_difference<D: Dimension>(
    expected: &ArrayRef<f32, D>,
    found: &ArrayRef<f32, D>,
) -> f32 {
    if expected.shape() != found.shape() {
        return f32::NAN;
    }
    let pairs = expected.iter().zip(found);
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0_f32, maximum);
    let largest = expected.iter().map(|value| value.abs()).fold(f32::MIN_POSITIVE, maximum);
    difference / largest
}

/// Returns the mean difference of two tensors, relative to the largest value of `expected`; NaN if they differ in shape or
/// one holds NaN.
pub fn mean_difference(expected: &Array4<f32>, found: &Array4<f32>) -> f32 {
    if expected.shape() != found.shape() {
        return f32::NAN;
    }
    let sum: f64 = expected.iter().zip(found).map(|(a, b)| f64::from((a - b).abs())).sum();
    let largest = expected.iter().map(|value| value.abs()).fold(f32::MIN_POSITIVE, maximum);
    (sum / expected.len() as f64) as f32 / largest
}

/// Returns the larger value, or NaN if either is NaN (`f32::max` would drop it).
fn maximum(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Array4<f32> {
        Array4::from_shape_fn((2, 3, 2, 2), |(n, c, y, x)| (n * 100 + c * 10 + y * 2 + x) as f32)
    }

    #[test]
    fn every_format_keeps_a_picture_of_bytes() {
        for layout in [Layout::Nchw, Layout::Nhwc] {
            let of_f32 = encode::<f32>(&picture(), layout);
            let of_f16 = encode::<f16>(&picture(), layout);
            let of_u8 = encode::<u8>(&picture(), layout);
            assert_eq!(of_u8.shape(), layout.arrange([2, 3, 2, 2]));
            assert_eq!(decode(of_f32.view(), layout), Ok(picture()));
            assert_eq!(decode(of_f16.view(), layout), Ok(picture()));
            let of_bytes = decode(of_u8.view(), layout);
            assert_eq!(of_bytes, Ok(picture()));
            assert!(of_bytes.is_ok_and(|values| values.is_standard_layout()));
        }
        let last = encode::<u8>(&picture(), Layout::Nhwc);
        assert_eq!(last.iter().take(6).copied().collect::<Vec<_>>(), [0, 10, 20, 1, 11, 21]);
    }

    #[test]
    fn a_map_without_channels_gets_one() {
        let map = ArrayD::<f32>::zeros(vec![1, 4, 5]);
        let read = decode(map.view(), Layout::Nhw).unwrap();
        assert_eq!(read.shape(), [1, 1, 4, 5]);
        let error = decode(map.view(), Layout::Nchw).unwrap_err();
        assert_eq!(error, "it has shape [1, 4, 5], which is not nchw");
    }

    #[test]
    fn bytes_are_rounded_and_clipped() {
        assert_eq!([-3.0, 0.4, 0.6, 254.7, 999.0].map(u8::of), [0, 0, 1, 255, 255]);
    }

    #[test]
    fn results_are_compared_by_their_largest_difference() {
        let of = |values: [f32; 2]| Array4::from_shape_vec((1, 1, 1, 2), values.to_vec()).unwrap();
        let is = |expected, found, far: f32| {
            (relative_difference(&of(expected), &of(found)) - far).abs() < f32::EPSILON
        };
        assert!(is([1.0, -4.0], [1.0, -4.0], 0.0));
        assert!(is([1.0, -4.0], [2.0, -4.0], 0.25));
        assert!(is([0.0, 0.0], [0.0, 0.0], 0.0));
        assert!(relative_difference(&of([0.0, 0.0]), &of([0.0, 0.5])) > 1.0);
        assert!(relative_difference(&of([f32::NAN, 1.0]), &of([0.0, 1.0])).is_nan());
        let mean = mean_difference(&of([1.0, -4.0]), &of([2.0, -3.0]));
        assert!((mean - 0.25).abs() < f32::EPSILON, "{mean}");
        assert!(mean_difference(&of([0.0, 1.0]), &of([0.0, f32::NAN])).is_nan());
        assert!(relative_difference(&of([0.0, 1.0]), &of([f32::NAN, 1.0])).is_nan());
        assert!(relative_difference(&of([0.0, 1.0]), &Array4::zeros((1, 1, 2, 1))).is_nan());
    }
}
