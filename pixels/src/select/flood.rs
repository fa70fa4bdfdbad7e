//! Selects by color alone, for clicks where no subject was found.

use super::region::Point;
use super::scene::Rgb;

/// Maximum difference of a channel to the clicked color.
const TO_CLICK: i16 = 26;
/// Maximum difference of a channel between neighbors.
const TO_NEIGHBOR: u8 = 12;

/// Returns the pixels that are connected with a click (4-connectivity) through pixels of its color. A smooth change of
/// color is followed, an edge is not crossed.
pub(super) fn like(picture: &Rgb, click: Point) -> Vec<usize> {
    let (width, height) = (picture.width, picture.height);
    let start = click.y as usize * width + click.x as usize;
    let color = mean_around(picture, click);
    let is_alike = |at: usize| {
        let pixel = picture.pixel(at);
        (0..3).all(|channel| (i16::from(pixel[channel]) - color[channel]).abs() <= TO_CLICK)
    };
    let mut seen = vec![false; width * height];
    seen[start] = true;
    let mut found = vec![start];
    let mut next = 0;
    while let Some(&at) = found.get(next) {
        next += 1;
        let (x, y) = (at % width, at / width);
        let beside = [
            (x > 0).then(|| at - 1),
            (x + 1 < width).then(|| at + 1),
            (y > 0).then(|| at - width),
            (y + 1 < height).then(|| at + width),
        ];
        for other in beside.into_iter().flatten() {
            if !seen[other] && picture.difference(at, other) <= TO_NEIGHBOR && is_alike(other) {
                seen[other] = true;
                found.push(other);
            }
        }
    }
    found
}

/// Returns the mean R, G, B of the 5 × 5 pixels around a point.
fn mean_around(picture: &Rgb, point: Point) -> [i16; 3] {
    let (mut sums, mut count) = ([0_i32; 3], 0);
    let (x, y) = (point.x as usize, point.y as usize);
    for row in y.saturating_sub(2)..(y + 3).min(picture.height) {
        for column in x.saturating_sub(2)..(x + 3).min(picture.width) {
            let pixel = picture.pixel(row * picture.width + column);
            for channel in 0..3 {
                sums[channel] += i32::from(pixel[channel]);
            }
            count += 1;
        }
    }
    sums.map(|sum| (sum / count) as i16)
}
