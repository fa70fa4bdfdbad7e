//! Masks: a [`Drawing`] is the uploaded file, a [`Mask`] marks the painted pixels of the picture, and an
//! [`EffectiveMask`] is a little larger, so that a patch can fade into its surroundings, or exactly as large. Outside
//! the effective mask no sample changes.

mod drawing;
mod islands;
mod morphology;

pub use crate::error::MaskError;
pub use drawing::Drawing;

use crate::Limits;
pub(crate) use morphology::{SIDE, connected_component, distance_transform, fill_holes};

/// The painted pixels of a picture; at least one is painted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    width: usize,
    height: usize,
    /// One flag per pixel, rows from the top.
    on: Vec<bool>,
}

impl Mask {
    /// Creates a mask from one flag per pixel, rows from the top.
    ///
    /// # Errors
    /// [`MaskError::WrongLength`] unless there are `width * height` flags, [`MaskError::Empty`] if none is set.
    pub fn new(width: usize, height: usize, on: Vec<bool>) -> Result<Self, MaskError> {
        if on.len() != width * height {
            return Err(MaskError::WrongLength);
        }
        if !on.contains(&true) {
            return Err(MaskError::Empty);
        }
        Ok(Self { width, height, on })
    }

    /// Reads a PNG as the mask of a picture of `size` (width, height); see [`Drawing::read`]. A mask of another size
    /// is scaled: a pixel is painted if it touches a painted one, so thin strokes survive.
    pub fn read(png: &[u8], size: (u32, u32), limits: &Limits) -> Result<Self, MaskError> {
        let on = Drawing::read(png, size, limits)?.scaled(size);
        Self::new(size.0 as usize, size.1 as usize, on)
    }

    /// Checks that a change of the painted pixels can be seen in a picture with this alpha, one byte per pixel.
    ///
    /// # Errors
    /// [`MaskError::Transparent`] if alpha is 0 at all of them.
    pub fn check_visible(&self, alpha: Option<&[u8]>) -> Result<(), MaskError> {
        let is_visible = alpha
            .is_none_or(|alpha| self.on.iter().zip(alpha).any(|(on, alpha)| *on && *alpha > 0));
        if is_visible { Ok(()) } else { Err(MaskError::Transparent) }
    }

    /// Splits the mask into strokes and areas; `None` stands for an empty part. A connected component (8-connectivity)
    /// is a stroke if none of its pixels is farther than `half_width` pixels from an unpainted pixel. The picture's
    /// border does not count as unpainted.
    pub fn strokes_and_areas(&self, half_width: u16) -> (Option<Self>, Option<Self>) {
        let area = Area::around(self, 1);
        let outside: Vec<_> = area.pixels(self.width).map(|at| !self.on[at]).collect();
        let far = distance_transform(&outside, area.width);
        let (mut strokes, mut areas) = (vec![false; self.on.len()], vec![false; self.on.len()]);
        let mut seen = outside;
        let mut piece = Vec::new();
        for start in 0..seen.len() {
            if seen[start] {
                continue;
            }
            connected_component(start, &mut seen, area.width, &mut piece);
            let is_stroke = piece.iter().all(|at| far[*at] <= half_width * SIDE);
            let kind = if is_stroke { &mut strokes } else { &mut areas };
            for at in &piece {
                let (x, y) = (area.left + at % area.width, area.top + at / area.width);
                kind[y * self.width + x] = true;
            }
        }
        let mask = |on: Vec<bool>| {
            let Self { width, height, .. } = *self;
            on.contains(&true).then_some(Self { width, height, on })
        };
        (mask(strokes), mask(areas))
    }

