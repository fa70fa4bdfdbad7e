//! Judges refined edges on synthetic cutouts whose alpha and colors are known.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::*;
use crate::foreground::cut_out;

const WIDTH: usize = 480;
const HEIGHT: usize = 360;
/// Pixels per cell of the map, as for a photo of 12 megapixels and a map of 1024 × 1024.
const REDUCTION: usize = 4;

type Rgb = [f32; 3];

struct Matte {
    name: &'static str,
    alpha: Vec<f32>,
    color: fn(usize, usize) -> Rgb,
}

/// The errors of a cutout: smaller is better.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    /// The sum of absolute differences of alpha.
    sad: f32,
    /// The sum of squared differences of alpha's gradient.
    gradient: f32,
    /// The mean absolute difference of colors where the true alpha is soft, in 0..=255.
    color: f32,
}

struct Dice(ChaCha8Rng);

impl Dice {
    fn within(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.0.next_u32() as f32 / u32::MAX as f32)
    }
}

fn each_pixel(mut of: impl FnMut(f32, f32) -> f32) -> Vec<f32> {
    (0..WIDTH * HEIGHT).map(|at| of((at % WIDTH) as f32 + 0.5, (at / WIDTH) as f32 + 0.5)).collect()
}

/// Draws a line with round ends and antialiased sides.
fn stroke(alpha: &mut [f32], from: (f32, f32), to: (f32, f32), width: f32) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let squared = (dx * dx + dy * dy).max(1e-6);
    let range = |a: f32, b: f32, end: usize| {
        let reach = width / 2.0 + 1.0;
        ((a.min(b) - reach).max(0.0) as usize)..((a.max(b) + reach).max(0.0) as usize + 1).min(end)
    };
    for y in range(from.1, to.1, HEIGHT) {
        for x in range(from.0, to.0, WIDTH) {
            let (px, py) = (x as f32 + 0.5 - from.0, y as f32 + 0.5 - from.1);
            let along = ((px * dx + py * dy) / squared).clamp(0.0, 1.0);
            let distance = (px - along * dx).hypot(py - along * dy);
            let covered = (width / 2.0 + 0.5 - distance).clamp(0.0, width.min(1.0));
            let alpha = &mut alpha[y * WIDTH + x];
            *alpha = alpha.max(covered);
        }
    }
}

fn ellipse(radius: (f32, f32)) -> Vec<f32> {
    let (cx, cy) = (WIDTH as f32 / 2.0, HEIGHT as f32 / 2.0);
    each_pixel(|x, y| {
        let distance = ((x - cx) / radius.0).hypot((y - cy) / radius.1);
        ((1.0 - distance) * radius.0.min(radius.1)).clamp(0.0, 1.0)
    })
}

/// Strands that grow from an ellipse: `bend` is how much each of their parts turns at most, in radians.
fn strands(count: usize, length: (f32, f32), width: (f32, f32), bend: f32) -> Vec<f32> {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(7));
    let mut alpha = ellipse((110.0, 80.0));
    for _ in 0..count {
        let mut angle = dice.within(0.0, std::f32::consts::TAU);
        let mut at =
            (WIDTH as f32 / 2.0 + 106.0 * angle.cos(), HEIGHT as f32 / 2.0 + 76.0 * angle.sin());
        let step = dice.within(length.0, length.1) / 8.0;
        let width = dice.within(width.0, width.1);
        for _ in 0..8 {
            let to = (at.0 + step * angle.cos(), at.1 + step * angle.sin());
            stroke(&mut alpha, at, to, width);
            (at, angle) = (to, angle + dice.within(-bend, bend));
        }
    }
    alpha
}

fn strings() -> Vec<f32> {
    let mut alpha = vec![0.0; WIDTH * HEIGHT];
    for at in (60..420).step_by(14) {
        stroke(&mut alpha, (at as f32, 40.0), (at as f32 + 9.0, 320.0), 2.0);
    }
    for at in (40..330).step_by(14) {
        stroke(&mut alpha, (60.0, at as f32 + 9.0), (410.0, at as f32), 2.0);
    }
    alpha
}

