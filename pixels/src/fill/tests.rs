//! Checks that a fill changes nothing outside the hole, continues the surroundings inside, and is reproducible.

use std::cell::Cell;
use std::path::Path;

use super::*;

/// A small picture with a hole.
struct Case {
    rgb: Vec<u8>,
    hole: Vec<bool>,
    hidden: Option<Vec<bool>>,
    width: u32,
    height: u32,
}

impl Case {
    fn new(
        (width, height): (u32, u32),
        color: impl Fn(u32, u32) -> [u8; 3],
        hole: impl Fn(u32, u32) -> bool,
    ) -> Self {
        let places = || (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let rgb = places().flat_map(|(x, y)| color(x, y)).collect();
        let hole = places().map(|(x, y)| hole(x, y)).collect();
        Self { rgb, hole, hidden: None, width, height }
    }

    /// Cuts a square out of a photo in `pixels/tests/photos`.
    fn photo(
        name: &str,
        (left, top): (u32, u32),
        side: u32,
        hole: impl Fn(u32, u32) -> bool,
    ) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/photos").join(name);
        let photo = image::open(path).unwrap().to_rgb8();
        Self::new((side, side), |x, y| photo.get_pixel(left + x, top + y).0, hole)
    }

    fn damaged<'a>(&'a self, rgb: &'a [u8]) -> Damaged<'a> {
        let hidden = self.hidden.as_deref();
        Damaged { rgb, width: self.width, height: self.height, hole: &self.hole, hidden }
    }

    fn filled_with(&self, settings: &Settings) -> Result<Vec<u8>, FillError> {
        // Hides the original colors.
        let mut rgb = self.rgb.clone();
        let marked = rgb.chunks_exact_mut(3).zip(&self.hole).filter(|(_, hole)| **hole);
        marked.for_each(|(rgb, _)| rgb.copy_from_slice(&[255, 0, 255]));
        let out = fill(&self.damaged(&rgb), settings, &|| false)?;
        assert_eq!(out.len(), rgb.len());
        for ((out, was), hole) in out.chunks_exact(3).zip(rgb.chunks_exact(3)).zip(&self.hole) {
            assert!(*hole || out == was, "a pixel outside the hole changed");
        }
        Ok(out)
    }

    fn filled(&self) -> Vec<u8> {
        self.filled_with(&Settings::default()).unwrap()
    }

    fn green(&self, rgb: &[u8], x: usize, y: usize) -> f32 {
        f32::from(rgb[(y * self.width as usize + x) * 3 + 1])
    }

    /// Returns the mean difference from the original in the hole, in gray levels.
    fn error(&self, rgb: &[u8]) -> f32 {
        let pixels = rgb.chunks_exact(3).zip(self.rgb.chunks_exact(3)).zip(&self.hole);
        let errors: Vec<f32> = pixels
            .filter(|(_, hole)| **hole)
            .flat_map(|((is, was), _)| (0..3).map(|c| f32::from(is[c].abs_diff(was[c]))))
            .collect();
        errors.iter().sum::<f32>() / errors.len() as f32
    }

    /// Returns the median contrast of windows inside the hole divided by that of windows outside.
    fn texture(&self, rgb: &[u8]) -> f32 {
        let (width, height) = (self.width as usize, self.height as usize);
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (x, y) in (0..height - 6).flat_map(|y| (0..width - 6).map(move |x| (x, y))) {
            let window = || (0..49).map(|at| (x + at % 7, y + at / 7));
            let holes = window().filter(|(x, y)| self.hole[y * width + x]).count();
            let mean = window().map(|(x, y)| self.green(rgb, x, y)).sum::<f32>() / 49.0;
            let square = window().map(|(x, y)| (self.green(rgb, x, y) - mean).powi(2)).sum::<f32>();
            match holes {
                0 => outside.push((square / 49.0).sqrt()),
                49 => inside.push((square / 49.0).sqrt()),
                _ => {}
            }
        }
        let median = |values: &mut Vec<f32>| {
            values.sort_by(f32::total_cmp);
            values[values.len() / 2]
        };
        median(&mut inside) / median(&mut outside)
    }

