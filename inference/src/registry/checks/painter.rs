//! What is judged of what paints crops: one painting, and reference vectors where there are some.

use std::path::Path;

use retouch_catalog::FixMode;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::net::disc_on_gradient;
use crate::diffusion::verify;
use crate::painter::{Painter, Painting, Watch};
use crate::session::Runtime;
use retouch_pixels::patch::{Canvas, Fit};
use retouch_pixels::resize;

/// Paints a part of a picture once: it must come out whole, be more than black or white, and be no one colour
/// throughout.
pub fn paint_once(painter: &mut dyn Painter, canvas: Canvas, mode: FixMode) -> Outcome<()> {
    let painting = sample_painting(canvas, mode);
    let cancel = CancellationToken::new();
    let out = match painter.paint(&painting, Watch { progress: &|_| {}, cancel: &cancel }) {
        Ok(out) => out,
        Err(error) => return Outcome::refused(error.to_string()),
    };
    let mut reasons = Vec::new();
    if out.len() == painting.rgb.len() {
        let inside = out.chunks_exact(3).zip(&painting.hole).filter(|(_, hole)| **hole);
        let mut inside = inside.flat_map(|(pixel, _)| pixel).copied();
        // What 16 bits cannot hold comes out black.
        if inside.clone().all(|sample| sample == 0) || inside.all(|sample| sample == u8::MAX) {
            reasons.push("what it painted is nothing but black or white".to_owned());
        } else if let [first, rest @ ..] = out.as_slice()
            && rest.iter().all(|sample| sample == first)
        {
            // In the hole alone that may be right, in a picture with a disc on a gradient it is not.
            reasons.push(format!(
                "every sample of what it gave is {first}, inside of the hole and outside"
            ));
        }
    } else {
        reasons.push(format!("it made {} samples of {}", out.len(), painting.rgb.len()));
    }
    let finding = format!("painted a hole of {} × {}", painting.width / 4, painting.height / 4);
    Outcome { finding, reasons, value: Some(()) }
}

/// Something to paint on: a disc on a gradient with a square hole in it.
pub fn sample_painting(canvas: Canvas, mode: FixMode) -> Painting {
    let side = match canvas.fit {
        Fit::Keep => 128,
        Fit::Scale | Fit::Square => canvas.side,
    };
    let picture = disc_on_gradient();
    let rgb = resize::resize_rgb(
        &picture.rgb,
        (picture.width as usize, picture.height as usize),
        (side as usize, side as usize),
    );
    let middle = side * 3 / 8..side * 5 / 8;
    let hole = (0..side * side)
        .map(|at| middle.contains(&(at % side)) && middle.contains(&(at / side)))
        .collect();
    let words = "a red circle".to_owned();
    Painting {
        width: side,
        height: side,
        rgb,
        hole,
        mode,
        prompt: words.clone(),
        caption: words,
        seed: 1,
    }
}

/// Runs every case of a folder of reference vectors.
pub fn compare_with(folder: &Path, reference: &Path, runtime: &Runtime) -> Outcome<()> {
    match verify::verify(folder, reference, runtime) {
        Ok(cases) => {
            let reasons: Vec<_> =
                cases.iter().filter(|case| !case.passed()).map(ToString::to_string).collect();
            let finding = format!("{} reference cases", cases.len());
            Outcome { finding, reasons, value: Some(()) }
        }
        Err(error) => Outcome::refused(error.to_string()),
    }
}
