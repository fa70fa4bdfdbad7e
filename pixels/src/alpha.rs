//! Turns a segmentation map into soft alpha at the picture's full size, without sharpening edges or a threshold.

mod enlarge;
mod inside;
mod traces;

use std::ops::Range;

use ndarray::{Array4, ArrayRef4, Axis};
use serde::Deserialize;

use crate::edges::{Map, refine};
use crate::framing::Frame;
use crate::{Picture, PixelError};
use enlarge::{Side, enlarge};
use inside::make_opaque;
use traces::clear_traces;

/// A map whose largest and smallest value differ by less is flat: the model found nothing.
const FLAT: f32 = 1e-6;

/// How to bring the values of a segmentation map into 0..=1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapRange {
    /// The smallest value becomes 0, the largest 1.
    Minmax,
    /// Values outside 0..=1 are clipped.
    Clip,
    /// The values are logits: `1 / (1 + exp(-value))`.
    Sigmoid,
    /// The channels hold the logits of classes: `exp(value) / sum of exp over the channels`.
    Softmax,
}

/// How to treat the inside of a subject, where the map is near 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inside {
    /// How certain the net is: the inside is opaque.
    #[default]
    Opaque,
    /// How transparent the subject is, as of glass: a matting net.
    Translucent,
}

#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub range: MapRange,
    pub channel: usize,
}

/// Turns a model's map, f32 `[1, channels, h, w]`, into one alpha byte per pixel of `picture`, whose own alpha is
/// ignored. The map covers the model's input, bytes `[1, h, w, 3]`, in which the picture lies in `frame`. Between the
/// cells, alpha follows the picture where that explains the map.
///
/// # Errors
/// [`PixelError::InvalidOutput`] if the map lacks the channel, or contains NaN or infinities.
pub fn to_alpha(
    map: &ArrayRef4<f32>,
    reading: Reading,
    inside: Inside,
    frame: &Frame,
    picture: &Picture,
    input: &Array4<u8>,
) -> Result<Vec<u8>, PixelError> {
    let (window, mut values) = read(map, reading, frame)?;
    let columns = window.x.len();
    if inside == Inside::Opaque {
        clear_traces(&mut values, columns);
        make_opaque(&mut values, columns);
    }
    let mut alpha = window.enlarge(&values, (picture.width, picture.height));
    if window.is_exact() {
        let (_, _, map_height, map_width) = map.dim();
        let part = (input.dim() == (1, map_height, map_width, 3))
            .then(|| input.slice(ndarray::s![0, window.y.clone(), window.x.clone(), ..]));
        let part = part.as_ref().map(|part| part.as_standard_layout());
        let small = part.as_ref().and_then(|part| part.as_slice());
        refine(&mut alpha, &Map { columns, values: &values }, picture, small)?;
    }
    Ok(alpha)
}

/// Enlarges a model's map as it is, bilinearly, to one alpha byte per pixel of a picture of this width and height.
/// Otherwise like [`to_alpha`].
///
/// # Errors
/// Same as for [`to_alpha`].
pub fn enlarge_map(
    map: &ArrayRef4<f32>,
    reading: Reading,
    frame: &Frame,
    size: (u32, u32),
) -> Result<Vec<u8>, PixelError> {
    let (window, values) = read(map, reading, frame)?;
    Ok(window.enlarge(&values, size))
}

/// Returns the part of a map that shows the picture, and its values, 0..=1.
fn read(
    map: &ArrayRef4<f32>,
    Reading { range, channel }: Reading,
    frame: &Frame,
) -> Result<(Window, Vec<f32>), PixelError> {
    let (_, channels, map_height, map_width) = map.dim();
    if channel >= channels {
        let text = format!("it has {channels} channels, so there is no class {channel}");
        return Err(PixelError::InvalidOutput(text));
    }
    let window = Window::of(frame, (map_width, map_height));
    let values = to_unit_range(window.values(map, range, channel), range)?;
    Ok((window, values))
}

/// The part of a map that shows the picture.
struct Window {
    /// The cells with any part of the picture.
    x: Range<usize>,
    y: Range<usize>,
    /// Left, top, width and height of the picture within those cells.
    crop: [f64; 4],
}

impl Window {
    fn of(frame: &Frame, map: (usize, usize)) -> Self {
        let span = |range: &Range<u32>, input: u32, cells: usize| {
            let at = |edge: u32| f64::from(edge) * cells as f64 / f64::from(input);
            let (start, end) = (at(range.start), at(range.end));
            let first = start.floor() as usize;
            // A sliver of a picture still needs one cell.
            let last = (end.ceil() as usize).clamp(first + 1, cells.max(first + 1));
            let left = start - first as f64;
            (first..last, left, (end - start).min((last - first) as f64 - left))
        };
        let (x, left, width) = span(&frame.x, frame.size.0, map.0);
        let (y, top, height) = span(&frame.y, frame.size.1, map.1);
        Self { x, y, crop: [left, top, width, height] }
    }