    /// Returns the mean step across the hole's border divided by the mean step elsewhere.
    fn seam(&self, rgb: &[u8]) -> f32 {
        let (width, height) = (self.width as usize, self.height as usize);
        let (mut border, mut rest) = ((0.0, 0.0), (0.0, 0.0));
        for (x, y) in (0..height - 1).flat_map(|y| (0..width - 1).map(move |x| (x, y))) {
            for (to_x, to_y) in [(x + 1, y), (x, y + 1)] {
                let step = (self.green(rgb, x, y) - self.green(rgb, to_x, to_y)).abs();
                let crosses = self.hole[y * width + x] != self.hole[to_y * width + to_x];
                let sum = if crosses { &mut border } else { &mut rest };
                *sum = (sum.0 + step, sum.1 + 1.0);
            }
        }
        border.0 / border.1 / (rest.0 / rest.1)
    }
}

/// Returns a predicate that is true in the square from `from` to `to`, exclusive.
fn square(from: u32, to: u32) -> impl Fn(u32, u32) -> bool {
    move |x, y| (from..to).contains(&x) && (from..to).contains(&y)
}

fn noise(x: u32, y: u32) -> u8 {
    let mut z = u64::from(x) << 32 | u64::from(y);
    z = (z.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (z >> 7)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 56) as u8
}

#[test]
fn stripes_continue_through_the_hole() {
    let wave = |phase: f32| (128.0 + 90.0 * (phase * std::f32::consts::TAU).sin()) as u8;
    let upright = Case::new(
        (128, 128),
        |x, _| [wave(x as f32 / 11.0), 60, 90].map(|v| v.max(wave(x as f32 / 11.0))),
        square(42, 90),
    );
    let slanted =
        Case::new((128, 128), |x, y| [wave((2 * x + y) as f32 / 32.0); 3], square(42, 90));
    for case in [upright, slanted] {
        let out = case.filled();
        assert!(case.error(&out) < 8.0, "off by {}", case.error(&out));
        assert!((0.7..1.3).contains(&case.texture(&out)), "texture {}", case.texture(&out));
    }
}

#[test]
fn a_checkerboard_continues_through_the_hole() {
    let board = |x: u32, y: u32| {
        if (x / 9 + y / 9).is_multiple_of(2) { [220, 210, 190] } else { [40, 50, 80] }
    };
    let case = Case::new((144, 144), board, square(50, 94));
    let out = case.filled();
    assert!(case.error(&out) < 8.0, "off by {}", case.error(&out));
}

#[test]
fn noise_keeps_its_contrast() {
    let case = Case::new((128, 128), |x, y| [90 + noise(x, y) / 4; 3], square(40, 90));
    let out = case.filled();
    assert!((0.7..1.3).contains(&case.texture(&out)), "texture {}", case.texture(&out));
}

#[test]
fn a_gradient_has_no_visible_seam() {
    let case = Case::new((160, 120), |x, y| [(x + 20) as u8, (y + 40) as u8, 100], square(40, 80));
    let out = case.filled();
    assert!(case.error(&out) < 6.0, "off by {}", case.error(&out));
    assert!(case.seam(&out) < 2.0, "seam {}", case.seam(&out));
}

#[test]
fn fur_grows_over_an_eye() {
    let eye = |x: u32, y: u32| (x as f32 - 75.0).hypot(y as f32 - 78.0) < 38.0;
    let case = Case::photo("chelsea.png", (45, 10), 160, eye);
    let out = case.filled();
    assert!((0.7..1.3).contains(&case.texture(&out)), "texture {}", case.texture(&out));
    assert!(case.seam(&out) < 1.15, "seam {}", case.seam(&out));
}

