//! ICC color profiles: decides whether an embedded profile describes the decoded samples, limits its size, and makes
//! profiles for color spaces that a file states in numbers, and for gray samples that became RGB.

use std::borrow::Cow;

use moxcms::{
    Chromaticity, CicpColorPrimaries, CicpProfile, ColorPrimaries, ColorProfile, Layout,
    MatrixCoefficients, TransferCharacteristics, TransformOptions, XyY, curve_from_gamma,
};
use rayon::prelude::*;

/// Maximum size of a kept profile, in bytes. Display profiles take kilobytes, printer profiles up to half of this; a
/// compressed one of kilobytes can claim hundreds of megabytes.
pub(crate) const MAX_PROFILE_BYTES: usize = 1 << 20;

pub(crate) const MAX_THUMBNAIL_PROFILE_BYTES: usize = 64 << 10;

/// Returns true if a profile is small enough, well-formed and describes samples of this color space. A broken profile
/// must not be passed on, nor a CMYK profile, because the samples were converted to RGB.
///
/// Layout (ICC.1:2022): the profile's size at offset 0 (7.2.2), the color space at 16 (7.2.6), `acsp` at 36 (7.2.9),
/// the number of tags at 128, then signature, offset and size of each (7.3).
pub(crate) fn describes(profile: &[u8], space: [u8; 4]) -> bool {
    let field = |at: usize| {
        let bytes = profile.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
    };
    let is_within = |tag: usize| {
        let (offset, size) = (field(132 + tag * 12 + 4)?, field(132 + tag * 12 + 8)?);
        Some(offset >= 128 && offset.checked_add(size)? <= profile.len())
    };
    let has_sound_tags =
        |count: usize| count <= 1024 && (0..count).all(|tag| is_within(tag) == Some(true));
    profile.len() <= MAX_PROFILE_BYTES
        && field(0).is_some_and(|size| (132..=profile.len()).contains(&size))
        && profile.get(16..20) == Some(&space)
        && profile.get(36..40) == Some(b"acsp")
        && field(128).is_some_and(has_sound_tags)
}

/// The transfer function of samples in proportion to light (ITU-T H.273).
pub(crate) const LINEAR: u8 = 8;

/// Returns the profile of color primaries and a transfer function given as numbers of ITU-T H.273; `None` for those of sRGB and
/// others that look alike.
pub fn of_code_points(primaries: u8, transfer: u8) -> Option<Vec<u8>> {
    let is_linear = transfer == LINEAR;
    let color_primaries = match primaries {
        9 => CicpColorPrimaries::Bt2020,
        // Display P3.
        12 => CicpColorPrimaries::Smpte432,
        _ if is_linear => CicpColorPrimaries::Bt709,
        _ => return None,
    };
    // Programs that write numbers mean the curve of displays, whichever of the similar ones they name.
    let transfer_characteristics =
        if is_linear { TransferCharacteristics::Linear } else { TransferCharacteristics::Srgb };
    let profile = ColorProfile::new_from_cicp(CicpProfile {
        color_primaries,
        transfer_characteristics,
        matrix_coefficients: MatrixCoefficients::Identity,
        full_range: true,
    });
    profile.encode().ok()
}

/// The encoding exponent of displays that a PNG of sRGB states.
const SRGB_GAMMA: f32 = 0.45455;

/// The chromaticities (x, y) of sRGB: of white, red, green, and blue.
const SRGB_CHROMATICITIES: [(f32, f32); 4] =
    [(0.3127, 0.329), (0.64, 0.33), (0.3, 0.6), (0.15, 0.06)];

/// Returns the profile of samples whose file states an encoding exponent (`gAMA` of a PNG, 0.45455 for sRGB) and perhaps
/// the chromaticities of white, red, green, and blue (`cHRM`); otherwise those of sRGB. `None` if they look like sRGB, or
/// make no sense.
pub fn of_gamma(
    exponent: f32,
    chromaticities: Option<[(f32, f32); 4]>,
    is_gray: bool,
) -> Option<Vec<u8>> {
    let chromaticities = chromaticities.unwrap_or(SRGB_CHROMATICITIES);
    let both = chromaticities.iter().zip(SRGB_CHROMATICITIES);
    let is_narrow = both.into_iter().all(|((x, y), (other_x, other_y))| {
        (x - other_x).abs() < 0.005 && (y - other_y).abs() < 0.005
    });
    // libpng, too, takes exponents within 5 % for equal.
    let is_srgb = (exponent / SRGB_GAMMA - 1.0).abs() < 0.05 && (is_narrow || is_gray);
    if is_srgb || !(0.2..=2.0).contains(&exponent) {
        return None;
    }
    if is_gray {
        return ColorProfile::new_gray_with_gamma(1.0 / exponent).encode().ok();
    }
    let [white, red, green, blue] = chromaticities;
    let area = (green.0 - red.0) * (blue.1 - red.1) - (green.1 - red.1) * (blue.0 - red.0);
    if area.abs() < 0.01 || chromaticities.iter().any(|(_, y)| *y < 0.01) {
        return None;
    }
    let at = |(x, y): (f32, f32)| Chromaticity::new(x, y);
    let mut profile = ColorProfile::new_srgb();
    // Code points would overrule the numbers.
    profile.cicp = None;
    profile.description = None;
    profile.update_rgb_colorimetry(
        XyY::new(f64::from(white.0), f64::from(white.1), 1.0),
        ColorPrimaries { red: at(red), green: at(green), blue: at(blue) },
    );
    let curve = curve_from_gamma(1.0 / exponent);
    profile.red_trc = Some(curve.clone());
    profile.green_trc = Some(curve.clone());
    profile.blue_trc = Some(curve);
    profile.encode().ok()
}

