//! A picture in memory.

use rayon::prelude::*;

use crate::icc;
use crate::over::over;

/// What shows through in [`Picture::on_gray`].
const GRAY: [u8; 4] = [128, 128, 128, u8::MAX];

/// A decoded picture: 8-bit RGB, upright, rows from the top without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// R, G, B of every pixel: `width * height * 3` bytes.
    pub rgb: Vec<u8>,
    /// Alpha, `width * height` bytes; `None` if every pixel is opaque.
    pub alpha: Option<Vec<u8>>,
    /// Whether the file holds gray samples; then R, G and B are equal.
    pub gray: bool,
    /// The ICC profile that describes the file's RGB or gray samples, unchanged.
    pub icc: Option<Vec<u8>>,
}

impl Picture {
    /// Creates a picture of RGBA samples with straight alpha, `width * height * 4` bytes. A profile of gray samples becomes one
    /// of RGB; one that is oversized, damaged, or of another color space is dropped.
    pub fn from_rgba(width: u32, height: u32, mut samples: Vec<u8>, icc: Option<Vec<u8>>) -> Self {
        let alpha = split_alpha(&mut samples);
        let alpha = alpha.iter().any(|value| *value != u8::MAX).then_some(alpha);
        let is_sound = |profile: &Vec<u8>| {
            icc::describes(profile, *b"RGB ") || icc::describes(profile, *b"GRAY")
        };
        let icc =
            icc.filter(is_sound).and_then(|profile| Some(icc::of_rgb(&profile)?.into_owned()));
        Self { width, height, rgb: samples, alpha, gray: false, icc }
    }

    /// Puts the picture on gray, which makes it opaque. Nets and the search for edges take no alpha, and the colors under
    /// transparent pixels are arbitrary. Spreading visible colors instead hides shapes of one color from a net.
    #[must_use]
    pub fn on_gray(mut self) -> Self {
        if let Some(alpha) = self.alpha.take() {
            let runs = self.rgb.par_chunks_mut(3 << 16).zip(alpha.par_chunks(1 << 16));
            runs.for_each(|(rgb, alpha)| {
                for (pixel, alpha) in rgb.as_chunks_mut::<3>().0.iter_mut().zip(alpha) {
                    let [r, g, b] = *pixel;
                    let [seen @ .., _] = over([r, g, b, *alpha], GRAY);
                    *pixel = seen;
                }
            });
        }
        self
    }

    /// Converts a gray picture and its profile to RGB, so that it can take colors. The picture stays gray if that is
    /// impossible.
    pub fn allow_colors(&mut self) {
        let Some(profile) = &self.icc else {
            self.gray = false;
            return;
        };
        if let Some(profile) = icc::of_rgb(profile) {
            self.icc = Some(profile.into_owned());
            self.gray = false;
        }
    }

    pub const fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}

/// Takes alpha out of RGBA samples, and leaves RGB. In place: a second copy would double the memory.
pub(crate) fn split_alpha(samples: &mut Vec<u8>) -> Vec<u8> {
    let alpha = samples.as_chunks::<4>().0.iter().map(|pixel| pixel[3]).collect();
    let pixels = samples.len() / 4;
    for pixel in 1..pixels {
        samples.copy_within(pixel * 4..pixel * 4 + 3, pixel * 3);
    }
    samples.truncate(pixels * 3);
    samples.shrink_to_fit();
    alpha
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use moxcms::ColorProfile;

    use super::*;

    #[test]
    fn rgba_samples_keep_profiles_of_gray_as_profiles_of_rgb() {
        let encoded = |profile: ColorProfile| profile.encode().expect("it encodes");
        let kept = |profile: &[u8]| {
            Picture::from_rgba(1, 1, vec![90, 90, 90, 255], Some(profile.to_vec())).icc
        };
        let gray = encoded(ColorProfile::new_gray_with_gamma(1.0));
        assert_eq!(kept(&gray), icc::of_rgb(&gray).map(Cow::into_owned));
        assert!(kept(&gray).is_some());
        let wide = encoded(ColorProfile::new_display_p3());
        assert_eq!(kept(&wide), Some(wide.clone()));
        assert_eq!(kept(&gray[..gray.len() - 1]), None, "it is damaged");
    }
}