#[test]
fn scratches_are_repaired_better_than_by_a_smooth_transition() {
    let scratch = |x: u32, y: u32| {
        let from = |line: u32, at: u32| at.abs_diff(line);
        from(2 * y, 3 * x) < 6 || from(150, x + y) < 2 || (60..68).contains(&y)
    };
    let case = Case::photo("astronaut.jpg", (150, 20), 200, scratch);
    let out = case.filled();
    let pixels: Vec<Pixel> =
        case.hole.iter().map(|hole| if *hole { Pixel::Hole } else { Pixel::Known }).collect();
    let mut smooth = level::Level::new(&case.rgb, 200, &pixels, 0);
    smooth::fill(&mut smooth);
    let smooth: Vec<u8> =
        smooth.samples.iter().flat_map(|s| [s[0] as u8, s[1] as u8, s[2] as u8]).collect();
    let (ours, theirs) = (case.error(&out), case.error(&smooth));
    assert!(ours < 0.9 * theirs, "off by {ours}, a smooth transition by {theirs}");
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let scene = |x: u32, y: u32| [noise(x / 3, y / 3), (x * y / 64) as u8, noise(x, y) / 2];
    let case = Case::new((150, 110), scene, |x, y| square(30, 80)(x, y) || x + 20 == y);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| case.filled())
    };
    let one = with(1);
    assert!(one == with(3) && one == with(2));
    let other = case.filled_with(&Settings { seed: 1, ..Settings::default() }).unwrap();
    assert!(one != other, "another seed must change the bytes");
}

#[test]
fn a_gray_picture_stays_gray() {
    let case = Case::new((90, 90), |x, y| [noise(x / 2, y / 2); 3], square(20, 60));
    for pixel in case.filled().chunks_exact(3) {
        assert!(pixel == [255, 0, 255] || pixel[0] == pixel[1] && pixel[1] == pixel[2]);
    }
}

#[test]
fn holes_at_the_border_and_in_the_corners_are_filled() {
    let at_border: [fn(u32, u32) -> bool; 4] =
        [|x, _| x < 30, |_, y| y > 60, |x, y| x < 25 && y < 25, |x, y| x > 70 || y < 12];
    for hole in at_border {
        let case = Case::new((100, 90), |x, _| [100 + (x % 8) as u8 * 10; 3], hole);
        let out = case.filled();
        assert!(case.error(&out) < 15.0, "off by {}", case.error(&out));
    }
}

#[test]
fn a_few_known_pixels_are_enough() {
    let colors = |x: u32, y: u32| [200, (100 + x) as u8, (50 + y) as u8];
    for known in [1, 2, 3, 6, 9] {
        let case = Case::new((64, 48), colors, |x, y| x >= known || y >= known);
        let out = case.filled();
        assert!(out.chunks_exact(3).all(|pixel| pixel[0].abs_diff(200) <= 30), "{known} known");
    }
    for size in [(1, 2), (2, 1), (5, 1), (1, 300), (300, 1), (6, 6), (7, 2)] {
        let case = Case::new(size, colors, |x, y| x + y > 0);
        let out = case.filled();
        assert!(out.chunks_exact(3).all(|pixel| pixel[0] == 200), "{size:?}");
    }
}

#[test]
fn an_empty_hole_changes_nothing_and_a_hole_everywhere_is_an_error() {
    for size in [(1, 1), (20, 9)] {
        let none = Case::new(size, |x, y| [noise(x, y); 3], |_, _| false);
        assert_eq!(none.filled(), none.rgb);
        let all = Case::new(size, |x, y| [noise(x, y); 3], |_, _| true);
        assert_eq!(all.filled_with(&Settings::default()), Err(FillError::NothingToCopy));
    }
    let nothing = Damaged { rgb: &[], width: 0, height: 0, hole: &[], hidden: None };
    let empty = fill(&nothing, &Settings::default(), &|| false);
    assert_eq!(empty, Ok(Vec::new()));
}

