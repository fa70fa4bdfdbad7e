//! Fills a hole in a picture from the rest of the picture, without a model (exemplar-based inpainting).
//!
//! The hole is solved from a coarse size to the full size. At each size, two steps alternate: every patch that overlaps
//! the hole is matched with the most similar patch of the picture, and the matches vote on the hole's colors (Wexler et
//! al., PAMI 2007; Barnes et al., SIGGRAPH 2009; Newson et al., IPOL 2017). At the full size every pixel becomes a copy
//! of one pixel of the picture, and a Poisson blend removes differences in tone at the seams; those of a large hole are
//! placed and blended at a smaller size.
//!
//! Memory beyond the picture and its copy stays bounded: distant parts of the hole are solved one by one, each with at
//! most 512 pixels of context. The largest region takes about 12 bytes per pixel and 8 per pixel of its hole, 80 per pixel
//! of the finest level searched, and 140 per pixel of the hole at the size of its seams (both have at most
//! [`Settings::max_pixels`]).

mod blend;
mod compose;
mod context_cost;
mod error;
mod invent;
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

/// A picture with a hole.
#[derive(Clone, Copy, Debug)]
pub struct Damaged<'a> {
    /// R, G, B of `width * height` pixels, row by row.
    pub rgb: &'a [u8],
    pub width: u32,
    pub height: u32,
    /// One flag per pixel: true where it is to be filled.
    pub hole: &'a [bool],
    /// One flag per pixel: true where it is transparent. The fill ignores the colors of such pixels outside the hole.
    pub hidden: Option<&'a [bool]>,
}

/// Fills the hole and returns R, G, B of the picture. No other pixel changes, and a gray picture stays gray.
///
/// `cancel` is called on the calling thread several times a second and stops the fill by returning true. Runs on
/// rayon's current pool; the result does not depend on the number of threads.
///
/// # Errors
/// [`FillError::SizeMismatch`] if the lengths do not match, [`FillError::NothingToCopy`] if the hole covers all that
/// is visible, [`FillError::Canceled`] if `cancel` returned true.
pub fn fill(
    &Damaged { rgb, width, height, hole, hidden }: &Damaged<'_>,
    settings: &Settings,
    cancel: &dyn Fn() -> bool,
) -> Result<Vec<u8>, FillError> {
    let count = width as usize * height as usize;
    let fits = rgb.len() == count * 3 && hidden.is_none_or(|hidden| hidden.len() == count);
    if !fits || hole.len() != count {
        return Err(FillError::SizeMismatch { width, height, rgb: rgb.len(), hole: hole.len() });
    }
    let mut out = rgb.to_vec();
    if !hole.contains(&true) {
        return Ok(out);
    }
    let is_hidden = |at: usize| hidden.is_some_and(|hidden| hidden[at]);
    if (0..count).all(|at| hole[at] || is_hidden(at)) {
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
                (false, _) if is_hidden(at) => Pixel::Invented,
                (false, _) => Pixel::Known,
                (true, false) => Pixel::Synthesized,
                (true, true) => Pixel::Hole,
            }));
        }
        invent::colors(&mut colors, size.0, &pixels, settings);
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
