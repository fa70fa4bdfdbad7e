//! Fills a hole in a picture from the rest of the picture, without a model (exemplar-based inpainting).
//!
//! The hole is solved from a coarse size to the full size. At each size, two steps alternate: every patch that overlaps
//! the hole is matched with the most similar patch of the picture, and the matches vote on the hole's colors (Wexler et
//! al., PAMI 2007; Barnes et al., SIGGRAPH 2009; Newson et al., IPOL 2017). At the full size every pixel becomes a copy
//! of one pixel of the picture, and a Poisson blend removes differences in tone at the seams.
//!
//! Memory beyond the picture and its copy stays bounded: distant parts of the hole are solved one by one, each with at
//! most 512 pixels of context. The largest region takes about 12 bytes per pixel, 140 per pixel of its hole, and 80 per
//! pixel of the finest level searched (at most [`Settings::max_pixels`]).

mod blend;
mod compose;
mod context_cost;
mod error;
mod level;
mod peel;
mod regions;
mod search;
mod settings;
mod smooth;
mod solve;
#[cfg(test)]
mod tests;
mod vote;

use compose::Scene;
pub use error::FillError;
use error::Poll;
use level::Pixel;
pub use settings::Settings;

/// Fills the pixels that `hole` marks and returns the picture. No other pixel changes, and a gray picture stays gray.
///
/// `rgb` is R, G, B of `width * height` pixels, row by row; `hole` has one flag per pixel. `cancel` is called on the
/// calling thread several times a second and stops the fill by returning true. Runs on rayon's current pool; the
/// result does not depend on the number of threads.
///
/// # Errors
/// [`FillError::SizeMismatch`] if the lengths do not match, [`FillError::NothingToCopy`] if the hole covers the whole
/// picture, [`FillError::Canceled`] if `cancel` returned true.
pub fn fill(
    rgb: &[u8],
    width: u32,
    height: u32,
    hole: &[bool],
    settings: &Settings,
    cancel: &dyn Fn() -> bool,
) -> Result<Vec<u8>, FillError> {
    let count = width as usize * height as usize;
    if rgb.len() != count * 3 || hole.len() != count {
        return Err(FillError::SizeMismatch { width, height, rgb: rgb.len(), hole: hole.len() });
    }
    let mut out = rgb.to_vec();
    if !hole.contains(&true) {
        return Ok(out);
    }
    if !hole.contains(&false) {
        return Err(FillError::NothingToCopy);
    }
    let poll = Poll(cancel);
    let (width, height) = (width as usize, height as usize);
    let mut unfilled = hole.to_vec();
    for region in regions::regions(hole, width, height) {
        poll.check()?;
        let size = (region.x.len(), region.y.len());
        let mut colors = Vec::with_capacity(size.0 * size.1 * 3);
        let mut pixels = Vec::with_capacity(size.0 * size.1);
        for y in region.y.clone() {
            let row = y * width + region.x.start..y * width + region.x.end;
            colors.extend_from_slice(&out[row.start * 3..row.end * 3]);
            pixels.extend(row.map(|at| match (hole[at], unfilled[at]) {
                (false, _) => Pixel::Known,
                (true, false) => Pixel::Synthesized,
                (true, true) => Pixel::Hole,
            }));
        }
        let scene = Scene { rgb: &colors, pixels: &pixels, width: size.0, height: size.1 };
        let mut filled = solve::solve(&scene, settings, poll)?.into_iter();
        for (at, _) in pixels.iter().enumerate().filter(|(_, pixel)| **pixel == Pixel::Hole) {
            let (x, y) = (region.x.start + at % size.0, region.y.start + at / size.0);
            let color = filled.next();
            if let Some(color) =
                color.filter(|_| region.core_x.contains(&x) && region.core_y.contains(&y))
            {
                let at = y * width + x;
                out[at * 3..at * 3 + 3].copy_from_slice(&color);
                unfilled[at] = false;
            }
        }
    }
    Ok(out)
}
