//! Where to work: a drawing becomes a painted area, and the painted area an effective one, a little larger,
//! inside of which a patch fades into its surroundings. Outside of it no sample changes.

use std::collections::VecDeque;

use image::{DynamicImage, ImageError, ImageFormat, ImageReader};

use super::PipelineError;

/// Samples from here on are painted; 127 is not.
const PAINTED: u8 = 128;

/// The chamfer weights of a step to the side, to the diagonal and of a knight's move (Borgefors 1986):
/// distances are fifths of a pixel, off by less than 2 %.
const SIDE: u16 = 5;
const DIAGONAL: u16 = 7;
const KNIGHT: u16 = 11;

/// The painted pixels of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    width: usize,
    height: usize,
    /// One for each pixel, rows from the top.
    on: Vec<bool>,
}

impl Mask {
    /// A mask from one truth for each pixel, rows from the top.
    ///
    /// # Errors
    /// [`PipelineError::Mask`] when there are not `width * height` of them, or none is true.
    pub fn new(width: usize, height: usize, on: Vec<bool>) -> Result<Self, PipelineError> {
        if on.len() != width * height {
            return Err(unusable("it has another size than the image"));
        }
        if !on.contains(&true) {
            return Err(unusable(
                "nothing is painted: no pixel is at least half white or, where the mask is transparent, half opaque",
            ));
        }
        Ok(Self { width, height, on })
    }

    /// Reads a PNG. Where it is transparent anywhere its alpha is the mask, else its brightness. One of the
    /// picture's shape but another size is scaled: what covers any painted pixel is painted, so that no
    /// thin stroke is lost.
    ///
    /// # Errors
    /// [`PipelineError::Mask`] when it is no PNG, has another shape than a picture of `size`, or nothing is
    /// painted.
    pub fn read(png: &[u8], size: (u32, u32)) -> Result<Self, PipelineError> {
        let mut reader = ImageReader::with_format(std::io::Cursor::new(png), ImageFormat::Png);
        let mut limits = image::Limits::default();
        limits.max_alloc = Some(1 << 30);
        reader.limits(limits);
        let drawing = reader.decode().map_err(|error| unusable(refusal(png, &error)))?;
        let own = (drawing.width(), drawing.height());
        let off =
            (u64::from(own.0) * u64::from(size.1)).abs_diff(u64::from(own.1) * u64::from(size.0));
        if off > u64::from(size.0.max(size.1)) {
            return Err(unusable(&format!(
                "it is {} × {} pixels, the image {} × {}",
                own.0, own.1, size.0, size.1
            )));
        }
        let on = painted(&drawing);
        let (width, height) = (size.0 as usize, size.1 as usize);
        Self::new(width, height, scaled(on, (own.0 as usize, own.1 as usize), (width, height)))
    }

    /// The strokes and the areas, either of which may be none: what hangs together, corners included, is a stroke if
    /// no pixel of it is further than `half_width` pixels from one that is not painted. The picture's border is no
    /// end of a stroke.
    pub fn strokes_and_areas(&self, half_width: u16) -> (Option<Self>, Option<Self>) {
        let area = Area::around(self, 1);
        let outside: Vec<_> = area.pixels(self.width).map(|at| !self.on[at]).collect();
        let far = distances(&outside, area.width);
        let (mut strokes, mut areas) = (vec![false; self.on.len()], vec![false; self.on.len()]);
        let mut seen = outside;
        let mut piece = Vec::new();
        for start in 0..seen.len() {
            if seen[start] {
                continue;
            }
            connected(start, &mut seen, area.width, &mut piece);
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

    /// The area that a patch may change: the painted pixels with pin-holes filled, and those up to `grow`
    /// pixels around.
    pub fn reach(&self, grow: u16) -> Reach {
        let area = Area::around(self, usize::from(grow) + 1);
        let mut inside: Vec<_> = area.pixels(self.width).map(|at| self.on[at]).collect();
        fill_holes(&mut inside, area.width, 4 * usize::from(grow) * usize::from(grow));
        let distance = distances(&inside, area.width);
        let most = grow * SIDE;
        let weight = distance
            .into_iter()
            .map(|distance| match distance {
                0 => 255,
                distance if distance > most => 0,
                // A smooth step that has not reached 0 at the last pixel, where it would be wasted.
                distance => {
                    let along = 1.0 - f32::from(distance) / f32::from(most + SIDE);
                    (254.0 * along * along * (2.0_f32).mul_add(-along, 3.0)).round().max(1.0) as u8
                }
            })
            .collect();
        Reach { area, weight }
    }
}

/// A part of a picture, in its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Area {
    /// The smallest that holds every painted pixel and `margin` around, within the picture.
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

    /// Where its pixels are in a picture of `stride` columns, rows from the top.
    fn pixels(self, stride: usize) -> impl Iterator<Item = usize> {
        (self.top..self.top + self.height)
            .flat_map(move |y| (self.left..self.left + self.width).map(move |x| y * stride + x))
    }
}

/// The effective mask: how much of a patch shows at each pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    area: Area,
    /// 255 at painted pixels, falling to 0 where nothing may change; rows of `area`.
    weight: Vec<u8>,
}