/// Returns the profile of RGB samples for a profile of RGB or gray samples: itself, or one under which equal R, G and B look
/// as the gray sample did. `None` if the profile is of another color space, or states no curve for gray.
pub fn of_rgb(profile: &[u8]) -> Option<Cow<'_, [u8]>> {
    match profile.get(16..20)? {
        b"RGB " => Some(Cow::Borrowed(profile)),
        b"GRAY" => {
            let gray = ColorProfile::new_from_slice(profile).ok()?;
            let curve = gray.gray_trc.clone()?;
            let mut rgb = ColorProfile::new_srgb();
            // Code points would overrule the curves.
            rgb.cicp = None;
            rgb.red_trc = Some(curve.clone());
            rgb.green_trc = Some(curve.clone());
            rgb.blue_trc = Some(curve);
            rgb.description = gray.description;
            rgb.copyright = gray.copyright;
            rgb.rendering_intent = gray.rendering_intent;
            rgb.encode().ok().map(Cow::Owned)
        }
        _ => None,
    }
}

/// Converts RGB samples from one profile to another; `None` is sRGB. Samples stay as they are if a profile cannot be
/// computed with.
pub(crate) fn convert(rgb: &mut [u8], from: Option<&[u8]>, to: Option<&[u8]>) {
    if from == to {
        return;
    }
    let read = |profile: Option<&[u8]>| match profile {
        Some(profile) => ColorProfile::new_from_slice(&of_rgb(profile)?).ok(),
        None => Some(ColorProfile::new_srgb()),
    };
    let (Some(from), Some(to)) = (read(from), read(to)) else { return };
    let options = TransformOptions::default();
    let Ok(transform) = from.create_transform_8bit(Layout::Rgb, &to, Layout::Rgb, options) else {
        return;
    };
    rgb.par_chunks_mut(3 << 14).for_each(|samples| {
        let before = samples.to_vec();
        transform.transform(&before, samples).expect("both have the same whole pixels");
    });
}

#[cfg(test)]
mod tests {
    use moxcms::DataColorSpace;

    use super::*;

    /// Returns a profile of gray samples with a curve of this exponent.
    fn gray_profile(exponent: f32) -> Vec<u8> {
        let profile = ColorProfile::new_gray_with_gamma(exponent);
        assert_eq!(profile.color_space, DataColorSpace::Gray);
        profile.encode().expect("it encodes")
    }

    /// Returns how R, G, B in a profile look on a screen of sRGB.
    fn seen(profile: &[u8], samples: [u8; 3]) -> [u8; 3] {
        let profile = ColorProfile::new_from_slice(profile).expect("it reads");
        let (screen, options) = (ColorProfile::new_srgb(), TransformOptions::default());
        let transform = profile
            .create_transform_8bit(Layout::Rgb, &screen, Layout::Rgb, options)
            .expect("it works");
        let mut out = [0; 3];
        transform.transform(&samples, &mut out).expect("the lengths fit");
        out
    }

