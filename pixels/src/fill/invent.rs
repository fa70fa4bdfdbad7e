//! Invents colors for transparent pixels. The fill compares the hole with its surroundings, so these colors must not reveal
//! anything hidden: they continue the visible colors smoothly.

use super::level::{Level, Pixel};
use super::settings::Settings;
use super::smooth;

/// Replaces the color of every [`Pixel::Invented`] of a region in `rgb`, `width` pixels a row, unless nothing in the
/// region is visible.
pub fn colors(rgb: &mut [u8], width: usize, pixels: &[Pixel], settings: &Settings) {
    if !pixels.contains(&Pixel::Invented) || !pixels.contains(&Pixel::Known) {
        return;
    }
    let visible: Vec<Pixel> = pixels
        .iter()
        .map(|pixel| if *pixel == Pixel::Invented { Pixel::Hole } else { *pixel })
        .collect();
    let halvings = settings.halvings(width, pixels.len() / width);
    let mut level = Level::new(rgb, width, &visible, halvings);
    smooth::fill(&mut level);
    for (at, _) in pixels.iter().enumerate().filter(|(_, pixel)| **pixel == Pixel::Invented) {
        let below = ((at / width) >> halvings) * level.width + ((at % width) >> halvings);
        let [color @ .., _, _] = level.samples[below];
        rgb[at * 3..at * 3 + 3].copy_from_slice(&color.map(|value| (value + 0.5) as u8));
    }
}