/// Strokes of several widths, close together as in letters.
fn lettering() -> Vec<f32> {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(11));
    let mut alpha = vec![0.0; WIDTH * HEIGHT];
    for (row, size) in [(40.0, 60.0), (130.0, 30.0), (180.0, 30.0), (230.0, 16.0), (260.0, 16.0)] {
        let mut left = 20.0;
        while left + size < WIDTH as f32 - 20.0 {
            for _ in 0..3 {
                let mut end =
                    || (left + dice.within(0.0, 0.7) * size, row + dice.within(0.0, 1.0) * size);
                let (from, to) = (end(), end());
                stroke(&mut alpha, from, to, size / 9.0);
            }
            left += size * 0.8;
        }
    }
    alpha
}

/// A pane that lets a third of the background through, with a solid frame.
fn glass() -> Vec<f32> {
    each_pixel(|x, y| {
        let inside = (x - 100.0).min(380.0 - x).min(y - 50.0).min(310.0 - y);
        let frame = (8.0 - inside).clamp(0.0, 1.0);
        inside.clamp(0.0, 1.0) * (0.35 + 0.65 * frame)
    })
}

/// An edge that is 40 pixels wide, as of an object out of focus.
fn out_of_focus() -> Vec<f32> {
    let (cx, cy) = (WIDTH as f32 / 2.0, HEIGHT as f32 / 2.0);
    each_pixel(|x, y| {
        let depth = ((120.0 - (x - cx).hypot(y - cy)) / 40.0 + 0.5).clamp(0.0, 1.0);
        depth * depth * (3.0 - 2.0 * depth)
    })
}

fn mattes() -> Vec<Matte> {
    let brown = |x: usize, y: usize| [70.0 + x as f32 / 12.0, 45.0 + y as f32 / 12.0, 30.0];
    let white = |x: usize, _: usize| [225.0, 228.0 - x as f32 / 24.0, 210.0];
    let red = |_: usize, y: usize| [200.0, 40.0 + y as f32 / 6.0, 40.0];
    let cloth = |x: usize, y: usize| {
        let weave = 25.0 * ((x as f32 / 3.0).sin() + (y as f32 / 4.0).sin());
        [120.0 + weave, 90.0 + weave, 150.0 - weave]
    };
    vec![
        Matte { name: "hair", alpha: strands(160, (30.0, 90.0), (0.6, 2.2), 0.25), color: brown },
        Matte { name: "fur", alpha: strands(1500, (6.0, 18.0), (0.8, 2.0), 0.1), color: cloth },
        Matte { name: "strings", alpha: strings(), color: white },
        Matte { name: "lettering", alpha: lettering(), color: red },
        Matte { name: "glass", alpha: glass(), color: white },
        Matte { name: "out of focus", alpha: out_of_focus(), color: cloth },
    ]
}

const GROUNDS: [fn(usize, usize) -> Rgb; 3] = [
    |x, y| [40.0 + x as f32 / 6.0, 110.0, 90.0 + y as f32 / 3.0],
    // Leaves: blotches of two greens.
    |x, y| {
        let blotch = (x as f32 / 11.0).sin() * (y as f32 / 7.0).cos() + (x as f32 / 5.0).cos();
        [60.0 + 15.0 * blotch, 130.0 + 40.0 * blotch, 50.0]
    },
    // Noise, as of gravel.
    |x, y| {
        let hash = (x as u32).wrapping_mul(0x9E37_79B1) ^ (y as u32).wrapping_mul(0x85EB_CA6B);
        let noise = (hash.wrapping_mul(0xC2B2_AE35) >> 24) as f32 / 4.0;
        [150.0 + noise, 145.0 + noise, 160.0 + noise]
    },
];

fn compose(matte: &Matte, ground: fn(usize, usize) -> Rgb) -> Picture {
    let mut rgb = Vec::new();
    for (at, alpha) in matte.alpha.iter().enumerate() {
        let (x, y) = (at % WIDTH, at / WIDTH);
        for (front, back) in (matte.color)(x, y).into_iter().zip(ground(x, y)) {
            rgb.push((alpha * front + (1.0 - alpha) * back + 0.5) as u8);
        }
    }
    Picture { width: WIDTH as u32, height: HEIGHT as u32, rgb, alpha: None, gray: false, icc: None }
}