    #[test]
    fn an_exponent_and_chromaticities_become_a_profile_unless_they_are_those_of_srgb() {
        let rounded = SRGB_CHROMATICITIES.map(|(x, y)| (x + 0.001, y - 0.001));
        for chromaticities in [None, Some(SRGB_CHROMATICITIES), Some(rounded)] {
            assert_eq!(of_gamma(0.4545, chromaticities, false), None);
        }
        assert_eq!(of_gamma(0.4545, None, true), None);
        let linear = of_gamma(1.0, None, false).expect("a profile");
        assert!(describes(&linear, *b"RGB "));
        let [level, ..] = seen(&linear, [55; 3]);
        assert!(level.abs_diff(128) <= 2, "a linear 55 is the middle of sRGB, not {level}");
        assert!(describes(&of_gamma(1.0, None, true).expect("a profile"), *b"GRAY"));

        let adobe = [(0.3127, 0.329), (0.64, 0.33), (0.21, 0.71), (0.15, 0.06)];
        let wide = of_gamma(0.4545, Some(adobe), false).expect("a profile");
        let [red, green, _] = seen(&wide, [120, 200, 120]);
        assert!(red < 70 && green.abs_diff(200) < 8, "{red} {green}: green is deeper");
        let [red, green, blue] = seen(&wide, [200; 3]);
        assert!(red.abs_diff(green) <= 1 && green.abs_diff(blue) <= 1, "gray stays gray");

        let flat = [(0.3127, 0.329); 4];
        let zero = [(0.0, 0.0); 4];
        for (exponent, chromaticities) in [(1.0, flat), (1.0, zero), (0.0, adobe), (90.0, adobe)] {
            assert_eq!(of_gamma(exponent, Some(chromaticities), false), None);
        }
    }

    #[test]
    fn linear_samples_given_in_numbers_become_a_profile_with_any_primaries() {
        for primaries in [1, 2, 9, 12] {
            let profile = of_code_points(primaries, 8).expect("a profile");
            let [red, green, blue] = seen(&profile, [55; 3]);
            assert!(red.abs_diff(128) <= 2, "{primaries}: a linear 55 is the middle, not {red}");
            assert!(red.abs_diff(green) <= 1 && green.abs_diff(blue) <= 1, "gray stays gray");
        }
        let of_display = of_code_points(12, 13).expect("it is wide");
        assert!(seen(&of_display, [55; 3])[0].abs_diff(55) <= 1);
        assert_eq!((of_code_points(1, 13), of_code_points(2, 1)), (None, None));
    }

    #[test]
    fn gray_samples_look_the_same_as_rgb() {
        let gray = gray_profile(1.4);
        assert!(describes(&gray, *b"GRAY"));
        let rgb = of_rgb(&gray).expect("it has a curve");
        assert!(describes(&rgb, *b"RGB "));
        let seen = |profile: &[u8], layout: Layout, samples: &[u8]| {
            let profile = ColorProfile::new_from_slice(profile).expect("it reads");
            let screen = ColorProfile::new_srgb();
            let options = TransformOptions::default();
            let transform = profile
                .create_transform_8bit(layout, &screen, Layout::Rgb, options)
                .expect("it works");
            let mut out = vec![0; samples.len() / layout.channels() * 3];
            transform.transform(samples, &mut out).expect("the lengths fit");
            out
        };
        let samples: Vec<u8> = (0..=255).collect();
        let triples: Vec<u8> = samples.iter().flat_map(|sample| [*sample; 3]).collect();
        let (one, other) = (seen(&gray, Layout::Gray, &samples), seen(&rgb, Layout::Rgb, &triples));
        let apart = one.iter().zip(&other).map(|(one, other)| one.abs_diff(*other)).max();
        assert!(apart <= Some(1), "{apart:?}");
        assert!(other[3 * 100] > 130, "a curve of 1.4 is brighter than sRGB: {}", other[3 * 100]);
    }

    #[test]
    fn a_profile_of_rgb_stays_as_it_is_and_others_are_dropped() {
        let rgb = of_code_points(12, 13).expect("it is wide");
        assert_eq!(of_rgb(&rgb).as_deref(), Some(&*rgb));
        let mut gray = gray_profile(2.2);
        gray[16..20].copy_from_slice(b"CMYK");
        assert_eq!(of_rgb(&gray), None);
        let mut no_curve = ColorProfile::new_gray_with_gamma(2.2);
        no_curve.gray_trc = None;
        assert_eq!(of_rgb(&no_curve.encode().expect("it encodes")), None);
        assert_eq!(of_rgb(b"GRAY"), None);
    }

    #[test]
    fn only_well_formed_profiles_of_the_right_color_space_are_kept() {
        let mut profile = vec![0; 160];
        profile[..4].copy_from_slice(&160_u32.to_be_bytes());
        profile[16..20].copy_from_slice(b"RGB ");
        profile[36..40].copy_from_slice(b"acsp");
        profile[131] = 1; // one tag, of 16 bytes at 144
        profile[139] = 144;
        profile[143] = 16;
        assert!(describes(&profile, *b"RGB "));
        assert!(!describes(&profile, *b"GRAY"));
        assert!(!describes(&profile[..159], *b"RGB "), "it is truncated");
        profile[139] = 145;
        assert!(!describes(&profile, *b"RGB "), "its tag lies outside");
        assert!(!describes(b"RGB ", *b"RGB "));
        profile[139] = 144;
        profile.resize(MAX_PROFILE_BYTES, 0);
        assert!(describes(&profile, *b"RGB "));
        profile.push(0);
        assert!(!describes(&profile, *b"RGB "), "it is too large");
    }
}
