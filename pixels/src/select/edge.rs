//! Finds the edge of a selection in the reduced copy.
//!
//! Pixels that the prior is sure of are the seeds; in between, two regions grow toward each other. A step is expensive
//! where the color changes, where the prior disagrees, and where the color is more like that of the other side. The
//! colors of both sides are known from the seeds, as histograms (Boykov, Jolly, "Interactive graph cuts", 2001, whose
//! energy this is without the minimum cut, which takes more than linear time).

use super::Marks;
use super::grow::{Label, grow};
use super::prior::Prior;
use super::region::Point;
use super::scene::Rgb;
use super::subject::HALF;
use crate::mask::{SIDE, distance_transform, fill_holes};

/// From this share of its largest value, the prior is sure that a pixel is inside.
const SURE: f32 = 0.93;
/// Up to this value, the prior is sure that a pixel is outside.
const SURELY_OUTSIDE: u8 = 6;
/// Pixels between the seeds and what the prior is not sure of.
const MARGIN: u16 = 2;
/// The radius of a click, in pixels.
pub(super) const CLICK: u32 = 3;
/// Bits of a histogram's bin, per channel.
const BITS: u32 = 4;
/// Holes of at most this share of the selection are filled.
const LARGEST_HOLE: f32 = 0.002;

/// Returns whether each pixel is selected.
pub(super) fn find(picture: &Rgb, prior: &Prior, marks: &Marks) -> Vec<bool> {
    let mut labels = seeds(prior, marks);
    let colors = Colors::of(picture, &labels);
    let disagreement = |label, at| {
        let (likely, alike) =
            (u16::from(prior.values[at]), u16::from(colors.of_subject(picture, at)));
        let sum = likely + alike;
        match label {
            Label::Inside => (510 - sum) / 8,
            _ => sum / 8,
        }
    };
    grow(&mut labels, prior.width, |label, from, to| {
        1 + contrast(picture.difference(from, to)) + disagreement(label, to)
    });
    let mut inside: Vec<_> = labels.iter().map(|label| *label == Label::Inside).collect();
    let area = inside.iter().filter(|inside| **inside).count();
    fill_holes(&mut inside, prior.width, (area as f32 * LARGEST_HOLE) as usize);
    inside
}

/// Returns the cost of crossing a change of color, 0 to 255: its square, so that noise is cheap and an edge is not.
pub(super) fn contrast(difference: u8) -> u16 {
    (u16::from(difference) * u16::from(difference) / 24).min(255)
}

fn seeds(prior: &Prior, marks: &Marks) -> Vec<Label> {
    let width = prior.width;
    let most = prior.values.iter().copied().max().unwrap_or(0);
    let sure = ((f32::from(most) * SURE) as u8).max(HALF);
    let unsure: Vec<_> = prior.values.iter().map(|value| *value < sure).collect();
    let possible: Vec<_> = prior.values.iter().map(|value| *value > SURELY_OUTSIDE).collect();
    let (from_unsure, from_possible) =
        (distance_transform(&unsure, width), distance_transform(&possible, width));
    let label = |(to_unsure, to_possible): (u16, u16)| {
        if to_unsure > MARGIN * SIDE {
            Label::Inside
        } else if to_possible > MARGIN * SIDE {
            Label::Outside
        } else {
            Label::Unknown
        }
    };
    let mut labels: Vec<_> = from_unsure.into_iter().zip(from_possible).map(label).collect();
    for point in &marks.positive {
        for at in disc(*point, CLICK, width, prior.values.len()) {
            labels[at] = Label::Inside;
        }
    }
    labels
}

/// Returns the pixels within `radius` of a point.
pub(super) fn disc(
    middle: Point,
    radius: u32,
    width: usize,
    pixels: usize,
) -> impl Iterator<Item = usize> {
    let (width, height) = (width as u32, (pixels / width) as u32);
    let rows = middle.y.saturating_sub(radius)..(middle.y + radius + 1).min(height);
    rows.flat_map(move |y| {
        let columns = middle.x.saturating_sub(radius)..(middle.x + radius + 1).min(width);
        columns
            .filter(move |x| {
                x.abs_diff(middle.x).pow(2) + y.abs_diff(middle.y).pow(2) <= radius * radius
            })
            .map(move |x| y as usize * width as usize + x as usize)
    })
}

/// The colors of the seeds.
struct Colors {
    /// For each color, how much of it is inside: 0 to 255, 128 if it says nothing.
    inside: Vec<u8>,
}

impl Colors {
    /// Counts the colors on both sides. Outside, only pixels near the subject count as much as those inside: each side
    /// is weighted by its number of pixels.
    fn of(picture: &Rgb, labels: &[Label]) -> Self {
        let bins = 1 << (3 * BITS);
        let mut counts = vec![[0_f32; 2]; bins];
        let mut pixels = [0_f32; 2];
        for (at, label) in labels.iter().enumerate() {
            let side = match label {
                Label::Unknown => continue,
                Label::Outside => 0,
                Label::Inside => 1,
            };
            counts[bin(picture.pixel(at))][side] += 1.0;
            pixels[side] += 1.0;
        }
        let inside = counts.into_iter().map(|[outside, inside]| {
            let outside = (outside + 0.5) / (pixels[0] + 1.0);
            let inside = (inside + 0.5) / (pixels[1] + 1.0);
            if pixels[0] < 1.0 || pixels[1] < 1.0 {
                HALF
            } else {
                (255.0 * inside / (inside + outside)) as u8
            }
        });
        Self { inside: inside.collect() }
    }

    /// Returns how much the color of a pixel is one of the subject's, 0 to 255.
    fn of_subject(&self, picture: &Rgb, at: usize) -> u8 {
        self.inside[bin(picture.pixel(at))]
    }
}

fn bin(pixel: [u8; 3]) -> usize {
    let shift = 8 - BITS;
    pixel.into_iter().fold(0, |bin, sample| (bin << BITS) | usize::from(sample >> shift))
}