/// Returns the map of a net that is right: the mean of every cell.
fn reduced(alpha: &[f32]) -> Vec<f32> {
    let mut map = vec![0.0; WIDTH / REDUCTION * (HEIGHT / REDUCTION)];
    for (at, alpha) in alpha.iter().enumerate() {
        let (x, y) = (at % WIDTH / REDUCTION, at / WIDTH / REDUCTION);
        map[y * (WIDTH / REDUCTION) + x] += alpha / (REDUCTION * REDUCTION) as f32;
    }
    map
}

/// Blurs a map as nets do, by weights of 1, 2, and 1 along both axes.
fn blurred(map: &[f32]) -> Vec<f32> {
    let (columns, rows) = (WIDTH / REDUCTION, HEIGHT / REDUCTION);
    let at = |x: usize, y: usize| map[y.min(rows - 1) * columns + x.min(columns - 1)];
    let along =
        |x: usize, y: usize| (at(x.saturating_sub(1), y) + 2.0 * at(x, y) + at(x + 1, y)) / 4.0;
    let place = |at: usize| (at % columns, at / columns);
    (0..map.len())
        .map(place)
        .map(|(x, y)| (along(x, y.saturating_sub(1)) + 2.0 * along(x, y) + along(x, y + 1)) / 4.0)
        .collect()
}

fn enlarged(map: &[f32]) -> Vec<u8> {
    let columns: Vec<_> = positions(WIDTH, WIDTH / REDUCTION).collect();
    let mut alpha = Vec::new();
    for row in positions(HEIGHT, HEIGHT / REDUCTION) {
        for column in &columns {
            let at = |y: usize| {
                let row = &map[y * (WIDTH / REDUCTION)..];
                row[column.first] + (row[column.second] - row[column.first]) * column.share
            };
            let value = at(row.first) + (at(row.second) - at(row.first)) * row.share;
            alpha.push((value * 255.0 + 0.5) as u8);
        }
    }
    alpha
}

fn errors(matte: &Matte, picture: &Picture, alpha: &[u8]) -> Errors {
    let found: Vec<f32> = alpha.iter().map(|alpha| f32::from(*alpha) / 255.0).collect();
    let cutout = cut_out(picture, alpha);
    let mut errors = Errors::default();
    let mut soft = 0.0;
    for (at, alpha) in matte.alpha.iter().enumerate() {
        errors.sad += (alpha - found[at]).abs();
        if at % WIDTH > 0 && at >= WIDTH {
            for before in [at - 1, at - WIDTH] {
                errors.gradient +=
                    (alpha - matte.alpha[before] - found[at] + found[before]).powi(2);
            }
        }
        if *alpha > 0.02 && *alpha < 0.98 {
            soft += 1.0;
            let color = (matte.color)(at % WIDTH, at / WIDTH);
            for (channel, color) in color.into_iter().enumerate() {
                errors.color += (f32::from(cutout[at * 4 + channel]) - color).abs() / 3.0;
            }
        }
    }
    errors.color /= soft;
    errors
}

/// Returns the errors of a matte with its map enlarged and refined, over all grounds.
fn before_and_after(matte: &Matte, map: &[f32]) -> (Errors, Errors) {
    let (mut before, mut after) = (Errors::default(), Errors::default());
    for ground in GROUNDS {
        let picture = compose(matte, ground);
        let mut alpha = enlarged(map);
        let add = |sum: &mut Errors, errors: Errors| {
            sum.sad += errors.sad;
            sum.gradient += errors.gradient;
            sum.color += errors.color;
        };
        add(&mut before, errors(matte, &picture, &alpha));
        let map = Map { columns: WIDTH / REDUCTION, values: map };
        refine(&mut alpha, &map, &picture, None).expect("refined");
        add(&mut after, errors(matte, &picture, &alpha));
    }
    println!("{:12} {before:?}\n          -> {after:?}", matte.name);
    (before, after)
}

/// The sum of differences of 1 of 255 in every pixel.
const SPARE: f32 = (WIDTH * HEIGHT) as f32 / 255.0;

#[test]
fn refined_edges_are_closer_to_the_truth_than_enlarged_ones() {
    let (mut color_before, mut color_after) = (0.0, 0.0);
    for matte in mattes() {
        let (before, after) = before_and_after(&matte, &reduced(&matte.alpha));
        // A soft edge that was exact loses 1 of 255 per pixel at most.
        assert!(after.sad <= before.sad + 3.0 * SPARE, "alpha of {}", matte.name);
        // Beside its frame, alpha takes on some of the texture that shows through glass.
        let most = before.gradient + if matte.name == "glass" { 2.0 * SPARE } else { SPARE };
        assert!(after.gradient <= most, "gradient of {}", matte.name);
        assert!(after.color <= before.color * 1.01, "colors of {}", matte.name);
        color_before += before.color;
        color_after += after.color;
    }
    assert!(color_after < 0.75 * color_before, "{color_after} of {color_before}");
}

