//! The warm-up of painters: one crop is painted, and the result is plausible.

use retouch_catalog::FixMode;
use retouch_pixels::patch::Canvas;
use tokio_util::sync::CancellationToken;

use super::super::samples::{odd_painting, sample_painting};
use super::likeness::Differences;
use crate::painter::{Painter, Painting, Watch};
use crate::registry::steps::Outcome;

/// Maximum value of a sample in a hole that counts as black; a sample as near to white counts as white. Rounding and
/// compression stay below.
const NEAR: u8 = 2;

/// Paints a sample crop. The result must have the size of the crop and be neither black, white nor a single color.
pub fn run_painter(painter: &mut dyn Painter, canvas: Canvas, mode: FixMode) -> Outcome<()> {
    let painting = sample_painting(canvas, mode);
    match paint(painter, &painting) {
        Ok(out) => painted(&painting, wrong_hole(&painting, &out).or_else(|| single_color(&out))),
        Err(reason) => Outcome::refused(reason),
    }
}

/// Same for a net without a prompt, on a crop of odd sides unless its canvas is a square. Outside the hole, the result must
/// also resemble the crop: colors are matched there.
pub fn run_fill(painter: &mut dyn Painter, canvas: Canvas) -> Outcome<()> {
    let painting = odd_painting(canvas, FixMode::Remove);
    let Painting { width, height, .. } = painting;
    match paint(painter, &painting) {
        Ok(out) => {
            painted(&painting, wrong_hole(&painting, &out).or_else(|| unlike(&painting, &out)))
        }
        Err(reason) if width != height => Outcome::refused(format!(
            "sides of {width} × {height} fail: {reason}; set canvas.multiple_of to what the net needs, such as 8, or \
             canvas.fit = \"square\""
        )),
        Err(reason) => Outcome::refused(reason),
    }
}

fn painted(painting: &Painting, defect: Option<String>) -> Outcome<()> {
    let finding = format!("painted a hole of {} × {}", painting.width / 4, painting.height / 4);
    Outcome { finding, reasons: Vec::from_iter(defect), value: Some(()) }
}

/// Paints a crop. Returns R, G, B of each of its pixels.
fn paint(painter: &mut dyn Painter, painting: &Painting) -> Result<Vec<u8>, String> {
    let cancel = CancellationToken::new();
    let watch = Watch { progress: &|_| {}, heartbeat: &|| {}, cancel: &cancel };
    let out = painter.paint(painting, watch).map_err(|error| error.to_string())?;
    let (found, expected) = (out.len(), painting.rgb.len());
    if found == expected {
        Ok(out)
    } else {
        Err(format!("the result has {found} samples instead of {expected}"))
    }
}

/// Values that overflow 16 bits come out black, and a wrong brightest value makes everything nearly black or white.
fn wrong_hole(painting: &Painting, out: &[u8]) -> Option<String> {
    let inside = out.chunks_exact(3).zip(&painting.hole).filter(|(_, hole)| **hole);
    let mut inside = inside.flat_map(|(pixel, _)| pixel).copied();
    let is_black = inside.clone().all(|sample| sample <= NEAR);
    (is_black || inside.all(|sample| sample >= u8::MAX - NEAR)).then(|| {
        "the painted hole is entirely black or white; of a fill, check output_white, image.white, mask.fill, and mask.keep"
            .to_owned()
    })
}

/// Inside the hole a single color may be right, but the rest is a picture of a disc on a gradient.
fn single_color(out: &[u8]) -> Option<String> {
    let [first, rest @ ..] = out else { return None };
    let is_single = rest.iter().all(|sample| sample == first);
    is_single.then(|| format!("every sample of the result is {first}, even outside the hole"))
}

fn unlike(painting: &Painting, out: &[u8]) -> Option<String> {
    let mut differences = Differences::default();
    let pixels = out.as_chunks().0.iter().zip(painting.rgb.as_chunks().0);
    for ((found, expected), _) in pixels.zip(&painting.hole).filter(|(_, hole)| !**hole) {
        differences.add(found.map(f64::from), expected.map(f64::from));
    }
    let found = differences.describe()?;
    Some(format!(
        "outside the hole, the result does not resemble the picture: {found}; check output_white, image.white, mask.fill, \
         mask.keep, and the order R, G, B"
    ))
}
