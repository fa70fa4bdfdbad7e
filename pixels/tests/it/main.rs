//! Tests of the crate's public functions on whole files and pictures.

mod formats;
mod halo;
mod hostile;
mod upload;

use std::fs;
use std::path::Path;

/// Reads a file in `pixels/tests`.
fn fixture(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Encodes a PNG without symmetry.
fn png(width: u32, height: u32) -> Vec<u8> {
    let pixels = image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x * 7) as u8, (y * 5) as u8, (x ^ y) as u8])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, image::ImageFormat::Png).expect("a PNG in memory");
    bytes.into_inner()
}