    /// Enlarges the values of this part to the picture's width and height.
    fn enlarge(&self, values: &[f32], (picture_width, picture_height): (u32, u32)) -> Vec<u8> {
        let [left, top, width, height] = self.crop;
        let columns = Side::new(left, width, self.x.len(), picture_width as usize);
        let rows = Side::new(top, height, self.y.len(), picture_height as usize);
        enlarge(values, &columns, &rows)
    }

    /// Returns whether every cell of this part lies in the picture.
    fn is_exact(&self) -> bool {
        let whole = [0.0, 0.0, self.x.len() as f64, self.y.len() as f64];
        self.crop.iter().zip(whole).all(|(crop, whole)| (crop - whole).abs() < 1e-6)
    }

    /// Returns the values of one channel in this part, or their softmax over the channels.
    fn values(&self, map: &ArrayRef4<f32>, range: MapRange, channel: usize) -> Vec<f32> {
        let part = map.slice(ndarray::s![0, .., self.y.clone(), self.x.clone()]);
        let of_class = part.index_axis(Axis(0), channel);
        if range != MapRange::Softmax {
            return of_class.iter().copied().collect();
        }
        let mut sums = vec![0.0; of_class.len()];
        for other in part.outer_iter() {
            for ((sum, own), other) in sums.iter_mut().zip(&of_class).zip(&other) {
                *sum += (other - own).exp();
            }
        }
        // The sum is at least 1, and infinite where another class is certain. A NaN stays one.
        sums.into_iter().map(f32::recip).collect()
    }
}

fn to_unit_range(mut map: Vec<f32>, range: MapRange) -> Result<Vec<f32>, PixelError> {
    if !map.iter().all(|value| value.is_finite()) {
        return Err(PixelError::InvalidOutput("it contains NaN or infinite values".to_owned()));
    }
    if range == MapRange::Sigmoid {
        for value in &mut map {
            *value = 1.0 / (1.0 + (-*value).exp());
        }
    }
    let (low, high) = match range {
        MapRange::Clip | MapRange::Sigmoid | MapRange::Softmax => (0.0, 1.0),
        MapRange::Minmax => map
            .iter()
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v))),
    };
    let span = (high - low).max(FLAT);
    for value in &mut map {
        *value = ((*value - low) / span).clamp(0.0, 1.0);
    }
    Ok(map)
}

