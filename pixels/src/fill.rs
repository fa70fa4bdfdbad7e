//! Classical: fills a hole in a picture from the rest of the picture, without a model.
//!
//! The hole is solved from a coarse size to the full one. At each size every patch that reaches into the
//! hole is matched with the patch of the picture most like it, and the matches vote on the hole's colours,
//! in turns (Wexler et al., PAMI 2007; Barnes et al., SIGGRAPH 2009; Newson et al., IPOL 2017). At the
//! full size every pixel becomes a copy of one pixel of the picture, and a membrane takes the steps of tone
//! out of the seams.
//!
//! Memory, besides the picture and its copy: a hole far from others is a region of its own, with at most 512
//! pixels around it. For the largest region about 12 bytes for each of its pixels, 140 for each pixel of its
//! hole, and 80 for each pixel at which it is searched: [`Settings::max_pixels`] of these at most.

mod blend;
mod compose;
mod error;
mod level;
mod peel;
mod regions;
mod search;
mod settings;
mod smooth;
mod solve;
mod strange;
#[cfg(test)]
mod tests;
mod vote;

use compose::Scene;
pub use error::FillError;
use error::Poll;
use level::Pixel;
pub use settings::Settings;

/// Fills the pixels that `hole` marks with what the rest of the picture suggests, and returns the picture.
/// Every other pixel keeps its bytes, and a gray picture stays gray.
///
/// `rgb` is R, G, B of `width * height` pixels, row by row; `hole` has one entry for each pixel. `cancel` is
/// asked, on the calling thread, several times a second. Runs on rayon's current pool; the result does not
/// depend on the number of its threads.
///
/// # Errors
/// [`FillError::Sizes`] when the lengths do not match, [`FillError::Everything`] when the whole picture is the
/// hole, [`FillError::Cancelled`] when `cancel` said true.
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
        return Err(FillError::Sizes { width, height, rgb: rgb.len(), hole: hole.len() });
    }
    let mut out = rgb.to_vec();
    if !hole.contains(&true) {
        return Ok(out);
    }
    if !hole.contains(&false) {
        return Err(FillError::Everything);
    }
    let poll = Poll(cancel);
    let (width, height) = (width as usize, height as usize);
    let mut left = hole.to_vec();
    for region in regions::regions(hole, width, height) {
        poll.check()?;
        let size = (region.x.len(), region.y.len());
        let mut colours = Vec::with_capacity(size.0 * size.1 * 3);
        let mut pixels = Vec::with_capacity(size.0 * size.1);
        for y in region.y.clone() {
            let row = y * width + region.x.start..y * width + region.x.end;
            colours.extend_from_slice(&out[row.start * 3..row.end * 3]);
            pixels.extend(row.map(|at| match (hole[at], left[at]) {
                (false, _) => Pixel::Known,
                (true, false) => Pixel::Made,
                (true, true) => Pixel::Hole,
            }));
        }
        let scene = Scene { rgb: &colours, pixels: &pixels, width: size.0, height: size.1 };
        let mut made = solve::solve(&scene, settings, poll)?.into_iter();
        for (at, _) in pixels.iter().enumerate().filter(|(_, pixel)| **pixel == Pixel::Hole) {
            let (x, y) = (region.x.start + at % size.0, region.y.start + at / size.0);
            let colour = made.next();
            if let Some(colour) =
                colour.filter(|_| region.core_x.contains(&x) && region.core_y.contains(&y))
            {
                let at = y * width + x;
                out[at * 3..at * 3 + 3].copy_from_slice(&colour);
                left[at] = false;
            }
        }
    }
    Ok(out)
}