    /// Returns the effective mask: the painted pixels, with pinholes filled, plus a margin of `grow` pixels; there, the
    /// weight falls smoothly from 255 toward 0. A pinhole has at most `4 * grow²` pixels. If nothing would be left, it covers
    /// only the painted pixels.
    pub fn effective(&self, grow: u16) -> EffectiveMask {
        let area = Area::around(self, usize::from(grow) + 1);
        let mut inside: Vec<_> = area.pixels(self.width).map(|at| self.on[at]).collect();
        fill_holes(&mut inside, area.width, 4 * usize::from(grow) * usize::from(grow));
        let distance = distance_transform(&inside, area.width);
        let margin = grow * SIDE;
        let weight: Vec<u8> = distance
            .into_iter()
            .map(|distance| match distance {
                0 => 255,
                distance if distance > margin => 0,
                // A smoothstep that reaches 0 one pixel beyond the margin: the last pixel still shows some of the patch.
                distance => faded(1.0 - f32::from(distance) / f32::from(margin + SIDE)),
            })
            .collect();
        let leaves_nothing = weight.len() == self.on.len() && !weight.contains(&0);
        if leaves_nothing && self.on.contains(&false) {
            return self.exact(0);
        }
        EffectiveMask { area, weight }
    }

    /// Returns an effective mask that covers the painted pixels and no others. The weight rises from the edge inward
    /// over `fade` pixels, or over half of a connected component's depth if that is less, so that thin strokes keep
    /// their weight. The picture's border is not an edge.
    pub fn exact(&self, fade: u16) -> EffectiveMask {
        let area = Area::around(self, 1);
        let outside: Vec<_> = area.pixels(self.width).map(|at| !self.on[at]).collect();
        let depth = distance_transform(&outside, area.width);
        let mut weight = vec![0; outside.len()];
        let mut seen = outside;
        let mut piece = Vec::new();
        for start in 0..seen.len() {
            if seen[start] {
                continue;
            }
            connected_component(start, &mut seen, area.width, &mut piece);
            let deepest = piece.iter().map(|at| depth[*at]).max().unwrap_or(0);
            let rise = (fade * SIDE).min(deepest / 2);
            for at in &piece {
                weight[*at] = if depth[*at] > rise {
                    u8::MAX
                } else {
                    faded(f32::from(depth[*at]) / f32::from(rise + SIDE))
                };
            }
        }
        EffectiveMask { area, weight }
    }
}

/// Returns the weight on a fade, 1 to 254, from the position along it: 0 where the patch is invisible, 1 where it is
/// opaque. A smoothstep.
fn faded(along: f32) -> u8 {
    (254.0 * along * along * (2.0_f32).mul_add(-along, 3.0)).round().max(1.0) as u8
}

/// A rectangle of a picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Area {
    /// Returns the bounding box of the painted pixels, extended by `margin` and clipped to the picture.
    fn around(mask: &Mask, margin: usize) -> Self {
        let rows: Vec<_> = mask.on.chunks_exact(mask.width).collect();
        let has_any = |row: &&[bool]| row.contains(&true);
        let top = rows.iter().position(has_any).unwrap_or(0);
        let bottom = rows.iter().rposition(has_any).map_or(0, |at| at + 1);
        let (mut left, mut right) = (mask.width, 0);
        for row in &rows[top..bottom] {
            if let Some(first) = row.iter().position(|on| *on) {
                left = left.min(first);
                right = right.max(row.iter().rposition(|on| *on).map_or(0, |at| at + 1));
            }
        }
        let (left, top) = (left.saturating_sub(margin), top.saturating_sub(margin));
        let (right, bottom) =
            ((right + margin).min(mask.width), (bottom + margin).min(mask.height));
        Self { left, top, width: right - left, height: bottom - top }
    }

    /// Returns the indices of its pixels in a picture of `stride` columns.
    fn pixels(self, stride: usize) -> impl Iterator<Item = usize> {
        (self.top..self.top + self.height)
            .flat_map(move |y| (self.left..self.left + self.width).map(move |x| y * stride + x))
    }
}

/// The effective mask: the weight of a patch at each pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveMask {
    area: Area,
    /// 255 at painted pixels, falling to 0 where nothing may change; rows of `area`.
    weight: Vec<u8>,
}

impl EffectiveMask {
    /// Returns a rectangle that contains every pixel that may change: left, top, width, height.
    pub fn bounds(&self) -> (usize, usize, usize, usize) {
        let Area { left, top, width, height } = self.area;
        (left, top, width, height)
    }

    /// Returns the weight of a patch at a pixel of the picture: 0 keeps the picture, 255 takes the patch.
    pub fn weight(&self, x: usize, y: usize) -> u8 {
        let Area { left, top, width, height } = self.area;
        match (x.checked_sub(left), y.checked_sub(top)) {
            (Some(x), Some(y)) if x < width && y < height => self.weight[y * width + x],
            _ => 0,
        }
    }