/// Multiplies two samples (255 is 1), rounded.
pub(super) fn multiply(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product + (product >> 8)) >> 8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::{Align, Framing};
    use crate::tensor::to_bytes;

    /// Changes nothing inside of subjects.
    const SAME: Inside = Inside::Translucent;

    const fn reading(range: MapRange, channel: usize) -> Reading {
        Reading { range, channel }
    }

    fn picture(width: u32, height: u32, alpha: Option<Vec<u8>>) -> Picture {
        let rgb = vec![0; (width * height * 3) as usize];
        Picture { width, height, rgb, alpha, gray: false, icc: None }
    }

    fn alpha(map: [f32; 4], range: MapRange, own: Option<Vec<u8>>) -> Result<Vec<u8>, PixelError> {
        let map = Array4::from_shape_vec((1, 1, 2, 2), map.to_vec()).expect("four values");
        let input = Array4::zeros((1, 2, 2, 3));
        to_alpha(&map, reading(range, 0), SAME, &full(2), &picture(2, 2, own), &input)
    }

    fn full(side: u32) -> Frame {
        Frame { size: (side, side), x: 0..side, y: 0..side }
    }

    #[test]
    fn softmax_gives_the_share_of_the_chosen_class() {
        // Logits whose exponentials are 1 and 3, and a pixel where one class is certain.
        let logits = [0.0, 200.0, 0.0, -200.0, 3.0_f32.ln(), -200.0, 0.0, 200.0];
        let map = Array4::from_shape_vec((1, 2, 2, 2), logits.to_vec()).expect("eight values");
        let of = |class| enlarge_map(&map, reading(MapRange::Softmax, class), &full(2), (2, 2));
        assert_eq!(of(1), Ok(vec![191, 0, 128, 255]));
        assert_eq!(of(0), Ok(vec![64, 255, 128, 0]));
        assert!(matches!(of(2), Err(PixelError::InvalidOutput(_))));
        let broken = map.mapv(|value| if value > 100.0 { f32::NAN } else { value });
        let broken = enlarge_map(&broken, reading(MapRange::Softmax, 0), &full(2), (2, 2));
        assert!(matches!(broken, Err(PixelError::InvalidOutput(_))));
    }

    #[test]
    fn the_border_of_a_letterbox_never_shows() {
        // The border says 1 and the picture 0, then the other way around.
        for (inside, outside) in [(0.0, 1.0), (1.0, 0.0)] {
            let map = Array4::from_shape_fn((1, 1, 8, 8), |(_, _, y, _)| {
                if (2..6).contains(&y) { inside } else { outside }
            });
            let frame = Frame { size: (16, 16), x: 0..16, y: 4..12 };
            let (picture, input) = (picture(24, 12, None), Array4::zeros((1, 16, 16, 3)));
            let alpha = to_alpha(&map, reading(MapRange::Clip, 0), SAME, &frame, &picture, &input);
            assert_eq!(alpha, Ok(vec![(inside * 255.0) as u8; 24 * 12]));
        }
    }

    #[test]
    fn the_input_of_a_model_shows_the_same_edges_as_the_picture_reduced_again() {
        // A disc in the middle of a wide picture, which a letterbox shows in half of the input's rows.
        let disc = |x: f32, y: f32| u8::from(x.hypot(y) < 30.0);
        let rgb = |at: usize| {
            let inside = disc((at % 192) as f32 - 95.5, (at / 192) as f32 - 47.5);
            [40 + 150 * inside, 90 + (at % 7) as u8, 200 - 120 * inside]
        };
        let picture =
            Picture { rgb: (0..192 * 96).flat_map(rgb).collect(), ..picture(192, 96, None) };
        let framing = Framing::Letterbox { color: [0; 3], align: Align::Center };
        for (framing, rows) in [(framing, 12..36), (Framing::Stretch, 0..48)] {
            let frame = framing.frame((192, 96), (48, 48));
            let high = 96.0 / rows.len() as f32;
            let map = Array4::from_shape_fn((1, 1, 48, 48), |(_, _, y, x)| {
                let (x, y) = (x as f32 * 4.0 - 94.0, (y as f32 - rows.start as f32 + 0.5) * high);
                (0.5 - (x.hypot(y - 48.0) - 30.0) / 4.0).clamp(0.0, 1.0)
            });
            let seen = to_bytes(&picture, (48, 48), framing);
            let other = Array4::zeros((1, 96, 96, 3));
            let of = |input| {
                to_alpha(&map, reading(MapRange::Clip, 0), SAME, &frame, &picture, input)
                    .expect("alpha")
            };
            let enlarged =
                enlarge_map(&map, reading(MapRange::Clip, 0), &frame, (192, 96)).expect("alpha");
            let (own, again) = (of(&seen), of(&other));
            let pairs = own.iter().zip(&again);
            let worst = pairs.map(|(own, again)| own.abs_diff(*again)).max().unwrap_or(0);
            assert!(worst <= 3, "{worst} of 255 apart");
            let changed =
                own.iter().zip(&enlarged).filter(|(own, other)| own.abs_diff(**other) > 30);
            assert!(changed.count() > 100, "the edges follow the picture");
        }
    }

    #[test]
    fn minmax_stretches_and_clip_cuts() {
        let map = [-1.0, 0.5, 1.0, 3.0];
        assert_eq!(alpha(map, MapRange::Minmax, None), Ok(vec![0, 96, 128, 255]));
        assert_eq!(alpha(map, MapRange::Clip, None), Ok(vec![0, 128, 255, 255]));
    }

    #[test]
    fn logits_become_probabilities() {
        // 1 / (1 + exp(-x)) is 1/2 at 0 and 3/4 at ln 3.
        let map = [-100.0, 0.0, 3.0_f32.ln(), 100.0];
        assert_eq!(alpha(map, MapRange::Sigmoid, None), Ok(vec![0, 128, 191, 255]));
    }

    #[test]
    fn a_flat_map_is_transparent_and_nan_is_an_error() {
        assert_eq!(alpha([0.7; 4], MapRange::Minmax, None), Ok(vec![0; 4]));
        let broken = alpha([0.0, f32::NAN, 0.0, 1.0], MapRange::Minmax, None);
        assert!(matches!(broken, Err(PixelError::InvalidOutput(_))));
    }

    #[test]
    fn the_picture_alpha_is_left_to_the_cutout() {
        let own = Some(vec![255, 128, 0, 51]);
        assert_eq!(alpha([1.0; 4], MapRange::Clip, own), Ok(vec![255; 4]));
        assert_eq!(multiply(128, 128), 64);
    }
}
