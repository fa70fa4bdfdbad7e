//! The map of a region, and the part of it that belongs to a click.

use super::region::{Point, Region};
use crate::mask::{SIDE, connected_component, distance_transform};

/// Minimum value of a pixel that more likely belongs to a subject than not.
pub(super) const HALF: u8 = 128;
/// The width of a subject's soft edge, in pixels of the reduced copy: about three pixels of a small net's output.
const SOFT_EDGE: u16 = 10;
/// A click may miss a subject by this share of the region's longer side.
const REACH: f32 = 0.01;
/// Parts smaller than this share of the largest one are noise.
const SMALLEST_PART: f32 = 0.02;

/// How probably each pixel of a region belongs to a subject.
#[derive(Clone, Debug)]
pub struct Map {
    pub region: Region,
    /// One value per pixel of the region, rows from the top: 0 is certainly not, 255 certainly.
    pub values: Vec<u8>,
}

/// One subject of a map, or all of them.
#[derive(Clone, Debug)]
pub struct Subject {
    pub(super) region: Region,
    /// The map's values within the subject and its soft edge, otherwise 0.
    pub(super) values: Vec<u8>,
    /// The bounding box of its certain pixels.
    pub bounds: Region,
    /// How certain the map is of it, 0 to 1: the mean value, less twice the share of the region's border that it
    /// touches inside the picture, where it is cut off.
    pub confidence: f32,
}

impl Subject {
    /// Returns the subject at a click: the pixels above one half that are connected with it (8-connectivity).
    pub fn at(map: &Map, click: Point, picture: (u32, u32)) -> Option<Self> {
        let start = nearest(map, click)?;
        let mut outside: Vec<_> = map.values.iter().map(|value| *value < HALF).collect();
        let mut piece = Vec::new();
        connected_component(start, &mut outside, map.region.width as usize, &mut piece);
        Some(Self::of(map, &piece, picture))
    }

    /// Returns all subjects of a map as one; `None` if it shows none.
    pub fn all(map: &Map, picture: (u32, u32)) -> Option<Self> {
        let mut seen: Vec<_> = map.values.iter().map(|value| *value < HALF).collect();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for start in 0..seen.len() {
            if !seen[start] {
                let mut part = Vec::new();
                connected_component(start, &mut seen, map.region.width as usize, &mut part);
                parts.push(part);
            }
        }
        let largest = parts.iter().map(Vec::len).max()?;
        parts.retain(|part| part.len() as f32 >= largest as f32 * SMALLEST_PART);
        Some(Self::of(map, &parts.concat(), picture))
    }

    fn of(map: &Map, piece: &[usize], picture: (u32, u32)) -> Self {
        let Region { left, top, width, height } = map.region;
        let mut inside = vec![false; map.values.len()];
        let (mut x, mut y) = ((u32::MAX, 0), (u32::MAX, 0));
        let (mut sum, mut cut) = (0_u64, 0_u32);
        for at in piece {
            inside[*at] = true;
            let (column, row) = (*at as u32 % width, *at as u32 / width);
            x = (x.0.min(column), x.1.max(column));
            y = (y.0.min(row), y.1.max(row));
            sum += u64::from(map.values[*at]);
            let is_cut = (column == 0 && left > 0)
                || (row == 0 && top > 0)
                || (column + 1 == width && left + width < picture.0)
                || (row + 1 == height && top + height < picture.1);
            cut += u32::from(is_cut);
        }
        let distance = distance_transform(&inside, width as usize);
        let near = |(value, distance): (&u8, u16)| {
            if distance <= SOFT_EDGE * SIDE { *value } else { 0 }
        };
        let values = map.values.iter().zip(distance).map(near).collect();
        let mean = sum as f32 / (piece.len().max(1) as f32 * 255.0);
        let cut = cut as f32 / (width + height) as f32;
        Self {
            region: map.region,
            values,
            bounds: Region {
                left: left + x.0,
                top: top + y.0,
                width: x.1 - x.0 + 1,
                height: y.1 - y.0 + 1,
            },
            confidence: (mean - cut).max(0.0),
        }
    }
}

/// Returns the pixel above one half that is nearest to a click, if one is in reach.
fn nearest(map: &Map, click: Point) -> Option<usize> {
    let region = map.region;
    if !region.contains(click) {
        return None;
    }
    let (x, y) = (click.x - region.left, click.y - region.top);
    let reach = (region.width.max(region.height) as f32 * REACH).ceil() as u32;
    let columns = x.saturating_sub(reach)..=(x + reach).min(region.width - 1);
    let rows = y.saturating_sub(reach)..=(y + reach).min(region.height - 1);
    rows.flat_map(|row| columns.clone().map(move |column| (column, row)))
        .filter(|(column, row)| map.values[(row * region.width + column) as usize] >= HALF)
        .min_by_key(|(column, row)| column.abs_diff(x).pow(2) + row.abs_diff(y).pow(2))
        .map(|(column, row)| (row * region.width + column) as usize)
}