#[test]
fn refined_edges_are_closer_to_the_truth_if_the_map_is_blurred() {
    for matte in mattes() {
        let (before, after) = before_and_after(&matte, &blurred(&reduced(&matte.alpha)));
        if matte.name == "out of focus" {
            assert!(after.sad <= before.sad + SPARE && after.gradient <= before.gradient + SPARE);
        } else {
            assert!(after.sad < 0.75 * before.sad, "alpha of {}", matte.name);
            assert!(after.gradient < 0.95 * before.gradient, "gradient of {}", matte.name);
        }
    }
}

#[test]
fn an_even_map_and_a_map_as_large_as_the_picture_change_nothing() {
    let picture = compose(&mattes()[2], GROUNDS[2]);
    let cells = WIDTH / REDUCTION * (HEIGHT / REDUCTION);
    for value in [0_u8, 77, 255] {
        let mut alpha = vec![value; WIDTH * HEIGHT];
        let values = vec![f32::from(value) / 255.0; cells];
        refine(&mut alpha, &Map { columns: WIDTH / REDUCTION, values: &values }, &picture, None)
            .expect("refined");
        assert!(alpha.iter().all(|found| *found == value));
    }
    let values: Vec<f32> = (0..WIDTH * HEIGHT).map(|at| (at % 7) as f32 / 6.0).collect();
    let mut alpha = vec![3; WIDTH * HEIGHT];
    refine(&mut alpha, &Map { columns: WIDTH, values: &values }, &picture, None).expect("refined");
    assert!(alpha.iter().all(|found| *found == 3));
}

#[test]
fn refining_reaches_the_border_and_tiny_maps() {
    for (columns, rows) in [(1, 1), (1, 3), (2, 1), (3, 2)] {
        let picture = compose(&mattes()[0], GROUNDS[0]);
        let values: Vec<f32> = (0..columns * rows).map(|at| (at % 2) as f32).collect();
        let mut alpha = vec![128; WIDTH * HEIGHT];
        refine(&mut alpha, &Map { columns, values: &values }, &picture, None).expect("refined");
    }
}

/// Returns how far the refined alpha of a disc is from the truth on average, in 0..=255, where an edge is. With `tint` 0 the
/// picture is gray.
fn error_of_disc(front: f32, back: f32, tint: f32) -> f32 {
    let truth = ellipse((180.0, 130.0));
    let samples = truth.iter().flat_map(|alpha| {
        let gray = alpha * front + (1.0 - alpha) * back;
        [gray, gray * (1.0 - tint), gray * (1.0 - 2.0 * tint)]
    });
    let rgb = samples.map(|sample| (sample + 0.5) as u8).collect();
    let (width, height) = (WIDTH as u32, HEIGHT as u32);
    let picture = Picture { width, height, rgb, alpha: None, gray: tint == 0.0, icc: None };
    let map = reduced(&truth);
    let mut alpha = enlarged(&map);
    let values = Map { columns: WIDTH / REDUCTION, values: &map };
    refine(&mut alpha, &values, &picture, None).expect("refined");
    let at_edges = alpha.iter().zip(&truth).zip(enlarged(&map));
    let at_edges = at_edges.filter(|(_, enlarged)| (1..255).contains(enlarged));
    let errors: Vec<_> =
        at_edges.map(|((found, truth), _)| (f32::from(*found) - truth * 255.0).abs()).collect();
    errors.iter().sum::<f32>() / errors.len() as f32
}

#[test]
fn edges_of_gray_pictures_are_as_exact_as_those_of_colored_ones() {
    for (front, back) in [(235.0, 20.0), (15.0, 245.0), (200.0, 60.0)] {
        let [gray, colored] = [0.0, 0.1].map(|tint| error_of_disc(front, back, tint));
        println!("{front} on {back}: {gray} gray, {colored} colored");
        assert!(gray < 1.1 * colored, "{front} on {back}: {gray}, colored {colored}");
    }
}