    /// Returns the mask without its fade: every weight above 0 becomes 255. For patches that fit without fading.
    #[must_use]
    pub fn solid(mut self) -> Self {
        for weight in &mut self.weight {
            *weight = if *weight > 0 { u8::MAX } else { 0 };
        }
        self
    }

    /// Moves the mask out, leaving one without pixels.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let Self { area, weight } = self;
        Self { area: *area, weight: std::mem::take(weight) }
    }

    /// Returns true if no pixel is left to change.
    pub fn is_empty(&self) -> bool {
        self.weight.iter().all(|weight| *weight == 0)
    }

    /// Sets the weight of a pixel to 0, so that later patches leave it alone.
    pub(crate) fn clear(&mut self, x: usize, y: usize) {
        let Area { left, top, width, height } = self.area;
        if let (Some(x), Some(y)) = (x.checked_sub(left), y.checked_sub(top))
            && x < width
            && y < height
        {
            self.weight[y * width + x] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgba, RgbaImage};

    use super::*;

    fn read(png: &[u8], size: (u32, u32)) -> Result<Mask, MaskError> {
        Mask::read(png, size, &Limits::default())
    }

    fn png(image: &DynamicImage) -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png).expect("a PNG in memory");
        bytes.into_inner()
    }

    fn with_dots(width: usize, height: usize, dots: &[(usize, usize)]) -> Mask {
        let mut on = vec![false; width * height];
        for (x, y) in dots {
            on[y * width + x] = true;
        }
        Mask::new(width, height, on).expect("a mask")
    }

    #[test]
    fn drawings_are_read_by_alpha_or_brightness() {
        let gray = GrayImage::from_fn(4, 2, |x, _| Luma([[0, 127, 128, 255][x as usize]]));
        let mask = read(&png(&gray.into()), (4, 2)).expect("a mask");
        assert_eq!(mask.on, [false, false, true, true, false, false, true, true]);
        let alpha =
            RgbaImage::from_fn(4, 1, |x, _| Rgba([0, 0, 0, [0, 127, 128, 255][x as usize]]));
        let mask = read(&png(&alpha.into()), (4, 1)).expect("a mask");
        assert_eq!(mask.on, [false, false, true, true]);
    }

    #[test]
    fn a_thin_stroke_is_not_lost_when_a_mask_is_scaled() {
        let line = GrayImage::from_fn(900, 600, |x, _| Luma([if x == 451 { 255 } else { 0 }]));
        let mask = read(&png(&line.into()), (90, 60)).expect("a mask");
        assert_eq!(mask.on.iter().filter(|on| **on).count(), 60);
        let small = GrayImage::from_fn(9, 6, |x, y| Luma([if (x, y) == (4, 2) { 255 } else { 0 }]));
        let mask = read(&png(&small.into()), (90, 60)).expect("a mask");
        assert_eq!(mask.on.iter().filter(|on| **on).count(), 100);
    }

    #[test]
    fn unusable_masks_are_refused() {
        let blank = png(&GrayImage::new(8, 8).into());
        for (bytes, size) in [(&blank[..], (8, 8)), (&blank[..], (8, 4)), (b"no png", (8, 8))] {
            assert!(read(bytes, size).is_err());
        }
    }

    #[test]
    fn the_effective_mask_is_round_and_fades() {
        let effective = with_dots(41, 41, &[(20, 20)]).effective(8);
        assert_eq!(effective.weight(20, 20), 255);
        let along: Vec<_> = (20..31).map(|x| effective.weight(x, 20)).collect();
        assert!(along.is_sorted_by(|a, b| a >= b), "{along:?}");
        assert!(along[8] > 0 && along[9] == 0, "{along:?}");
        assert!(effective.weight(25, 26) > 0, "a disc");
        assert_eq!(effective.weight(26, 27), 0, "not a square");
        assert_eq!((effective.weight(0, 0), effective.weight(40, 40)), (0, 0));
    }

    #[test]
    fn a_margin_that_would_cover_the_whole_picture_is_left_out() {
        let small = with_dots(2, 1, &[(1, 0)]).effective(8);
        assert_eq!((small.weight(0, 0), small.weight(1, 0)), (0, 255));
        let whole = with_dots(2, 1, &[(0, 0), (1, 0)]).effective(8);
        assert_eq!((whole.weight(0, 0), whole.weight(1, 0)), (255, 255));
    }

    #[test]
    fn an_exact_mask_covers_the_painted_pixels_and_no_others() {
        let block = |x: std::ops::Range<usize>, y: std::ops::Range<usize>| {
            y.flat_map(move |y| x.clone().map(move |x| (x, y)))
        };
        let ring = block(2..9, 2..9).filter(|at| *at != (5, 5));
        let thin = block(20..21, 0..60).chain(block(24..26, 0..60));
        let dots: Vec<_> = ring.chain(thin).chain(block(30..60, 20..60)).collect();
        let exact = with_dots(60, 60, &dots).exact(4);
        for at in 0..60 * 60 {
            let (x, y) = (at % 60, at / 60);
            assert_eq!(exact.weight(x, y) > 0, dots.contains(&(x, y)), "({x}, {y})");
        }
        assert_eq!(
            [20, 24, 25].map(|x| exact.weight(x, 30)),
            [255; 3],
            "a thin stroke does not fade"
        );
        let inward: Vec<_> = (30..36).map(|x| exact.weight(x, 40)).collect();
        assert!(inward[0] < 100 && inward.is_sorted() && inward[4..] == [255; 2], "{inward:?}");
        assert_eq!(exact.weight(59, 59), 255, "the picture's border is not an edge");
        assert!(exact.solid().weight(30, 40) == 255);
    }

    #[test]
    fn pinholes_are_filled_and_large_holes_are_not() {
        let ring = |radius: i32, side: i32| {
            let on = (0..side * side).map(|at| {
                let (x, y) = (at % side - side / 2, at / side - side / 2);
                (radius * radius..(radius + 3) * (radius + 3)).contains(&(x * x + y * y))
            });
            Mask::new(side as usize, side as usize, on.collect()).expect("a ring")
        };
        assert_eq!(ring(3, 21).effective(4).weight(10, 10), 255);
        assert_eq!(ring(20, 61).effective(4).weight(30, 30), 0);
    }

    #[test]
    fn strokes_and_areas_are_separated_by_half_width() {
        let bar = |top: usize, width: usize| {
            (5..60).flat_map(move |x| (top..top + width).map(move |y| (x, y)))
        };
        let count = |mask: &Option<Mask>| {
            mask.as_ref().map_or(0, |mask| mask.on.iter().filter(|on| **on).count())
        };
        let split = |dots: Vec<(usize, usize)>, half_width: u16| {
            let (strokes, areas) = with_dots(64, 64, &dots).strokes_and_areas(half_width);
            (count(&strokes), count(&areas))
        };
        for (width, half) in [(1, 1), (3, 2), (9, 5)] {
            let dots: Vec<_> = bar(10, width).collect();
            assert_eq!(split(dots.clone(), half), (55 * width, 0));
            assert_eq!(split(dots, half - 1), (0, 55 * width));
        }
        // Components are classified one by one; pixels that touch at a corner belong together.
        let apart: Vec<_> = bar(4, 3).chain(bar(20, 21)).collect();
        assert_eq!(split(apart, 4), (55 * 3, 55 * 21));
        let touching: Vec<_> = bar(20, 21).chain([(60, 41), (61, 42)]).collect();
        assert_eq!(split(touching, 4), (0, 55 * 21 + 2));
        let all: Vec<_> = (0..64 * 64).map(|at| (at % 64, at / 64)).collect();
        assert_eq!(split(all, 40), (0, 64 * 64), "the border does not end a stroke");
    }

    #[test]
    fn a_refused_mask_has_a_readable_reason() {
        let reason = |bytes: &[u8]| read(bytes, (8, 8)).unwrap_err().to_string();
        let whole = png(&GrayImage::from_pixel(8, 8, Luma([255])).into());
        assert!(reason(b"\xff\xd8\xff").contains("must be a PNG"));
        assert!(reason(&whole[..whole.len() - 30]).contains("is damaged"));
        let faint = png(&GrayImage::from_pixel(8, 8, Luma([10])).into());
        assert!(reason(&faint).contains("The mask is empty"));
    }
}