impl Reach {
    /// The smallest rectangle that holds every pixel that may change: left, top, width, height.
    pub fn bounds(&self) -> (usize, usize, usize, usize) {
        let Area { left, top, width, height } = self.area;
        (left, top, width, height)
    }

    /// How much of a patch shows at a pixel of the picture: 0 is nothing, 255 all.
    pub fn weight(&self, x: usize, y: usize) -> u8 {
        let Area { left, top, width, height } = self.area;
        match (x.checked_sub(left), y.checked_sub(top)) {
            (Some(x), Some(y)) if x < width && y < height => self.weight[y * width + x],
            _ => 0,
        }
    }

    /// The same area with nothing that fades: for what fits its surroundings without.
    #[must_use]
    pub fn solid(mut self) -> Self {
        for weight in &mut self.weight {
            *weight = if *weight > 0 { u8::MAX } else { 0 };
        }
        self
    }

    /// The same, leaving nothing to change behind.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let Self { area, weight } = self;
        Self { area: *area, weight: std::mem::take(weight) }
    }

    /// Whether nothing is left to change.
    pub fn is_done(&self) -> bool {
        self.weight.iter().all(|weight| *weight == 0)
    }

    /// Takes a pixel out: it has been changed.
    pub(super) fn settle(&mut self, x: usize, y: usize) {
        let Area { left, top, width, height } = self.area;
        if let (Some(x), Some(y)) = (x.checked_sub(left), y.checked_sub(top))
            && x < width
            && y < height
        {
            self.weight[y * width + x] = 0;
        }
    }
}

/// The pixels that hang together with `start`, corners included, and are not seen yet; they are then.
fn connected(start: usize, seen: &mut [bool], width: usize, piece: &mut Vec<usize>) {
    let height = seen.len() / width;
    piece.clear();
    piece.push(start);
    seen[start] = true;
    let mut next = 0;
    while let Some(&at) = piece.get(next) {
        next += 1;
        let (x, y) = (at % width, at / width);
        for y in y.saturating_sub(1)..(y + 2).min(height) {
            for x in x.saturating_sub(1)..(x + 2).min(width) {
                let beside = y * width + x;
                if !seen[beside] {
                    seen[beside] = true;
                    piece.push(beside);
                }
            }
        }
    }
}

/// Why a file is no mask, in words.
fn refusal(file: &[u8], error: &ImageError) -> &'static str {
    const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
    match error {
        _ if !file.starts_with(SIGNATURE) => "it is no PNG",
        ImageError::Limits(_) => "it has too many pixels",
        _ => "it is damaged",
    }
}

fn painted(drawing: &DynamicImage) -> Vec<bool> {
    if drawing.color().has_alpha() {
        let drawing = drawing.to_luma_alpha8();
        if drawing.pixels().any(|pixel| pixel.0[1] < 255) {
            return drawing.pixels().map(|pixel| pixel.0[1] >= PAINTED).collect();
        }
        return drawing.pixels().map(|pixel| pixel.0[0] >= PAINTED).collect();
    }
    drawing.to_luma8().pixels().map(|pixel| pixel.0[0] >= PAINTED).collect()
}