/// A wall with a bump at its right, on transparency; the hole covers the bump. From the transparent pixels around it, the
/// bump would look like the background.
#[test]
fn a_fill_copies_nothing_that_is_transparent() {
    let is_visible = |x: u32, y: u32| x < 32 || (x < 48 && (34..56).contains(&y));
    let wall = |x: u32, y: u32| [180 + noise(x, y) / 4, noise(y, x) / 4, 40];
    let picture = |x: u32, y: u32| if is_visible(x, y) { wall(x, y) } else { [128; 3] };
    let hole = |x: u32, y: u32| (24..60).contains(&x) && (28..62).contains(&y);
    let mut case = Case::new((96, 96), picture, hole);
    let hidden: Vec<bool> = (0..96 * 96).map(|at| !is_visible(at % 96, at / 96)).collect();
    let gray_pixels = |case: &Case| {
        let out = case.filled();
        let pixels = out.as_chunks::<3>().0.iter().enumerate();
        let is_gray = |[red, green, _]: [u8; 3]| red.saturating_sub(green) < 80;
        pixels.filter(|(at, pixel)| case.hole[*at] && !hidden[*at] && is_gray(**pixel)).count()
    };
    let gray = gray_pixels(&case);
    assert!(gray > 100, "the case is too easy: {gray} pixels");
    case.hidden = Some(hidden.clone());
    assert_eq!(gray_pixels(&case), 0);
    case.hole = hidden.iter().map(|hidden| !hidden).collect();
    assert_eq!(case.filled_with(&Settings::default()), Err(FillError::NothingToCopy));
}

#[test]
fn lengths_that_do_not_match_are_refused() {
    for (bytes, marks) in [(11, 4), (12, 3), (0, 0)] {
        let (rgb, hole) = (vec![0; bytes], vec![true; marks]);
        let wrong = Damaged { rgb: &rgb, width: 2, height: 2, hole: &hole, hidden: None };
        let out = fill(&wrong, &Settings::default(), &|| false);
        assert_eq!(
            out,
            Err(FillError::SizeMismatch { width: 2, height: 2, rgb: bytes, hole: marks })
        );
    }
}

#[test]
fn a_canceled_fill_stops() {
    let case = Case::new((120, 120), |x, y| [noise(x, y); 3], square(30, 90));
    let polls = Cell::new(0_u32);
    let run = |until: u32| {
        polls.set(0);
        let cancel = || {
            polls.set(polls.get() + 1);
            polls.get() > until
        };
        fill(&case.damaged(&case.rgb), &Settings::default(), &cancel)
    };
    assert!(run(u32::MAX).is_ok());
    let all = polls.get();
    assert!(all > 50, "polled {all} times");
    for until in [0, 1, all / 2, all - 1] {
        assert_eq!(run(until), Err(FillError::Canceled));
        assert_eq!(polls.get(), until + 1, "it continued after cancellation");
    }
}

#[test]
fn a_large_picture_is_searched_at_half_the_size() {
    let wave = |x: u32| (128.0 + 90.0 * (x as f32 / 16.0 * std::f32::consts::TAU).sin()) as u8;
    let case = Case::new((201, 161), |x, _| [wave(x); 3], square(50, 120));
    for max_pixels in [10_000, 3_000, 0] {
        let out = case.filled_with(&Settings { max_pixels, ..Settings::default() }).unwrap();
        if max_pixels > 5_000 {
            assert!(case.error(&out) < 25.0, "off by {}", case.error(&out));
        }
    }
}

#[test]
fn a_large_hole_is_as_sharp_as_its_surroundings() {
    let case = Case::new((220, 220), |x, y| [60 + noise(x, y) / 4; 3], square(40, 180));
    for max_pixels in [5_000, 16_000] {
        let out = case.filled_with(&Settings { max_pixels, ..Settings::default() }).unwrap();
        let (texture, seam) = (case.texture(&out), case.seam(&out));
        assert!((0.85..1.15).contains(&texture), "{max_pixels}: the contrast is {texture} times");
        assert!(seam < 1.2, "{max_pixels}: a step at the border is {seam} times as large");
    }
}
