//! Sample inputs for the checks and for measuring speed.

use retouch_catalog::FixMode;
use retouch_pixels::patch::{Canvas, Fit};
use retouch_pixels::{Picture, resize};

pub use crate::manifest::SAMPLE_SIDE;
use crate::painter::Painting;

/// Draws a disc on a gradient, a subject that every segmentation model should notice. `side` is at most
/// [`SAMPLE_SIDE`].
pub fn disc_on_gradient(side: u32) -> Picture {
    let radius = side * 5 / 16;
    let mut rgb = Vec::new();
    for y in 0..side {
        for x in 0..side {
            let distance = x.abs_diff(side / 2).pow(2) + y.abs_diff(side / 2).pow(2);
            let is_inside = distance < radius * radius;
            rgb.extend(if is_inside { [230, 120, 40] } else { [40, 60, 90 + y as u8] });
        }
    }
    Picture { width: side, height: side, rgb, alpha: None, gray: false, icc: None }
}

/// Draws noise: hardly two pixels are alike, so that anything missing around a tile shows.
pub fn noise(side: u32) -> Picture {
    let mut state = 1_u32;
    let samples = (0..side * side * 3).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let rgb = samples.collect();
    Picture { width: side, height: side, rgb, alpha: None, gray: false, icc: None }
}

/// Returns a painting of typical size for a canvas: a disc on a gradient with a hole in its middle.
pub fn sample_painting(canvas: Canvas, mode: FixMode) -> Painting {
    let side = sample_side(canvas);
    paint_of((side, side), mode)
}

/// Same, but not square unless the canvas is, and with sides that are odd multiples of `canvas.multiple_of` where crops have
/// any: a net that needs larger multiples fails on it.
pub fn odd_painting(canvas: Canvas, mode: FixMode) -> Painting {
    let (side, of) = (sample_side(canvas), canvas.multiple_of);
    let odd = |most: u32| of * (((most / of).max(1) - 1) / 2 * 2 + 1);
    let (width, height) = match canvas.fit {
        Fit::Square => (side, side),
        // The longer side always equals the canvas.
        Fit::Scale => (side, odd(side * 3 / 4)),
        Fit::Keep => (odd(side), odd(side * 3 / 4)),
    };
    paint_of((width, height), mode)
}

fn sample_side(canvas: Canvas) -> u32 {
    match canvas.fit {
        Fit::Keep => 128.min(canvas.side),
        Fit::Scale | Fit::Square => canvas.side,
    }
}

fn paint_of((width, height): (u32, u32), mode: FixMode) -> Painting {
    let picture = disc_on_gradient(SAMPLE_SIDE);
    let rgb = resize::resize_rgb(
        &picture.rgb,
        (picture.width as usize, picture.height as usize),
        (width as usize, height as usize),
    );
    let is_middle = |at: u32, side: u32| (side * 3 / 8..side * 5 / 8).contains(&at);
    let hole = (0..width * height)
        .map(|at| is_middle(at % width, width) && is_middle(at / width, height))
        .collect();
    let prompt = "a red circle".to_owned();
    Painting {
        width,
        height,
        rgb,
        hole,
        hidden: None,
        mode,
        prompt: prompt.clone(),
        caption: prompt,
        seed: 1,
    }
}