/// Every pixel that touches a painted one is painted.
fn scaled(on: Vec<bool>, own: (usize, usize), size: (usize, usize)) -> Vec<bool> {
    if own == size {
        return on;
    }
    let mut out = vec![false; size.0 * size.1];
    let range = |at: usize, from: usize, to: usize| at * to / from..((at + 1) * to).div_ceil(from);
    for (y, row) in on.chunks_exact(own.0).enumerate() {
        for x in row.iter().enumerate().filter(|(_, on)| **on).map(|(x, _)| x) {
            for out_y in range(y, own.1, size.1) {
                let columns = range(x, own.0, size.0);
                out[out_y * size.0..][columns].fill(true);
            }
        }
    }
    out
}

/// Fills what is enclosed by painted pixels and no larger than `most` pixels.
fn fill_holes(inside: &mut [bool], width: usize, most: usize) {
    let mut seen = inside.to_vec();
    let height = inside.len() / width;
    // What is too large is only walked through: of the rest of a picture nothing has to be remembered but
    // where the walk stands.
    let (mut hole, mut ahead) = (Vec::new(), VecDeque::new());
    for start in 0..seen.len() {
        if seen[start] {
            continue;
        }
        hole.clear();
        ahead.push_back(start);
        seen[start] = true;
        let mut is_open = false;
        while let Some(at) = ahead.pop_front() {
            if hole.len() <= most {
                hole.push(at);
            }
            let (x, y) = (at % width, at / width);
            is_open |= x == 0 || y == 0 || x + 1 == width || y + 1 == height;
            let beside = [
                (x > 0).then(|| at - 1),
                (x + 1 < width).then(|| at + 1),
                (y > 0).then(|| at - width),
                (y + 1 < height).then(|| at + width),
            ];
            for at in beside.into_iter().flatten() {
                if !seen[at] {
                    seen[at] = true;
                    ahead.push_back(at);
                }
            }
        }
        if !is_open && hole.len() <= most {
            for at in &hole {
                inside[*at] = true;
            }
        }
    }
}

/// How far each pixel is from the next one inside, in fifths of a pixel: two passes of a 5 × 5 chamfer.
fn distances(inside: &[bool], width: usize) -> Vec<u16> {
    let far = u16::MAX / 2;
    let mut distance: Vec<u16> = inside.iter().map(|on| if *on { 0 } else { far }).collect();
    let height = inside.len() / width;
    let forward: [(isize, isize, u16); 8] = [
        (-1, 0, SIDE),
        (-1, -1, DIAGONAL),
        (0, -1, SIDE),
        (1, -1, DIAGONAL),
        (-2, -1, KNIGHT),
        (-1, -2, KNIGHT),
        (1, -2, KNIGHT),
        (2, -1, KNIGHT),
    ];
    let mut relax = |x: usize, y: usize, sign: isize| {
        let at = y * width + x;
        let mut best = distance[at];
        if best == 0 {
            return;
        }
        for (dx, dy, step) in forward {
            let (x, y) = (x.checked_add_signed(dx * sign), y.checked_add_signed(dy * sign));
            if let (Some(x), Some(y)) = (x, y)
                && x < width
                && y < height
            {
                best = best.min(distance[y * width + x].saturating_add(step));
            }
        }
        distance[at] = best;
    };
    for y in 0..height {
        for x in 0..width {
            relax(x, y, 1);
        }
    }
    for y in (0..height).rev() {
        for x in (0..width).rev() {
            relax(x, y, -1);
        }
    }
    distance
}

