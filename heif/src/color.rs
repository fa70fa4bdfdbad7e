//! Interprets the color numbers of a picture: a profile for wide gamuts, and tone mapping for high dynamic range.
//!
//! A JPEG defines its colors with an ICC profile; without one, they are sRGB. HEIC and AVIF may use numbers
//! (ITU-T H.273) instead.

use retouch_pixels::icc;

use crate::library::Nclx;

/// Perceptual quantizer (ITU-R BT.2100), in absolute brightness.
const PQ: i32 = 16;
/// Hybrid log-gamma (ITU-R BT.2100).
const HLG: i32 = 18;
const BT709: i32 = 1;
const DISPLAY_P3: i32 = 12;
/// The brightness of white paper in HDR, in cd/m² (ITU-R BT.2408).
const PAPER_NITS: f32 = 203.0;
/// The brightest that HLG shows on the display it is made for, in cd/m².
const HLG_PEAK_NITS: f32 = 1000.0;
/// Brightness up to this fraction of white paper is unchanged; highlights share the rest.
const KNEE: f32 = 0.7;
/// Steps of the table of encoded brightness. More than 8 bits, so that dark tones keep apart.
const STEPS: usize = 1 << 14;

impl Nclx {
    /// Returns whether the picture is brighter than a JPEG can represent.
    pub fn is_hdr(self) -> bool {
        matches!(self.transfer, PQ | HLG)
    }

    /// Returns the equivalent ICC profile; `None` for sRGB and indistinguishable color spaces.
    pub fn profile(self) -> Option<Vec<u8>> {
        icc::of_code_points(self.primaries.try_into().ok()?, self.transfer.try_into().ok()?)
    }

    /// Maps RGBA of high dynamic range, in little-endian pairs of bytes of `bits` bits, to 8-bit sRGB.
    pub fn tone_map(self, pairs: &[u8], bits: u32) -> Vec<u8> {
        let most = (1_u32 << bits) - 1;
        let light: Vec<f32> =
            (0..=most).map(|code| self.light(code as f32 / most as f32)).collect();
        let encoded: Vec<u8> = (0..=STEPS).map(|step| encode(step as f32 / STEPS as f32)).collect();
        let to_srgb = self.to_srgb();
        let mut rgba = Vec::with_capacity(pairs.len() / 2);
        for pixel in pairs.as_chunks::<8>().0 {
            let code = |at: usize| {
                u32::from(u16::from_le_bytes([pixel[2 * at], pixel[2 * at + 1]])).min(most)
            };
            let mut rgb = [0, 1, 2].map(|at| light[code(at) as usize]);
            if self.transfer == HLG {
                rgb = shown(rgb);
            }
            let rgb =
                to_srgb.map(|row| (row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2]).max(0.0));
            let brightest = rgb[0].max(rgb[1]).max(rgb[2]);
            let scale = if brightest > KNEE { compressed(brightest) / brightest } else { 1.0 };
            for sample in rgb {
                rgba.push(encoded[((sample * scale * STEPS as f32) as usize).min(STEPS)]);
            }
            rgba.push((code(3) * 255 / most) as u8);
        }
        rgba
    }

    /// Decodes a sample, 0 to 1, to light: 0 to 1, or for PQ in multiples of white paper.
    fn light(self, code: f32) -> f32 {
        if self.transfer == HLG {
            let (a, b, c) = (0.178_832_77, 0.284_668_92, 0.559_910_7);
            return if code <= 0.5 {
                code * code / 3.0
            } else {
                (((code - c) / a).exp() + b) / 12.0
            };
        }
        let (m1, m2) = (0.159_301_76, 78.843_75);
        let (c1, c2, c3) = (0.835_937_5, 18.851_563, 18.6875);
        let power = code.powf(1.0 / m2);
        let nits = 10_000.0 * ((power - c1).max(0.0) / (c2 - c3 * power)).powf(1.0 / m1);
        nits / PAPER_NITS
    }

    /// The matrix from the picture's primaries to the sRGB primaries.
    fn to_srgb(self) -> [[f32; 3]; 3] {
        match self.primaries {
            BT709 => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            DISPLAY_P3 => [
                [1.224_940_2, -0.224_940_2, 0.0],
                [-0.042_056_96, 1.042_056_9, 0.0],
                [-0.019_637_55, -0.078_636_05, 1.098_273_6],
            ],
            // Pictures of high dynamic range are in BT.2020 unless stated otherwise.
            _ => [
                [1.660_491, -0.587_641_1, -0.072_849_86],
                [-0.124_550_48, 1.132_899_9, -0.008_349_42],
                [-0.018_150_76, -0.100_578_9, 1.118_729_7],
            ],
        }
    }
}

/// Returns the light that a display of 1000 cd/m² shows for scene light in HLG, in multiples of white paper.
fn shown(rgb: [f32; 3]) -> [f32; 3] {
    let luminance = 0.2627 * rgb[0] + 0.678 * rgb[1] + 0.0593 * rgb[2];
    let gain = luminance.powf(0.2) * HLG_PEAK_NITS / PAPER_NITS;
    rgb.map(|sample| sample * gain)
}

/// Compresses brightness above the knee smoothly into the range from the knee to 1.
fn compressed(light: f32) -> f32 {
    let room = 1.0 - KNEE;
    KNEE + room * (1.0 - (-(light - KNEE) / room).exp())
}

/// Encodes light, 0 to 1, as sRGB.
fn encode(light: f32) -> u8 {
    let sample =
        if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    (sample * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const BT2020: i32 = 9;

    fn pairs(code: u16) -> Vec<u8> {
        [code, code, code, 1023].iter().flat_map(|sample| sample.to_le_bytes()).collect()
    }

    #[test]
    fn high_dynamic_range_keeps_mid_tones_and_compresses_highlights() {
        for (transfer, dark, paper, peak) in [(PQ, 300, 594, 1023), (HLG, 200, 767, 1023)] {
            let nclx = Nclx { primaries: BT2020, transfer };
            let gray = |code| {
                let rgba = nclx.tone_map(&pairs(code), 10);
                assert!(rgba[..3].iter().all(|sample| sample.abs_diff(rgba[0]) <= 1), "{rgba:?}");
                assert_eq!(rgba[3], 255);
                rgba[0]
            };
            // White paper is nearly white, and highlights remain distinguishable from it.
            assert!((230..=250).contains(&gray(paper)), "{transfer}: {}", gray(paper));
            assert!((20..=110).contains(&gray(dark)), "{transfer}: {}", gray(dark));
            assert_eq!((gray(0), gray(peak)), (0, 255));
        }
    }

    #[test]
    fn wide_gamuts_get_a_profile_and_srgb_none() {
        let profile = |primaries| Nclx { primaries, transfer: 13 }.profile();
        assert!(profile(DISPLAY_P3).is_some_and(|icc| icc.get(36..40) == Some(b"acsp")));
        assert!(profile(BT2020).is_some());
        assert_eq!((profile(BT709), profile(2)), (None, None));
        let linear = Nclx { primaries: BT709, transfer: 8 }.profile();
        assert!(linear.is_some_and(|icc| icc.get(36..40) == Some(b"acsp")));
    }
}
