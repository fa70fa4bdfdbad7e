//! Decodes a PNG row by row into the planes of a picture: 8 bits per sample, whatever the file stores.

use std::io::Cursor;

use png::{
    BitDepth, ColorType, Decoder, DecodingError, Info, InterlaceInfo, ScaledFloat, Transformations,
    expand_interlaced_row,
};

use crate::icc::{self, LINEAR, MAX_PROFILE_BYTES};

/// The memory for chunks before the pixels, in bytes: a profile, compressed and inflated, and EXIF data.
const CHUNK_BYTES: usize = 4 * MAX_PROFILE_BYTES;

/// The transfer functions of high dynamic range (ITU-T H.273): perceptual quantizer, and hybrid log-gamma.
const PQ: u8 = 16;
const HLG: u8 = 18;
/// Color primaries that are unknown or come from elsewhere.
const UNSPECIFIED: u8 = 2;
/// The color primaries that a profile can be made for: of sRGB, BT.2020, and Display P3.
const KNOWN_PRIMARIES: [u8; 3] = [1, 9, 12];

/// The planes of a decoded PNG, as stored (not rotated upright).
pub(super) struct Planes {
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// Alpha of every pixel; `None` if the file has no transparency.
    pub alpha: Option<Vec<u8>>,
    pub gray: bool,
    /// The embedded profile, unchecked, unless a PNG's `cICP` overrules it.
    pub icc: Option<Vec<u8>>,
    /// A profile for what the file states in numbers, unless it is of high dynamic range or like sRGB.
    pub stated: Option<Vec<u8>>,
}

/// Reads all rows.
///
/// # Errors
/// If the file is damaged or truncated, or its metadata takes more than [`CHUNK_BYTES`].
pub(super) fn read(bytes: &[u8]) -> Result<Planes, DecodingError> {
    let limits = png::Limits { bytes: CHUNK_BYTES };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info()?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let icc = reader.info().icc_profile.as_ref().filter(|_| !overrules_profile(reader.info()));
    let icc = icc.map(|profile| profile.to_vec());
    let stated = stated_profile(reader.info());
    let (color, depth) = reader.output_color_type();
    let mut rgb = vec![0; width * height * 3];
    let mut alpha = color_has_alpha(color).then(|| vec![0; width * height]);
    let (mut narrow, mut colors, mut opacity) = (Vec::new(), Vec::new(), Vec::new());
    let mut y = 0;
    while let Some(row) = reader.next_interlaced_row()? {
        let samples = if depth == BitDepth::Sixteen {
            let pairs = row.data().as_chunks::<2>().0.iter();
            narrow.clear();
            narrow.extend(pairs.map(|pair| to_eight_bits(u16::from_be_bytes(*pair))));
            &narrow
        } else {
            row.data()
        };
        colors.clear();
        opacity.clear();
        split(samples, color, &mut colors, &mut opacity);
        match row.interlace() {
            InterlaceInfo::Null(_) => {
                rgb[y * width * 3..][..colors.len()].copy_from_slice(&colors);
                if let Some(alpha) = &mut alpha {
                    alpha[y * width..][..opacity.len()].copy_from_slice(&opacity);
                }
                y += 1;
            }
            InterlaceInfo::Adam7(pass) => {
                expand_interlaced_row(&mut rgb, width * 3, &colors, pass, 24);
                if let Some(alpha) = &mut alpha {
                    expand_interlaced_row(alpha, width, &opacity, pass, 8);
                }
            }
        }
    }
    let gray = matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    Ok(Planes { rgb, alpha, gray, icc, stated })
}

/// Returns the color primaries and the transfer function that `cICP` states, if they say how to show 8-bit samples.
fn code_points(info: &Info<'_>) -> Option<(u8, u8)> {
    let points = info.coding_independent_code_points?;
    let (primaries, transfer) = (points.color_primaries, points.transfer_function);
    let is_usable = primaries != UNSPECIFIED && !matches!(transfer, PQ | HLG);
    is_usable.then_some((primaries, transfer))
}

/// Returns true if `cICP` says exactly how to show the samples.
fn overrules_profile(info: &Info<'_>) -> bool {
    code_points(info).is_some_and(|(primaries, _)| KNOWN_PRIMARIES.contains(&primaries))
}

/// Returns a profile for what a file states in numbers. `cICP` takes precedence over an embedded profile and over `sRGB`, and
/// `sRGB` over `gAMA` and `cHRM` (PNG 3, 4.3).
fn stated_profile(info: &Info<'_>) -> Option<Vec<u8>> {
    let is_gray = matches!(info.color_type, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    if info.coding_independent_code_points.is_some() {
        let (primaries, transfer) = code_points(info)?;
        return match (is_gray, transfer) {
            (false, _) => icc::of_code_points(primaries, transfer),
            (true, LINEAR) => icc::of_gamma(1.0, None, true),
            (true, _) => None,
        };
    }
    let exponent = info.gama_chunk.filter(|_| info.srgb.is_none())?;
    let point = |(x, y): (ScaledFloat, ScaledFloat)| (x.into_value(), y.into_value());
    let chromaticities = info.chrm_chunk.map(|stated| {
        [point(stated.white), point(stated.red), point(stated.green), point(stated.blue)]
    });
    icc::of_gamma(exponent.into_value(), chromaticities, is_gray)
}

const fn color_has_alpha(color: ColorType) -> bool {
    matches!(color, ColorType::GrayscaleAlpha | ColorType::Rgba)
}

/// Rounds a sample from 0 to 65535 to 0 to 255.
fn to_eight_bits(sample: u16) -> u8 {
    ((u32::from(sample) + 128) / 257) as u8
}

/// Appends R, G, B of every pixel of a row to `colors`, and its alpha, if it has any, to `opacity`.
fn split(samples: &[u8], color: ColorType, colors: &mut Vec<u8>, opacity: &mut Vec<u8>) {
    match color {
        ColorType::Rgb => colors.extend_from_slice(samples),
        ColorType::Rgba => {
            for [r, g, b, alpha] in samples.as_chunks().0 {
                colors.extend_from_slice(&[*r, *g, *b]);
                opacity.push(*alpha);
            }
        }
        ColorType::GrayscaleAlpha => {
            for [gray, alpha] in samples.as_chunks().0 {
                colors.extend_from_slice(&[*gray; 3]);
                opacity.push(*alpha);
            }
        }
        // Palettes are expanded, so the rest is gray.
        ColorType::Grayscale | ColorType::Indexed => {
            colors.extend(samples.iter().flat_map(|gray| [*gray; 3]));
        }
    }
}