fn unusable(problem: &str) -> PipelineError {
    PipelineError::Mask(problem.to_owned())
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, Luma, Rgba, RgbaImage};

    use super::*;

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
        let mask = Mask::read(&png(&gray.into()), (4, 2)).expect("a mask");
        assert_eq!(mask.on, [false, false, true, true, false, false, true, true]);
        let alpha =
            RgbaImage::from_fn(4, 1, |x, _| Rgba([0, 0, 0, [0, 127, 128, 255][x as usize]]));
        let mask = Mask::read(&png(&alpha.into()), (4, 1)).expect("a mask");
        assert_eq!(mask.on, [false, false, true, true]);
    }

    #[test]
    fn a_thin_stroke_is_not_lost_when_a_mask_is_scaled() {
        let line = GrayImage::from_fn(900, 600, |x, _| Luma([if x == 451 { 255 } else { 0 }]));
        let mask = Mask::read(&png(&line.into()), (90, 60)).expect("a mask");
        assert_eq!(mask.on.iter().filter(|on| **on).count(), 60);
        let small = GrayImage::from_fn(9, 6, |x, y| Luma([if (x, y) == (4, 2) { 255 } else { 0 }]));
        let mask = Mask::read(&png(&small.into()), (90, 60)).expect("a mask");
        assert_eq!(mask.on.iter().filter(|on| **on).count(), 100);
    }

    #[test]
    fn what_is_no_mask_is_refused() {
        let blank = png(&GrayImage::new(8, 8).into());
        for (bytes, size) in [(&blank[..], (8, 8)), (&blank[..], (8, 4)), (b"no png", (8, 8))] {
            assert!(matches!(Mask::read(bytes, size), Err(PipelineError::Mask(_))));
        }
    }

    #[test]
    fn the_reach_is_round_and_fades() {
        let reach = with_dots(41, 41, &[(20, 20)]).reach(8);
        assert_eq!(reach.weight(20, 20), 255);
        let along: Vec<_> = (20..31).map(|x| reach.weight(x, 20)).collect();
        assert!(along.is_sorted_by(|a, b| a >= b), "{along:?}");
        assert!(along[8] > 0 && along[9] == 0, "{along:?}");
        assert!(reach.weight(25, 26) > 0 && reach.weight(26, 27) == 0, "a disc, not a square");
        assert_eq!((reach.weight(0, 0), reach.weight(40, 40)), (0, 0));
    }

    #[test]
    fn pin_holes_are_filled_and_large_ones_are_not() {
        let ring = |radius: i32, side: i32| {
            let on = (0..side * side).map(|at| {
                let (x, y) = (at % side - side / 2, at / side - side / 2);
                (radius * radius..(radius + 3) * (radius + 3)).contains(&(x * x + y * y))
            });
            Mask::new(side as usize, side as usize, on.collect()).expect("a ring")
        };
        assert_eq!(ring(3, 21).reach(4).weight(10, 10), 255);
        assert_eq!(ring(20, 61).reach(4).weight(30, 30), 0);
    }

    #[test]
    fn strokes_are_told_from_areas_by_half_their_width() {
        let bar = |top: usize, width: usize| {
            (5..60).flat_map(move |x| (top..top + width).map(move |y| (x, y)))
        };
        let count = |mask: &Option<Mask>| {
            mask.as_ref().map_or(0, |mask| mask.on.iter().filter(|on| **on).count())
        };
        let told = |dots: Vec<(usize, usize)>, half_width: u16| {
            let (strokes, areas) = with_dots(64, 64, &dots).strokes_and_areas(half_width);
            (count(&strokes), count(&areas))
        };
        for (width, half) in [(1, 1), (3, 2), (9, 5)] {
            let dots: Vec<_> = bar(10, width).collect();
            assert_eq!(told(dots.clone(), half), (55 * width, 0));
            assert_eq!(told(dots, half - 1), (0, 55 * width));
        }
        // Each for itself, and what touches at a corner is one.
        let apart: Vec<_> = bar(4, 3).chain(bar(20, 21)).collect();
        assert_eq!(told(apart, 4), (55 * 3, 55 * 21));
        let touching: Vec<_> = bar(20, 21).chain([(60, 41), (61, 42)]).collect();
        assert_eq!(told(touching, 4), (0, 55 * 21 + 2));
        let all: Vec<_> = (0..64 * 64).map(|at| (at % 64, at / 64)).collect();
        assert_eq!(told(all, 40), (0, 64 * 64), "the border is no end of a stroke");
    }

    #[test]
    fn what_is_no_mask_is_told_in_words() {
        let reason = |bytes: &[u8]| Mask::read(bytes, (8, 8)).unwrap_err().to_string();
        let whole = png(&GrayImage::from_pixel(8, 8, Luma([255])).into());
        assert!(reason(b"\xff\xd8\xff").contains("it is no PNG"));
        assert!(reason(&whole[..whole.len() - 30]).contains("it is damaged"));
        let faint = png(&GrayImage::from_pixel(8, 8, Luma([10])).into());
        assert!(reason(&faint).contains("at least half white"));
    }
}
