//! The tiling step: with exact tiling, tiles equal the same part of the whole picture's result.

use retouch_pixels::tile::Region;

use super::run::{enlarge, side_in_one_tile, whole_of};
use super::samples::noise;
use crate::device::Device;
use crate::manifest::{Element, Precision, Upscale};
use crate::registry::steps::Outcome;
use crate::session::PictureNet;

/// Odd, like the sides of many real pictures.
const PICTURE_SIDE: u32 = 33;

/// Compares two tiles with the whole picture: the top left one, with neighbors at the right and below, and the bottom
/// right one, with neighbors at the left and above.
pub fn compare(
    net: &mut PictureNet,
    upscale: &Upscale,
    device: Device,
    precision: Precision,
) -> Outcome<()> {
    // Other shapes may be summed in another order, and on a GPU or in half precision with half as many digits.
    let is_half = precision == Precision::F16
        || [upscale.input.element, upscale.output.element].contains(&Element::F16);
    let accepted = match device {
        Device::Cpu if !is_half => 1,
        Device::Cpu | Device::Cuda => 4,
    };
    let levels = match largest_difference(net, upscale) {
        Ok(levels) => levels,
        Err(reason) => return Outcome::refused(reason),
    };
    let padding = upscale.tiling.padding;
    let reasons = Vec::from_iter((levels > accepted).then(|| {
        format!(
            "tiles differ from the whole picture by up to {levels} of 255 levels, but at most {accepted} is accepted; \
             tiling.padding = {padding} is less than the model's receptive radius: increase it, or set \
             tiling.mode = \"blend\""
        )
    }));
    let finding = format!("tiles differ from the whole picture by at most {levels} of 255 levels");
    Outcome { finding, reasons, value: Some(()) }
}

/// Returns the largest difference of a sample, in levels of 0..=255.
fn largest_difference(net: &mut PictureNet, upscale: &Upscale) -> Result<u8, String> {
    let picture_side = side_in_one_tile(upscale, PICTURE_SIDE);
    let cut = picture_side / 2 + 1;
    let picture = noise(picture_side);
    let whole = enlarge(net, upscale, &picture, &whole_of(&picture))?;
    let scale = upscale.upscale.scale as usize;
    let mut largest = 0;
    for side in [0..cut, cut..picture_side] {
        let region = Region { x: side.clone(), y: side };
        let tile = enlarge(net, upscale, &picture, &region)?;
        let (start, width) = (region.x.start as usize * scale, region.width() as usize * scale);
        let rows = whole.chunks_exact(picture_side as usize * scale * 3).skip(start);
        let same = rows.flat_map(|row| &row[start * 3..(start + width) * 3]);
        let differences = same.zip(&tile).map(|(a, b)| a.abs_diff(*b));
        largest = differences.fold(largest, u8::max);
    }
    Ok(largest)
}
